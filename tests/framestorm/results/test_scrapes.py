"""The target's own figures, as the scrapes of a run have them."""

from pathlib import Path

import pytest

from framestorm.model.scraped import scraped_criterion
from framestorm.report.scraped import scrape_notes, scraped_judgements, scraped_lines
from framestorm.results.scrapes import ScrapedSeries, Scrapes, read_scrapes

URL = "http://127.0.0.1:1/metrics"


@pytest.fixture
def scrapes(tmp_path: Path) -> Scrapes:
    """A gauge that changes once, a counter that starts again at 0, and a target that is away for two seconds of ten."""
    rows = ["time_ms,url,kind,series,value", f'0,{URL},gauge,"queue{{a=""x,y""}}",2', f"0,{URL},counter,done_total,100"]
    for second in range(11):
        rows.append(f"{second * 1000},{URL},up,up,{int(second not in (6, 7))}")
        if second and second not in (6, 7):
            rows.append(
                f"{second * 1000},{URL},counter,done_total,{100 + 10 * second if second < 6 else 10 * second - 80}"
            )
    rows.append(f'3000,{URL},gauge,"queue{{a=""x,y""}}",12')
    rows.append(f'9000,{URL},gauge,"queue{{a=""z""}}",1')
    (tmp_path / "scrapes.csv").write_text("\n".join(rows) + "\n")
    return read_scrapes(tmp_path / "scrapes.csv", (0.0, 10_000.0))


@pytest.mark.parametrize(
    ("text", "value", "state"),
    [
        ("queue max > 11", 12, "failed"),
        ("queue max > 12", 12, "passed"),
        ("queue min < 2", 1, "failed"),
        ('queue{a="x,y"} min < 2', 2, "passed"),
        # Nine answers: three times 2, then 12.
        ('queue{a="x,y"} mean > 8', (3 * 2 + 6 * 12) / 9, "failed"),
        ("queue last > 12", 12, "passed"),
        # From 100 to 150, then from 0 to 20, in ten seconds.
        ("done_total rate > 6", 7, "failed"),
        ("lost_total rate > 1", None, "unjudged"),
    ],
)
def test_criteria(scrapes: Scrapes, text: str, value: float | None, state: str) -> None:
    one = scraped_criterion(text)
    assert one is not None
    (judged,) = scraped_judgements([one], scrapes)
    assert (judged.state, judged.value) == (state, None if value is None else pytest.approx(value))


@pytest.mark.parametrize(("kind", "rate"), [("gauge", -2.0), ("counter", 2.5)])
def test_a_counter_that_falls_has_started_again_and_a_gauge_has_not(kind: str, rate: float) -> None:
    assert ScrapedSeries(URL, kind, "queue", [0, 1000, 2000], [5, 9, 1]).figure("rate") == rate


def test_a_target_that_is_away_is_counted(scrapes: Scrapes) -> None:
    assert (scrapes.asked, scrapes.failed) == ({URL: 11}, {URL: 2})
    (note,) = scrape_notes(scrapes)
    assert "3 series in 11 scrapes" in note and "2 of these got no answer" in note


def test_the_page_draws_a_counter_as_its_rate(scrapes: Scrapes) -> None:
    one = scraped_criterion("done_total rate > 6")
    assert one is not None
    lines = scraped_lines(scrapes, [one], 0.0)
    assert [(each.name, each.is_rate) for each in lines] == [("done_total", True), ('queue{a="x,y"}', False)]
    assert lines[0].y == [10, 10, 10, 10, 10, 0, 10, 10]


def test_a_run_without_scrapes_has_none(tmp_path: Path) -> None:
    assert read_scrapes(tmp_path / "scrapes.csv", None) == Scrapes([], {}, {})
