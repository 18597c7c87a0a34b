"""Properties as the command line and Java's files set them."""

from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.run import properties

FILE = rb"""# a comment
! another
plain=value
  spaced  :  with colon
bare
a\ b\=c another \
        line
path=C:\\tmp\\x
accent=caf\u00e9 \
# goes on, and is no comment
last=1
"""


def test_a_file_is_read_as_java_does(tmp_path: Path) -> None:
    path = tmp_path / "my.properties"
    path.write_bytes(FILE)
    assert properties.read(path) == {
        "plain": "value",
        "spaced": "with colon",
        "bare": "",
        "a b=c": "another line",
        "path": r"C:\tmp\x",
        "accent": "café # goes on, and is no comment",
        "last": "1",
    }
    with pytest.raises(UsageError, match=r"none\.properties"):
        properties.read(tmp_path / "none.properties")


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    values = {"a": " lead\nand\ttab", "b": 'C:\\x "quoted"', "c": "été = #1", "d": ""}
    (tmp_path / "x").write_bytes(properties.written(values))
    assert properties.read(tmp_path / "x") == values


def test_the_last_of_a_name_counts(tmp_path: Path) -> None:
    path = tmp_path / "my.properties"
    path.write_text("users=7\nramp=1\n")
    assert properties.assigned(["users=1", path, "url=http://h/?a=b"]) == {
        "users": "7",
        "ramp": "1",
        "url": "http://h/?a=b",
    }
    assert properties.assigned([path, "users=2", "ramp"]) == {"users": "2", "ramp": ""}
    with pytest.raises(UsageError, match="name=value"):
        properties.assigned(["=5"])
