"""The docker backend: an engine, the machine's own or Debian's while it is needed, and images made without a registry.

A base image is made from the distribution's packages, and the functions are put on top of it.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.machine import execute, wait_until
from framestorm.plain import tell
from framestorm.platform.docker_engine import DockerEngine
from framestorm.platform.openfaas import parts, services
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, HOME, INSTANCE
from framestorm.platform.openfaas.parts import ImageStart, Places, catalogue
from framestorm.platform.openfaas.services import Program, StartedServices
from framestorm.setup import archives, packages
from framestorm.setup import pieces as setup
from framestorm.setup.pieces import Piece

# Files of an engine that this kit starts, separate from those of a user's own engine.
STATE = HOME / "docker.json"
DATA = HOME / "docker"
PID_FILE = HOME / "docker.pid"
# For unix sockets, whose paths may have at most 107 characters.
EXEC_ROOT = "/run/framestorm-docker"
BRIDGE_ADDRESS = "198.19.255.1/24"
# Held by the checkout that is about to start an engine.
ENGINE_LOCK = Path("/run/framestorm-docker.lock")
ENGINE_ENDS_WITHIN_S = 900.0

# The machine's, or this kit's.
ENGINE = DockerEngine()

PREFIX = "framestorm"
TAG = "0.1"
LABEL = "framestorm.image"
BASE = f"{PREFIX}/base"
# Contains every function; the deployed images add only their start command.
ALL = f"{PREFIX}/functions:{TAG}"
PACKAGES = ("ca-certificates", "nodejs", "openjdk-17-jre-headless", "python3")
LOCK = paths.FACE_BLUR / "requirements.txt"
ROOT = Path("/opt/framestorm")
IN_IMAGE = Places(
    bin=ROOT / "bin",
    functions=ROOT / "function",
    python="/usr/bin/python3",
    node="/usr/bin/node",
    java="/usr/bin/java",
    java_classes=ROOT / "noop-java",
    face_graph=ROOT / "face.pb",
)
USER = "10001:10001"


def is_running() -> bool:
    """Return whether an engine answers that this checkout may use: its own, or one that Framestorm did not start."""
    data = _data()
    return data is not None and _other_checkout(data) is None


def _data() -> Path | None:
    """Return the data folder of the engine that answers; None if there is no engine."""
    if shutil.which("docker") is None:
        return None
    command = ["docker", "info", "--format", "{{.DockerRootDir}}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return Path(done.stdout.strip()) if done.returncode == 0 else None


def _other_checkout(data: Path | None) -> Path | None:
    """Return the other checkout of Framestorm that an engine with this data folder belongs to."""
    own = DATA.relative_to(paths.ROOT).parts
    is_other = data is not None and data.parts[-len(own) :] == own and data != DATA.resolve()
    return data.parents[len(own) - 1] if data is not None and is_other else None


def needed_packages() -> tuple[str, ...]:
    """Debian's packages for an engine; none if another engine is installed."""
    return () if shutil.which("dockerd") else ("docker.io", "iptables")


def ensure_engine() -> None:
    """Start an engine unless one is running; a machine has one at a time.

    Raises:
        FramestormError: it cannot be started, or that of another checkout did not end in time.
    """
    if is_running():
        return
    if os.geteuid() != 0:
        raise FramestormError("no Docker engine answers; start it, or run as root, which starts one")
    packages.install(needed_packages())
    with ENGINE_LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if (other := _other_checkout(_data())) is not None:
            tell(f"waiting for the Docker engine of {other} to end …")
            if not wait_until(lambda: _other_checkout(_data()) is None, ENGINE_ENDS_WITHIN_S, 1):
                raise FramestormError(
                    f"{other} has used Docker on this machine for {ENGINE_ENDS_WITHIN_S:.0f} s; "
                    "wait for its tests, or run `./run.sh target down` there"
                )
        if not is_running():
            _start_engine()


def _start_engine() -> None:
    PID_FILE.unlink(missing_ok=True)
    options: list[str | Path] = ["--data-root", DATA, "--exec-root", EXEC_ROOT, "--pidfile", PID_FILE]
    # Containers are reached over the bridge from this machine only: its firewall rules are not changed.
    options += ["--iptables=false", "--ip-forward=false", "--ip-masq=false", "--bip", BRIDGE_ADDRESS]
    services.start(Program("dockerd", ["dockerd", *options], is_running), StartedServices("docker"), STATE)


def stop_engine() -> None:
    """Remove containers that a killed provider left behind, and end the engine if this kit started it."""
    if is_running():
        # The engine may already be removing one of them.
        with contextlib.suppress(FramestormError):
            left = ENGINE.run("ps", "-aq", "--filter", f"label=framestorm.openfaas={INSTANCE}").split()
            ENGINE.run("rm", "--force", *left)
    if (started := services.read(STATE)) is not None:
        services.end(started.services.values())
        subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)
        STATE.unlink()


