"""Texts in place of values, and what only looks like one."""

from pathlib import Path

import pytest

from framestorm.results.reading import read_results
from framestorm.results.unreplaced import read_unreplaced
from tests.framestorm.results.conftest import START_MS, write_rows

OF_USER, OF_SECRET = "http://h/${user}", "http://h/?key=${env:KEY}"


@pytest.mark.parametrize(("has_secrets", "of_secret"), [(True, []), (False, ["${env:KEY}"])])
def test_a_secret_that_is_masked_again_is_none(tmp_path: Path, has_secrets: bool, of_secret: list[str]) -> None:
    row = (START_MS, 1, "request", 200, "OK", "true", "")
    write_rows(tmp_path, ("URL",), (*row, OF_USER), (*row, OF_SECRET))
    logged = {("user", "${env:KEY}"): 4} if has_secrets else {}
    found = read_unreplaced(read_results(tmp_path).jtl, logged, has_secrets=has_secrets)
    assert sorted(each.text for each in found) == [*of_secret, "${user}"]
