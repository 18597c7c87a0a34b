"""The set-up: what a checkout needs beyond its sources, made once in .local/ and again when its inputs change.

Each piece leaves a stamp, the hash of what it was made from, as its last step: a piece that was interrupted has none
and is made again from the start.
"""

import errno
import fcntl
import hashlib
import os
import shutil
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from framestorm import paths, probe
from framestorm.errors import FramestormError
from framestorm.setup import jars, packages
from framestorm.setup.log import call, say

STAMPS = paths.LOCAL / "stamps"
JVMS = Path("/usr/lib/jvm")
# As in run.sh. An index that does not answer is given up after a minute, not after minutes.
PIP_OPTIONS = ("--disable-pip-version-check", "--retries", "2", "--timeout", "15", "--no-deps", "--require-hashes")
# Some download or are unpacked while others are compiled.
AT_ONCE = 4


@dataclass(frozen=True)
class Piece:
    """Something made in .local/: remade when one of `inputs` changes or `output` is gone.

    needs: what has to be made before, in any case. after: what it waits for only where both are to be made.
    """

    name: str
    title: str
    inputs: tuple[Path, ...]
    output: Path
    make: Callable[["Piece"], None]
    needs: tuple["Piece", ...] = ()
    after: tuple["Piece", ...] = ()

    @property
    def stamp(self) -> Path:
        return STAMPS / self.name

    def fingerprint(self) -> str:
        """Hash of the inputs and of what runs them: after a change of Python or checkout path the piece is rebuilt."""
        digest = hashlib.sha256(f"{sys.version_info[:2]} {paths.LOCAL.resolve().parent}".encode())
        for path in self.inputs:
            digest.update(path.read_bytes())
        return digest.hexdigest()

    def is_made(self) -> bool:
        try:
            return self.output.exists() and self.stamp.read_text() == self.fingerprint()
        except FileNotFoundError:
            return False


def _make_java(_piece: Piece) -> None:
    """Link a Java 17, the version this JMeter is tested with, whatever the machine's default is."""
    if _java_17() is None:
        # Maven, which is needed next, comes along: a second apt-get would read and unpack for seconds more.
        packages.install(["openjdk-17-jre-headless", *([] if shutil.which("mvn") else ["maven"])])
    _link_java(_java_17(), "openjdk-17-jre-headless")


def _make_java_windows(_piece: Piece) -> None:
    """Link a Java 17 that can open windows, which JMeter's GUI needs and a run does not."""
    if _java_17(JAVA_WINDOWS) is None:
        packages.install(["openjdk-17-jre"])
    _link_java(_java_17(JAVA_WINDOWS), "openjdk-17-jre")


def _link_java(home: Path | None, package: str) -> None:
    if home is None:
        raise FramestormError(f"no Java 17 with a compiler was found; install {package}, or point JAVA_HOME at one")
    draft = paths.JAVA_HOME.with_name(f"{paths.JAVA_HOME.name}.new")
    draft.unlink(missing_ok=True)
    draft.symlink_to(home)
    draft.replace(paths.JAVA_HOME)  # at once: a Java may be starting


def _java_17(*parts: Path) -> Path | None:
    """Find the home of a Java 17 with these files and the compiler, which some runtimes, such as Temurin's, lack."""
    homes = [Path(os.environ["JAVA_HOME"])] if os.environ.get("JAVA_HOME") else []
    homes += sorted(JVMS.glob("*17*"))
    for home in homes:
        if all((home / each).exists() for each in (Path("bin", "java"), *parts)):
            release = (home / "release").read_text() if (home / "release").exists() else ""
            if 'JAVA_VERSION="17' in release and "jdk.compiler" in release:
                return home
    return None


def _make_jmeter(piece: Piece) -> None:
    with _draft(piece.output) as home:
        jars.fill(home, piece.inputs[0])
        # jmeter.properties, saveservice.properties, log4j2.xml, templates/ and report-template/.
        with zipfile.ZipFile(next(home.glob("set-up/ApacheJMeter_config-*.jar"))) as config:
            config.extractall(home, [name for name in config.namelist() if name.startswith("bin/")])
        (home / "lib" / "junit").mkdir()  # JMeter looks for it at start


