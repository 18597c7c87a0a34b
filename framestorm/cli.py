"""The command line: JMeter's own options for a run, and the other commands (verbs)."""

import argparse
import difflib
import errno
import os
import re
import shlex
import sys
import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from framestorm import __version__, paths
from framestorm.errors import FramestormError, UsageError
from framestorm.parser import AddCriteria, Parser, add_cluster, add_viewers
from framestorm.plain import say, visible

if TYPE_CHECKING:
    from framestorm.run.options import RunOptions

EXIT_STATUS = (
    "exit status: 0 passed, 1 the run could not be done, 2 wrong usage, 3 criteria failed, "
    "4 partial (something was lost or stopped early), 5 undecided against the baseline (with --undecided fail)"
)
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
RAW_FILES = ("run.json", "samples.jtl", "tree.xml", "samples.csv")
REFUSED = {
    ("-s", "--server"): "slaves are made and started by ./run.sh deploy",
    (
        "-g",
        "--reportonly",
    ): "./run.sh report RUN makes the pages of a run again, and ./run.sh report FILE.jtl -o DIR those of a JTL",
    ("-f", "--forceDeleteResultFile"): "results are never overwritten; give another -o or -l",
    ("-d", "--homedir"): "runs use JMeter 5.5 in .local/jmeter; jars of your own go to jmx/lib/",
}


def main(argv: Sequence[str]) -> int:
    """Run the command given by the words; returns the exit status of run.sh."""
    try:
        verb, words = _verb(argv)
        return VERBS[verb](words)
    except FramestormError as error:
        print(f"framestorm: {visible(str(error))}", file=sys.stderr)
        return error.exit_status
    except BrokenPipeError:
        # The reader of the output has closed it (… | head); without this Python reports another error when it exits.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        # A disk that is full, a folder without rights: what a run has measured is kept, and report shows it.
        where = f"{error.filename}: " if error.filename else ""
        is_full = error.errno == errno.ENOSPC
        advice = "; make room, and ./run.sh report RUN shows what a run had measured" if is_full else ""
        print(f"framestorm: {where}{error.strerror or error}{advice}", file=sys.stderr)
        return FramestormError.exit_status
    except KeyboardInterrupt:
        print("\nframestorm: stopped", file=sys.stderr)
        return 130


def _verb(argv: Sequence[str]) -> tuple[str, Sequence[str]]:
    """Return the verb ("" for a run) and the words after it.

    Raises:
        UsageError: the first word is neither a verb nor an option.
    """
    if not argv or argv[0].startswith("-"):
        return "", argv
    name, words = argv[0], argv[1:]
    if name == "help":
        return (words[0], ["--help"]) if words and words[0] in VERBS else ("", ["--help"])
    if name in VERBS:
        return name, words
    if name.endswith(".jmx"):
        raise UsageError(f"{name!r} is not a verb; to run a plan: ./run.sh -t {name}")
    similar = difflib.get_close_matches(name, VERBS, n=1)
    hint = f"did you mean {similar[0]!r}?" if similar else "./run.sh --help lists them"
    raise UsageError(f"{name!r} is not a verb; {hint}")


