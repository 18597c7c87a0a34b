"""A run: JMeter's own options, those of Framestorm, and the report at its end."""

import argparse
import textwrap
from collections.abc import Sequence
from pathlib import Path

from framestorm import __version__
from framestorm.errors import UsageError
from framestorm.model import criteria, stop_rule
from framestorm.model.scraped import scraped_criterion
from framestorm.parser import Parser, add_stop_rules, add_viewers
from framestorm.plain import say, visible
from framestorm.run import plan_options, properties
from framestorm.run.options import RunOptions
from framestorm.verbs import VERBS
from framestorm.verbs.judgement import EXIT_STATUS, add_judgement, check_judgement, report

# What JMeter's own jmeter.properties has as remote_hosts.
JMETER_HOST = "127.0.0.1"


def main(words: Sequence[str]) -> int:
    """Run what the words say, and report on it; returns the exit status of run.sh."""
    options = _parser().parse_args(list(words))
    plan_options.hide_password(options, words)
    for text in options.criteria:
        scraped = scraped_criterion(text)
        if scraped is None:
            criteria.parse(text)
        elif not options.scrape and scraped.is_of_target_only:
            raise UsageError(f"--fail-if {text!r} is about a series of the target: give its address by --scrape URL")
    stop_rule.parse_all(options.stop_if, options.stop_when)
    check_judgement(options)
    # Only now: what they import takes longer than --help and a wrong option.
    from framestorm import conductor
    from framestorm.run import pieces
    from framestorm.setup import pieces as setup
    from framestorm.sinks.live_page import live_page

    is_check, live_port, has_dashboard = options.check, options.live_port, options.has_dashboard
    del options.check, options.live_port, options.has_dashboard
    judgement = argparse.Namespace(**vars(options))
    del options.markdown
    run = _run_options(options, words)
    setup.ensure(pieces.of_run(run.what, run.where))
    with live_page(live_port) as page:
        if is_check:
            say(visible("\n".join([*conductor.check(run), *([f"live page: {page.url}"] if page else [])])))
            return 0
        run_dir = conductor.run(run, page=page)
        status = report(run_dir, judgement, has_dashboard=has_dashboard)
        if page:
            page.show_report(run_dir)
        return status


def _parser() -> Parser:
    verbs = "\n".join(f"  {name:<10}{verb.does}" for name, verb in VERBS.items() if name)
    parser = Parser(
        prog="./run.sh",
        description="Run a JMeter plan and report on it; by default jmx/face-blur.jmx, on the embedded target.\n"
        "A function of yours: ./run.sh -t jmx/requests.jmx -Jurl=http://host/path -Jusers=4 -Jhold_s=60",
        epilog=f"verbs, each with its own --help:\n{verbs}\n\n{textwrap.fill(EXIT_STATUS, 79)}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("-v", "--version", action="version", version=f"framestorm {__version__}, for JMeter 5.5")
    plan_options.add_plan_options(parser)
    _add_options(parser)
    _add_slaves(parser)
    return parser


def _add_options(parser: Parser) -> None:
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
        "--no-dashboard", dest="has_dashboard", action="store_false",
        help="leave out JMeter's own HTML dashboard, which takes several times as long as the report; "
        "./run.sh report makes it later",
    )  # fmt: skip
    parser.add_argument(
        "--anyway",
        action="store_true",
        help="run even if the host cannot hold so many users, or the plan lacks files or may do nothing",
    )
    parser.add_argument(
        "--trace", dest="is_traced", action="store_true",
        help="send a header traceparent (W3C Trace Context) with each request, and show the trace ids of the slowest "
        "and of failed requests",
    )  # fmt: skip
    parser.add_argument(
        "--unpatched", dest="is_unpatched", action="store_true",
        help="run JMeter with none of its classes patched, on this machine; the run says what it then lacks",
    )  # fmt: skip
    parser.add_argument(
        "--calibrate", metavar="IMAGE", dest="no_op",
        help="measure for 10 s before the load what each part of a cluster's path (such as the ingress) adds, by "
        "calling a no-op of this image",
    )  # fmt: skip
    add_viewers(parser)
    add_judgement(parser)
    parser.add_argument(
        "--scrape", metavar="URL", action="append", default=[],
        help="read the target's own figures once a second, in Prometheus' format (http://host:9090/metrics), and show "
        "them; --fail-if 'queue_length max > 8' judges them; may be repeated",
    )  # fmt: skip
    add_stop_rules(parser)
    parser.add_argument(
        "--check", action="store_true", help="check the whole command line, say what was found, and send nothing"
    )


def _add_slaves(parser: Parser) -> None:
    slaves = plan_options.add_slaves(parser)
    slaves.add_argument(
        "-r", "--runremote", dest="slaves", action="store_const", const="-r",
        help="run over the slaves of JMeter's property remote_hosts, or without it over all of the inventory",
    )  # fmt: skip
    slaves.add_argument(
        "-G", "--globalproperty", metavar="NAME=VALUE", dest="extra", action="append", default=[],
        help="set a property of JMeter, or those of a FILE, on the slaves too; the plan's properties reach them by -J",
    )  # fmt: skip
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


def _run_options(options: argparse.Namespace, words: Sequence[str]) -> RunOptions:
    if options.slaves == "-r":
        options.slaves = _remote_hosts(options)
    plan_options.complete(options)
    # JMeter takes a word without a value as the name of a file.
    extra = [word if "=" in word else Path(word) for word in options.extra]
    options.scrape = tuple(options.scrape)
    options.stop_if, options.stop_when = tuple(options.stop_if), tuple(options.stop_when)
    options.extra = properties.assigned(extra, "-G")
    return RunOptions.of(**vars(options), command=("./run.sh", *words))


def _remote_hosts(options: argparse.Namespace) -> str:
    """Return the slaves of JMeter's property remote_hosts; all, where a file only has JMeter's default of it."""
    words = [*(Path(word[2:]) for word in options.jmeter_options if word.startswith("-p")), *options.given]
    hosts = properties.assigned(words).get("remote_hosts", "")
    is_default = hosts == JMETER_HOST and f"remote_hosts={hosts}" not in options.given
    return "slaves" if not hosts or is_default else hosts
