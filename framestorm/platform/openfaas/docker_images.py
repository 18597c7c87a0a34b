"""Images for machines that reach no registry: a base from the distribution's packages, the functions on top of it."""

import hashlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.platform.openfaas import docker, parts
from framestorm.platform.openfaas.images import Image, Places, catalogue
from framestorm.platform.openfaas.layout import BIN, FUNCTIONS, HOME
from framestorm.setup import packages
from framestorm.setup import pieces as setup
from framestorm.setup.pieces import Piece

PREFIX = "framestorm"
TAG = "0.1"
LABEL = "framestorm.image"
BASE = f"{PREFIX}/base"
# Has every function; the images that are deployed add to it only what they start.
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


def ensure() -> None:
    """Make the images of all functions; the base, which takes minutes, only when what it is made from has changed.

    Raises:
        FramestormError: a step failed, with the end of its output.
    """
    base = ensure_base()
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
    _remove_outdated(base)


def ensure_base() -> str:
    """The tag of the base image, which is made, in minutes, if what it is made from has changed."""
    recipe = hashlib.sha256(f"{PACKAGES} {LOCK.read_text()}".encode()).hexdigest()[:12]
    if not docker.image_exists(f"{BASE}:{recipe}"):
        _make_base(f"{BASE}:{recipe}")
    return f"{BASE}:{recipe}"


def _make_base_piece(_piece: Piece) -> None:
    if docker.is_running():
        ensure_base()
        return
    docker.ensure_engine()
    try:
        ensure_base()
    finally:
        docker.stop_engine()


# So that the tests find the base image made.
BASE_IMAGE = Piece("docker-base", "base image of the functions", (LOCK, Path(__file__)), docker.ROOT, _make_base_piece)


def _build(tag: str, folder: Path) -> None:
    docker.run("build", "--quiet", "--network", "none", "--label", LABEL, "--tag", tag, str(folder))


def _remove_outdated(base: str) -> None:
    """Remove the images that those just made have taken the names of, and the bases (2 GB each) of former recipes."""
    docker.run("image", "prune", "--force", "--filter", f"label={LABEL}")
    former = set(_lines("docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", BASE)) - {base}
    if former:
        # One that somebody has built upon stays.
        subprocess.run(["docker", "image", "rm", *former], capture_output=True, check=False)


def _dockerfile(image: Image) -> str:
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
    (context / "bin").mkdir(parents=True)
    for name in ("watchdog", "noop", "sleep", "cpu"):
        shutil.copy2(BIN / name, context / "bin" / name)
    wanted = [*FUNCTIONS.glob("*.py"), *paths.FACE_BLUR.glob("*.py")]
    wanted += [FUNCTIONS / "noop" / "python" / "noop.py", FUNCTIONS / "noop" / "node" / "noop.js"]
    for source in wanted:
        target = context / "function" / source.relative_to(FUNCTIONS)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(source, target)
    shutil.copytree(parts.JAVA_CLASSES, context / "noop-java")
    shutil.copy2(paths.FACE_GRAPH, context / "face.pb")


def _make_base(tag: str) -> None:
    """Unpack a minimal system with the runtimes, add the function's Python packages, import it as an image."""
    from lab import base
    from lab.hosts import LabError

    print(f"making the base image {tag} from the distribution's packages (once, some minutes) …", file=sys.stderr)
    packages.install(["mmdebstrap"])
    root = HOME / "base"
    shutil.rmtree(root, ignore_errors=True)
    try:
        with setup.LOG.open("ab") as log:
            base.unpack(root, PACKAGES, base.archives(), log)
    except LabError as error:
        raise FramestormError(str(error)) from None
    version = next(root.glob("usr/lib/python3.*")).name.removeprefix("python")
    pip: list[str | Path] = [sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--require-hashes"]
    pip += ["--only-binary=:all:", "--python-version", version, "--target", root / "opt/framestorm/python"]
    setup.call([*pip, "-r", LOCK])
    with subprocess.Popen(["tar", "-C", root, "-c", "."], stdout=subprocess.PIPE) as tar:
        done = subprocess.run(["docker", "import", "-", tag], stdin=tar.stdout, capture_output=True, check=False)
    if done.returncode or tar.returncode:
        raise FramestormError(f"docker import failed: {done.stderr.decode(errors='replace').strip()}")
    shutil.rmtree(root)


def _lines(*command: str) -> list[str]:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