def _make_test_jars(piece: Piece) -> None:
    with _draft(piece.output) as home:
        jars.fill(home, piece.inputs[0])


@contextmanager
def _draft(output: Path) -> Iterator[Path]:
    """Yield the path of a folder that replaces `output` once it is filled.

    If the folder itself were filled, old files would remain, and a run may be reading it.
    """
    draft = output.with_name(f"{output.name}.new")
    shutil.rmtree(draft, ignore_errors=True)
    yield draft
    shutil.rmtree(output, ignore_errors=True)
    draft.rename(output)


def _make_jmeter_sbom(piece: Piece) -> None:
    options = (f"-DoutputDirectory={piece.output.parent}", f"-DoutputName={piece.output.stem}", "-DoutputFormat=json")
    jars.call_maven("-f", piece.inputs[0], CYCLONEDX, *options)


def _make_additions(piece: Piece) -> None:
    """Compile jmx/java into a plug-in of JMeter, and patch classes for a jar that precedes its own.

    Needs no development kit of Java.
    """
    java = paths.JAVA_HOME / "bin" / "java"
    patches = paths.JMETER_HOME / probe.PATCHES
    libraries = [path for path in sorted(paths.JMETER_HOME.glob("lib/**/*.jar")) if path not in {patches, piece.output}]
    with tempfile.TemporaryDirectory(prefix="additions-", dir=paths.LOCAL) as scratch:
        classes, patched = Path(scratch) / "classes", Path(scratch) / "patched"
        class_path = os.pathsep.join(map(str, [*libraries, *paths.JMETER_HOME.glob("set-up/*.jar"), classes]))
        compiler = ("-m", "jdk.compiler/com.sun.tools.javac.Main", "-cp", class_path, "-d", classes)
        call([java, *compiler, *(path for path in piece.inputs if path.suffix == ".java")])
        call([java, "-cp", class_path, "framestorm.Patch", patched, paths.JMX / "patches.json"])
        # Slaves must have the same; the jar itself is another each time that it is made.
        made_of = probe.digest(paths.ROOT, [str(path) for path in piece.inputs])
        (classes / probe.ADDITIONS_OF).write_text(str(made_of))
        for folder, jar in ((patched, patches), (classes, piece.output)):
            # At once: a JMeter may be starting.
            Path(shutil.make_archive(f"{scratch}/additions", "zip", folder)).replace(jar)
        _name_converter(Path(scratch))


def _name_converter(scratch: Path) -> None:
    """Name the class that reads plans in the file in which JMeter has plug-ins do so: jmx/java/TreeConverter.java."""
    converters = paths.JMETER_HOME / "bin" / "saveservice.properties"
    text = converters.read_text(encoding="utf-8")
    own, theirs = "\n_framestorm.TreeConverter=", "\n_org.apache.jmeter.save.converters.HashTreeConverter="
    if own not in text and theirs not in text:
        raise FramestormError(f"{paths.shown(converters)} does not have {theirs.strip()}: JMeter is of another version")
    written = scratch / converters.name
    written.write_text(text.replace(theirs, own), encoding="utf-8")
    shutil.copymode(converters, written)
    written.replace(converters)  # at once: a JMeter may be starting


def _make_unpatched(piece: Piece) -> None:
    """Make a home of JMeter that is the kit's without the patched classes, of links: JMeter takes all jars of lib/."""
    shutil.rmtree(piece.output, ignore_errors=True)
    for folder in ("bin", "lib", "lib/ext", "lib/junit"):
        (piece.output / folder).mkdir(parents=True)
        for path in (paths.JMETER_HOME / folder).iterdir():
            if folder == "bin" or path.is_file():
                (piece.output / folder / path.name).symlink_to(path)
    (piece.output / probe.PATCHES).unlink()
    # By which JMeter finds its home, links followed.
    start = Path("bin", "ApacheJMeter.jar")
    (piece.output / start).unlink()
    shutil.copy2(paths.JMETER_HOME / start, piece.output / start)