def _run(words: Sequence[str]) -> int:
    from framestorm.model import criteria, stop_rule
    from framestorm.model.scraped import scraped_criterion

    verbs = "\n".join(f"  {name:<10}{verb.__doc__}" for name, verb in VERBS.items() if name)
    parser = Parser(
        prog="./run.sh",
        description="Run a JMeter plan and report on it; by default jmx/face-blur.jmx, on the embedded target.",
        epilog=f"verbs, each with its own --help:\n{verbs}\n\n{textwrap.fill(EXIT_STATUS, 79)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-v", "--version", action="version", version=f"framestorm {__version__}, for JMeter 5.5")
    _add_plan_options(parser)
    parser.add_argument(
        "-l", "--logfile", metavar="FILE", dest="samples_copy", type=Path, help="also copy samples.jtl to this new file"
    )
    parser.add_argument(
        "-j", "--jmeterlogfile", metavar="FILE", dest="log_copy", type=Path, help="also copy jmeter.log to this file"
    )
    parser.add_argument(
        "-o", "--reportoutputfolder", metavar="DIR", dest="run_dir", type=Path,
        help="new folder for the run (default: dashboards/<plan>-<UTC time>)",
    )  # fmt: skip
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="run although the host cannot hold so many users, or the plan lacks files or may do nothing",
    )
    parser.add_argument(
        "--trace", dest="is_traced", action="store_true",
        help="send a header traceparent (W3C Trace Context) with a trace id of its own with each request, and show the "
        "ids of the slowest and of failed ones",
    )  # fmt: skip
    parser.add_argument(
        "--unpatched", dest="is_unpatched", action="store_true",
        help="run JMeter with none of its classes patched, on this machine; the run says what it then lacks",
    )  # fmt: skip
    parser.add_argument(
        "--calibrate", metavar="IMAGE", dest="no_op",
        help="measure before the load, for 10 s, what the parts of a cluster's path add, with the no-op of this image",
    )  # fmt: skip
    add_viewers(parser)
    _add_judgement(parser)
    parser.add_argument(
        "--scrape", metavar="URL", action="append", default=[],
        help="read the target's own figures once a second, in Prometheus' format (http://host:9090/metrics), and show "
        "them; --fail-if 'queue_length max > 8' judges them; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--stop-if", metavar="RULE", dest="stop_if", action="append", default=[],
        help="end the load, and fail the run, as soon as such a rule holds: 'p95 > 5 s for 30 s' (in each second), "
        "'errors > 10 %% over 20 s' (in 20 s together); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--stop-when", metavar="RULE", dest="stop_when", action="append", default=[],
        help="end the load when it was long enough: 'p95 within 5 %%' ends it when the 95 %% interval of the p95 is "
        "no wider than that to each side; the run is complete; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--check", action="store_true", help="check the whole command line, say what was found, and send nothing"
    )
    slaves = parser.add_argument_group("over slaves")
    slaves.add_argument(
        "-R", "--remotestart", metavar="HOSTS", dest="slaves",
        help="run over slaves: a group, hosts or an Ansible pattern of the inventory (slaves, 'slaves:!slave2'), or so "
        "many pods of the cluster that kubectl uses (k8s:6)",
    )  # fmt: skip
    slaves.add_argument(
        "-r", "--runremote", dest="slaves", action="store_const", const="-r",
        help="run over the slaves of JMeter's property remote_hosts, or without it over all of the inventory",
    )  # fmt: skip
    slaves.add_argument(
        "-G", "--globalproperty", metavar="NAME=VALUE", dest="extra", action="append", default=[],
        help="set a property of JMeter, or all of a FILE, on the slaves too; the plan's reach them by -J, as totals",
    )  # fmt: skip
    slaves.add_argument(
        "-i", metavar="FILE", dest="inventory", type=Path, default=paths.INVENTORY, help="the inventory"
    )
    slaves.add_argument("--image", metavar="IMAGE", help="the kit's image for pods (default: framestorm:VERSION)")
    slaves.add_argument(
        "--continue-without", dest="without_faulty", action="store_true", help="leave out slaves that cannot take part"
    )
    slaves.add_argument(
        "--continue-on-loss", action="store_true", help="let the others go on when a slave is lost during the run"
    )
    slaves.add_argument(
        "--split-csv", action="store_true",
        help="divide the rows of CSV data sets, and of rows=, among the slaves (default: each slave sends all rows)",
    )  # fmt: skip
    slaves.add_argument(
        "--whole-plan", action="store_true",
        help="let each slave run the users and rates of the whole plan, as JMeter does, instead of its part",
    )  # fmt: skip
    options = parser.parse_args(list(words))
    _hide_password(options, words)
    for text in options.criteria:
        scraped = scraped_criterion(text)
        if scraped is None:
            criteria.parse(text)
        elif not options.scrape and scraped.is_of_target_only:
            raise UsageError(f"--fail-if {text!r} is about a series of the target: give its address by --scrape URL")
    stop_rule.parse_all(options.stop_if, options.stop_when)
    _check_baseline(options)
    # Only now: what they import takes longer than --help and a wrong option.
    from framestorm import conductor
    from framestorm.run import pieces
    from framestorm.setup import pieces as setup

    is_check, live_port = options.check, options.live_port
    del options.check, options.live_port
    judgement = argparse.Namespace(**vars(options))
    if options.markdown is not None and not options.markdown.absolute().parent.is_dir():
        raise UsageError(f"--summary {options.markdown}: the folder {options.markdown.parent} does not exist")
    del options.markdown
    run = _options(options, words)
    setup.ensure(pieces.of_run(run.what, run.where))
    from framestorm.sinks.live_page import live_page

    with live_page(live_port) as page:
        if is_check:
            print(visible("\n".join([*conductor.check(run), *([f"live page: {page.url}"] if page else [])])))
            return 0
        run_dir = conductor.run(run, page=page)
        status = _report(run_dir, judgement)
        if page:
            page.show_report(run_dir)
        return status


