import contextlib
import csv
import json
import random
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.model import files
from framestorm.model.run import Record
from framestorm.run import dashboard

HEADER = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
)


def row(number: int, elapsed_ms: int) -> str:
    return f"{1_700_000_000_000 + number},{elapsed_ms},frame,200,OK,t 1-1,text,true,,10,10,1,1,null,0,0,0\n"


def test_a_dashboard_is_made_of_what_a_killed_jmeter_left(tmp_path: Path) -> None:
    random.seed(7)
    rows = [row(number, random.randrange(1, 99)) for number in range(50)]  # noqa: S311
    (tmp_path / "samples.jtl").write_text(HEADER + "".join(rows) + row(50, 1)[:30])
    dashboard.make_dashboard(tmp_path)
    files.write(tmp_path / "run.json", Record(given={"jmeter.reportgenerator.report_title": "Shop"}))
    dashboard.make_dashboard(tmp_path)  # and again, over the first
    assert ">Shop<" in (tmp_path / "jmeter" / "index.html").read_text()
    assert json.loads((tmp_path / "jmeter" / "statistics.json").read_text())["frame"]["sampleCount"] == 50
    with (tmp_path / "samples.jtl").open() as samples:
        assert sum(1 for _ in csv.reader(samples)) == 52  # the raw file stays as it was left


def test_a_dashboard_of_many_labels_is_made_with_the_rarest_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The label of each sample has an id of its own; JMeter runs out of memory here at 5,000 labels."""
    rows = [row(number, 7).replace("frame", f"order {number}") for number in range(20_000)]
    (tmp_path / "samples.jtl").write_text(HEADER + "".join(rows) + row(20_000, 9) * 2)
    dashboard.make_dashboard(tmp_path)
    statistics = json.loads((tmp_path / "jmeter" / "statistics.json").read_text())
    assert len(statistics) == 1002 and statistics["frame"]["sampleCount"] == 2  # with the total
    assert statistics["19,001 other labels"]["sampleCount"] == 19_001 and statistics["Total"]["sampleCount"] == 20_002
    assert "combines the other 19,001 in one row" in capsys.readouterr().err


@pytest.mark.parametrize("end", ["", "=theirs"])
def test_the_folder_of_a_run_brings_no_code(end: str, tmp_path: Path) -> None:
    template = tmp_path / f"theirs{end and '='}"
    template.mkdir()
    code = '<#assign run = "freemarker.template.utility.Execute"?new()>${run("touch executed")}'
    (template / "index.html.fmkr").write_text(code)
    (tmp_path / "samples.jtl").write_text(HEADER + row(0, 1))
    name = f"jmeter.reportgenerator.exporter.html.property.template_dir{end}"
    files.write(tmp_path / "run.json", Record(given={name: "" if end else "theirs"}))
    with contextlib.suppress(FramestormError):
        dashboard.make_dashboard(tmp_path)
    assert not (tmp_path / "executed").exists()


def test_a_dashboard_is_written_into_the_folder_of_its_run_only(tmp_path: Path) -> None:
    folder, elsewhere = tmp_path / "run", tmp_path / "elsewhere"
    folder.mkdir()
    elsewhere.mkdir()
    (folder / "samples.jtl").write_text(HEADER + row(0, 1))
    files.write(folder / "run.json", Record())
    (folder / "jmeter").symlink_to(elsewhere)
    (folder / "jmeter-dashboard.log").symlink_to(elsewhere / "log")
    dashboard.make_dashboard(folder)
    assert (folder / "jmeter" / "index.html").exists() and list(elsewhere.iterdir()) == []


def test_what_makes_a_dashboard_ends_with_its_conductor(tmp_path: Path) -> None:
    (tmp_path / "samples.jtl").write_text(HEADER + row(0, 1))
    code = (
        "import pathlib, sys; from framestorm.run import dashboard; dashboard.make_dashboard(pathlib.Path(sys.argv[1]))"
    )
    with subprocess.Popen([sys.executable, "-c", code, tmp_path], cwd=paths.ROOT) as conductor:
        made: list[psutil.Process] = []

        def is_java() -> bool:
            made[:] = psutil.Process(conductor.pid).children()
            return bool(made) and made[0].name() == "java"

        assert wait_until(is_java, 30)
        made[0].suspend()  # or it might have ended by itself
        conductor.kill()
    assert wait_until(lambda: not made[0].is_running() or made[0].status() == psutil.STATUS_ZOMBIE, 20)
    dashboard.make_dashboard(tmp_path)
    assert {path.name for path in tmp_path.iterdir() if path.is_dir()} == {"jmeter"}  # nothing is left of the first


@pytest.mark.parametrize("content", [None, "", HEADER, HEADER + row(0, 1)[:20]])
def test_without_samples_there_is_no_dashboard(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "samples.jtl").write_text(content)
    with pytest.raises(FramestormError, match="has no sample"):
        dashboard.make_dashboard(tmp_path)
