"""JMeter's command lines, and the one way to signal a running JMeter."""

import io
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError
from framestorm.plain import visible
from framestorm.results.jtl_file import open_jtl, whole_rows
from framestorm.results.reading import read_run

# A dashboard of few samples is done before the optimising compiler pays off: 1.3 s of CPU instead of 2.8.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
QUICK_UP_TO_BYTES = 10 * 2**20
# With it, 800,000 samples cost 22 s of CPU instead of 27, and three quarters of the memory.
ONE_COLLECTOR = ("-XX:+UseSerialGC",)
# A dashboard keeps every time of a label for its percentiles: 10,000,000 rows (1.4 GB) took 3.2 GB and 1 GiB failed.
DASHBOARD_HEAP_PER_BYTE = 2.5
BESIDE_UP_TO_BYTES = 2**29
# Under load too: in the first minute the optimising compiler uses more CPU than the requests (2.1 ms of CPU per
# request, 0.7 ms without it, at 600/s on two cores), and later it makes a request only a sixth cheaper.
# With huge pages a request costs a fifth less at 100/s, where the caches have turned cold between two requests. The
# unit of the slaves' server has them too.
UNDER_LOAD = ("-XX:TieredStopAtLevel=1", "-XX:+UseTransparentHugePages")
# What slaves may send to a run's controller as Java objects; anything else is refused before it is made. A host that
# was taken over could otherwise send objects of any library of JMeter's that run code when they are read.
FROM_SLAVES = (
    *("java.lang.*", "java.lang.reflect.*", "java.io.*", "java.math.*", "java.net.*", "java.text.*", "java.time.**"),
    *("java.util.*", "java.util.concurrent.**", "java.rmi.**", "javax.rmi.ssl.*", "sun.rmi.**"),
    *("com.sun.proxy.*", "jdk.proxy1.*", "jdk.proxy2.*", "jdk.proxy3.*"),
    *("org.apache.jmeter.**", "org.apache.jorphan.**", "kg.apc.**", "com.blazemeter.**", "eu.luminis.**", "!*"),
    # Far above real ones: a sample has a depth of 10, with 12 levels of sub-results 31, and its body is an array.
    *("maxdepth=60", f"maxarray={2**28}"),
)
# But receiving the samples of slaves runs a little code very often: 9,400 rows/s optimised, 5,600 without.
CONTROLLING = (f"-Djdk.serialFilter={';'.join(FROM_SLAVES)}",)
# The lines of jmeter.out which say why a plan cannot be read or run.
_FAILURES = re.compile(
    r"^(?:Error in NonGUIDriver (?!java.lang.IllegalArg)|Cause:\n|(?=path  )|(?=line number  ))(.*)", re.MULTILINE
)
MOST_CHARACTERS = 300
# The settings of the dashboard, which JMeter reads only as it makes it. By a class or by templates of its own, the
# folder of somebody else's run would execute code here.
_DASHBOARD = re.compile(r"jmeter\.reportgenerator\.(?!.*(?:classname|_dir)$)[\w.-]+")
HEAP = "-Xms256m -Xmx1g"
# Java options from the environment, which JMeter's own start script reads too; HEAP takes the place of ours.
JAVA_VARIABLES = ("VERBOSE_GC", "GC_ALGO", "JVM_ARGS", "JMETER_OPTS")
# JMeter's properties with paths of jars and folders, with what separates the paths.
CLASS_PATHS = {"search_paths": ";", "user.classpath": os.pathsep, "plugin_dependency_paths": ";"}
# JMeter's own start script opens these packages: the first to plug-ins (Parallel Controller), as does the unit of the
# slaves' server in ansible/roles/jmeter_server, the second to its look and feel.
BASE_PACKAGES = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.text", "java.util")
GUI_PACKAGES = ("sun.awt", "sun.awt.X11", "sun.swing", "javax.swing.text.html", "java.awt", "java.awt.font")


