"""The verbs of run.sh, each with the module whose `main` does it; the verbs of no other package are in this one."""

from collections.abc import Sequence
from importlib import import_module
from typing import NamedTuple


class Verb(NamedTuple):
    """A verb: the module with its `main`, which is imported only when it is called, and what it does."""

    module: str
    does: str

    def __call__(self, words: Sequence[str]) -> int:
        return int(import_module(self.module).main(words))


VERBS = {
    "": Verb("framestorm.verbs.run", "Run a plan and report on it."),
    "find": Verb(
        "framestorm.find.command", "Find the highest load within objectives, or the smallest setting of a platform."
    ),
    "audit": Verb(
        "framestorm.audit.command",
        "Find out whether a function caches answers, and whether it is as accurate under load as alone.",
    ),
    "gui": Verb("framestorm.verbs.gui", "Open a plan in JMeter's GUI, with the target and the properties of a run."),
    "new": Verb(
        "framestorm.verbs.new",
        "Make a plan for your own function from a curl command, or for a model from its description of its inputs.",
    ),
    "study": Verb("framestorm.study.command", "Run a study: a repeated matrix of runs, shown on one page."),
    "report": Verb(
        "framestorm.verbs.report",
        "Rebuild the pages of a run, study, search or audit from its raw files, or make those of a JTL.",
    ),
    "history": Verb("framestorm.history.command", "Show all runs over time, and where their figures changed."),
    "compare": Verb("framestorm.compare.command", "Compare runs with runs, or studies with studies."),
    "target": Verb(
        "framestorm.platform.cli",
        "Start, show, change or stop a real OpenFaaS on this machine; make or check a cluster.",
    ),
    "lab": Verb("lab.__main__", "Start, list or stop local hosts to try slaves on."),
    "deploy": Verb("framestorm.hosts.inventory", "Turn hosts of the inventory into master, slaves and function host."),
    "slave": Verb("framestorm.hosts.container", "Run a slave in a container."),
    "selftest": Verb("framestorm.selftest", "Compare what the kit reports with what a recording server received."),
    "sbom": Verb("framestorm.sbom", "List the software that the kit includes, as CycloneDX files."),
    "test": Verb("framestorm.testing", "Set up what the tests need, then check and test the kit as CI does."),
}
