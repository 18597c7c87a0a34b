"""The inputs and outputs of a model: from the protocol's JSON to its messages of gRPC, and back."""

import json
import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from messages import InferRequest

# An example is for a first look, and larger ones would be mostly repetition.
MAX_EXAMPLE_BYTES = 64 * 1024 * 1024


class TensorError(Exception):
    """Inputs cannot be sent, or outputs cannot be read; the message says why."""


class _Datatype(NamedTuple):
    """format: of one value, as struct has it; contents: the field of messages that have values in place of bytes."""

    format: str
    contents: str
    examples: Sequence[Any]


# The protocol's types, for the conductor too.
_FILE = Path(__file__).with_name("datatypes.json")
_DATATYPES = {name: _Datatype(**fields) for name, fields in json.loads(_FILE.read_text(encoding="utf-8")).items()}


class NamedModel(NamedTuple):
    """The model that requests go to."""

    name: str
    version: str


def example(model: NamedModel, metadata: Any, *, is_raw: bool) -> bytes:
    """Return a request with an example of each input; a dimension that may be of any size has size 1.

    metadata: the server's message about the model.

    Raises:
        TensorError: there is no example of an input.
    """
    if not metadata.inputs:
        raise TensorError("the server names no inputs of the model")
    return _encode(model, {"inputs": [_example(tensor) for tensor in metadata.inputs]}, is_raw=is_raw)


