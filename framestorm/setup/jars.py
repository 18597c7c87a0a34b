"""The jars that a pom.xml names: fetched and checked by the lock file beside it, which this module writes.

    .local/venv/bin/python -m framestorm.setup.jars jmx/pom.xml

Maven finds out which jars a pom.xml needs by reading their POMs one after another, several hundred for JMeter. Once
that is known, nothing but the jars has to be fetched.
"""

import hashlib
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.setup import packages
from framestorm.setup.log import LOG, call, say

# Two Mavens that fill one local repository can break each other's files.
_ONE_AT_A_TIME = threading.Lock()
_FETCH = paths.ROOT / "framestorm/setup/Fetch.java"
_NO_PROJECT = """<project><modelVersion>4.0.0</modelVersion><groupId>framestorm</groupId>
<artifactId>jars</artifactId><version>1</version><packaging>pom</packaging></project>
"""
_LIST = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:list"
# "   group:artifact:type[:classifier]:version:scope -- module …"
_LISTED = re.compile(
    r"^ +([^: ]+):([^: ]+):([^: ]+):(?:([^: ]+):)?([^: ]+):(?:compile|runtime|provided)\b", re.MULTILINE
)


@dataclass(frozen=True)
class Jar:
    """One line of a lock file: what a file of the home has to be."""

    sha256: str
    path: str  # in the home
    coordinates: str  # group:artifact:type[:classifier]:version


@dataclass(frozen=True)
class Lock:
    """The jars of one pom.xml."""

    pom: str  # SHA-256 of the pom.xml that they were found for
    jars: tuple[Jar, ...]

    @classmethod
    def of(cls, pom: Path) -> "Lock":
        """Read the lock file beside a pom.xml."""
        first, *lines = pom.with_name("jars.lock").read_text().splitlines()
        return cls(first.split()[-1], tuple(Jar(*line.split()) for line in lines))


def fill(home: Path, pom: Path) -> None:
    """Fill a folder with the jars of a pom.xml, and compare them with the lock file beside it.

    A pom.xml that was changed after its lock file was written is resolved by Maven, and so is any if Maven's own jars,
    which an extension is compiled against, are not where a distribution has them.

    Raises:
        FramestormError: Maven failed, or a jar differs from the one that the lock file names.
    """
    lock = Lock.of(pom)
    maven = _maven()
    libraries = maven.resolve().parents[1] / "lib"
    is_locked = lock.pom == _digest(pom)
    if is_locked and any(libraries.glob("maven-core*.jar")):
        _fetch(home, lock, libraries)
    else:
        why = f"{maven} has no lib folder" if is_locked else "its jars.lock is of another one"
        say(f"note: Maven reads the POMs of all jars of {paths.shown(pom)} first: {why}\n")
        call_maven("-f", pom, "package", f"-Dhome={home}")
    check(home, lock)


def call_maven(*words: str | Path) -> None:
    """Run Maven."""
    mvn = _maven()
    with _ONE_AT_A_TIME:
        call([mvn, "-q", "-B", "-C", *words])


def check(home: Path, lock: Lock) -> None:
    """Compare jars with a lock file; a jar that it does not list is named.

    Raises:
        FramestormError: a jar differs from the locked one: it was changed at the repository or on its way.
    """
    digests = {jar.path: jar.sha256 for jar in lock.jars}
    found = {path.relative_to(home).as_posix(): path for path in sorted(home.glob("**/*.jar"))}
    for name in found.keys() & digests.keys():
        if (digest := _digest(found[name])) != digests[name]:
            raise FramestormError(f"{name} has the SHA-256 {digest}, and its jars.lock says {digests[name]}")
    if unknown := sorted(found.keys() - digests.keys()):
        say(f"note: no jars.lock has a digest of {', '.join(unknown)}\n")


def _fetch(home: Path, lock: Lock, libraries: Path) -> None:
    """Let Maven fetch the jars of a lock file by an extension, which is compiled against the jars of Maven."""
    java = paths.JAVA_HOME / "bin" / "java"
    # Maven's finder of components reads no newer classes.
    compiler = (java, "-m", "jdk.compiler/com.sun.tools.javac.Main", "-proc:none", "-source", "8", "-target", "8")
    with tempfile.TemporaryDirectory(prefix="fetch-", dir=paths.LOCAL) as folder:
        scratch = Path(folder)
        classes, pom, wanted = scratch / "classes", scratch / "pom.xml", scratch / "list"
        class_path = os.pathsep.join(map(str, libraries.glob("*.jar")))
        call([*compiler, "-cp", class_path, "-d", classes, _FETCH])
        index = classes / "META-INF/sisu/javax.inject.Named"
        index.parent.mkdir(parents=True)
        index.write_text("framestorm.setup.Fetch\n")
        extension = shutil.make_archive(f"{scratch}/extension", "zip", classes)
        pom.write_text(_NO_PROJECT)
        wanted.write_text("".join(f"{jar.path} {jar.coordinates}\n" for jar in lock.jars))
        options = (f"-Dmaven.ext.class.path={extension}", f"-Djars.list={wanted}", f"-Djars.home={home}")
        call_maven("-f", pom, *options, "validate")
    if missing := [jar.path for jar in lock.jars if not (home / jar.path).is_file()]:
        raise FramestormError(f"Maven did not fetch {', '.join(missing)}; whole output in {paths.shown(LOG)}")


def write_lock(pom: Path) -> None:
    """Find out by Maven which jars a pom.xml needs, and write the lock file beside it."""
    with tempfile.TemporaryDirectory(prefix="lock-", dir=paths.LOCAL) as folder:
        home, listed = Path(folder) / "home", Path(folder) / "list"
        call_maven("-f", pom, "package", f"-Dhome={home}")
        call_maven("-f", pom, _LIST, f"-DoutputFile={listed}")
        coordinates = coordinates_by_name(listed.read_text())
        found = sorted(path.relative_to(home) for path in home.glob("**/*.jar"))
        jars = (f"{_digest(home / path)} {path} {coordinates[path.name]}\n" for path in found)
        lock = "".join([f"# Jars of pom.xml, written by framestorm.setup.jars for {_digest(pom)}\n", *jars])
        pom.with_name("jars.lock").write_text(lock)


def coordinates_by_name(listing: str) -> dict[str, str]:
    """Read what Maven's dependency:list prints; a file's name is with its version or, if a pom.xml says so, without."""
    found: dict[str, str] = {}
    for group, artifact, kind, classifier, version in _LISTED.findall(listing):
        more = [classifier] if classifier else []
        coordinates = ":".join([group, artifact, kind, *more, version])
        found["-".join([artifact, version, *more]) + f".{kind}"] = coordinates
        found["-".join([artifact, *more]) + f".{kind}"] = coordinates
    return found


def _maven() -> Path:
    """Find Maven, which is installed first where it is missing."""
    if shutil.which("mvn") is None:
        packages.install(["maven"])
    return Path(str(shutil.which("mvn")))


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(words: Sequence[str]) -> int:
    """Write the lock file beside each pom.xml that is given."""
    for word in words:
        write_lock(Path(word).absolute())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
