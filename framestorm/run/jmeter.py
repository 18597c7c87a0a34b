"""JMeter's command lines, and the one way to signal a running JMeter."""

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError

# What ends soon is done before the optimising compiler pays off: a dashboard took 1.3 s of CPU instead of 2.8.
QUICK_START = ("-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-XX:-UsePerfData")
# Under load too: in the first minute the optimising compiler uses more CPU than the requests (2.1 ms of CPU per
# request, 0.7 ms without it, at 600/s on two cores), and later it makes a request only a sixth cheaper.
# With huge pages a request costs a fifth less at 100/s, where the caches have turned cold between two requests. The
# start of a slave's server, jmx/jmeter-server, has them too.
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
HEAP = "-Xms256m -Xmx1g"
# Java options from the environment, which JMeter's own start script reads too; HEAP takes the place of ours.
JAVA_VARIABLES = ("VERBOSE_GC", "GC_ALGO", "JVM_ARGS", "JMETER_OPTS")
# JMeter's properties with paths of jars and folders, with what separates the paths.
CLASS_PATHS = {"search_paths": ";", "user.classpath": os.pathsep, "plugin_dependency_paths": ";"}
# What the kit reads in jmeter.log is said whatever -L says: the kit's own classes, how groups start, and which slaves
# are done. Messages about single threads may be left out, as there is one for each arrival.
ALWAYS_SAID = ("framestorm", "org.apache.jmeter.JMeter", "org.apache.jmeter.engine.StandardJMeterEngine")
_LESS = re.compile("-L(?:.*=)?(?:OFF|FATAL|ERROR|WARN)")
# JMeter's own start script opens these packages: the first to plug-ins (Parallel Controller), as does the start of
# a slave's server in jmx/jmeter-server, the second to its look and feel.
BASE_PACKAGES = ("java.lang", "java.lang.invoke", "java.lang.reflect", "java.text", "java.util")
GUI_PACKAGES = ("sun.awt", "sun.awt.X11", "sun.swing", "javax.swing.text.html", "java.awt", "java.awt.font")


def under_load(heap_bytes: int) -> tuple[str, ...]:
    """Return the options of Java for a run on this machine; a heap that the user chose is kept."""
    return UNDER_LOAD if os.environ.get("HEAP") else (*UNDER_LOAD, f"-Xmx{heap_bytes >> 20}m")


def environment() -> dict[str, str]:
    """The environment of JMeter and its clients; LC_CTYPE is UTF-8, because Java decodes its command line by it."""
    own = {**os.environ, "JMETER_HOME": str(paths.JMETER_HOME), "LC_CTYPE": "C.UTF-8"}
    if locale := own.pop("LC_ALL", ""):  # it would overrule LC_CTYPE
        own["LANG"] = locale
    return own


def user_jars() -> list[Path]:
    """Return the jars that a user has put into jmx/lib/: plug-ins, drivers, and what they need."""
    return sorted(paths.JARS.glob("*.jar"))


def class_path(values: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield the jars and folders of classes that JMeter's properties name, each with the property."""
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
    *,
    is_unpatched: bool = False,
) -> list[str]:
    """Return the command that runs a plan without the GUI into a run's folder, where `probe.stop_jmeter` stops it.

    home: that of another host; words: further options of JMeter, which `properties` may overrule.
    """
    return [
        *java_command("-Djava.awt.headless=true", *java_options, home=home, words=words, is_unpatched=is_unpatched),
        *("-n", "-t", str(plan), "-j", str(run_dir / "jmeter.log")),
        *assignments({**properties, **of_run(run_dir)}),
    ]


def of_run(run_dir: Path) -> dict[str, str]:
    """The properties by which the kit writes samples.jtl (jmx/java/Rows.java) and stops the test (StopFiles.java).

    JMeter's option -l would write another file. JMeter opens no port for stop messages, which any account could send
    ("To disable, set the port to 1000 or less").
    """
    samples = {"framestorm.samples": str(run_dir / "samples.jtl")}
    return {**samples, "framestorm.stop_files": str(run_dir), "jmeterengine.nongui.port": "0"}


def gui_command(plan: Path, properties: Mapping[str, str], run_dir: Path, words: Sequence[str] = ()) -> list[str]:
    """Return the command that opens a plan in JMeter's GUI with the properties of a run, so that Run works there."""
    options = [f"--add-opens=java.desktop/{package}=ALL-UNNAMED" for package in GUI_PACKAGES]
    # Keep preferences out of the user's home.
    options += ["-Dawt.useSystemAAFontSettings=on", f"-Djava.util.prefs.userRoot={paths.LOCAL / 'java-prefs'}"]
    properties = {"onload.expandtree": "true", **properties}
    return [
        *java_command(*options, words=words),
        "-t",
        str(plan),
        "-j",
        str(run_dir / "jmeter.log"),
        *assignments(properties),
    ]


def failure(run_dir: Path) -> str:
    """Return the reason that JMeter gave for not running a plan, after a colon; empty if it gave none."""
    path = run_dir / "jmeter.out"
    output = path.read_text(errors="replace") if path.exists() else ""
    words = [" ".join(each[1].split()) for each in _FAILURES.finditer(output) if each[1].strip()]
    return f": {', '.join(dict.fromkeys(words))[:MOST_CHARACTERS]}" if words else ""


def java_command(
    *options: str, home: Home | None = None, words: Sequence[str] = (), is_unpatched: bool = False
) -> list[str]:
    """Return the beginning of JMeter's command lines: Java with its options, JMeter, and its settings for every run.

    home: that of another host; words: further options of JMeter.
    """
    java = paths.JAVA_HOME / "bin" / "java"
    if home is None and not java.exists():
        raise FramestormError(
            f"no Java at {paths.shown(java)} (its package was removed?); delete .local/stamps/java and start again"
        )
    # The variables are meant for this machine.
    heap, of_user = HEAP, ""
    if home is None:
        heap, of_user = os.environ.get("HEAP") or HEAP, " ".join(os.environ.get(name, "") for name in JAVA_VARIABLES)
    own = paths.UNPATCHED_HOME if is_unpatched else paths.JMETER_HOME
    home = home or Home(str(java), str(own), str(paths.JMX / "user.properties"))
    said = [f"-L{name}=INFO" for name in ALWAYS_SAID] if any(map(_LESS.fullmatch, words)) else []
    return [
        *(home.java, "-server", *heap.split()),
        *(f"--add-opens=java.base/{package}=ALL-UNNAMED" for package in BASE_PACKAGES),
        *options,
        *of_user.split(),
        *("-jar", f"{home.folder}/bin/ApacheJMeter.jar", *words, *said, "-q", home.user_properties),
    ]


def assignments(properties: Mapping[str, str]) -> list[str]:
    """Set properties, as words of a command line."""
    return [f"-J{name}={value}" for name, value in properties.items()]