def _find(words: Sequence[str]) -> int:
    """Find the highest load of a plan within its objectives."""
    from framestorm.find import command

    options = _find_options(words)
    if options.resume is not None:
        folder = options.resume
        options = _find_options(command.words_of(folder))
        options.resume = folder
    own = argparse.Namespace(**{name: vars(options).pop(name) for name in command.OPTIONS})
    _hide_password(options, ("find", *words))
    live_port = vars(options).pop("live_port")
    run = _options(options, ("find", *words))
    from framestorm.sinks.live_page import live_page

    with live_page(live_port) as page:
        return command.search(run, ("./run.sh", "find", *words), own, page)


def _audit(words: Sequence[str]) -> int:
    """Find out whether a function caches answers, and is as accurate under load as alone."""
    from framestorm.audit import command

    parser = Parser(prog="./run.sh audit", description=_audit.__doc__, epilog=command.EXIT_STATUS)
    command.add_options(parser)
    _add_plan_options(parser)
    options = parser.parse_args(list(words))
    own = argparse.Namespace(**{name: vars(options).pop(name) for name in command.OPTIONS})
    _hide_password(options, ("audit", *words))
    return command.audit(_options(options, ("audit", *words)), ("./run.sh", "audit", *words), own)


def _find_options(words: Sequence[str]) -> argparse.Namespace:
    from framestorm.find import command

    parser = Parser(prog="./run.sh find", description=_find.__doc__, epilog=command.EXIT_STATUS)
    command.add_options(parser)
    add_viewers(parser)
    _add_plan_options(parser)
    slaves = parser.add_argument_group("over slaves")
    slaves.add_argument("-R", "--remotestart", metavar="HOSTS", dest="slaves", help="run over slaves, as ./run.sh does")
    slaves.add_argument(
        "-i", metavar="FILE", dest="inventory", type=Path, default=paths.INVENTORY, help="the inventory"
    )
    options: argparse.Namespace = parser.parse_args(list(words))
    return options


def _gui(words: Sequence[str]) -> int:
    """Open a plan in JMeter's GUI, with the target and the properties of a run."""
    from framestorm.run import pieces
    from framestorm.run.load import open_gui
    from framestorm.setup import pieces as setup

    parser = Parser(prog="./run.sh gui", description="Open a plan in JMeter's GUI; Run works there as ./run.sh does.")
    _add_plan_options(parser)
    parser.add_argument("plan_word", metavar="plan", nargs="?", type=Path, help="the plan, as with -t")
    parser.set_defaults(is_for_gui=True)
    options = parser.parse_args(list(words))
    _hide_password(options, ("gui", *words))
    options.plan = options.plan_word or options.plan
    del options.plan_word
    what = _options(options, words).what
    setup.ensure([*pieces.of_run(what), setup.FOR_WINDOWS])
    open_gui(what)
    return 0


