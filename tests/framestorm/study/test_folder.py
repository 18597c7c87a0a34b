"""A study's folder: what a crash leaves of it, and what another version may make of it."""

import json
from dataclasses import replace

import pytest

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.model.study import Study
from framestorm.points import folder
from framestorm.points.folder import COMPLETE, FAILED, Point, RunLine, StudyFolder, StudyRecord
from framestorm.study.design import matrix
from tests.framestorm.study.conftest import PLAIN

STUDY = Study.model_validate({**PLAIN, "published": "published.csv", "name": "kept"})
POINTS = matrix.points(STUDY)


def line(order=1, state=COMPLETE, repetition=1, run="runs/0001-users=1-r1", point="users=1"):
    return RunLine(point, repetition, run, state, None if state == COMPLETE else "why", 1, 2, 3, order)


@pytest.fixture
def made(tmp_path):
    file = tmp_path / "study.yml"
    file.write_text("title: Kept\n")
    (tmp_path / "published.csv").write_text("users,mean_ms\n")
    return StudyFolder.create(tmp_path / "made", StudyRecord.begin(file, STUDY, POINTS, seed=1))


def test_what_it_is_made_of(made):
    names = {path.name for path in made.path.iterdir()}
    assert names == {"study.yml", "study.json", "runs.jsonl", "runs", "published.csv"}
    record = StudyFolder(made.path).record
    assert (record.format, record.kind, record.name, record.state) == (2, "study", "kept", "running")
    assert (record.definition, record.points) == (STUDY, tuple(POINTS))
    with pytest.raises(UsageError, match="made cannot be made: File exists; choose a new folder by -o"):
        StudyFolder.create(made.path, made.record)


def test_the_last_line_of_a_point_and_repetition_counts(made):
    made.append(line(state=FAILED))
    made.append(line(repetition=2))
    made.append(line(run="runs/0001-users=1-r1-retry-2"))
    lines = made.lines()
    assert {key: each.state for key, each in lines.items()} == {("users=1", 1): "complete", ("users=1", 2): "complete"}
    assert lines["users=1", 1].run == "runs/0001-users=1-r1-retry-2"


def test_half_a_line_is_none_and_stays(made):
    made.append(line())
    with (made.path / "runs.jsonl").open("a") as file:
        file.write('{"point": "users=2", "repet')
    assert list(made.lines()) == [("users=1", 1)]
    made.append(line(order=2, point="users=2"))
    assert list(made.lines()) == [("users=1", 1), ("users=2", 1)]
    assert len((made.path / "runs.jsonl").read_text().splitlines()) == 3


def test_a_line_ends_only_at_a_line_feed(made):
    reasons = [f"one{end}two" for end in "\u0085\u2028\u2029\x0b\x1c\r\n"]
    for number, reason in enumerate(reasons, 1):
        made.append(replace(line(state=FAILED, repetition=number), reason=reason))
    assert [each.reason for each in made.lines().values()] == reasons


def test_each_run_has_a_folder_of_its_own(made):
    for name in ("0007-users=1-r2", "0007-users=1-r2-retry-2", "0007-users=1-r2-retry-3"):
        run = made.new_run(7, POINTS[0], 2)
        assert run.name == name
        run.mkdir()
    odd = [Point(f"url=http://x/{'y' * 300}{end}", {}, "", {}, {}) for end in ("", "z")]
    first, other = (made.new_run(1, point, 1).name for point in odd)
    assert first != other and len(first) < 200 and "/" not in first


def test_what_a_crash_left_is_moved_aside_and_kept(made):
    done, crashed = made.path / "runs" / "0001-users=1-r1", made.path / "runs" / "0002-users=2-r1"
    for run in (done, crashed):
        run.mkdir()
        (run / "samples.jtl").write_text(run.name)
    made.append(line())
    assert [path.name for path in made.set_aside()] == ["0002-users=2-r1-aborted-1"]
    assert made.set_aside() == []
    crashed.mkdir()
    assert [path.name for path in made.set_aside()] == ["0002-users=2-r1-aborted-2"]
    assert (made.path / "runs" / "0002-users=2-r1-aborted-1" / "samples.jtl").read_text() == "0002-users=2-r1"
    assert done.exists()


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("study.json", {"format": 1}, "study.json has format 1; this version reads format 2 only"),
        ("study.json", {"kind": "comparison"}, "study.json: kind: "),
        ("study.json", "", "cannot be used as a study's folder: .*study.json"),
        ("study.json", "[]", "cannot be used as a study's folder: .*study.json"),
        ("study.json", None, "cannot be used as a study's folder: .*study.json"),
        ("runs.jsonl", None, "made has no runs.jsonl: restore what is missing"),
        ("runs", None, "made has no runs: restore what is missing"),
    ],
)
def test_what_is_no_study_s_folder_is_refused(made, name, content, words):
    file = made.path / name
    text = json.dumps({**json.loads(file.read_text()), **content}) if isinstance(content, dict) else content
    file.rename(made.path / "elsewhere")
    if text is not None:
        file.write_text(text)
    with pytest.raises(UsageError, match=words):
        StudyFolder(made.path)


def test_one_at_a_time(made):
    is_refused = pytest.raises(FramestormError, match="is being run by another process")
    with made.locked(), is_refused, StudyFolder(made.path).locked():
        pass
    with made.locked():
        pass


@pytest.fixture
def begin(tmp_path, monkeypatch):
    """Begin a study of the file of this folder, some ms after others."""
    monkeypatch.setattr(paths, "DASHBOARDS", tmp_path / "dashboards")

    def begin(name, of, started_ms):
        file = tmp_path / of / "study.yml"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("title: Kept\n")
        (file.parent / "published.csv").write_text("users,mean_ms\n")
        study = replace(StudyRecord.begin(file, STUDY, POINTS, seed=1), started_ms=started_ms)
        return StudyFolder.create(paths.DASHBOARDS / name, study), file

    return begin


def test_the_newest_unfinished_is_found(begin, capsys):
    first, file = begin("first", "a/kept", 1)
    newest, _ = begin("newest", "a/kept", 2)
    _, other = begin("other", "b/kept", 3)
    cut, _ = begin("cut", "a/kept", 4)
    (cut.path / "study.json").write_text("{")

    def found(quick=False):
        return folder.newest_unfinished(file, quick).path.name

    assert found() == "newest"
    assert "cut/study.json cannot be read" in capsys.readouterr().err
    with pytest.raises(UsageError, match="has no unfinished --quick kept"):
        found(quick=True)
    newest.update(quick=True)
    assert found() == found(quick=True) == "newest"
    newest.update(state=COMPLETE)
    assert found() == "first"
    first.update(state=COMPLETE)
    with pytest.raises(UsageError, match=r"finished: .*first, .*newest"):
        found()
    # What the other one was begun with is gone: the name alone says which it is.
    other.unlink()
    assert found() == "other"
