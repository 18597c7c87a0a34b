"""What slaves cost: rows a second that reach the controller whole, and whether a fixed rate is kept over 1 to 4 slaves.

    .local/venv/bin/python -m benchmarks.slaves      (root; starts the lab with four slaves, deploys, ends it)

Each figure is compared with the same load from this machine alone, measured in the same run.
"""

import csv
import json
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from framestorm import paths
from framestorm.hosts.orders import CONTROLLER_PROPERTIES, remote_options
from framestorm.run import jmeter
from lab.hosts import CONTROLLER_ADDRESS, LabHost

PLAN = Path(__file__).with_name("rows.jmx")
ROWS = 16 * 12_500
SLAVES = 4
RATE_PER_S = 80
HOLD_S = 20
WANTED_OF_STANDARD = 1.3
ANSWER = json.dumps({"image": "eA==", "faces": [], "timings_ms": {"model": 0, "total": 0}, "cold": False}).encode()


class Noop(BaseHTTPRequestHandler):
    """Answers every frame at once."""

    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(ANSWER)}\r\n\r\n"
        self.wfile.write(
            head.encode() + ANSWER
        )  # at once: the rest of a small answer would wait for an acknowledgement

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class NoopServer(ThreadingHTTPServer):
    """Takes the connections of an open load's first second, which come all at once."""

    request_queue_size = 512


def run_sh(*words: str) -> None:
    done = subprocess.run([paths.ROOT / "run.sh", *words], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"./run.sh {' '.join(words)}: {done.returncode}\n{done.stdout}{done.stderr}")


@contextmanager
def deployed(folder: Path) -> Iterator[Path]:
    """The lab with its slaves, deployed; yields their inventory."""
    text = (paths.ROOT / "inventory.ini").read_text().replace("{{ inventory_dir }}", str(paths.ROOT))
    inventory = folder / "inventory.ini"
    inventory.write_text(text.replace("# slave3", "slave3").replace("# slave4", "slave4"))
    run_sh("lab", "up", "--slaves", str(SLAVES))
    try:
        run_sh("deploy", "-i", str(inventory))
        yield inventory
    finally:
        run_sh("lab", "down")


def rows_per_s(folder: Path, *options: str) -> tuple[float, float, int]:
    """Rows of the plan that reach the controller's files: a second, the same of the later half, and how many did.

    In the earlier half Java is still compiling JMeter, on the cores that do the work.
    """
    folder.mkdir()
    values, java_options = {"tree": str(folder / "tree.xml")}, jmeter.CONTROLLING
    command = [*jmeter.run_command(PLAN, values, folder, 0, java_options=java_options), *options]
    subprocess.run(command, env=jmeter.environment(), cwd=paths.ROOT, check=True, stdout=subprocess.DEVNULL)
    with (folder / "samples.jtl").open(newline="") as file:
        starts_ms = sorted(int(row["timeStamp"]) for row in csv.DictReader(file))
    kept = (folder / "tree.xml").read_text().count("<sample ")
    later_ms = starts_ms[len(starts_ms) // 2 :]
    whole, later = (len(each) / ((each[-1] - each[0]) / 1000) for each in (starts_ms, later_ms))
    return whole, later, min(len(starts_ms), kept)


def served_per_s(folder: Path, url: str, *options: str) -> float:
    """Right answers a second to a fixed rate of arrivals."""
    load = (f"-Jurl={url}", f"-Jrate_per_s={RATE_PER_S}", f"-Jhold_s={HOLD_S}", "-Jmin_faces=0")
    run_sh("-t", "jmx/face-blur-http.jmx", *load, "-o", str(folder), *options)
    answered: int = json.loads((folder / "summary.json").read_text())["labels"]["frame"]["ok"]
    return answered / HOLD_S


def main() -> int:
    """Measure and print; 1 when a target was missed."""
    missed = False
    with tempfile.TemporaryDirectory() as name, deployed(Path(name)) as inventory:
        folder = Path(name)
        _, alone, _ = rows_per_s(folder / "alone")
        over = remote_options([f"{LabHost('slave1').address}:8001"], CONTROLLER_ADDRESS, CONTROLLER_PROPERTIES)
        whole, sent, came = rows_per_s(folder / "slave", *over)
        _, standard, _ = rows_per_s(folder / "standard", *over, "-Jmode=Standard")
        missed |= sent < WANTED_OF_STANDARD * standard or came != ROWS
        print(f"rows with the tree kept, once warm: {sent:.0f}/s over one slave, {sent / alone:.2f} of none")
        print(f"  {sent / standard:.2f} times JMeter's mode Standard ({standard:.0f}/s)")
        print(f"  {whole:.0f}/s from the first to the last of {ROWS}; {ROWS - came} lost", flush=True)
        server = NoopServer((CONTROLLER_ADDRESS, 0), Noop)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://{CONTROLLER_ADDRESS}:{server.server_port}/function/face-blur"
        base = served_per_s(folder / "local", url)
        print(f"{RATE_PER_S}/s asked: {base:.1f}/s served from this machine")
        for count in range(1, SLAVES + 1):
            hosts = ",".join(f"slave{number}" for number in range(1, count + 1))
            served = served_per_s(folder / f"over{count}", url, "-R", hosts, "-i", str(inventory))
            missed |= abs(served / base - 1) > 0.05
            print(f"  over {count}: {served:.1f}/s, {served / base:.3f} of it", flush=True)
        server.shutdown()
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
