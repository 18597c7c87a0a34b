import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from framestorm.cli import main
from framestorm.compare.page import charts, page_html
from framestorm.judge.wording import ratio as ratio_text
from framestorm.model import files
from framestorm.model.comparison import Comparison
from framestorm.model.metric import metric
from tests.framestorm.compare.conftest import Make, steady
from tests.framestorm.conftest import own_text


@pytest.fixture
def made(tmp_path: Path, make_run: Make) -> Path:
    out = tmp_path / "compared"
    runs = [make_run("a", steady(400, 1)), make_run("b<b>", [*steady(399, 2, 1.5), 25_000.0], cut=(399,))]
    assert main(["compare", *map(str, runs), "-o", str(out)]) == 3
    return out


def load(folder: Path) -> Comparison:
    return files.read(folder / "comparison.json", Comparison)


def test_made_of_its_json_alone(made: Path) -> None:
    assert page_html(load(made)) == (made / "index.html").read_text()


def test_needs_nothing_from_outside(made: Path) -> None:
    own = own_text((made / "index.html").read_text())
    assert not re.search(r"""(?:src|href)\s*=\s*["'](?:https?:)?//""", own)
    assert "<b>" not in own


def test_names_that_differ_in_case_only_are_two(made: Path) -> None:
    comparison = load(made)
    (side,) = comparison.comparisons
    names = ("Login p95_ms", "login p95_ms")
    points = [replace(side.overall[0], metric=name, point="users=1") for name in names]
    page = page_html(replace(comparison, comparisons=[replace(side, points=points, warnings=["Slow.", "slow."])]))
    for text in (*(metric(name).title for name in names), "Slow.", "slow."):
        assert text in page


def test_draws_in_a_browser(made: Path, draws: Callable[[Path, int], None]) -> None:
    draws(made, len(charts(load(made))))


def test_says_what_has_to_be_said(made: Path) -> None:
    page = (made / "index.html").read_text()
    for words in (
        "Regression",
        "one run each",
        "lower bounds",
        "To repeat",
        "Download as SVG",
        "The machine was busy.",
    ):
        assert words in page


@pytest.mark.parametrize(("threshold", "look"), [("mean 1000 %", "pass"), ("p99 1000 %", "partial")])
def test_it_is_green_only_if_each_threshold_was_decided(
    tmp_path: Path, make_run: Make, threshold: str, look: str
) -> None:
    """Too few samples for an interval of p99; the success rate is decided in both."""
    runs = [make_run("a", steady(400, 1)), make_run("b", steady(400, 2))]
    words = ("--threshold", threshold, "--threshold", "success 50 points", "-o", str(tmp_path / "compared"))
    assert main(["compare", *map(str, runs), *words]) == 0
    assert load(tmp_path / "compared").verdict.word == "none"
    assert f'<section class="verdict {look}" ' in (tmp_path / "compared" / "index.html").read_text()


def test_charts(made: Path) -> None:
    ratios, spread = charts(load(made))
    assert ratios.title == "Ratios" and ratios.xaxis["type"] == "log"
    by_name = {trace["name"]: trace for trace in ratios.traces}
    worse = by_name["for the worse"]
    place, ends = worse["y"].index("Median response time"), worse["error_x"]
    (median,) = (row.ratio for row in load(made).comparisons[0].overall if row.metric == "median_ms" and row.ratio)
    low, high = worse["x"][place] - ends["arrayminus"][place], worse["x"][place] + ends["array"][place]
    assert (low, high) == pytest.approx((median.low, median.high))
    assert spread.title == "Response times, cumulative"
    assert max(spread.traces[1]["y"]) == pytest.approx(100 * 399 / 400)


def test_what_was_refused_is_in_the_share(tmp_path: Path, make_run: Make) -> None:
    """One that refuses most and answers the rest at once is not the faster for it."""
    runs = [make_run("a", steady(40, 1)), make_run("b", steady(40, 2, 0.1), cut=(0,), refused=tuple(range(1, 30)))]
    main(["compare", *map(str, runs), "-o", str(tmp_path / "compared")])
    _, spread = charts(load(tmp_path / "compared"))
    assert [max(trace["y"]) for trace in spread.traces] == [100, 25]
    assert spread.caption.endswith(
        "Timed out (counted in the total only): 1 of B. Failed otherwise (counted in the total only): 29 of B."
    )


def test_a_success_whose_time_is_not_known_is_no_failure(tmp_path: Path, make_jtl_run: Callable[..., Path]) -> None:
    runs = [make_jtl_run("a", {"call": steady(40, 1)}), make_jtl_run("b", {"call": [*steady(38, 2), -5.0, -5.0]})]
    main(["compare", *map(str, runs), "-o", str(tmp_path / "compared")])
    spread = charts(load(tmp_path / "compared"))[-1]
    assert [max(trace["y"]) for trace in spread.traces] == [100, 95]
    assert spread.caption.endswith("some samples only. Without a time (counted in the total only): 2 of B.")


@pytest.mark.parametrize(("ratio", "text"), [(1.0, "1.000"), (0.9996, "1.000"), (0.0664, "0.0664"), (51.23, "51.2")])
def test_ratios_in_words(ratio: float, text: str) -> None:
    assert ratio_text(ratio) == text
