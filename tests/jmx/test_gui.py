"""Each plan in JMeter's window: opened, every element looked at, saved."""

import contextlib
import os
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from PIL import Image

from framestorm.run.jmeter import gui_command

JMX = Path(__file__).resolve().parents[2] / "jmx"
PLANS = sorted(JMX.glob("*.jmx"))
CHART_LINE = (255, 0, 0)  # of the Concurrency Thread Group
THREAD_GROUP = 4  # its place in the tree, after the plan and three elements of variables
READY_S = 90


class Window:
    def __init__(self, display: str, shots: Path, program: Callable[[str], str]) -> None:
        self.environment = {**os.environ, "DISPLAY": display}
        self.shots = shots
        self.program = program

    def xdotool(self, *words: str) -> str:
        result = subprocess.run(
            [self.program("xdotool"), *words], env=self.environment, capture_output=True, text=True, check=False
        )
        return result.stdout.strip()

    def screenshot(self, name: str) -> Image.Image:
        path = self.shots / f"{name}.png"
        subprocess.run([self.program("import"), "-window", "root", str(path)], env=self.environment, check=True)
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
def opened(plan: Path, window: Window) -> Iterator[Window]:
    """Open the plan, move the window to the corner, and wait until its tree is there."""
    command = gui_command(plan, {"jmeter.gui.action.save.backup_directory": str(plan.parent)}, plan.parent)
    process = subprocess.Popen(command, env=window.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        end = time.monotonic() + READY_S
        while not (number := window.xdotool("search", "--name", plan.name).partition("\n")[0]):
            assert time.monotonic() < end, f"no window of {plan.name} after {READY_S} s"
            assert process.poll() is None
            time.sleep(0.2)
        window.xdotool("windowmove", number, "0", "0", "windowsize", number, "1400", "1000")
        yield window
    finally:
        process.kill()
        process.wait()


def has_line(image: Image.Image, colour: tuple[int, int, int]) -> bool:
    """Tell whether a line of this colour, as long as a chart, is in the picture."""
    return sum(count for count, pixel in image.getcolors(1 << 24) or [] if pixel == colour) > 500


@pytest.mark.parametrize("original", PLANS, ids=lambda path: path.stem)
def test_opens_and_saves_without_change(
    original: Path, tmp_path: Path, display: str, program: Callable[[str], str]
) -> None:
    plan = tmp_path / original.name
    plan.write_bytes(original.read_bytes())
    os.utime(plan, (0, 0))
    has_chart = "ConcurrencyThreadGroup " in original.read_text()
    chart, saved = not has_chart, None
    with opened(plan, Window(display, tmp_path, program)) as window:
        end = time.monotonic() + READY_S
        while saved is None or not chart:  # until the window took the keys
            assert time.monotonic() < end, f"not saved, or no chart drawn: see {tmp_path}"
            window.xdotool("mousemove", "120", "66", "click", "1")  # the root of the tree
            window.press("Home")
            window.press(*["Down"] * THREAD_GROUP)  # each panel reads its element when entered, and writes it when left
            shot = window.screenshot("thread-group")
            chart = chart or has_line(shot, CHART_LINE)
            window.press(*["Down"] * 10)
            window.press("ctrl+s")
            time.sleep(1)
            with contextlib.suppress(ET.ParseError):  # it is still being written
                saved = meaning(plan) if plan.stat().st_mtime else None
    log = (tmp_path / "jmeter.log").read_text()
    assert [line for line in log.splitlines() if " ERROR " in line] == []
    assert saved == meaning(original)
