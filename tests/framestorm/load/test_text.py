"""Loads in words."""

import pytest

from framestorm.errors import UsageError
from framestorm.load import text
from framestorm.load.text import Points


@pytest.mark.parametrize(
    ("words", "points", "due"),
    [
        ("10/s for 30 s", [(0, 10), (30, 10)], 300),
        (
            "10/s for 30 s, to 200/s in 2 min, 200/s for 5 min",
            [(0, 10), (30, 10), (30, 10), (150, 200), (150, 200), (450, 200)],
            72900,
        ),
        ("0 to 50/s in 1 min then 50/s for 1 min 30 s", [(0, 0), (60, 50), (60, 50), (150, 50)], 6000),
        ("to 50/s in 10s; pause for 5 s\n50/s for 1 s,", [(0, 0), (10, 50), (10, 0), (15, 0), (15, 50), (16, 50)], 300),
        ("600 per minute for 1.5 sec", [(0, 10), (1.5, 10)], 15),
        ("From 60/min to 120/min in 1 hour", [(0, 1), (3600, 2)], 5400),
        ("60 to 120/min in 1 h", [(0, 1), (3600, 2)], 5400),
        (".5/s for 3 s", [(0, 0.5), (3, 0.5)], 2),
        ("5/s for 1 s, 0 for 2 s, to 0 in 1 s", [(0, 5), (1, 5), (1, 0), (3, 0), (3, 0), (4, 0)], 5),
    ],
)
def test_words_are_a_schedule(words: str, points: Points, due: int) -> None:
    assert text.parse(words) == points
    assert text.due(points) == due


@pytest.mark.parametrize(
    ("words", "why", "marked", "nearest"),
    [
        ("5/s for 3 s, 70/s", "for how long?", "70/s", "50/s for 30 s"),
        ("50 for 3 s", "a rate has a unit", "50 for 3 s", "50/s for 30 s"),
        ("to 30 in 2 min", "a rate has a unit", "to 30 in 2 min", "to 50/s in 2 min"),
        ("1/s for 2 s, , 1/s for 2 s", "a part without words", "", "50/s for 30 s"),
        ("20 users for 2 min", "users are set by -Jusers in jmx/requests.jmx", "20 users for 2 min", "50/s for 30 s"),
        ("50/s in 3 s", "to which rate?", "50/s in 3 s", "to 50/s in 2 min"),
        ("1/s for 2 s, 3/s while 5 s", "not understood", "3/s while 5 s", "50/s for 30 s"),
        ("1/s for 0 s", "a part of 0 s sends nothing", "1/s for 0 s", ""),
        (" ", "no load", "", "50/s for 30 s"),
        ("-5/s for 3 s", "not understood", "-5/s for 3 s", "50/s for 30 s"),
    ],
)
def test_wrong_words_are_marked_with_the_nearest_forms(words: str, why: str, marked: str, nearest: str) -> None:
    with pytest.raises(UsageError) as raised:
        text.parse(words)
    first, line, marks, *forms = str(raised.value).split("\n")
    assert first.startswith("-Jload: ") and why in first
    assert line[2:] == words and line[marks.find("^") : marks.rfind("^") + 1].startswith(marked)
    assert len(marks.strip()) == max(1, len(marked))
    assert nearest in "".join(forms) and "".join(forms).count(" | ") == (2 if nearest else 0)


def test_jmeters_together_send_what_one_would() -> None:
    whole = text.schedule([(0, 1.5), (2, 1.5)])
    assert whole == "0:1.5 2:1.5 0/1"
    assert [text.part(whole, number, 3) for number in range(3)] == [f"0:1.5 2:1.5 {number}/3" for number in range(3)]
