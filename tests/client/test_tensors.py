"""The bytes of each datatype, and what is not one of its values."""

import json
from typing import Any

import pytest

import messages
from tensors import NamedModel, TensorError, as_json, open_inputs

MODEL = NamedModel("m", "")


def request(datatype: str, data: Any, shape: list[int] | None = None, *, is_raw: bool = True, **fields: Any) -> Any:
    tensor = {"name": "x", "datatype": datatype, "shape": [len(data)] if shape is None else shape, "data": data}
    (body,) = open_inputs(json.dumps({"inputs": [tensor], **fields}), MODEL, is_raw=is_raw)
    return messages.InferRequest.FromString(body)


BYTES = [
    ("BOOL", [True, False], "01 00"),
    ("INT8", [-1, 2], "ff 02"),
    ("INT16", [-2], "fe ff"),
    ("INT32", [258], "02 01 00 00"),
    ("INT64", [-1], "ff ff ff ff ff ff ff ff"),
    ("UINT8", [255], "ff"),
    ("UINT16", [65535], "ff ff"),
    ("UINT32", [1], "01 00 00 00"),
    ("UINT64", [2**64 - 1], "ff ff ff ff ff ff ff ff"),
    ("FP16", [1.5, -2.0], "00 3e 00 c0"),
    ("BF16", [1.5, -2.0], "c0 3f 00 c0"),
    ("FP32", [1.5], "00 00 c0 3f"),
    ("FP64", [1.5], "00 00 00 00 00 00 f8 3f"),
    ("BYTES", ["é", ""], "02 00 00 00 c3 a9 00 00 00 00"),
]


@pytest.mark.parametrize(("datatype", "data", "raw"), BYTES)
def test_each_datatype_has_its_bytes(datatype: str, data: list[Any], raw: str) -> None:
    sent = request(datatype, data)
    assert sent.raw[0].hex(" ") == raw
    answer = messages.InferResponse()
    answer.outputs.add(name="y", datatype=datatype, shape=[len(data)])
    answer.raw.append(bytes.fromhex(raw))
    assert as_json(answer)["outputs"][0]["data"] == data


def test_bf16_is_rounded_to_the_nearest() -> None:
    assert request("BF16", [1.005859375, 3.0]).raw[0].hex() == "813f4040"


def test_rows_may_be_nested() -> None:
    assert request("INT8", [[1, 2], [3, 4]], [2, 2]).raw[0] == b"\1\2\3\4"


@pytest.mark.parametrize(
    ("datatype", "data", "why"),
    [
        ("INT8", [300], "data does not fit INT8"),
        ("INT8", [1.5], "data does not fit INT8"),
        ("UINT8", [-1], "data does not fit UINT8"),
        ("FP32", ["x"], "data does not fit FP32"),
        ("FP16", [1e6], "data does not fit FP16"),
        ("FP32", [1e300], "data does not fit FP32"),
        ("BYTES", [1], "1 is not a text"),
        ("BOOL", ["false"], "neither true nor false"),
        ("TEXT", ["a"], "none of the protocol's: BOOL, INT8"),
    ],
)
def test_what_does_not_fit_is_told(datatype: str, data: list[Any], why: str) -> None:
    with pytest.raises(TensorError, match=why):
        request(datatype, data)


@pytest.mark.parametrize(
    ("datatype", "data"),
    [
        ("INT8", [300]),
        ("INT16", [-40000]),
        ("UINT8", [256]),
        ("UINT16", [65536]),
        ("INT32", [1.5]),
        ("FP32", [1e39]),
        ("BOOL", ["false"]),
        ("BYTES", [1]),
    ],
)
def test_what_does_not_fit_is_told_of_values_too(datatype: str, data: list[Any]) -> None:
    with pytest.raises(TensorError, match=f"data does not fit {datatype}"):
        request(datatype, data, is_raw=False)


@pytest.mark.parametrize(("id_", "sent"), [("7", "7"), (7, "7"), ("", ""), (None, None)])
def test_a_request_has_the_id_that_it_is_given(id_: object, sent: str | None) -> None:
    body = request("INT8", [1], id=id_)
    assert (body.id if body.HasField("id") else None) == sent


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[]", "expected an object with inputs"),
        ('{"inputs": {}}', "expected an object with inputs"),
        ('{"inputs": ["x"]}', "an input is an object with name"),
        ('{"inputs": [{"name": "x", "shape": [1], "datatype": "FP32"}]}', "'data' is missing"),
        ('{"inputs": [{"name": "x", "shape": [-1], "datatype": "FP32", "data": [1]}]}', "shape is a list of sizes"),
        ('{"inputs": [{"name": "x", "shape": [1], "datatype": "INT8", "data": [1]}], "parameters": {"a": []}}', "a is"),
        ('{"inputs": [{"name": "x", "shape": [1], "datatype": "INT8", "data": [1]}], "parameters": 3}', "parameters"),
        ('{"inputs": [{"name": "x", "shape": [1], "datatype": "INT8", "data": [1]}], "outputs": [{}]}', "outputs"),
        ('{"inputs": [{"name": "x", "shape": [1], "datatype": "INT8", "data": [1]}], "outputs": 5}', "outputs"),
        ('{"inputs": [[1]]}', "an input is an object with name, .* is missing"),
        ("[" * 100_000, "inputs: "),
    ],
)
def test_what_is_no_request_is_told(text: str, why: str) -> None:
    with pytest.raises(TensorError, match=why):
        open_inputs(text, MODEL, is_raw=True)
