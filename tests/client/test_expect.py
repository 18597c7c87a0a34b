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


@pytest.mark.parametrize("text", ["", "outputs", "$", "$.a[x]", "$..a", "$.a[*]", "$.a >", "$.a > cat", "$.a > true"])
def test_what_is_no_condition_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse(text)
