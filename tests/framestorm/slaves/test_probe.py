import getpass
import os
from pathlib import Path

from framestorm.slaves import probe


def test_usage_is_of_an_account_and_of_the_whole_host() -> None:
    usage = probe.usage(getpass.getuser())
    assert usage.processes >= 1
    assert usage.cpu_s > 0
    assert usage.rss_bytes >= os.sysconf("SC_PAGE_SIZE")
    assert 0 < usage.host_memory_bytes < os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def test_a_missing_file_has_no_digest(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    assert probe.digest(tmp_path, ["a"]) != probe.digest(tmp_path, [])
    assert probe.digest(tmp_path, ["a", "b"]) is None
