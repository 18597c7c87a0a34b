"""A run with none of JMeter's classes patched: what it lacks is said, and all else is as in any run."""

from pathlib import Path

import pytest

from framestorm import cli
from framestorm.run.patches import missing
from tests.run.foreign import REQUEST, script, write_plan
from tests.runs import RunSh
from tests.stand_in import StartServer

PARTS = (
    "def part = org.apache.jmeter.samplers.SampleResult.createTestSample(5); part.successful = true;"
    "SampleResult.addSubResult(part)"
)


def test_a_run_without_the_patched_classes_says_what_it_lacks(
    run_sh: RunSh, stand_in: StartServer, tmp_path: Path
) -> None:
    server = stand_in({})
    plan = write_plan(tmp_path / "theirs.jmx", REQUEST.format(url=server.url) + script(PARTS, "parts"), loops=3)
    run = run_sh("-t", str(plan), "--unpatched", dashboard=True)
    assert f"note: --unpatched: {'; '.join(missing())}" in run.stderr
    first = run.rows()[0]
    assert "elapsed_us" not in first and "sample_kind" not in first
    assert run.count("label", "success") == {(name, "true"): 6 for name in ("call", "parts", "parts-0")}
    summary = run.json("summary.json")
    (said,) = [sentence for sentence in summary["notes"] if "--unpatched" in sentence]
    assert all(clause in said for clause in missing())
    assert summary["labels"]["call"]["n"] == 6 and not any("samples.jtl" in each for each in summary["warnings"])
    assert (run.folder / "jmeter" / "index.html").exists()
    assert "warmed up by" in run.text("jmeter.log")


def test_slaves_have_the_patched_classes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    inventory = tmp_path / "inventory"
    inventory.write_text("[slaves]\nslave1 ansible_host=192.0.2.1\n[master]\n[function]\n")
    plan = write_plan(tmp_path / "theirs.jmx", script("1"), loops=1)
    assert cli.main(["-t", str(plan), "-R", "slave1", "-i", str(inventory), "--unpatched"]) == 2
    assert "--unpatched works on one machine" in capsys.readouterr().err
