"""The options of every verb that runs a plan: JMeter's own letters, and the target."""

import argparse
import os
import re
import sys
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.parser import add_cluster, port_number
from framestorm.platform.base import DEFAULT_PORT
from framestorm.run import properties
from framestorm.run.options import DEFAULT_PLAN, RunOptions

PROXY_PASSWORD = "FRAMESTORM_PROXY_PASSWORD"  # noqa: S105 - the name of a variable
# Passed on to JMeter: letter, long form, value, meaning.
JMETER_OPTIONS = (
    ("p", "propfile", "FILE", "JMeter's properties, instead of its own jmeter.properties"),
    ("S", "systemPropertyFile", "FILE", "set the system properties of a file"),
    ("D", "systemproperty", "NAME=VALUE", "set a system property of Java"),
    ("L", "loglevel", "[CATEGORY=]LEVEL", "set a level of jmeter.log"),
    ("E", "proxyScheme", "SCHEME", "scheme of the HTTP proxy"),
    ("H", "proxyHost", "HOST", "HTTP proxy of the requests"),
    ("P", "proxyPort", "PORT", "port of the proxy"),
    ("N", "nonProxyHosts", "HOSTS", "hosts without the proxy, such as '*.local|localhost'"),
    ("u", "username", "NAME", "user at the proxy"),
)
LEVELS = ("OFF", "FATAL", "ERROR", "WARN", "INFO", "DEBUG", "TRACE", "ALL")
ACCEPTED = {
    ("-n", "--nongui"): "a run has no window",
    ("-e", "--reportatendofloadtests"): "every run has JMeter's dashboard",
    ("-X", "--remoteexit"): "servers always end with the run",
}
REFUSED = {
    ("-s", "--server"): "slaves are made and started by ./run.sh deploy",
    (
        "-g",
        "--reportonly",
    ): "./run.sh report RUN makes the pages of a run again, and ./run.sh report FILE.jtl -o DIR those of a JTL",
    ("-f", "--forceDeleteResultFile"): "results are never overwritten; give another -o or -l",
    ("-d", "--homedir"): "runs use JMeter 5.5 in .local/jmeter; jars of your own go to jmx/lib/",
}


def add_plan_options(parser: argparse.ArgumentParser) -> None:
    """Add the options that say what is run: a plan, its properties, its target, and those of JMeter itself."""
    parser.add_argument(
        "-t", "--testfile", metavar="PLAN", dest="plan", type=Path, default=DEFAULT_PLAN,
        help=f"the JMeter plan (default: {paths.shown(DEFAULT_PLAN)})",
    )  # fmt: skip
    parser.add_argument(
        "-J", "--jmeterproperty", metavar="NAME=VALUE", dest="given", action="append", default=[],
        help="set a property of the plan (-Jusers=5; docs/properties.md has all) or of JMeter itself; -Jurl= is the "
        "address of a function that runs elsewhere",
    )  # fmt: skip
    parser.add_argument(
        "--port",
        type=port_number(),
        default=DEFAULT_PORT,
        help="loopback port of the embedded target (default: %(default)s)",
    )
    add_cluster(parser)
    jmeter = parser.add_argument_group("as in JMeter")
    jmeter.add_argument(
        "-q", "--addprop", metavar="FILE", dest="given", action="append", type=Path, help="set the properties of a file"
    )
    for letter, name, metavar, meaning in JMETER_OPTIONS:
        jmeter.add_argument(
            f"-{letter}", f"--{name}", metavar=metavar, dest="jmeter_options", action="append", default=[],
            type=partial(_jmeter_word, letter, metavar), help=meaning,
        )  # fmt: skip
    jmeter.add_argument(
        "-a",
        "--password",
        metavar="PASSWORD",
        dest="proxy_password",
        help="password of that user; better: '${env:NAME}'",
    )
    none = argparse.SUPPRESS
    for words, meaning in ACCEPTED.items():
        jmeter.add_argument(*words, action=_Accepted, nargs=0, default=none, help=f"accepted: {meaning}")
    for words, reason in REFUSED.items():
        jmeter.add_argument(*words, action=_Refused, nargs="?", const=reason, default=none, help=none)


