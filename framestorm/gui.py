"""A plan in JMeter's GUI, beside the embedded target and with the properties of a run."""

import subprocess
import sys
from contextlib import ExitStack

from framestorm import jmeter, paths, target
from framestorm.errors import FramestormError
from framestorm.preparation import RunOptions, choose_run_dir, prepare


def open_plan(options: RunOptions) -> int:
    """Open the plan and wait until the window is closed; JMeter's exit status.

    The folder keeps what was run in the window: tree.xml and journal.jsonl, both added to by each Run.
    """
    run_dir = choose_run_dir(options, suffix="-gui")
    prepared = prepare(options, run_dir)
    run_dir.mkdir(parents=True)
    with ExitStack() as stack:
        if prepared.is_embedded:
            log_path = run_dir / "target.log"
            embedded = stack.enter_context(target.start_embedded(options.port, log_path))
            target.wait_until_ready(embedded, options.port, log_path)
        print(f"JMeter's window opens; its runs leave their files in {paths.shown(run_dir)}", file=sys.stderr)
        values = {**prepared.values, **prepared.jmeter_values}
        command = jmeter.gui_command(options.plan, values, run_dir)
        done = subprocess.run(command, env=jmeter.environment(), capture_output=True, text=True, check=False)
    if done.returncode != 0:
        said = done.stderr.strip() or done.stdout.strip()
        raise FramestormError(f"JMeter's GUI ended with status {done.returncode}: {said}")
    return 0
