"""The parser of every command line: a wrong one is answered by one line, without the usage."""

import argparse
import difflib
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NoReturn

from framestorm.errors import UsageError
from framestorm.model import aliases
from framestorm.model.facets import LARGEST
from framestorm.model.foreign import read_utf_8
from framestorm.model.sink import parse_sink
from framestorm.model.units import NUMBER, WHOLE_NUMBER

LIVE_PORT = 8765


class Parser(argparse.ArgumentParser):
    """An argument parser that raises UsageError where argparse prints the usage and exits."""

    def parse_args(self, args: Sequence[str] | None = None, namespace: Any = None) -> Any:  # type: ignore[override]
        """Return the options; words that are none of them are refused."""
        options, unknown = self.parse_known_args(args, namespace)
        if unknown:
            self.refuse(unknown)
        return options

    def refuse(self, unknown: Sequence[str]) -> NoReturn:
        """Name the first word that is not an option, and the option that is most like it."""
        word = next((each for each in unknown if each.startswith("-")), unknown[0]).partition("=")[0]
        options = dict(self._options())
        # Words of other tools for what is a property here; only a command of runs has properties.
        if word.startswith("-") and "-J" in options and (name := aliases.ours(word, aliases.WORDS)):
            raise UsageError(f"{word} is not an option; did you mean -J{name}=…? {self.prog} --help lists the options")
        similar = difflib.get_close_matches(word, options, n=1)
        hint = f"did you mean {similar[0]}? " if similar else ""
        prog = options[similar[0]] if similar else self.prog
        raise UsageError(f"{word} is not an option; {hint}{prog} --help lists them")

    def error(self, message: str) -> NoReturn:
        """Raise UsageError with the reason that argparse gives."""
        raise UsageError(f"{message}; {self.prog} --help lists the options")

    def _options(self) -> Iterator[tuple[str, str]]:
        """Yield the options, each with the command that has it: this one, or one of its verbs."""
        for action in self._actions:
            yield from ((option, self.prog) for option in action.option_strings)
            if isinstance(action, argparse._SubParsersAction):
                for verb in action.choices.values():
                    yield from verb._options()


def number(least: float, most: float = LARGEST) -> Callable[[str], float]:
    """Return the `type` of an option that is a number: Python's int and float take nan and 1_0 too."""
    return partial(_read_number, float, least, most)


def whole_number(least: int, most: int = LARGEST) -> Callable[[str], int]:
    """Return the `type` of an option that is a whole number."""
    return partial(_read_number, int, least, most)


def port_number(least: int = 1) -> Callable[[str], int]:
    """Return the `type` of an option that is a port."""
    return whole_number(least, 2**16 - 1)


def _read_number(kind: type[Any], least: float, most: float, text: str) -> Any:
    form, name = (WHOLE_NUMBER, "whole number") if kind is int else (NUMBER, "number")
    if form.fullmatch(text) and least <= float(text) <= most:
        return kind(text)
    raise argparse.ArgumentTypeError(f"{text[:40]!r} is not a {name} from {least:,.10g} to {most:,.10g}")


def add_cluster(parser: argparse.ArgumentParser) -> None:
    """Add the options that name a cluster, and how its functions are called."""
    parser.add_argument(
        "--context",
        metavar="NAME",
        help="the Kubernetes cluster of the function, and of slaves that are pods: a context of the kubeconfig",
    )
    parser.add_argument(
        "--ingress",
        metavar="URL",
        help="call Knative's services at this address (default: that of the ingress), and other functions that are "
        "there; those that a study makes without Knative have ports of the nodes",
    )


def add_viewers(parser: argparse.ArgumentParser) -> None:
    """Add the options that name who is shown a run while it goes on."""
    parser.add_argument(
        "--sink", metavar="KIND:URL", dest="sinks", action=AddSink, default=(),
        help="send figures of each second and label during the run to an InfluxDB, to Prometheus' remote write or to "
        "OpenTelemetry, as in prometheus:http://host:9090/api/v1/write (influxdb:URL, otlp:URL; secrets come from the "
        "environment); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--influxdb", metavar="URL", dest="sinks", action=AddSink, help="the same as --sink influxdb:URL"
    )
    parser.add_argument(
        "--live", metavar="PORT", dest="live_port", type=port_number(0), nargs="?", const=LIVE_PORT,
        help="show the run while it goes on, with the report's charts, on a page of this machine: "
        f"http://127.0.0.1:PORT/ (default port: {LIVE_PORT}; 0: any free one)",
    )  # fmt: skip


def add_stop_rules(parser: argparse.ArgumentParser) -> None:
    """Add the options that end a load early."""
    parser.add_argument(
        "--stop-if", metavar="RULE", dest="stop_if", action="append", default=[],
        help="end the load, and fail the run, as soon as a rule holds, such as 'p95 > 5 s for 30 s' (in each second), "
        "'errors > 10 %% over 20 s' (in 20 s together); may be repeated",
    )  # fmt: skip
    parser.add_argument(
        "--stop-when", metavar="RULE", dest="stop_when", action="append", default=[],
        help="end the load once it was long enough, and judge the run as any other: with 'p95 within 5 %%', once the "
        "95 %% interval of the p95 reaches less than 5 %% to each side; may be repeated",
    )  # fmt: skip


class AddCriteria(argparse.Action):
    """Add a criterion to the list; `@FILE` adds the criteria of a file, one a line."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        texts = _lines(Path(values[1:])) if values.startswith("@") else [values]
        setattr(namespace, self.dest, [*getattr(namespace, self.dest), *texts])


class AddSink(argparse.Action):
    """Add a service of --sink; the option --KIND is short for --sink KIND:."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option_string: Any = None
    ) -> None:
        kind = "" if option_string == "--sink" else option_string.removeprefix("--") + ":"
        setattr(namespace, self.dest, (*getattr(namespace, self.dest), parse_sink(kind + values, option_string)))


def _lines(path: Path) -> list[str]:
    """Return the lines of a file, without blank ones and comments."""
    lines = [line.strip() for line in read_utf_8(path, f"--fail-if @{path}").splitlines()]
    texts = [line for line in lines if line and not line.startswith("#")]
    if not texts:
        raise UsageError(f"--fail-if @{path}: there is no criterion in the file; write one a line, such as p95 > 2 s")
    return texts
