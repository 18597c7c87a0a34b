"""Where everything of a checkout lies; the one place that knows."""

import itertools
import os
import re
import time
from pathlib import Path

from framestorm.errors import UsageError

ROOT = Path(__file__).resolve().parent.parent
LOCAL = ROOT / ".local"

JMX = ROOT / "jmx"
JARS = JMX / "lib"
CLIENT = ROOT / "client"
FACE_BLUR = ROOT / "function" / "face-blur"
CHAT = ROOT / "function" / "chat"
ANSIBLE = ROOT / "ansible"
INVENTORY = ROOT / "inventory.ini"
STUDIES = ROOT / "studies"
DASHBOARDS = ROOT / "dashboards"

JMETER_HOME = LOCAL / "jmeter"
UNPATCHED_HOME = LOCAL / "jmeter-unpatched"
JAVA_HOME = LOCAL / "java"
CLIENT_PYTHON = LOCAL / "client-venv" / "bin" / "python"
FUNCTION_PYTHON = LOCAL / "function-venv" / "bin" / "python"
ANSIBLE_PYTHON = LOCAL / "ansible-venv" / "bin" / "python"
CHAT_PYTHON = LOCAL / "chat-venv" / "bin" / "python"
TEST_PYTHON = LOCAL / "test-venv" / "bin" / "python"
TEST_JARS = LOCAL / "test-jars"
FACE_GRAPH = LOCAL / "face.pb"
SAMPLE_VIDEO = LOCAL / "sample.mp4"
FRAME_CACHE = LOCAL / "frames"


def shown(path: Path) -> str:
    """Return the path as a person in the checkout would type it."""
    return str(path.relative_to(ROOT)) if path.is_relative_to(ROOT) else str(path)


def is_file(path: Path) -> bool:
    """Return whether a file exists; False also for an impossible path, as of a word that names several runs."""
    return os.path.isfile(path)  # noqa: PTH113 - Path.is_file raises OSError of a name that is too long


def exists(path: Path) -> bool:
    """Return whether a path exists; False also for an impossible one."""
    return os.path.exists(path)  # noqa: PTH110 - as in is_file


def check_plain(part: str) -> None:
    """Check that other people's programs can be told where the checkout lies.

    Raises:
        UsageError: its path has characters at which they split it, or that mean something to them.
    """
    if not re.fullmatch(r"[\w/.+@=~-]+", str(ROOT)):
        raise UsageError(
            f"{part} cannot start in {str(ROOT)!r}: the programs that it consists of would split this path; move the "
            "checkout to a path without blanks, quotes and the like"
        )


def new_dashboard(name: str) -> Path:
    """Return the folder of a new run, study or comparison: one that is not there."""
    plain = DASHBOARDS / f"{name}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"
    numbered = (plain.with_name(f"{plain.name}-{number}") for number in itertools.count(2))
    return next(path for path in itertools.chain([plain], numbered) if not path.exists())
