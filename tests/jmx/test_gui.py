"""Each plan in JMeter's window: opened, every element looked at, saved."""

import contextlib
import os
import shlex
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from PIL import Image

from framestorm import paths
from framestorm.machine import wait_until
from framestorm.run.jmeter import gui_command
from tests.runs import RunSh

CHART_LINE = (255, 0, 0)  # of the Concurrency Thread Group
THREAD_GROUP = 4  # its place in the tree, after the plan and three elements of variables
READY_S = 90


@pytest.fixture
def display() -> Iterator[str]:
    """A screen of its own for JMeter's window."""
    read_end, write_end = os.pipe()
    command = ["Xvfb", "-displayfd", str(write_end), "-screen", "0", "1400x1000x24", "-nolisten", "tcp"]
    # It starts anew when its last client leaves, xdotool say, and turns away who comes just then; with this it stays.
    command.append("-noreset")
    process = subprocess.Popen(command, pass_fds=[write_end], stderr=subprocess.DEVNULL)
    os.close(write_end)
    with os.fdopen(read_end) as number:
        name = f":{number.readline().strip()}"
    assert name != ":", "Xvfb did not start"
    yield name
    process.terminate()  # not killed: it takes its lock along
    process.wait()


class Window:
    """JMeter's window on a display."""

    def __init__(self, display: str, shots: Path) -> None:
        self.environment = {**os.environ, "DISPLAY": display}
        self.shots = shots

    def xdotool(self, *words: str) -> str:
        command = ["xdotool", *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False).stdout.strip()

    def screenshot(self) -> Image.Image:
        path = self.shots / "window.png"
        subprocess.run(["import", "-window", "root", str(path)], env=self.environment, check=True)
        with Image.open(path) as image:
            return image.convert("RGB")

    def press(self, *keys: str) -> None:
        self.xdotool("key", *keys)
        time.sleep(0.4)  # for the window to draw; what comes too early for it is repeated


def meaning(plan: Path) -> list[tuple[str, str | None, str]]:
    """Return every element in order: kind, name, text."""
    elements = ET.parse(plan).getroot().iter()  # noqa: S314
    return [(element.tag, element.get("name"), (element.text or "").strip()) for element in elements]


@contextlib.contextmanager
def opened(command: Sequence[str | Path], plan: str, display: str, shots: Path) -> Iterator[Window]:
    """Open the window of a plan, move it to the corner, and wait until its tree is there."""
    window = Window(display, shots)
    environment, nowhere = window.environment, subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=paths.ROOT, env=environment, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        number = wait_until(lambda: window.xdotool("search", "--name", plan).partition("\n")[0], READY_S)
        assert number and process.poll() is None, f"no window of {plan} after {READY_S} s"
        window.xdotool("windowmove", number, "0", "0", "windowsize", number, "1400", "1000")
        yield window
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def test_the_command_opens_a_window(tmp_path: Path, display: str) -> None:
    command = [*shlex.split("./run.sh gui jmx/face-blur.jmx"), "--port", str(RunSh(tmp_path).port)]
    with opened(command, "face-blur.jmx", display, tmp_path):
        pass


def has_line(image: Image.Image, colour: tuple[int, int, int]) -> bool:
    """Tell whether a line of this colour, as long as a chart, is in the picture."""
    return sum(count for count, pixel in image.getcolors(1 << 24) or [] if pixel == colour) > 500


@pytest.mark.parametrize("original", sorted(paths.JMX.glob("*.jmx")), ids=lambda path: path.stem)
def test_opens_and_saves_without_change(original: Path, tmp_path: Path, display: str) -> None:
    plan = tmp_path / original.name
    plan.write_bytes(original.read_bytes())
    os.utime(plan, (0, 0))
    has_chart = "ConcurrencyThreadGroup " in original.read_text()
    chart, saved = not has_chart, None
    command = gui_command(plan, {"jmeter.gui.action.save.backup_directory": str(tmp_path)}, tmp_path)
    with opened(command, plan.name, display, tmp_path) as window:
        end = time.monotonic() + READY_S
        while saved is None or not chart:  # until the window took the keys
            assert time.monotonic() < end, f"not saved, or no chart drawn: see {tmp_path}"
            window.xdotool("mousemove", "120", "66", "click", "1")  # the root of the tree
            window.press("Home")
            window.press(*["Down"] * THREAD_GROUP)  # each panel reads its element when entered, and writes it when left
            chart = chart or has_line(window.screenshot(), CHART_LINE)
            window.press(*["Down"] * 10)
            window.press("ctrl+s")
            time.sleep(1)
            with contextlib.suppress(ET.ParseError):  # it is still being written
                saved = meaning(plan) if plan.stat().st_mtime else None
    log = (tmp_path / "jmeter.log").read_text()
    assert [line for line in log.splitlines() if " ERROR " in line] == []
    assert saved == meaning(original)
