"""An example request for a model of KServe or Triton, by what the model says of itself.

The Open Inference Protocol (V2): https://github.com/kserve/open-inference-protocol,
specification/protocol/inference_rest.md. Its binary data are an extension of Triton's, which KServe has, too:
https://github.com/triton-inference-server/server, docs/protocol/extension_binary_data.md.
"""

import json
import math
import re
import shlex
import struct
from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.machine import request
from framestorm.run.values import headers_of

# What an answer of the protocol has, and one with an error has not.
EXPECT, EXPECT_V1 = "$.outputs[0].data", "$.predictions"
MOST_ELEMENTS = 1_000_000  # of an input: as JSON, about 4 MB
_MODEL = re.compile(r"/v2/models/[^/]+(?:/versions/[^/]+)?(?=/?(?:infer)?/?$)")
_MODEL_V1 = re.compile(r"/v1(/models/[^/:]+)(?::predict)?/?$")
# Of each type: how struct has a value, and examples.
_DATATYPES = json.loads((paths.CLIENT / "datatypes.json").read_text(encoding="utf-8"))


class _Tensor(BaseModel):
    name: str
    datatype: str
    shape: list[int]


class _Metadata(BaseModel):
    """What a server says of a model, as far as it counts here."""

    inputs: Annotated[list[_Tensor], Field(min_length=1)]


def curl_command(url: str, headers: Sequence[str], *, is_binary: bool = False) -> tuple[str, bytes]:
    """Return the curl command that asks a model for an inference, and the body that it sends if that is binary.

    Args:
        url: of the model, up to its name or version: http://host/v2/models/iris.
        headers: as curl's -H takes them; `${env:NAME}` is read from the environment.
        is_binary: the inputs are bytes that follow the JSON, in place of numbers in it.

    Raises:
        UsageError: the URL is of no model, a variable is not set, or only bytes can have the type of an input.
        FramestormError: the model does not answer, or says nothing of its inputs.
    """
    found = _MODEL.search(url)
    if found is None:
        raise UsageError(f"--kserve-v2 {url}: expected the URL of a model, such as http://host:8080/v2/models/iris")
    model = url[: found.end()]
    inputs = [_example(each, model) for each in _inputs(model, headers)]
    words = ["curl", *(word for header in headers for word in ("-H", header))]
    if not is_binary:
        if half := next((each for each in inputs if each["datatype"] in ("FP16", "BF16")), None):
            what = f"input {half['name']} is {half['datatype']}, which servers do not take as JSON"
            raise UsageError(f"--kserve-v2: {what}: add --binary, or use grpc://")
        return shlex.join([*words, "--json", json.dumps({"inputs": inputs}), f"{model}/infer"]), b""
    contents = [_packed(each["datatype"], each.pop("data")) for each in inputs]
    for each, content in zip(inputs, contents, strict=True):
        each["parameters"] = {"binary_data_size": len(content)}
    described = json.dumps({"inputs": inputs}).encode()
    own = (f"Inference-Header-Content-Length: {len(described)}", "Content-Type: application/octet-stream")
    words += ["-X", "POST", *(word for header in own for word in ("-H", header))]
    return shlex.join([*words, f"{model}/infer"]), b"".join([described, *contents])


def curl_command_v1(url: str, headers: Sequence[str]) -> str:
    """Return the curl command that asks a model by KServe's V1, which has no word for inputs: V2 of the server has.

    Args:
        url: of the model, to its name or to :predict: http://host/v1/models/iris:predict.
        headers: as curl's -H takes them.

    Raises:
        UsageError: the URL is of no model, or a variable is not set.
        FramestormError: the model does not answer, or says nothing of its inputs.
    """
    found = _MODEL_V1.search(url)
    if found is None:
        raise UsageError(f"--kserve-v1 {url}: expected the URL of a model, such as http://host:8080/v1/models/iris")
    model, origin = f"{found[1]}", url[: found.start()]
    try:
        inputs = [_example(each, model) for each in _inputs(f"{origin}/v2{model}", headers)]
    except FramestormError as error:
        raise FramestormError(
            f"V1 does not tell the inputs of a model, and the server does not tell them by V2: {error}: "
            f'--curl "curl --json \'{{\\"instances\\": [[1, 2]]}}\' {origin}/v1{model}:predict"'
        ) from None
    # One instance: what each input has along its first dimension. Of a single input, its name is left out.
    rows = {each["name"]: _nested(each["data"], each["shape"])[0] for each in inputs}
    instance = next(iter(rows.values())) if len(rows) == 1 else rows
    words = [word for header in headers for word in ("-H", header)]
    body = json.dumps({"instances": [instance]})
    return shlex.join(["curl", *words, "--json", body, f"{origin}/v1{model}:predict"])


def _nested(values: Sequence[Any], shape: Sequence[int]) -> list[Any]:
    """Return values, row by row, as lists in lists."""
    if len(shape) == 1:
        return list(values)
    step = len(values) // shape[0]
    return [_nested(values[at : at + step], shape[1:]) for at in range(0, len(values), step)]


def _packed(datatype: str, values: Sequence[Any]) -> bytes:
    if datatype == "BYTES":
        return b"".join(struct.pack("<I", len(text)) + text for text in map(str.encode, values))
    if datatype == "BF16":  # the upper half of FP32
        return b"".join(struct.pack("<f", value)[2:] for value in values)
    return struct.pack(f"<{len(values)}{_DATATYPES[datatype]['format']}", *values)


def _inputs(model: str, headers: Sequence[str]) -> list[_Tensor]:
    # A redirect may lead to another host, which must not get the headers; and requests for inferences would follow it.
    answer = request("GET", model, headers=dict(headers_of("\n".join(headers), is_file=True)), follows_redirects=False)
    if answer.is_redirect:
        raise FramestormError(
            f"GET {model} is answered by a redirect (status {answer.status_code}, Location "
            f"{answer.headers['Location']!r}): give the address of the model itself"
        )
    why = ""
    try:
        if answer.status_code == 200:
            return _Metadata.model_validate_json(answer.content).inputs
    except ValidationError as error:
        first = error.errors()[0]
        why = f" ({'.'.join(map(str, first['loc'])) or 'the answer'}: {first['msg']})"
    raise FramestormError(
        f"GET {model}: status {answer.status_code}, and no inputs of a model{why}: {answer.text.strip()[:200]!r}. Is "
        "the model loaded, and does its server know the Open Inference Protocol (V2)? --curl takes any request"
    )


def _example(tensor: _Tensor, model: str) -> dict[str, Any]:
    """Return an example of an input; a dimension that may be of any size has size 1."""
    if tensor.datatype not in _DATATYPES:
        raise FramestormError(f"{model}: input {tensor.name} has type {tensor.datatype}, which is none of V2's")
    shape = [max(1, size) for size in tensor.shape] or [1]
    n = math.prod(shape)
    if n > MOST_ELEMENTS:
        raise FramestormError(
            f"{model}: input {tensor.name} has {n:,} elements, and an example as JSON at most {MOST_ELEMENTS:,}"
        )
    examples = _DATATYPES[tensor.datatype]["examples"]
    data = [examples[number % len(examples)] for number in range(n)]
    return {"name": tensor.name, "shape": shape, "datatype": tensor.datatype, "data": data}