def under_load(heap_bytes: int) -> tuple[str, ...]:
    """The options of Java for a run on this machine; a heap that the user chose is kept."""
    return UNDER_LOAD if os.environ.get("HEAP") else (*UNDER_LOAD, f"-Xmx{heap_bytes >> 20}m")


def environment() -> dict[str, str]:
    """The environment of JMeter and of the frame clients it starts; Java decodes its command line by LC_CTYPE."""
    own = {**os.environ, "JMETER_HOME": str(paths.JMETER_HOME), "LC_CTYPE": "C.UTF-8"}
    if locale := own.pop("LC_ALL", ""):  # it would overrule LC_CTYPE
        own["LANG"] = locale
    return own


def user_jars() -> list[Path]:
    """The jars that a user has put into jmx/lib/: plug-ins, drivers, and what they need."""
    return sorted(paths.JARS.glob("*.jar"))


def class_path(values: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """The jars and folders of classes that JMeter's properties name, each with the property."""
    for name, separator in CLASS_PATHS.items():
        yield from ((name, Path(each)) for each in values.get(name, "").split(separator) if each)


@dataclass(frozen=True)
class Home:
    """Where Java, JMeter and the kit's properties for it are, on this machine or on another."""

    java: str
    folder: str
    user_properties: str


def run_command(
    plan: Path,
    properties: Mapping[str, str],
    run_dir: Path,
    home: Home | None = None,
    java_options: Sequence[str] = UNDER_LOAD,
    words: Sequence[str] = (),
) -> list[str]:
    """The command that runs a plan without the GUI into a run's folder, where `probe.stop_jmeter` stops it.

    home: that of another host; words: further options of JMeter, which `properties` may overrule.
    """
    return [
        *_java("-Djava.awt.headless=true", *java_options, home=home, words=words),
        *("-n", "-t", str(plan), "-l", str(run_dir / "samples.jtl"), "-j", str(run_dir / "jmeter.log")),
        *_assignments({**properties, "framestorm.stop_files": str(run_dir)}),
    ]


def gui_command(plan: Path, properties: Mapping[str, str], run_dir: Path, words: Sequence[str] = ()) -> list[str]:
    """The command that opens a plan in JMeter's GUI with the properties of a run, so that Run works there."""
    options = [f"--add-opens=java.desktop/{package}=ALL-UNNAMED" for package in GUI_PACKAGES]
    # Keep preferences out of the user's home.
    options += ["-Dawt.useSystemAAFontSettings=on", f"-Djava.util.prefs.userRoot={paths.LOCAL / 'java-prefs'}"]
    properties = {"onload.expandtree": "true", **properties}
    return [
        *_java(*options, words=words),
        "-t",
        str(plan),
        "-j",
        str(run_dir / "jmeter.log"),
        *_assignments(properties),
    ]


def failure(run_dir: Path) -> str:
    """The reason that JMeter gave for not running a plan, after a colon; empty if it gave none."""
    path = run_dir / "jmeter.out"
    output = path.read_text(errors="replace") if path.exists() else ""
    words = [" ".join(each[1].split()) for each in _FAILURES.finditer(output) if each[1].strip()]
    return f": {', '.join(dict.fromkeys(words))[:MOST_CHARACTERS]}" if words else ""


def make_dashboard(run_dir: Path) -> None:
    """Make JMeter's own HTML dashboard of a run from its samples.jtl; an existing one is replaced.

    Raises:
        FramestormError: there is no sample, or JMeter could not make it; the message says why.
    """
    output = run_dir / "jmeter"
    log = run_dir / "jmeter-dashboard.log"
    for path in (output, log):
        if path.is_symlink():  # JMeter would follow it
            path.unlink()
    shutil.rmtree(output, ignore_errors=True)
    given = read_run(run_dir)[0].given
    # One name: the next dashboard removes what a killed conductor left.
    scratch = run_dir / "jmeter-dashboard"
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir()
    try:
        samples = _whole_rows(run_dir / "samples.jtl", scratch)
        # Two collectors, ours and another of the environment, would be an error.
        options: tuple[str, ...] = QUICK_START if samples.stat().st_size < QUICK_UP_TO_BYTES else ONE_COLLECTOR
        options = () if any(map(os.environ.get, JAVA_VARIABLES)) else options
        if not os.environ.get("HEAP"):
            heap_bytes = int(DASHBOARD_HEAP_PER_BYTE * samples.stat().st_size)
            options = (*options, f"-Xmx{max(heap_bytes, 2**30) >> 20}m")
        command = [
            *("setpriv", "--pdeathsig", "KILL"),  # it ends with this process
            *_java("-Djava.awt.headless=true", *options),
            *("-g", str(samples), "-o", str(output), "-j", str(log)),
            *_assignments({name: value for name, value in given.items() if _DASHBOARD.fullmatch(name)}),
            f"-Jjmeter.reportgenerator.temp_dir={scratch}/work",
        ]
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False, cwd=run_dir)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if done.returncode != 0 or not (output / "index.html").exists():
        raise FramestormError(
            f"JMeter made no dashboard (status {done.returncode}): {done.stdout.strip()} {done.stderr.strip()}"
        )


