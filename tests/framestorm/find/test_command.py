"""Searches that are refused before anything is started."""

from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.find import command

RATES = ("--over", "rate_per_s=1..9", "-t", "jmx/request-rate.jmx", "-Jurl=http://127.0.0.1:9/")


@pytest.mark.parametrize("least", ["nan", "inf", "0.5", "9.1"])
def test_what_lies_outside_of_the_range_can_never_be_shown(least: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"--at-least {least} is outside of --over rate_per_s=1..9"):
        command.main([*RATES, "--at-least", least, "-o", str(tmp_path / "find")])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("words", [("--slo", "p95 < 1 s"), ("--at-least", "3"), ("-Jhold_s=3",)])
def test_a_search_goes_on_by_the_words_that_it_began_with(words: tuple[str, ...], tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give no others"):
        command.main(["--resume", str(tmp_path), *words])