def make_images() -> None:
    """Make the images of all functions; the base, which takes minutes, only if its inputs have changed."""
    base = _ensure_base()
    context = HOME / "image"
    shutil.rmtree(context, ignore_errors=True)
    _fill(context)
    (context / "Dockerfile").write_text(
        f"FROM {base}\nENV PYTHONPATH={ROOT}/python HOME=/tmp LANG=C.UTF-8\nCOPY . {ROOT}/\nUSER {USER}\n"
        "WORKDIR /tmp\nEXPOSE 8080\n"
    )
    _build(ALL, context)
    for name, image in catalogue(IN_IMAGE).items():
        folder = context / "one"
        folder.mkdir(exist_ok=True)
        (folder / "Dockerfile").write_text(_dockerfile(image))
        _build(f"{PREFIX}/{name}:{TAG}", folder)
    shutil.rmtree(context)
    # Remove images whose names the new ones took over, and base images (2 GB each) of former recipes.
    ENGINE.run("image", "prune", "--force", "--filter", f"label={LABEL}")
    for former in set(ENGINE.run("image", "ls", "--format", "{{.Repository}}:{{.Tag}}", BASE).split()) - {base}:
        ENGINE.succeeds("image", "rm", former)  # fails, as it should, if another image is built on it


def _ensure_base() -> str:
    """Return the tag of the base image; if its inputs have changed, the image is made first, which takes minutes."""
    recipe = hashlib.sha256(f"{PACKAGES} {LOCK.read_text()}".encode()).hexdigest()[:12]
    if not ENGINE.succeeds("image", "inspect", f"{BASE}:{recipe}"):
        _make_base(f"{BASE}:{recipe}")
    return f"{BASE}:{recipe}"


@contextlib.contextmanager
def engine() -> Iterator[None]:
    """Have an engine; one that is started for this is ended."""
    was_running = is_running()
    ensure_engine()
    try:
        yield
    finally:
        if not was_running:
            stop_engine()


def _make_base_piece(_piece: Piece) -> None:
    with engine():
        _ensure_base()


# So that the base image exists before the tests.
BASE_IMAGE = Piece("docker-base", "base image of the functions", (LOCK, Path(__file__)), DATA, _make_base_piece)


def _build(tag: str, folder: Path) -> None:
    ENGINE.run("build", "--quiet", "--network", "none", "--label", LABEL, "--tag", tag, str(folder))


def _dockerfile(image: ImageStart) -> str:
    environment = dict(image["env"])
    # 0.0.0.0: in a container of its own.
    command = [word.format(host="0.0.0.0", port=8080) for word in image.get("command", [])]  # noqa: S104
    if "fprocess" in image:
        environment["fprocess"] = image["fprocess"]
        command = [str(IN_IMAGE.bin / "watchdog")]
    lines = [f"ENV {name}={json.dumps(value)}" for name, value in environment.items()]
    return "\n".join([f"FROM {ALL}", *lines, f"CMD {json.dumps(command)}", ""])


def _fill(context: Path) -> None:
    """Copy what goes into the image, under the names it has in the checkout."""
    sources = {BIN / name: Path("bin") / name for name in ("watchdog", "noop", "sleep", "cpu")}
    for pattern in ("*.py", "face-blur/*.py", "chat/*.py", "noop/python/noop.py", "noop/node/noop.js"):
        sources |= {path: Path("function") / path.relative_to(FUNCTIONS) for path in FUNCTIONS.glob(pattern)}
    for source, target in {**sources, paths.FACE_GRAPH: Path("face.pb")}.items():
        (context / target).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, context / target)
    shutil.copytree(parts.JAVA_CLASSES, context / "noop-java")
    _let_all_read(context)


def _let_all_read(folder: Path) -> None:
    """Let the account of a container read what may be its owner's alone here, by the umask."""
    execute("chmod", "-R", "a+rX", str(folder))


def _make_base(tag: str) -> None:
    """Unpack a minimal system with the runtimes, add the function's Python packages, import it as an image."""
    tell(f"making the base image {tag} from the distribution's packages (once, some minutes) …")
    root = HOME / "base"
    shutil.rmtree(root, ignore_errors=True)
    archives.unpack(root, PACKAGES, archives.of_this_machine())
    version = next(root.glob("usr/lib/python3.*")).name.removeprefix("python")
    target = ("--only-binary=:all:", "--python-version", version, "--target", root / "opt/framestorm/python")
    setup.pip_install(Path(sys.executable), LOCK, *target)
    _let_all_read(root / "opt")
    ENGINE.import_system(root, tag)
    shutil.rmtree(root)
