import pytest

from expect import parse

ANSWER = {"model_version": "2", "outputs": [{"name": "y", "data": [0.25, 1, "cat", True, None]}]}


@pytest.mark.parametrize(
    ("condition", "is_met"),
    [
        ("$.outputs[0].data", True),
        ("$.outputs[0].data[-1]", False),
        ("$.outputs[1]", False),
        ("$.outputs.name", False),
        ("$.outputs[0].data[0] >= 0.25", True),
        ("$.outputs[0].data[0] < 0.25", False),
        ("$.outputs[0].data[1] == 1.0", True),
        ("$.outputs[0].data[2] == cat", True),
        ('$.outputs[0].data[2] == "cat"', True),
        ("$.outputs[0].data[2] != dog", True),
        ("$.outputs[0].data[2] > 1", False),
        ("$.outputs[0].data[3] == true", True),
        ("$.outputs[0].data[3] == 1", False),
        ("$.model_version == 2", False),
        ('$.model_version == "2"', True),
    ],
)
def test_a_condition_is_met_by_a_value(condition: str, is_met: bool) -> None:
    assert parse(condition).is_met(ANSWER) == is_met


@pytest.mark.parametrize(
    ("datatype", "stored"),
    [("FP16", 0.0999755859375), ("BF16", 0.10009765625), ("FP32", 0.10000000149011612), ("FP64", 0.1)],
)
def test_a_number_is_compared_as_its_output_has_it(datatype: str, stored: float) -> None:
    answer = {"outputs": [{"name": "y", "datatype": datatype, "data": [stored]}]}
    signs = [
        sign for sign in ("==", "!=", ">=", "<=", ">", "<") if parse(f"$.outputs[0].data[0] {sign} 0.1").is_met(answer)
    ]
    assert signs == ["==", ">=", "<="]
    assert not parse("$.outputs[0].data[0] == 1e300").is_met(answer)


@pytest.mark.parametrize("text", ["", "outputs", "$", "$.a[x]", "$..a", "$.a[*]", "$.a >", "$.a > cat", "$.a > true"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
