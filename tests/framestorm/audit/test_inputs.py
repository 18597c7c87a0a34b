"""The inputs of data sets, and the files that they are written to."""

from pathlib import Path

import pytest

from framestorm.audit.inputs import Inputs
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.paths import JMX

PLAN = plans.read(JMX / "requests.jmx")


def written(name: str, path: Path, order: list[int], folder: Path) -> Path:
    value = Inputs.of(PLAN, {name: f"@{path}"}).write(order, folder, "again")
    assert value.startswith("@")
    return Path(value[1:])


def test_rows_of_csv_keep_their_header_and_quotes(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,text\n" + "".join(f'{n},"a ""b"", c {n}\nd"\n' for n in range(30)))
    again = written("rows", path, [2, 0, 2], tmp_path)
    assert again.name == "again.csv"
    assert again.read_text() == "name,text\n" + "".join(f'{n},"a ""b"", c {n}\nd"\n' for n in (2, 0, 2))


def test_a_picture_in_base64_is_a_value(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("name,picture\n" + "".join(f"{n},{'A' * 200_000}\n" for n in range(30)))
    assert written("rows", path, [7], tmp_path).read_text() == f"name,picture\n7,{'A' * 200_000}\n"


def test_lines_of_json_are_the_body_in_another_order(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text("\ufeff" + "".join(f'{{"text": "é {n}"}}\n\n' for n in range(30)))
    assert written("body", path, [29, 1], tmp_path).read_text() == '{"text": "é 29"}\n{"text": "é 1"}\n'


def test_files_of_a_folder_are_links_in_the_order(tmp_path: Path) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for n in range(30):
        (folder / f"{n:02}.png").write_bytes(bytes([n]))
    (folder / ".hidden").write_bytes(b"x")
    again = written("body", folder, [5, 5, 3], tmp_path)
    assert [each.read_bytes() for each in sorted(again.iterdir())] == [b"\5", b"\5", b"\3"]
    assert all(each.suffix == ".png" for each in again.iterdir())


def test_equal_inputs_count_once(tmp_path: Path) -> None:
    path = tmp_path / "texts.jsonl"
    path.write_text('{"a": 1, "b": 2}\n{"b": 2, "a": 1}\n' + "".join(f'{{"n": {n}}}\n' for n in range(29)))
    inputs = Inputs.of(PLAN, {"body": f"@{path}"})
    assert (len(inputs.numbers), inputs.numbers[1], inputs.equal) == (30, 3, 1)


@pytest.mark.parametrize(
    ("lines", "given", "why"),
    [
        (29, {"body": "@x.jsonl"}, "it has 29 different inputs, and an audit needs at least 30"),
        (30, {"body": "hello"}, "the plan has no data set"),
        (30, {"body": "@x.jsonl", "rows": "@x.jsonl"}, "both -Jrows and -Jbody are data sets"),
        (30, {"body": "@y.jsonl"}, "y.jsonl"),
        (30, {"rows": "@x.jsonl", "form": "file=@."}, "form's folder"),
    ],
)
def test_what_is_no_data_set_of_an_audit_is_refused(
    lines: int, given: dict[str, str], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("x.jsonl").write_text("".join(f'{{"n": {n}}}\n' for n in range(lines)))
    with pytest.raises(UsageError, match=why):
        Inputs.of(PLAN, given)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "x.csv").write_bytes(b"a\n\xff\n")
    with pytest.raises(UsageError, match="is not in UTF-8, as byte"):
        Inputs.of(PLAN, {"rows": f"@{tmp_path / 'x.csv'}"})
