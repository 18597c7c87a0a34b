from pathlib import Path

import pytest

from framestorm.model import files
from framestorm.model.files import FORMAT, FileError, FormatError
from framestorm.model.run import Record


def test_an_older_format_is_refused_by_its_number(tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    files.write(path, Record(label="frame"))
    assert files.read(path, Record) == Record(label="frame")
    path.write_text(path.read_text().replace(f'"format":{FORMAT}', f'"format":{FORMAT - 1}'))
    with pytest.raises(FormatError, match=rf"run.json has format {FORMAT - 1}; this version reads format {FORMAT}"):
        files.read(path, Record)


@pytest.mark.parametrize(
    ("content", "words"),
    [(None, "is missing"), ("{", "cannot be read"), ("[1]", "not a JSON object"), ('{"has_users": 7}', "has_users")],
)
def test_what_is_no_record_is_refused_with_its_file(content: str | None, words: str, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(FileError, match=f"run.json.*{words}"):
        files.read(path, Record)


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "summary.json"
    files.write_text(path, "before")
    with pytest.raises(ZeroDivisionError), files.replacing(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert path.read_text() == "before" and list(tmp_path.iterdir()) == [path]


def test_a_removal_that_is_cut_off_leaves_nothing_by_the_folder_s_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "complete").touch()

    def stop(path: Path, ignore_errors: bool) -> None:
        if path.exists():
            raise KeyboardInterrupt

    with monkeypatch.context() as cut, pytest.raises(KeyboardInterrupt):
        cut.setattr(files.shutil, "rmtree", stop)
        files.remove_folder(folder)
    assert not folder.exists()
    files.remove_folder(folder)
    assert not list(tmp_path.iterdir())
