"""A study whose runs are made over slaves."""

import csv
import json
import subprocess
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
STUDY = """\
title: Users over slaves
question: Does a study's load come from the slaves?
plan: jmx/video-per-user.jmx
target: {kind: embedded}
properties: {frames: 2, ramp_s: 0}
factors:
  users: [2, 3]
repetitions: 1
run_s: 10
budget_min: 5
metrics: [mean_ms, success]
hypotheses:
  - name: answered
    text: Every frame is answered.
    claims:
      - {metric: success, expect: "> 0.5"}
"""


def test_a_study_over_slaves(deployed: Any, tmp_path: Path) -> None:
    study, folder = tmp_path / "over-slaves", tmp_path / "done"
    study.mkdir()
    (study / "study.yml").write_text(STUDY)
    command = [str(ROOT / "run.sh"), "study", str(study), "-R", "slaves", "-o", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    with (folder / "results.csv").open(newline="") as file:
        rows = {row["users"]: row for row in csv.DictReader(file)}
    assert {users: (row["n"], row["success"]) for users, row in rows.items()} == {"2": ("4", "1.0"), "3": ("6", "1.0")}
    for users, row in rows.items():
        hosts = {
            host["inventory_name"]: host for host in json.loads((folder / row["run"] / "run.json").read_text())["hosts"]
        }
        shares = [int(hosts[name]["share"]["users"]) for name in ("slave1", "slave2")]
        assert (sum(shares), shares[1]) == (int(users), 1)
        assert hosts["function1"]["role"] == "target"
