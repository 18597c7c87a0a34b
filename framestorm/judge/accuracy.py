"""Whether the answers to the same inputs are as right under load as alone.

An answer is wrong if it came and is not what was expected. One that never came, because of a timeout, a broken
connection or a refusal, says nothing about what the function answers: these are counted apart.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from framestorm.model.function_audit import Accuracy, AnswerCounts, Sameness
from framestorm.stats.pairs import paired_difference

LEAST = 25  # answers in both runs
# The answer is there, but is not what the plan expects.
WRONG_TEXT = ("expect-not-met", "reject-met")
RIGHT = ""
_WRONG = re.compile(rf"{'|'.join(WRONG_TEXT)}|unknown-coding|failed-check.*|status-(?!429|502|503|504)\d+")


def judge_accuracy(alone: Mapping[int, str], load: Mapping[int, str], *, is_status_only: bool) -> Accuracy:
    """Return how right the answers to the inputs are that were sent in both runs; each by its cause of error, or RIGHT.

    is_status_only: nothing but the status says what is right.
    """
    shared = sorted(alone.keys() & load.keys())
    table = Counter(
        (load[each] == RIGHT, alone[each] == RIGHT)
        for each in shared
        if _is_answer(load[each]) and _is_answer(alone[each])
    )
    n = table.total()
    difference = None
    if n >= LEAST:
        difference = paired_difference(table[True, True], table[True, False], table[False, True], table[False, False])
    is_worse = difference is not None and difference.high is not None and difference.high < 0
    of_alone, of_load = (_counts(answers[each] for each in shared) for answers in (alone, load))
    return Accuracy(of_alone, of_load, n, difference, is_worse, is_status_only)


def judge_sameness(texts: Iterable[tuple[str, str, str]]) -> Sameness | None:
    """Return whether the text of an answer depends on the load; None if too few inputs have all three answers.

    texts: of each input a checksum of its first and its second answer alone, and of that under load. A function whose
    answers differ anyway, by a time or by chance, is compared with itself.
    """
    table = Counter((under_load == first, again == first) for first, again, under_load in texts)
    n = table.total()
    if n < LEAST:
        return None
    difference = paired_difference(table[True, True], table[True, False], table[False, True], table[False, False])
    return Sameness(
        n,
        table[True, True] + table[False, True],
        table[True, True] + table[True, False],
        difference,
        depends_on_load=difference.high is not None and difference.high < 0,
    )


def _is_answer(cause: str) -> bool:
    return cause == RIGHT or bool(_WRONG.fullmatch(cause))


def _counts(causes: Iterable[str]) -> AnswerCounts:
    counts = Counter(causes)
    right = counts.pop(RIGHT, 0)
    wrong = {cause: n for cause, n in counts.most_common() if _is_answer(cause)}
    return AnswerCounts(right, wrong, {cause: n for cause, n in counts.most_common() if cause not in wrong})