def _new(words: Sequence[str]) -> int:
    """Make a plan for your own function from a curl command, or for a model from what it says of its inputs."""
    from framestorm.run import inference, new_plan

    parser = Parser(prog="./run.sh new", description=_new.__doc__)
    parser.add_argument("plan", metavar="PLAN.jmx", type=Path, help="the new plan")
    request = parser.add_mutually_exclusive_group(required=True)
    request.add_argument("--curl", metavar="COMMAND", help="the request: 'curl -H … -d @scan.json https://…'")
    request.add_argument(
        "--kserve-v2", metavar="URL",
        help="ask this model of the Open Inference Protocol (KServe's V2, Triton) for its inputs, and send an example "
        "of them: http://host/v2/models/iris; or make a plan that calls it by gRPC: grpc://host:8001/iris",
    )  # fmt: skip
    request.add_argument(
        "--kserve-v1", metavar="URL",
        help="the same for V1, which takes instances; the server has to tell the inputs by V2: "
        "http://host/v1/models/iris",
    )  # fmt: skip
    parser.add_argument(
        "-H", metavar="HEADER", dest="headers", action="append", default=[],
        help="a header for the model, such as 'Host: iris.example.com'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--binary",
        action="store_true",
        help="with --kserve-v2: send the inputs as bytes after the JSON (Triton, KServe)",
    )
    parser.add_argument(
        "--rate", action="store_true", help="send at a fixed arrival rate, instead of by users who wait for answers"
    )
    asked = parser.parse_args(list(words))
    if asked.plan.suffix != ".jmx":
        raise UsageError(f"{asked.plan}: the name of a plan ends in .jmx")
    base = paths.JMX / ("request-rate.jmx" if asked.rate else "requests.jmx")
    is_grpc = (asked.kserve_v2 or "").startswith(("grpc://", "grpcs://"))
    if asked.binary and (asked.kserve_v2 is None or is_grpc):
        raise UsageError("--binary is for --kserve-v2 by HTTP; by gRPC, inputs are sent as bytes unless -Jraw=false")
    if asked.curl is not None:
        if asked.headers:
            raise UsageError("-H is for --kserve-v1 and --kserve-v2; put the header into the curl command")
        written = new_plan.write(asked.plan, asked.curl, base)
    elif asked.kserve_v1 is not None:
        command = inference.curl_command_v1(asked.kserve_v1, asked.headers)
        written = new_plan.write(asked.plan, command, base, inference.EXPECT_V1)
    elif is_grpc:
        base = paths.JMX / ("infer-rate.jmx" if asked.rate else "infer.jmx")
        written = new_plan.write_for_model(asked.plan, asked.kserve_v2, asked.headers, base)
    else:
        command, body = inference.curl_command(asked.kserve_v2, asked.headers, is_binary=asked.binary)
        written = new_plan.write(asked.plan, command, base, inference.EXPECT, body)
    for path in written:
        print(f"wrote {path}")
    print(f"run it: ./run.sh -t {shlex.quote(str(asked.plan))}")
    return 0


def _rebuild(words: Sequence[str]) -> int:
    """Rebuild every page of a run or a study from its raw files, or make those of a JTL."""
    parser = Parser(
        prog="./run.sh report",
        description=_rebuild.__doc__,
        epilog=f"{EXIT_STATUS}; of a study as in ./run.sh study --help",
    )
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+",
        help="the folder of a run or a study, its name in dashboards/, or a results.jtl of any JMeter, in CSV or XML; "
        "several JTLs are one run",
    )  # fmt: skip
    parser.add_argument(
        "-o", metavar="DIR", dest="out_dir", type=Path,
        help="new folder for the report of a JTL (default: dashboards/<its name>-<UTC time>)",
    )  # fmt: skip
    _add_judgement(parser)
    options = parser.parse_args(list(words))
    _check_baseline(options)
    options.run_dir, *others = options.runs
    if all(each.is_file() for each in options.runs):
        from framestorm.model import criteria
        from framestorm.model.run import Record
        from framestorm.results.imported import import_jtl

        out_dir = (options.out_dir or paths.new_dashboard(options.run_dir.stem)).absolute()
        for text in options.criteria:
            criteria.parse(text)
        names = ("title", "baseline", "thresholds", "undecided", "accepts_overload", "judges_steady")
        judgement = {name: getattr(options, name) for name in names}
        import_jtl(options.runs, out_dir, Record(criteria=tuple(options.criteria), **judgement))
        return _report(out_dir, options, has_dashboard=False)
    if others:
        word = next(each for each in options.runs if not each.is_file())
        raise UsageError(f"{word} is not a file: several words are several JTLs of one run")
    if options.out_dir is not None:
        raise UsageError(f"-o is for a JTL; the pages of {options.run_dir} are made in its own folder")
    for folder in (options.run_dir.resolve(), paths.DASHBOARDS / options.run_dir):
        if any((folder / name).is_file() for name in RAW_FILES):
            return _report(folder, options)
        if (folder / "find.json").is_file():
            from framestorm.find import command as find

            _refuse_judgement(options, "one of the search's probes")
            return find.show(folder)
        if (folder / "audit.json").is_file():
            from framestorm.audit import command as audit

            if options.criteria or options.title:
                raise UsageError("--fail-if and --title are for a run; give the folder of one of the audit's runs")
            return audit.show(folder)
        if (folder / "study.json").is_file():
            from framestorm.study import command

            _refuse_judgement(options, "one of the study's runs/")
            return command.rebuild(folder).exit_status
    raise UsageError(
        f"{options.run_dir} is not a folder of a run or a study: there is no run.json or study.json in it, and no "
        "samples.jtl; the report of another JTL is made by ./run.sh report FILE.jtl -o DIR"
    )


def _refuse_judgement(options: argparse.Namespace, of_run: str) -> None:
    if options.criteria or options.title or options.baseline:
        raise UsageError(f"--fail-if, --title and --baseline are for a run; give the folder of {of_run}")