@contextmanager
def dashboard_of(run_dir: Path) -> Iterator[Callable[[], None]]:
    """Make the dashboard beside the block, which gets what waits for it; why there is none is said on the terminal.

    It takes three times the CPU time of the report. One that needs much memory is made before the block.
    """
    samples = run_dir / "samples.jtl"
    is_large = samples.exists() and samples.stat().st_size > BESIDE_UP_TO_BYTES
    with ThreadPoolExecutor(1) as thread:
        task = thread.submit(make_dashboard, run_dir)

        def wait() -> None:
            if isinstance(error := task.exception(), FramestormError):
                print(f"framestorm: {visible(str(error))}", file=sys.stderr)
            elif error is not None:
                raise error

        if is_large:
            task.exception()
        yield wait


def _whole_rows(samples: Path, scratch: Path) -> Path:
    """The samples without an incomplete last row, left by a killed JMeter: the report generator fails on it.

    Those of another form, such as with another delimiter, in the form that it reads.
    """
    opened = open_jtl(samples)
    if not isinstance(opened, str) and not opened.is_usual:
        opened.write(scratch / samples.name)
        samples = scratch / samples.name
    n_bytes = whole_rows(samples) if samples.exists() else 0
    with samples.open("rb") if n_bytes else io.BytesIO() as file:
        if len(file.readline()) >= n_bytes:
            raise FramestormError("JMeter makes no dashboard: samples.jtl has no sample")
        if n_bytes == samples.stat().st_size:
            return samples
        whole = scratch / samples.name
        file.seek(0)
        with whole.open("wb") as copy:
            shutil.copyfileobj(file, copy)
            copy.truncate(n_bytes)
    return whole


def _java(*options: str, home: Home | None = None, words: Sequence[str] = ()) -> list[str]:
    java = paths.JAVA_HOME / "bin" / "java"
    if home is None and not java.exists():
        raise FramestormError(
            f"no Java at {paths.shown(java)} (its package was removed?); delete .local/stamps/java and start again"
        )
    # The variables are meant for this machine.
    heap, of_user = HEAP, ""
    if home is None:
        heap, of_user = os.environ.get("HEAP") or HEAP, " ".join(os.environ.get(name, "") for name in JAVA_VARIABLES)
    home = home or Home(str(java), str(paths.JMETER_HOME), str(paths.JMX / "user.properties"))
    return [
        *(home.java, "-server", *heap.split()),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in BASE_PACKAGES),
        *options,
        *of_user.split(),
        *("-jar", f"{home.folder}/bin/ApacheJMeter.jar", *words, "-q", home.user_properties),
    ]


def _assignments(properties: Mapping[str, str]) -> list[str]:
    return [f"-J{name}={value}" for name, value in properties.items()]
