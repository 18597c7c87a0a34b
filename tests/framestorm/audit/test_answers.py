"""What came back in the runs of an audit, by input."""

from pathlib import Path
from typing import Any

import polars as pl

from framestorm.audit.answers import causes_of, pairs_of, read_answers, texts_of


def test_the_first_pass_through_the_order_counts(tmp_path: Path) -> None:
    rows = [
        "request,0,100,10,true,,jmeter,200,77", "request,1,120,11,false,expect-not-met,jmeter,200,4294967295",
        "request,2,130,12,false,timeout,jmeter,,", "request,0,150,99,false,reset,jmeter,,",
    ]  # fmt: skip
    header = "label,index,start_ms,rtt_ms,ok,cause,source,status,answer_digest"
    (tmp_path / "samples.csv").write_text("\n".join([header, *rows]) + "\n")
    answers = [
        (0, 10.0, "", True, "77"),
        (1, 11.0, "expect-not-met", True, "4294967295"),
        (2, 12.0, "timeout", False, None),
    ]
    assert read_answers(tmp_path).rows() == answers


def test_an_input_has_the_cause_of_its_first_request() -> None:
    back = answers((0, 1, True, ""), (1, 1, False, "reset"), (2, 1, False, "timeout"))
    assert causes_of([7, 7, 8, 9], back) == {7: "", 8: "timeout"}


def answers(*rows: tuple[int, float, bool, str], digests: str = "abcdefgh") -> Any:
    table = pl.DataFrame(rows, schema=["index", "rtt_ms", "is_answer", "cause"], orient="row")
    return table.with_columns(digest=pl.Series([*digests[: len(rows)]]))


def test_texts_are_those_of_inputs_with_all_three_answers() -> None:
    alone = answers(*((place, 1.0, place != 5, "") for place in range(6)), digests="aabcbx")
    load = answers((0, 1.0, True, ""), (1, 1.0, True, ""), (2, 1.0, True, ""), digests="azx")
    assert texts_of([0, 0, 1, 2, 1, 2], alone, load) == [("a", "a", "a"), ("b", "b", "z")]


def test_pairs_are_by_input_with_the_requests_between() -> None:
    back = answers(*((place, 10.0 + place, True, "") for place in range(6)))
    pairs, left_out = pairs_of([0, 0, 1, 2, 2, 1], back, 1)
    assert [(each.number, each.others, each.first_ms, each.second_ms) for each in pairs] == [
        (1, 2, 12.0, 15.0),
        (2, 0, 13.0, 14.0),
    ]
    assert left_out == {"warm-up": 1}


def test_only_inputs_answered_twice_in_the_same_way_are_compared() -> None:
    back = answers(
        (0, 1, True, ""), (1, 1, True, "expect-not-met"),
        (2, 1, False, "timeout"), (3, 1, True, ""),
        (4, 1, True, "expect-not-met"), (5, 1, True, "expect-not-met"),
        (6, 1, True, ""),
    )  # fmt: skip
    pairs, left_out = pairs_of([0, 0, 1, 1, 2, 2, 3, 3], back, 0)
    assert [each.number for each in pairs] == [2]
    assert left_out == {"answered in two ways": 1, "without an answer": 1}
