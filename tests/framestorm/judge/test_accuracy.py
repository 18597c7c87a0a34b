"""Answers under load against those alone, by counts that are planted."""

from framestorm.judge.accuracy import LEAST, judge_accuracy, judge_sameness
from framestorm.model.function_audit import Accuracy


def judged(lost: int, gained: int = 0, same: int = 0, n: int = 100, missing: str = "") -> Accuracy:
    """`lost` inputs are right alone only, `gained` under load only, `same` never; the last 10 may be missing."""
    alone = {each: "expect-not-met" if lost <= each < lost + gained + same else "" for each in range(n)}
    load = {
        each: "reject-met" if each < lost or lost + gained <= each < lost + gained + same else "" for each in range(n)
    }
    if missing:
        load |= dict.fromkeys(range(n - 10, n), missing)
    return judge_accuracy(alone, load, is_status_only=False)


def test_a_loss_beyond_chance_is_worse() -> None:
    accuracy = judged(lost=10)
    assert accuracy.is_worse
    assert accuracy.difference is not None and accuracy.difference.value == -0.1
    assert (accuracy.alone.right, accuracy.load.right, accuracy.load.wrong) == (100, 90, {"reject-met": 10})


def test_as_many_gained_as_lost_is_no_loss() -> None:
    accuracy = judged(lost=5, gained=5)
    assert accuracy.difference is not None and accuracy.difference.value == 0
    assert not accuracy.is_worse


def test_a_few_lost_may_be_chance() -> None:
    assert not judged(lost=2).is_worse


def test_what_is_wrong_in_both_runs_is_no_loss() -> None:
    accuracy = judged(lost=0, same=40)
    assert not accuracy.is_worse and accuracy.load.wrong == {"reject-met": 40}


def test_answers_that_never_came_are_not_wrong() -> None:
    for cause in ("timeout", "reset", "status-503", "connect: refused"):
        accuracy = judged(lost=0, missing=cause)
        assert not accuracy.is_worse
        assert (accuracy.n, accuracy.load.missing, accuracy.load.wrong) == (90, {cause: 10}, {})


def test_a_status_that_is_no_refusal_is_a_wrong_answer() -> None:
    accuracy = judged(lost=0, missing="status-500")
    assert accuracy.is_worse and accuracy.load.wrong == {"status-500": 10}


def test_too_few_answers_are_not_judged() -> None:
    accuracy = judged(lost=LEAST - 1, n=LEAST - 1)
    assert accuracy.difference is None and not accuracy.is_worse


def test_only_inputs_of_both_runs_count() -> None:
    accuracy = judge_accuracy(dict.fromkeys(range(60), ""), dict.fromkeys(range(30), ""), is_status_only=True)
    assert accuracy.n == accuracy.alone.right == 30


def test_texts_that_differ_under_load_only_depend_on_it() -> None:
    sameness = judge_sameness([("a", "a", "a")] * 40 + [("a", "a", "b")] * 10)
    assert sameness is not None and sameness.depends_on_load
    assert (sameness.n, sameness.alone, sameness.load, sameness.difference.value) == (50, 50, 40, -0.2)


def test_texts_that_differ_anyway_say_nothing() -> None:
    sameness = judge_sameness([("a", "b", "c")] * 40)
    assert sameness is not None and not sameness.depends_on_load
    assert judge_sameness([("a", "a", "b")] * (LEAST - 1)) is None