def _example(tensor: Any) -> dict[str, Any]:
    datatype = _datatype(tensor.name, tensor.datatype)
    shape = [max(1, size) for size in tensor.shape] or [1]
    n = math.prod(shape)
    if n * struct.calcsize(datatype.format) > MAX_EXAMPLE_BYTES or n > MAX_EXAMPLE_BYTES:
        raise TensorError(f"input {tensor.name} has {n:,} elements: give it by -Jinputs=@file.json")
    repeated = list(datatype.examples) * (n // len(datatype.examples) + 1)
    return {"name": tensor.name, "shape": shape, "datatype": tensor.datatype, "data": repeated[:n]}


def open_inputs(text: str, model: NamedModel, *, is_raw: bool) -> list[bytes]:
    """Return the requests of a property: the protocol's JSON; or `@file` with it, or with one in each line (.jsonl).

    Raises:
        TensorError: the file cannot be read, or has no inputs.
    """
    if not text.startswith("@"):
        return _requests([("inputs", text)], model, is_raw=is_raw)
    path = Path(text[1:])
    try:
        return _read(path, path.stat().st_mtime_ns, model, is_raw)
    except (OSError, UnicodeDecodeError) as error:
        raise TensorError(f"inputs {path} cannot be read: {error}") from error


@lru_cache(maxsize=4)
def _read(path: Path, _changed_ns: int, model: NamedModel, is_raw: bool) -> list[bytes]:
    text = path.read_text(encoding="utf-8-sig")
    if path.suffix not in {".jsonl", ".ndjson"}:
        return _requests([(f"inputs {path}", text)], model, is_raw=is_raw)
    lines = [(f"inputs {path}, line {n}", line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
    if not lines:
        raise TensorError(f"inputs {path}: the file has no request")
    return _requests(lines, model, is_raw=is_raw)


def _requests(texts: Sequence[tuple[str, str]], model: NamedModel, *, is_raw: bool) -> list[bytes]:
    requests = []
    for where, text in texts:
        try:
            requests.append(_encode(model, json.loads(text), is_raw=is_raw))
        except (TensorError, ValueError, RecursionError) as error:
            raise TensorError(f"{where}: {error}") from error
    return requests


def _encode(model: NamedModel, fields: Any, *, is_raw: bool) -> bytes:
    inputs = fields.get("inputs") if isinstance(fields, dict) else None
    if not isinstance(inputs, list) or not inputs:
        raise TensorError('expected an object with inputs: {"inputs": [{"name": ..., "shape": ..., "datatype": ...}]}')
    request = InferRequest(model_name=model.name)
    if model.version:
        request.model_version = model.version
    if fields.get("id") is not None:
        request.id = str(fields["id"])
    _add_parameters(request, fields)
    for tensor in inputs:
        name, shape, datatype_name, data = _parts(tensor)
        datatype = _datatype(name, datatype_name)
        values = list(_flat(data))
        if len(values) != math.prod(shape):
            raise TensorError(
                f"input {name}: data has {len(values):,} elements, and shape {shape} {math.prod(shape):,}"
            )
        message = request.inputs.add(name=name, datatype=datatype_name, shape=shape)
        _add_parameters(message, tensor)
        if not is_raw and not datatype.contents:
            raise TensorError(f"input {name}: {datatype_name} is sent as bytes only: leave -Jraw=false out")
        try:
            packed = _pack(datatype_name, values)  # in any case: a field of a message may be wider than the datatype
            if is_raw:
                request.raw.append(packed)
            else:
                are_bytes = datatype.contents == "bytes"
                typed = list(map(_as_bytes, values)) if are_bytes else values
                getattr(message.contents, datatype.contents).extend(typed)
        except (TypeError, ValueError, OverflowError, struct.error) as error:
            raise TensorError(f"input {name}: data does not fit {datatype_name}: {error}") from None
    outputs = fields.get("outputs") or []
    is_list = isinstance(outputs, list) and all(isinstance(output, dict) for output in outputs)
    if not is_list or not all(isinstance(output.get("name"), str) for output in outputs):
        raise TensorError(f"outputs is a list of objects with a name, and not {outputs!r}")
    for output in outputs:
        _add_parameters(request.outputs.add(name=output["name"]), output)
    return bytes(request.SerializeToString())


def _parts(tensor: Any) -> tuple[str, list[int], str, Any]:
    fields = tensor if isinstance(tensor, dict) else {}
    try:
        name, shape, datatype, data = (fields[key] for key in ("name", "shape", "datatype", "data"))
    except KeyError as error:
        raise TensorError(f"an input is an object with name, shape, datatype and data: {error} is missing") from None
    is_shape = isinstance(shape, list) and all(type(size) is int and size >= 0 for size in shape)
    if not isinstance(name, str) or not isinstance(datatype, str) or not is_shape:
        raise TensorError(f"input {name}: shape is a list of sizes, such as [1, 4], and not {shape}")
    return name, shape, datatype, data


def _datatype(name: str, datatype: str) -> _Datatype:
    if datatype not in _DATATYPES:
        raise TensorError(f"input {name} has type {datatype}, which is none of the protocol's: {', '.join(_DATATYPES)}")
    return _DATATYPES[datatype]


def _flat(data: Any) -> Iterator[Any]:
    """Yield the values of lists in lists, row by row."""
    if not isinstance(data, list):
        yield data
        return
    for each in data:
        if isinstance(each, list):
            yield from _flat(each)
        else:
            yield each


def _add_parameters(message: Any, fields: Mapping[str, Any]) -> None:
    parameters = fields.get("parameters") or {}
    if not isinstance(parameters, dict):
        raise TensorError(f"parameters is an object, and not {parameters!r}")
    for key, value in parameters.items():
        kinds = {bool: "bool", int: "int", float: "double", str: "string"}
        if type(value) not in kinds:
            raise TensorError(f"parameter {key} is {value!r}, and not a text, a number or a boolean")
        setattr(message.parameters.add(key=key).value, kinds[type(value)], value)


def _as_bytes(value: Any) -> bytes:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is not a text")
    return value.encode()


def _pack(datatype: str, values: Sequence[Any]) -> bytes:
    if datatype == "BYTES":
        texts = map(_as_bytes, values)
        return b"".join(struct.pack("<I", len(text)) + text for text in texts)
    if datatype == "BOOL" and not all(isinstance(value, int) for value in values):  # struct takes "false" as true
        raise TypeError("a value is neither true nor false")
    if datatype == "BF16":  # the upper half of FP32
        values = [int.from_bytes(struct.pack("<f", value), "little") + 0x8000 >> 16 for value in values]
    return struct.pack(f"<{len(values)}{_DATATYPES[datatype].format}", *values)


def _unpack(datatype: str, raw: bytes) -> list[Any]:
    if datatype == "BYTES":
        texts, at = [], 0
        while at < len(raw):
            (length,) = struct.unpack_from("<I", raw, at)
            texts.append(raw[at + 4 : at + 4 + length].decode(errors="replace"))
            at += 4 + length
        if at > len(raw):
            raise struct.error(f"a text of {length:,} bytes is cut off")
        return texts
    form = _DATATYPES[datatype].format
    values = list(struct.unpack(f"<{len(raw) // struct.calcsize(f'<{form}')}{form}", raw))
    if datatype == "BF16":
        return list(struct.unpack(f"<{len(values)}f", b"".join(struct.pack("<I", value << 16) for value in values)))
    return values


def check_outputs(response: Any) -> None:
    """Check that the bytes of each output are as many as its type and its shape say.

    Raises:
        TensorError: they are not.
    """
    for number, tensor in enumerate(response.outputs if response.raw else ()):
        if number >= len(response.raw):
            if not tensor.parameters:  # or it may be in memory that is shared with the server
                raise TensorError(f"output {tensor.name} has no bytes")
            continue
        n, raw = math.prod(tensor.shape), response.raw[number]
        if tensor.datatype == "BYTES":
            is_whole = _is_of_texts(raw, n)
        else:
            is_whole = len(raw) == n * struct.calcsize(f"<{_datatype(tensor.name, tensor.datatype).format}")
        if not is_whole:
            raise TensorError(
                f"output {tensor.name} has {len(raw):,} bytes, and shape {list(tensor.shape)} of {tensor.datatype}"
            )


def _is_of_texts(raw: bytes, n: int) -> bool:
    """Return whether bytes are so many texts, each after its length."""
    at = 0
    for _ in range(n):
        if at + 4 > len(raw):
            return False
        at += 4 + int.from_bytes(raw[at : at + 4], "little")
    return at == len(raw)


def as_json(response: Any) -> dict[str, Any]:
    """Return an answer as the protocol has it in JSON.

    Raises:
        TensorError: an output has a type or a size that the protocol does not allow.
    """
    outputs = []
    for number, tensor in enumerate(response.outputs):
        datatype = _DATATYPES.get(tensor.datatype)
        try:
            if datatype is None:
                raise KeyError(tensor.datatype)
            if response.raw:
                data = _unpack(tensor.datatype, response.raw[number])
            else:
                data = list(getattr(tensor.contents, datatype.contents)) if datatype.contents else []
                data = [each.decode(errors="replace") for each in data] if datatype.contents == "bytes" else data
        except (KeyError, IndexError, struct.error) as error:
            raise TensorError(f"output {tensor.name}: {error}") from None
        shape = list(tensor.shape)
        outputs.append({"name": tensor.name, "datatype": tensor.datatype, "shape": shape, "data": data})
    return {"model_name": response.model_name, "model_version": response.model_version, "outputs": outputs}
