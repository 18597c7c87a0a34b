"""What the command line may change of a study, and what it may not."""

import pytest

from framestorm.errors import UsageError
from framestorm.model.study import Study
from framestorm.study.design import changes, matrix
from framestorm.study.design.folder import Overrides

STUDY = Study.model_validate(
    {
        "name": "selected",
        "title": "Selected",
        "question": "What may be changed?",
        "plan": "jmx/requests.jmx",
        "target": {"function": "noop"},
        "properties": {"hold_s": 4},
        "factors": {"users": [1, 2], "way": {"quick": {"properties": {"timeout_s": 1}}, "slow": {}}},
        "blocks": [{"users": [1]}, {"way": ["slow"]}],
        "stop": {"metric": "mean_ms", "within_percent": 5, "at_most": 4},
        "run_s": "=hold_s",
        "metrics": ["mean_ms"],
    }
)


def test_properties_and_repetitions_are_overridden():
    changed = changes.override(STUDY, Overrides({"hold_s": "9", "body": "x"}, 6))
    point = matrix.points(changed)[0]
    assert (point.properties["hold_s"], point.properties["body"]) == ("9", "x")
    assert (changed.repetitions, changed.stop.at_most) == (6, 6)
    assert STUDY.repetitions == 3 and STUDY.properties == {"hold_s": 4}


@pytest.mark.parametrize(
    ("given", "repetitions", "said"),
    [
        ({"holds": "9"}, None, "no property 'holds'; did you mean hold_s"),
        ({"hold_s": "long"}, None, "hold_s=long: hold_s must be"),
        ({"users": "9"}, None, "-Jusers: the study varies it, by its factor users; choose levels by --only"),
        ({"timeout_s": "9"}, None, "varies it, by its factor way"),
        ({}, 0, "--repetitions 0: at least one"),
        ({}, 1, "--repetitions 1: stop needs the variation"),
    ],
)
def test_what_may_not_be_overridden(given, repetitions, said):
    with pytest.raises(UsageError, match=said):
        matrix.points(changes.override(STUDY, Overrides(given, repetitions)))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("users", "give factor=level, for example --only users=1"),
        ("user=1", "unknown factor 'user'; did you mean users\\?; allowed: users, way"),
        ("users=3", "unknown level '3' of users; allowed: 1, 2"),
        ("way=slw", "unknown level 'slw' of way; did you mean slow\\?"),
        ("users=1,3", "unknown level '3'"),
    ],
)
def test_only_names_what_there_is(word, said):
    with pytest.raises(UsageError, match=said):
        changes.choose(matrix.points(STUDY), [word])


def test_only_what_no_block_has_leaves_nothing():
    with pytest.raises(UsageError, match="no point with users=2 way=quick"):
        changes.choose(matrix.points(STUDY), ["users=2", "way=quick"])