def pip_install(python: Path, lock: Path, *options: str | Path) -> None:
    """Install the packages of a lock file, which has all that they depend on.

    If pip looked at the dependencies itself, it would refuse a package[extra] as soon as there is a newer one.
    """
    call([python, "-P", "-m", "pip", "install", *PIP_OPTIONS, *options, "-r", lock])


def make_venv(folder: Path, lock: Path, *options: str) -> None:
    """Make a new Python environment, replacing any old one, with the packages of a lock file."""
    shutil.rmtree(folder, ignore_errors=True)
    call([sys.executable, "-P", "-m", "venv", folder])
    pip_install(folder / "bin" / "python", lock, *options)


def _make_by_script(piece: Piece, python: Path) -> None:
    call([python, piece.inputs[0], "--out", piece.output])


def _venv(name: str, title: str, lock: Path, *options: str) -> Piece:
    folder = paths.LOCAL / f"{name}-venv"
    return Piece(f"{name}-venv", title, (lock,), folder, lambda piece: make_venv(folder, lock, *options))


# Python then compiles what is imported, once: half the time. Not where a run measures it: users and replicas may not
# write beside the modules that they import.
_COMPILED_LATER = "--no-compile"


CYCLONEDX = "org.cyclonedx:cyclonedx-maven-plugin:2.9.1:makeBom"
GRAPH = paths.FACE_BLUR / "graph"
JAVA = Piece("java", "Java 17", (), paths.JAVA_HOME, _make_java)
# What Debian's headless package leaves out.
JAVA_WINDOWS = Path("lib", "libawt_xawt.so")
FOR_WINDOWS = Piece(
    "java-windows", "windows of Java 17", (), paths.JAVA_HOME / JAVA_WINDOWS, _make_java_windows, (JAVA,)
)
JMETER = Piece(
    "jmeter",
    "JMeter 5.5 with its plug-ins",
    (paths.JMX / "pom.xml", paths.JMX / "jars.lock"),
    paths.JMETER_HOME,
    _make_jmeter,
    (JAVA,),
)
ADDITIONS = Piece(
    "jmeter-additions",
    "additions to JMeter: what plans call, microseconds, warm-up, limits, no open ports",
    # Made anew after JMeter's home, which is replaced as a whole.
    (*sorted(paths.JMX.glob("java/**/*.java")), paths.JMX / "patches.json", paths.JMX / "pom.xml"),
    paths.JMETER_HOME / probe.ADDITIONS,
    _make_additions,
    (JMETER,),
)
UNPATCHED = Piece(
    "jmeter-unpatched",
    "JMeter without the patched classes",
    ADDITIONS.inputs,
    paths.UNPATCHED_HOME,
    _make_unpatched,
    (ADDITIONS,),
)
CLIENT_VENV = _venv("client", "Python environment of the client", paths.CLIENT / "requirements.txt")
FUNCTION_VENV = _venv(
    "function", "Python environment of the function, with TensorFlow", paths.FACE_BLUR / "requirements.txt"
)
CHAT_VENV = _venv("chat", "Python environment of the language model", paths.CHAT / "requirements.txt")
FACE_GRAPH = Piece(
    "face-graph",
    "face detection graph",
    (GRAPH / "build_graph.py", GRAPH / "requirements.txt"),
    paths.FACE_GRAPH,
    partial(_make_by_script, python=paths.FUNCTION_PYTHON),
    (FUNCTION_VENV,),
)
SAMPLE_VIDEO = Piece(
    "sample-video",
    "sample video",
    (paths.CLIENT / "sample_clip.py", paths.CLIENT / "sample-requirements.txt"),
    paths.SAMPLE_VIDEO,
    partial(_make_by_script, python=paths.CLIENT_PYTHON),
    (CLIENT_VENV,),
)
ANSIBLE_VENV = _venv("ansible", "Python environment of Ansible", paths.ANSIBLE / "requirements.txt", _COMPILED_LATER)
ANSIBLE_TEST_VENV = _venv(
    "ansible-test",
    "Python environment of Ansible's tests",
    paths.ROOT / "tests/ansible-requirements.txt",
    _COMPILED_LATER,
)
TEST_JARS = Piece(
    "test-jars",
    "jars of the tests' plans",
    (paths.ROOT / "tests/foreign/pom.xml", paths.ROOT / "tests/foreign/jars.lock"),
    paths.TEST_JARS,
    _make_test_jars,
    (JAVA,),
)
JMETER_SBOM = Piece(
    "jmeter-sbom",
    "list of JMeter's jars",
    (paths.JMX / "pom.xml",),
    paths.LOCAL / "jmeter.cdx.json",
    _make_jmeter_sbom,
    (JAVA,),
)
SBOM_VENV = _venv(
    "sbom", "tool that lists Python packages", paths.ROOT / "framestorm/setup/sbom-requirements.txt", _COMPILED_LATER
)
TEST_VENV = _venv("test", "Python environment of the tests", paths.ROOT / "tests/requirements.txt", _COMPILED_LATER)
KSERVE_VENV = _venv(
    "kserve",
    "Python environment of KServe's model server",
    paths.ROOT / "tests/kserve-requirements.txt",
    _COMPILED_LATER,
)