def add_slaves(parser: argparse.ArgumentParser) -> argparse._ArgumentGroup:
    """Add the options that name the slaves of a run; returns their group, for further ones."""
    slaves = parser.add_argument_group("over slaves")
    slaves.add_argument(
        "-R", "--remotestart", metavar="HOSTS", dest="slaves",
        help="run over slaves: a group, hosts or an Ansible pattern of the inventory (slaves, 'slaves:!slave2'), or a "
        "number of pods of a Kubernetes cluster (k8s:6)",
    )  # fmt: skip
    slaves.add_argument(
        "-i", metavar="FILE", dest="inventory", type=Path, default=paths.INVENTORY, help="the inventory"
    )
    return slaves


class _Accepted(argparse.Action):
    """An option of JMeter that asks for what a run does anyway."""

    def __call__(self, *_: object) -> None:
        pass


class _Refused(argparse.Action):
    """An option of JMeter that means nothing here; `const` says what does its work."""

    def __call__(self, parser: object, options: object, values: object, word: str | None = None) -> None:
        raise UsageError(f"{word}: {self.const}")


def _jmeter_word(letter: str, metavar: str, value: str) -> str:
    """Return an option as JMeter takes it in one word, with a file as seen from anywhere."""
    level = value.rpartition("=")[2]
    if letter == "L" and level not in LEVELS:  # JMeter would go on without it
        raise UsageError(f"-L {value}: {level!r} is not a level; there are {', '.join(LEVELS)}")
    if metavar == "PORT":
        port_number()(value)
    if metavar != "FILE":
        return f"-{letter}{value}"
    if not Path(value).is_file():
        raise UsageError(f"-{letter} {value}: there is no such file")
    return f"-{letter}{Path(value).absolute()}"


def hide_password(options: argparse.Namespace, words: Sequence[str]) -> None:
    """Take the proxy's password from the environment; one on the command line, where all see it, is moved there first.

    To move it the process starts again.
    """
    password, variable = options.proxy_password, re.fullmatch(r"\$\{env:(\w+)\}", options.proxy_password or "")
    if variable and variable[1] not in os.environ:
        raise UsageError(f"-a {password}: export {variable[1]}=… before the run")
    if variable:
        options.proxy_password = os.environ[variable[1]]
    elif password is not None:
        shown = f"${{env:{PROXY_PASSWORD}}}"
        joined = {f"{option}{password}": f"{option}{shown}" for option in ("-a", "--password=")}
        hidden = [
            shown if before in ("-a", "--password") else joined.get(word, word)
            for before, word in pairwise(("", *words))
        ]
        if hidden == list(words):  # argparse knows more forms, such as --pass=PASSWORD
            raise UsageError("the proxy's password is given as -a PASSWORD or --password=PASSWORD")
        again = [sys.executable, "-P", "-m", "framestorm", *hidden]
        environment = {**os.environ, "PYTHONPATH": str(paths.ROOT), PROXY_PASSWORD: password}
        os.execve(sys.executable, again, environment)  # noqa: S606 - no shell


def complete(options: argparse.Namespace) -> None:
    """Turn the options of `add_plan_options` into fields of RunOptions: paths made absolute, properties by name."""
    # A plan as seen from here, or from the checkout when run.sh is called from elsewhere.
    is_elsewhere = not options.plan.exists() and (paths.ROOT / options.plan).exists()
    options.plan = paths.ROOT / options.plan if is_elsewhere else options.plan.absolute()
    options.property_files = tuple(word.absolute() for word in options.given if isinstance(word, Path))
    options.given = properties.assigned(options.given)
    options.jmeter_options = tuple(options.jmeter_options)


def run_options(options: argparse.Namespace, words: Sequence[str]) -> RunOptions:
    """Return the options of a run: each word of the command line has the name of its field."""
    complete(options)
    return RunOptions.of(**vars(options), command=("./run.sh", *words))
