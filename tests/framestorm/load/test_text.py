"""Loads in words."""

import pytest

from framestorm.errors import UsageError
from framestorm.load import text
from framestorm.load.text import Points
from framestorm.model.load import LoadModel


@pytest.mark.parametrize(
    ("words", "points"),
    [
        ("10/s for 30 s", [(0, 10), (30, 10)]),
        (
            "10/s for 30 s, to 200/s in 2 min, 200/s for 5 min",
            [(0, 10), (30, 10), (30, 10), (150, 200), (150, 200), (450, 200)],
        ),
        ("0 to 50/s in 1 min then 50/s for 1 min 30 s", [(0, 0), (60, 50), (60, 50), (150, 50)]),
        ("to 50/s in 10s; pause for 5 s\n50/s for 1 s,", [(0, 0), (10, 50), (10, 0), (15, 0), (15, 50), (16, 50)]),
        ("600 per minute for 1.5 sec", [(0, 10), (1.5, 10)]),
        ("From 60/min to 120/min in 1 hour", [(0, 1), (3600, 2)]),
        ("60 to 120/min in 1 h", [(0, 1), (3600, 2)]),
        (".5/s for 3 s", [(0, 0.5), (3, 0.5)]),
        ("5/s for 1 s, 0 for 2 s, to 0 in 1 s", [(0, 5), (1, 5), (1, 0), (3, 0), (3, 0), (4, 0)]),
    ],
)
def test_words_are_arrivals_over_time(words: str, points: Points) -> None:
    assert text.parse(words, "arrivals") == points


@pytest.mark.parametrize(
    ("words", "points"),
    [
        ("50 users for 5 min", [(0, 50), (300, 50)]),
        ("0 to 50 users in 1 min, 200 users for 10 s", [(0, 0), (60, 50), (60, 200), (70, 200)]),
        ("from 5 VUs to 10 vus in 1 s; pause 2 s", [(0, 5), (1, 10), (1, 0), (3, 0)]),
        ("1 user for 1 s then to 0 in 1.5 s", [(0, 1), (1, 1), (1, 1), (2.5, 0)]),
        ("8 threads for 1 min 30 s", [(0, 8), (90, 8)]),
    ],
)
def test_words_are_users_over_time(words: str, points: Points) -> None:
    assert text.parse(words, "users") == points


OF_USERS = "50 users for 5 min"
MOST_ARRIVALS = "a load has at most 2,147,483,647 arrivals per second"
ARABIC_FIVE, WIDE_TWO = "\N{ARABIC-INDIC DIGIT FIVE}", "\N{FULLWIDTH DIGIT TWO}"


@pytest.mark.parametrize(
    ("model", "words", "why", "marked", "nearest"),
    [
        ("arrivals", "5/s for 3 s, 70/s", "for how long?", "70/s", "50/s for 30 s"),
        ("arrivals", "50 for 3 s", "a rate has a unit", "50 for 3 s", "50/s for 30 s"),
        (
            "arrivals",
            "600/min for 3 s, 600 to 0 in 1 min",
            "a rate has a unit",
            "600 to 0 in 1 min",
            "10/s to 50/s in 2 min",
        ),
        ("arrivals", "to 30 in 2 min", "a rate has a unit", "to 30 in 2 min", "to 50/s in 2 min"),
        ("arrivals", "1/s for 2 s, , 1/s for 2 s", "a part without words", "", "50/s for 30 s"),
        ("arrivals", "20 users for 2 min", "jmx/requests.jmx has users", "20 users for 2 min", "50/s for 30 s"),
        ("arrivals", "50/s in 3 s", "to which rate?", "50/s in 3 s", "to 50/s in 2 min"),
        ("arrivals", "1/s for 2 s, 3/s while 5 s", "not understood", "3/s while 5 s", "50/s for 30 s"),
        ("arrivals", "1/s for 0 s", "a part of 0 s sends nothing", "1/s for 0 s", ""),
        ("arrivals", "pause 3 s", "this load sends nothing", "pause 3 s", "50/s for 30 s"),
        ("arrivals", " ", "no load", "", "50/s for 30 s"),
        ("arrivals", "-5/s for 3 s", "not understood", "-5/s for 3 s", "50/s for 30 s"),
        ("users", "50/s for 3 s", "jmx/request-rate.jmx has rates", "50/s for 3 s", OF_USERS),
        ("users", "5 users for 3 s, 7 users", "for how long?", "7 users", OF_USERS),
        ("users", "50 users in 3 s", "to how many users?", "50 users in 3 s", "to 50 users in 2 min"),
        ("users", "50 for 3 s", "of what?", "50 for 3 s", OF_USERS),
        ("users", "2.5 users for 3 s", "not understood", "2.5 users for 3 s", OF_USERS),
        ("arrivals", "1e400/s for 3 s", "not understood", "1e400/s for 3 s", "50/s for 30 s"),
        ("arrivals", "inf/s for 3 s", "not understood", "inf/s for 3 s", "50/s for 30 s"),
        # Java reads no digits of other scripts.
        ("arrivals", f"{ARABIC_FIVE}/s for 3 s", "not understood", f"{ARABIC_FIVE}/s for 3 s", "50/s for 30 s"),
        ("users", f"5{WIDE_TWO} users for 3 s", "not understood", f"5{WIDE_TWO} users for 3 s", OF_USERS),
        ("arrivals", f"{10**20}/s for 3 s", MOST_ARRIVALS, f"{10**20}/s for 3 s", ""),
        ("arrivals", f"1/s for 2 s, to {10**400}/h in 3 s", MOST_ARRIVALS, f"to {10**400}/h in 3 s", ""),
        ("users", f"{2**31} users for 3 s", "a load has at most 2,147,483,647 users", f"{2**31} users for 3 s", ""),
        ("arrivals", "1/s for 20 d, 1/s for 4 d", "a load lasts at most 2,000,000 s", "1/s for 4 d", ""),
        ("users", f"1 user for {10**400} s", "a load lasts at most 2,000,000 s", f"1 user for {10**400} s", ""),
    ],
)
def test_wrong_words_are_marked_with_the_nearest_forms(
    model: LoadModel, words: str, why: str, marked: str, nearest: str
) -> None:
    with pytest.raises(UsageError) as raised:
        text.parse(words, model)
    first, line, marks, *forms = str(raised.value).split("\n")
    assert first.startswith("-Jload: ") and why in first
    assert line[2:] == words and line[marks.find("^") : marks.rfind("^") + 1].startswith(marked)
    assert len(marks.strip()) == max(1, len(marked))
    assert nearest in "".join(forms) and "".join(forms).count(" | ") == (2 if nearest else 0)
