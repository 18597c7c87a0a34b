"""`./run.sh gui` opens each plan in JMeter's GUI, where every element can be selected and the plan saved."""

import contextlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest
from PIL import Image

from framestorm import paths
from framestorm.machine import wait_until
from tests.runs import RunSh

CHART_LINE = (255, 0, 0)  # of the Concurrency Thread Group
THREAD_GROUP = 4  # its place in the tree, after the plan and three elements of variables
READY_S = 90


@pytest.fixture(scope="module")
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

    def __init__(self, display: str, folder: Path) -> None:
        self.environment = {**os.environ, "DISPLAY": display}
        self.folder = folder

    def xdotool(self, *words: str) -> str:
        command = ["xdotool", *words]
        return subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False).stdout.strip()

    def screenshot(self) -> Image.Image:
        path = self.folder / "window.png"
        subprocess.run(["import", "-window", "root", str(path)], env=self.environment, check=True)
        with Image.open(path) as image:
            return image.convert("RGB")

    def press(self, *keys: str) -> None:
        self.xdotool("key", *keys)
        time.sleep(0.4)  # for the window to draw; what comes too early for it is repeated

    def shows(self, title: str) -> str:
        """The number of the window that has this in its title, if there is one."""
        return self.xdotool("search", "--onlyvisible", "--name", rf"^{re.escape(title)}").partition("\n")[0]

    def open(self, plan: Path) -> None:
        """By the menu's key and the name of the file."""
        end = time.monotonic() + READY_S
        while not self.shows(plan.name):
            assert time.monotonic() < end, f"no window of {plan}: see {self.folder}"
            self.xdotool("mousemove", "120", "66", "click", "1")
            self.press("ctrl+o")
            if not wait_until(lambda: self.shows("Open"), 5):
                continue
            time.sleep(1)
            self.xdotool("mousemove", "700", "500", "key", "ctrl+a", "type", str(plan))
            self.press("Return")
            if wait_until(lambda: self.shows(plan.name) or self.shows("Save?"), 10) and not self.shows(plan.name):
                self.press("Return")  # the plan before is saved once more
                wait_until(lambda: self.shows(plan.name), 10)


@pytest.fixture(scope="module")
def window(display: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """The window of a plan, moved to the corner, once its tree is there."""
    folder = tmp_path_factory.mktemp("window")
    plan = shutil.copy(paths.JMX / "face-blur.jmx", folder / "first.jmx")
    command = shlex.split("./run.sh gui jmx/face-blur.jmx".replace("jmx/face-blur.jmx", str(plan)))
    command += ["--port", str(RunSh(folder).port), f"-Jjmeter.gui.action.save.backup_directory={folder}"]
    made = Window(display, folder)
    nowhere = subprocess.DEVNULL
    process = subprocess.Popen(
        command, cwd=paths.ROOT, env=made.environment, stdout=nowhere, stderr=nowhere, start_new_session=True
    )
    try:
        number = wait_until(lambda: made.shows("first.jmx"), READY_S)
        assert number and process.poll() is None, f"no window of {plan} after {READY_S} s"
        made.xdotool("windowmove", number, "0", "0", "windowsize", number, "1400", "1000")
        yield made
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.wait()
        for left in paths.DASHBOARDS.glob("first-gui-*"):
            shutil.rmtree(left)


def meaning(plan: Path) -> list[tuple[str, str | None, str]]:
    """Return every element in order: kind, name, text."""
    elements = ET.parse(plan).getroot().iter()  # noqa: S314
    return [(element.tag, element.get("name"), (element.text or "").strip()) for element in elements]


def has_line(image: Image.Image, colour: tuple[int, int, int]) -> bool:
    """Tell whether a line of this colour, as long as a chart, is in the picture."""
    return sum(count for count, pixel in image.getcolors(1 << 24) or [] if pixel == colour) > 500


@pytest.mark.parametrize("original", sorted(paths.JMX.glob("*.jmx")), ids=lambda path: path.stem)
def test_opens_and_saves_without_change(original: Path, window: Window) -> None:
    plan = window.folder / original.name
    plan.write_bytes(original.read_bytes())
    os.utime(plan, (0, 0))
    window.open(plan)
    has_chart = "ConcurrencyThreadGroup " in original.read_text()
    chart, saved = not has_chart, None
    end = time.monotonic() + READY_S
    while saved is None or not chart:  # until the window took the keys
        assert time.monotonic() < end, f"not saved, or no chart drawn: see {window.folder}"
        window.xdotool("mousemove", "120", "66", "click", "1")  # the root of the tree
        window.press("Home")
        window.press(*["Down"] * THREAD_GROUP)  # each panel reads its element when entered, and writes it when left
        chart = chart or has_line(window.screenshot(), CHART_LINE)
        window.press(*["Down"] * 10)
        window.press("ctrl+s")
        time.sleep(1)
        with contextlib.suppress(ET.ParseError):  # it is still being written
            saved = meaning(plan) if plan.stat().st_mtime else None
    assert saved == meaning(original)
    (log,) = paths.DASHBOARDS.glob("first-gui-*/jmeter.log")
    assert [line for line in log.read_text().splitlines() if " ERROR " in line] == []