# What each run and report needs; plans and platforms name what they need besides.
FOR_A_RUN = (JAVA, JMETER, ADDITIONS)
# What the kit's own plans send, and the function that they send it to.
FACE_BLUR = (FUNCTION_VENV, CLIENT_VENV, FACE_GRAPH, SAMPLE_VIDEO)


def ensure(pieces: Sequence[Piece]) -> bool:
    """Make the missing pieces and what these need, some in parallel; nothing is printed when there is nothing to do.

    Returns:
        whether something was made.

    Raises:
        FramestormError: a piece could not be made; those made before it stay.
        PermissionError: another account has made what is to be replaced.
    """
    pieces = _with_needs(pieces)
    if all(piece.is_made() for piece in pieces):
        return False
    STAMPS.mkdir(parents=True, exist_ok=True)
    _check_writable([STAMPS, *(piece.output for piece in pieces if not piece.is_made())])
    with _locked(), ThreadPoolExecutor(AT_ONCE) as pool:
        waiting = [piece for piece in pieces if not piece.is_made()]
        total = len(waiting)
        running: dict[Future[None], Piece] = {}
        while waiting or running:
            unmade = {piece.name for piece in (*waiting, *running.values())}
            ready = [piece for piece in waiting if not unmade & {each.name for each in (*piece.needs, *piece.after)}]
            for piece in ready[: AT_ONCE - len(running)]:
                waiting.remove(piece)
                running[pool.submit(_make, piece, f"{total - len(waiting)}/{total}")] = piece
            if not running:
                raise ValueError(f"pieces that wait for each other: {', '.join(sorted(unmade))}")
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                del running[future]
                future.result()
    return True


def _with_needs(pieces: Iterable[Piece]) -> list[Piece]:
    """Return pieces with what they need, and what that needs, each once."""
    return list(dict.fromkeys(each for piece in pieces for each in (piece, *_with_needs(piece.needs))))


def _check_writable(outputs: Iterable[Path]) -> None:
    """Check, before anything is made, that what is there may be replaced: the programs that make it say it worse.

    Raises:
        PermissionError: another account has made it, such as root by sudo.
    """
    local = paths.LOCAL.resolve()
    for path in outputs:
        is_here = os.path.lexists(path) and path.parent.resolve().is_relative_to(local)
        if is_here and not os.access(path, os.W_OK, follow_symlinks=False):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))


def _make(piece: Piece, position: str) -> None:
    say(f"set-up {position}: {piece.title} …\n")
    started_s = time.monotonic()
    piece.stamp.unlink(missing_ok=True)
    piece.make(piece)
    piece.stamp.write_text(piece.fingerprint())
    say(f"set-up {position}: made in {time.monotonic() - started_s:.0f} s\n")


@contextmanager
def _locked() -> Iterator[None]:
    """Allow one set-up at a time in a checkout; the lock is released when the process ends."""
    with (paths.LOCAL / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another set-up of this checkout to finish ({paths.shown(paths.LOCAL / 'lock')})\n")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
