"""The kit's run of a plan with plain JMeter's: `.local/venv/bin/python -m benchmarks.foreign_plan [PLAN [TIMES]]`.

Runs `./run.sh -n -t PLAN -o ...` and `jmeter -n -t PLAN -l ... -e -o ...` in turn, the second with the Java options of
JMeter's own script. Prints the wall time of each, and the difference of the medians.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from framestorm import paths
from framestorm.run import jmeter

AT_MOST_S = 3.0
REPETITIONS = 3
# What bin/jmeter of the distribution gives to Java.
OF_JMETER = "-server -Xms1g -Xmx1g -XX:MaxMetaspaceSize=256m -XX:+UseG1GC -XX:MaxGCPauseMillis=100"


def plain(plan: Path, folder: Path) -> list[str | Path]:
    """The command of JMeter alone."""
    java = [
        paths.JAVA_HOME / "bin" / "java",
        *OF_JMETER.split(),
        "-jar",
        paths.JMETER_HOME / "bin" / "ApacheJMeter.jar",
    ]
    out = ["-l", folder / "samples.jtl", "-j", folder / "jmeter.log", "-e", "-o", folder / "dashboard"]
    return [*java, "-n", "-t", plan, *out, f"-Jjmeter.reportgenerator.temp_dir={folder}/temp"]


def took_s(command: list[str | Path], folder: Path) -> float:
    """The wall time of a command, run in a folder; a run whose criteria failed has done all that it does."""
    started_s = time.monotonic()
    done = subprocess.run(command, env=jmeter.environment(), cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 3):
        sys.exit(f"{command[0]} ended with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return time.monotonic() - started_s


def main() -> int:
    plan = (
        Path(sys.argv[1]).absolute() if len(sys.argv) > 1 else paths.ROOT / "tests" / "foreign" / "plans" / "dummy.jmx"
    )
    times: dict[str, list[float]] = {"kit": [], "JMeter": []}
    with tempfile.TemporaryDirectory() as scratch:
        for number in range(int(sys.argv[2]) if len(sys.argv) > 2 else REPETITIONS):
            folder = Path(scratch, str(number))
            folder.mkdir()
            times["kit"].append(took_s([paths.ROOT / "run.sh", "-n", "-t", plan, "-o", folder / "run"], folder))
            times["JMeter"].append(took_s(plain(plan, folder), folder))
            print(f"kit {times['kit'][-1]:.1f} s, JMeter alone {times['JMeter'][-1]:.1f} s", flush=True)
    kit_s, jmeter_s = map(statistics.median, times.values())
    more_s = kit_s - jmeter_s
    print(f"medians: kit {kit_s:.1f} s, JMeter alone {jmeter_s:.1f} s; {more_s:+.1f} s (target: at most {AT_MOST_S:g})")
    return int(more_s > AT_MOST_S)


if __name__ == "__main__":
    sys.exit(main())
