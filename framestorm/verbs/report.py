"""`./run.sh report`: every page of a run, study, search or audit made again from its raw files, or those of a JTL."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.parser import Parser
from framestorm.verbs.judgement import EXIT_STATUS, add_judgement, check_judgement, report

RAW_FILES = ("run.json", "samples.jtl", "tree.xml", "samples.csv")


def main(words: Sequence[str]) -> int:
    """Rebuild the pages of a run, study, search or audit from its raw files, or make those of a JTL."""
    parser = Parser(
        prog="./run.sh report",
        description=main.__doc__,
        epilog=f"{EXIT_STATUS}; of a study as in ./run.sh study --help",
    )
    parser.add_argument(
        "runs", metavar="RUN", type=Path, nargs="+",
        help="the folder of a run, study, search or audit, its name in dashboards/, or a results.jtl of any JMeter, in "
        "CSV or XML; several JTLs are one run",
    )  # fmt: skip
    parser.add_argument(
        "-o", metavar="DIR", dest="out_dir", type=Path,
        help="new folder for the report of a JTL (default: dashboards/<its name>-<UTC time>)",
    )  # fmt: skip
    add_judgement(parser)
    options = parser.parse_args(list(words))
    recorded = check_judgement(options)
    for each in options.runs:
        if not paths.exists(each) and not paths.exists(paths.DASHBOARDS / each):
            raise UsageError(
                f"there is no file or folder {each}, nor a run of that name in {paths.shown(paths.DASHBOARDS)}/"
            )
    options.run_dir, *others = options.runs
    # A file may be a pipe, as of a shell's <(command).
    if all(each.exists() and not each.is_dir() for each in options.runs):
        from framestorm.model import criteria
        from framestorm.model.run import Record
        from framestorm.results.imported import import_jtl

        out_dir = (options.out_dir or paths.new_dashboard(options.run_dir.stem)).absolute()
        for text in options.criteria:
            criteria.parse(text)
        import_jtl(options.runs, out_dir, Record(**recorded))
        return report(out_dir, options, has_dashboard=False)
    if others:
        word = next(each for each in options.runs if each.is_dir() or not each.exists())
        raise UsageError(
            f"{word} is not a file: several words are several JTLs of one run; give the folders of runs one by one, or "
            "compare them by ./run.sh compare"
        )
    if options.out_dir is not None:
        raise UsageError(f"-o is for a JTL; the pages of {options.run_dir} are made in its own folder")
    for folder in (options.run_dir.resolve(), paths.DASHBOARDS / options.run_dir):
        if any((folder / name).is_file() for name in RAW_FILES):
            return report(folder, options)
        if (folder / "find.json").is_file():
            from framestorm.find import command as find

            _refuse_judgement(options, "one of the search's probes")
            return find.show(folder)
        if (folder / "audit.json").is_file():
            from framestorm.audit import command as audit

            _refuse_judgement(options, "one of the audit's runs")
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
    of_a_run = {
        "--fail-if": options.criteria,
        "--title": options.title,
        "--accept-overload": options.accepts_overload,
        "--steady": options.judges_steady,
        "--baseline": options.baseline,
        "--summary": options.markdown,
    }
    if unused := [name for name, value in of_a_run.items() if value]:
        are = "is" if len(unused) == 1 else "are"
        raise UsageError(f"{' and '.join(unused)} {are} for a run; give the folder of {of_run}")