def _test(words: Sequence[str]) -> int:
    """Set up what the tests need, then check and test everything as CI does."""
    parser = Parser(
        prog="./run.sh test", description=_test.__doc__, usage="%(prog)s [-h] [PYTEST-OPTION ...] [TEST ...]",
        epilog="Words that follow go to pytest, which then runs alone, without the static checks.",
    )  # fmt: skip
    if list(words) in (["-h"], ["--help"]):
        parser.print_help()
        return 0
    from framestorm import testing

    return testing.run(words)


def _imported(module: str, doc: str) -> Callable[[Sequence[str]], int]:
    """Return a verb that calls the `main` of a module, and imports the module only then."""

    def verb(words: Sequence[str]) -> int:
        return int(import_module(module).main(words))

    verb.__doc__ = doc
    return verb


VERBS: dict[str, Callable[[Sequence[str]], int]] = {
    "": _run,
    "find": _find,
    "audit": _audit,
    "gui": _gui,
    "new": _new,
    "study": _imported("framestorm.study.command", "Run a study: a repeated matrix of runs, shown on one page."),
    "report": _rebuild,
    "history": _imported("framestorm.history.command", "Show all runs over time, and where their figures changed."),
    "compare": _imported("framestorm.compare.command", "Compare runs with runs, or studies with studies."),
    "target": _imported(
        "framestorm.platform.cli", "Start, show, change or stop a real OpenFaaS on this machine; check a cluster."
    ),
    "lab": _imported("lab.__main__", "Start, list or stop local hosts to try slaves on."),
    "deploy": _imported(
        "framestorm.hosts.inventory", "Turn hosts of the inventory into master, slaves and function host."
    ),
    "slave": _imported("framestorm.hosts.container", "Be a slave in a container."),
    "selftest": _imported("framestorm.selftest", "Compare what the kit reports with what a server saw of its load."),
    "sbom": _imported("framestorm.sbom", "List the software that the kit includes, as CycloneDX files."),
    "test": _test,
}


def _add_plan_options(parser: argparse.ArgumentParser) -> None:
    from framestorm.platform.base import DEFAULT_PORT
    from framestorm.run.options import DEFAULT_PLAN

    parser.add_argument(
        "-t", "--testfile", metavar="PLAN", dest="plan", type=Path, default=DEFAULT_PLAN,
        help=f"the JMeter plan (default: {paths.shown(DEFAULT_PLAN)})",
    )  # fmt: skip
    parser.add_argument(
        "-J", "--jmeterproperty", metavar="NAME=VALUE", dest="given", action="append", default=[],
        help="set a property of the plan (-Jusers=5) or of JMeter itself; -Jurl= tests a function that runs elsewhere",
    )  # fmt: skip
    parser.add_argument(
        "--port", type=int, default=DEFAULT_PORT, help="loopback port of the embedded target (default: %(default)s)"
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
        help="that user's password; better: '${env:NAME}'",
    )
    none = argparse.SUPPRESS
    for words, meaning in ACCEPTED.items():
        jmeter.add_argument(*words, action=_Accepted, nargs=0, default=none, help=f"accepted: {meaning}")
    for words, reason in REFUSED.items():
        jmeter.add_argument(*words, action=_Refused, nargs="?", const=reason, default=none, help=none)


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
    if metavar != "FILE":
        return f"-{letter}{value}"
    if not Path(value).is_file():
        raise UsageError(f"-{letter} {value}: there is no such file")
    return f"-{letter}{Path(value).absolute()}"


def _hide_password(options: argparse.Namespace, words: Sequence[str]) -> None:
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


