"""A plan in JMeter's GUI, with the embedded target running and with the properties of a run."""

import subprocess
import sys
from contextlib import ExitStack

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.run import jmeter
from framestorm.run.preparation import RunOptions, choose_run_dir, prepare


def open_plan(options: RunOptions) -> int:
    """Open the plan, wait until the window is closed, and return JMeter's exit status.

    The folder keeps the results of the window's runs: tree.xml and journal.jsonl, to which each run appends.
    """
    run_dir = choose_run_dir(options, suffix="-gui")
    prepared = prepare(options, run_dir)
    run_dir.mkdir(parents=True)
    with ExitStack() as stack:
        stack.enter_context(prepared.platform.serving(run_dir))
        print(f"opening JMeter's window; runs in it write their files to {paths.shown(run_dir)}", file=sys.stderr)
        values = {**prepared.values, **prepared.jmeter_values}
        command = jmeter.gui_command(options.plan, values, run_dir)
        process = subprocess.run(command, env=jmeter.environment(), capture_output=True, text=True, check=False)
    if process.returncode != 0:
        output = process.stderr.strip() or process.stdout.strip()
        raise FramestormError(f"JMeter's GUI ended with status {process.returncode}: {output}")
    return 0
