"""A plan in JMeter's GUI, beside the embedded target and with the properties of a run."""

import subprocess
import sys

from framestorm import jmeter, paths, run
from framestorm.errors import FramestormError


def open_plan(options: run.RunOptions) -> int:
    """Open the plan and wait until the window is closed; JMeter's exit status.

    The folder keeps what was run in the window: tree.xml and journal.jsonl, both added to by each Run.
    """
    run_dir = run.choose_run_dir(options, suffix="-gui")
    prepared = run.prepare(options, run_dir)
    run_dir.mkdir(parents=True)
    with run.embedded_target(options, prepared, run_dir):
        print(f"JMeter's window opens; its runs leave their files in {paths.shown(run_dir)}", file=sys.stderr)
        command = jmeter.gui_command(options.plan, prepared.passed_on, run_dir)
        done = subprocess.run(command, env=jmeter.environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise FramestormError(
            f"JMeter's GUI ended with status {done.returncode}: {done.stderr.strip() or done.stdout.strip()}"
        )
    return 0