def _add_judgement(parser: argparse.ArgumentParser) -> None:
    """Add what a run and its report have in common: criteria, and a title."""
    parser.add_argument(
        "--fail-if", metavar="CRITERION", dest="criteria", action=AddCriteria, default=[],
        help="fail the run on a condition such as 'p95 > 2 s' or 'user success < 99 %%'; may be repeated; "
        "@FILE: those of a file, a line each",
    )  # fmt: skip
    parser.add_argument("--title", metavar="TEXT", help="a title for the page and junit.xml, such as 'OCR, nightly'")
    parser.add_argument(
        "--accept-overload", dest="accepts_overload", action="store_true",
        help="let a run pass in which the function does not keep up with an arrival rate (default: it fails)",
    )  # fmt: skip
    parser.add_argument(
        "--steady", dest="judges_steady", action="store_true",
        help="judge the steady part only, and say how much was left out (default: the whole run)",
    )  # fmt: skip
    parser.add_argument(
        "--baseline", metavar="RUN",
        help="fail the run if it is worse than this one beyond a threshold, and significantly: last, best or main "
        "(the newest, the fastest, or the newest of the branch main of the earlier runs of the same plan, target and "
        "load), or a run",
    )  # fmt: skip
    parser.add_argument(
        "--threshold", metavar="LIMIT", dest="thresholds", action="append", default=[],
        help="with --baseline: by how much worse is a regression, as of ./run.sh compare: 'p95 10 %%'; may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--undecided", choices=("pass", "fail"), default="pass",
        help="with --baseline: whether a check fails that cannot be decided, or has no run to compare with "
        "(default: pass)",
    )  # fmt: skip
    parser.add_argument(
        "--summary", metavar="FILE", dest="markdown", type=Path,
        help="append the outcome to this file as Markdown, as for the job summary of a CI",
    )  # fmt: skip


def _check_baseline(options: argparse.Namespace) -> None:
    """Check what is compared with what, before anything is started."""
    options.thresholds = tuple(options.thresholds)
    if options.baseline is not None:
        from framestorm.compare import baseline

        options.baseline = baseline.checked(options.baseline, options.thresholds)
    elif options.thresholds or options.undecided == "fail":
        raise UsageError("--threshold and --undecided are for a comparison: name the run to compare with by --baseline")


def _options(options: argparse.Namespace, words: Sequence[str]) -> "RunOptions":
    """Return the options of a run: each word of the command line has the name of its field."""
    from framestorm.run import properties
    from framestorm.run.options import RunOptions

    # A plan as seen from here, or from the checkout when run.sh is called from elsewhere.
    is_elsewhere = not options.plan.exists() and (paths.ROOT / options.plan).exists()
    options.plan = paths.ROOT / options.plan if is_elsewhere else options.plan.absolute()
    options.property_files = tuple(word.absolute() for word in options.given if isinstance(word, Path))
    options.given = properties.assigned(options.given)
    options.jmeter_options = tuple(options.jmeter_options)
    if "criteria" in options:
        # JMeter takes a word without a value as the name of a file.
        extra = [word if "=" in word else Path(word) for word in options.extra]
        if options.slaves == "-r":
            options.slaves = options.given.get("remote_hosts") or "slaves"
        options.scrape = tuple(options.scrape)
        options.stop_if, options.stop_when = tuple(options.stop_if), tuple(options.stop_when)
        options.criteria, options.extra = tuple(options.criteria), properties.assigned(extra, "-G")
    return RunOptions.of(**vars(options), command=("./run.sh", *words))


def _report(run_dir: Path, judgement: argparse.Namespace, *, has_dashboard: bool = True) -> int:
    """Make the report of a run, and show its outcome; what `_add_judgement` adds replaces what the run says.

    has_dashboard: JMeter's own is made too, which takes several times as long.
    """
    from framestorm.model import files
    from framestorm.model.summary import Summary
    from framestorm.report import build, write_pages
    from framestorm.report.terminal import terminal_text
    from framestorm.run.dashboard import dashboard_of
    from framestorm.setup import pieces as setup

    if has_dashboard:
        setup.ensure(setup.FOR_A_RUN)
    with dashboard_of(run_dir) if has_dashboard else nullcontext() as made:
        build(
            run_dir,
            judgement.criteria or None,
            judgement.title,
            before_page=made,
            accepts_overload=judgement.accepts_overload or None,
            judges_steady=judgement.judges_steady or None,
        )
    summary = files.read(run_dir / "summary.json", Summary)
    if judgement.baseline is not None:
        of_baseline = {name: getattr(judgement, name) for name in ("baseline", "thresholds", "undecided")}
        summary = replace(summary, run=replace(summary.run, **of_baseline))
    if summary.run.baseline is not None:
        from framestorm.compare.baseline import with_baseline
        from framestorm.report.summary import run_files

        summary = with_baseline(run_dir, summary)
        summary = replace(summary, files=run_files(run_dir))
        write_pages(run_dir, summary)
    say(terminal_text(summary))
    if judgement.markdown is not None:
        from framestorm.report.markdown import markdown_text

        with judgement.markdown.open("a", encoding="utf-8") as file:
            file.write(markdown_text(summary))
    say(f"\nreport: {paths.shown(run_dir / 'index.html')}")
    return summary.verdict.exit_status
