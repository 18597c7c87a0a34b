"""The Open Inference Protocol (KServe's V2, Triton): an example request for a model, by what the model says of itself.

https://github.com/kserve/open-inference-protocol, specification/protocol/inference_rest.md
"""

import json
import math
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Annotated, Any

from pydantic import BaseModel, Field, ValidationError

from framestorm.errors import FramestormError, UsageError
from framestorm.machine import request
from framestorm.run.values import headers_of

# What an answer of the protocol has, and one with an error has not.
EXPECT = "$.outputs[0].data"
MOST_ELEMENTS = 1_000_000  # of an input: as JSON, about 4 MB
_MODEL = re.compile(r"/v2/models/[^/]+(?:/versions/[^/]+)?(?=/?(?:infer)?/?$)")
# Some of each type, one after the other.
_EXAMPLES: Mapping[str, Sequence[object]] = {
    "BOOL": (True, False),
    "BYTES": ("text",),
    **dict.fromkeys(("INT8", "INT16", "INT32", "INT64", "UINT8", "UINT16", "UINT32", "UINT64"), (1, 2, 3)),
    **dict.fromkeys(("FP16", "FP32", "FP64", "BF16"), (0.1, 0.2, 0.3)),
}


class _Tensor(BaseModel):
    name: str
    datatype: str
    shape: list[int]


class _Metadata(BaseModel):
    """What a server says of a model, as far as it counts here."""

    inputs: Annotated[list[_Tensor], Field(min_length=1)]


def curl_command(url: str, headers: Sequence[str]) -> str:
    """Return the curl command that asks a model for an inference.

    Args:
        url: of the model, up to its name or version: http://host/v2/models/iris.
        headers: as curl's -H takes them; `${env:NAME}` is read from the environment.

    Raises:
        UsageError: the URL is of no model, or a variable is not set.
        FramestormError: the model does not answer, or says nothing of its inputs.
    """
    found = _MODEL.search(url)
    if found is None:
        raise UsageError(f"--kserve-v2 {url}: expected the URL of a model, such as http://host:8080/v2/models/iris")
    model = url[: found.end()]
    body = {"inputs": [_example(each, model) for each in _inputs(model, headers)]}
    words = [word for header in headers for word in ("-H", header)]
    return shlex.join(["curl", *words, "--json", json.dumps(body), f"{model}/infer"])


def _inputs(model: str, headers: Sequence[str]) -> list[_Tensor]:
    answer = request("GET", model, headers=dict(headers_of("\n".join(headers))))
    try:
        if answer.status_code == 200:
            return _Metadata.model_validate_json(answer.content).inputs
    except ValidationError:
        pass
    raise FramestormError(
        f"GET {model}: status {answer.status_code}, and no inputs of a model: {answer.text.strip()[:200]!r}. Is the "
        "model loaded, and does its server know the Open Inference Protocol (V2)? --curl takes any request"
    )


def _example(tensor: _Tensor, model: str) -> dict[str, Any]:
    """Return an example of an input; a dimension that may be of any size has size 1."""
    examples = _EXAMPLES.get(tensor.datatype)
    if examples is None:
        raise FramestormError(f"{model}: input {tensor.name} has type {tensor.datatype}, which is none of V2's")
    shape = [max(1, size) for size in tensor.shape] or [1]
    n = math.prod(shape)
    if n > MOST_ELEMENTS:
        raise FramestormError(
            f"{model}: input {tensor.name} has {n:,} elements, and an example as JSON at most {MOST_ELEMENTS:,}"
        )
    data = [examples[number % len(examples)] for number in range(n)]
    return {"name": tensor.name, "shape": shape, "datatype": tensor.datatype, "data": data}
