"""How many random mutants of the code the tests kill: `python -m benchmarks.mutants [pure|edge] [N] [SEED]`.

A mutant has one comparison, arithmetic or boolean operator replaced (operators of cosmic-ray). It is killed if a test
fails or takes far too long. Tests are chosen by line coverage where they run in this process, by folder where they
start others. Survivors are printed as diffs; exit status 1 if fewer are killed than wanted.
"""

import difflib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from cosmic_ray import mutating, plugins
from cosmic_ray.ast import ast_nodes, get_ast
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
WORKERS = 2
WITHIN_S = 240
# A mutant may send a signal to any process, or to all of them: as root, its tests have process ids of their own.
ALONE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] if os.geteuid() == 0 else []
# By set: the rooms, the folders of their tests, whether these run the code in their own process, and the wanted share.
SETS = {
    "pure": (
        ("model", "stats", "inference", "results", "compare", "report", "study"),
        ("tests/framestorm", "tests/golden"),
        True,
        0.9,
    ),
    "edge": (("client", "hosts"), ("tests/client", "tests/framestorm/hosts"), False, 0.8),
}
OPERATORS = ("ReplaceComparisonOperator", "ReplaceBinaryOperator", "ReplaceUnaryOperator", "AddNot",
             "ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd")  # fmt: skip
# In this code | joins types or dictionaries: what becomes of it is not a mutant but a crash at import.
LEFT_OUT = "BitOr"
# Decorators (frozen=True) and signatures (the * before keywords) decide nothing at run time either, nor does a file's
# own start in a test that imports it.
DECLARATIONS = ("@", "def ", "async def ", "class ", "if __name__")


@dataclass(frozen=True)
class Mutant:
    """One replaced operator: the file below the root, cosmic-ray's operator and its occurrence, and the line."""

    file: str
    operator: str
    occurrence: int
    line: int


def mutants(files: Sequence[Path]) -> dict[tuple[str, int, int], list[Mutant]]:
    """All mutants, by the place in the source that they change."""
    places: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    names = [name for name in plugins.operator_names() if name.split("/")[1].startswith(OPERATORS)]
    for file in files:
        source = file.read_text()
        tree, name = get_ast(source), str(file.relative_to(ROOT))
        is_declaration = [line.lstrip().startswith(DECLARATIONS) for line in source.splitlines()]
        for operator in (each for each in names if LEFT_OUT not in each):
            kind = plugins.get_operator(operator)()
            spots = [spot for node in ast_nodes(tree) for spot in kind.mutation_positions(node)]
            for occurrence, ((line, column), _) in enumerate(spots):
                if not is_declaration[line - 1]:
                    places[name, line, column].append(Mutant(name, operator, occurrence, line))
    return places


def tests_by_line(folders: Sequence[str]) -> dict[tuple[str, int], set[str]]:
    """Which tests run each line, by file and line; from one run of all of them, which must pass."""
    with tempfile.TemporaryDirectory() as scratch:
        data = Path(scratch) / "coverage"
        words = ["-q", "-p", "no:cacheprovider", "--cov=framestorm", "--cov-context=test", "--cov-report="]
        subprocess.run([sys.executable, "-m", "pytest", *words, *folders], cwd=ROOT, check=True,
                       env={**os.environ, "COVERAGE_FILE": str(data)})  # fmt: skip
        coverage = CoverageData(str(data))
        coverage.read()
        return {
            (str(Path(file).relative_to(ROOT)), line): {context.split("|")[0] for context in contexts if context}
            for file in coverage.measured_files()
            for line, contexts in coverage.contexts_by_lineno(file).items()
        }


def tests_of(mutant: Mutant, by_line: Mapping[tuple[str, int], set[str]]) -> list[str]:
    """The tests that run a mutant's line; for a line that runs only at import, those that run any of its file."""
    of_file = (tests for (file, _), tests in by_line.items() if file == mutant.file)
    return sorted(by_line.get((mutant.file, mutant.line)) or set().union(*of_file))


def passes(tests: Sequence[str], tree: Path) -> bool:
    """Whether all of these tests pass in a copy of the tree; raises subprocess.TimeoutExpired if they take too long."""
    words = ["-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run([*ALONE, sys.executable, "-m", "pytest", *words, *tests], cwd=tree, timeout=WITHIN_S,
                          capture_output=True, check=False)  # fmt: skip
    return done.returncode == 0


def survives(mutant: Mutant, tests: Sequence[str], tree: Path) -> str | None:
    """The mutant's diff if these tests do not notice it."""
    path = tree / mutant.file
    source = path.read_text()
    changed = mutating.mutate_code(source, plugins.get_operator(mutant.operator)(), mutant.occurrence)
    assert changed is not None
    path.write_text(changed)
    try:
        is_killed = not passes(tests, tree)
    except subprocess.TimeoutExpired:
        # On a busy machine the tests alone may take so long: then this one was not killed by them.
        print(f"took over {WITHIN_S} s: {mutant.file}:{mutant.line}\n", flush=True)
        is_killed = True
    path.write_text(source)
    if is_killed:
        return None
    return "\n".join(difflib.unified_diff(source.splitlines(), changed.splitlines(), mutant.file, lineterm="", n=1))


def main(which: str = "pure", wanted: str = "200", seed: str = "1") -> int:
    """Draw mutants, run their tests, print survivors."""
    rooms, folders, in_process, least = SETS[which]
    parents = [ROOT / room if (ROOT / room).is_dir() else ROOT / "framestorm" / room for room in rooms]
    files = sorted(file for parent in parents for file in parent.rglob("*.py"))
    places = mutants(files)
    chance = random.Random(int(seed))  # noqa: S311
    drawn = [chance.choice(places[place]) for place in chance.sample(sorted(places), min(int(wanted), len(places)))]
    by_line = tests_by_line(folders) if in_process else {}
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(WORKERS) as pool:
        trees = [Path(scratch) / str(number) for number in range(WORKERS)]
        for tree in trees:
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".local", "dashboards", "__pycache__"))
            (tree / ".local").symlink_to(ROOT / ".local")
        if not in_process and not passes(folders, trees[0]):
            raise SystemExit(f"the tests of {', '.join(folders)} fail without any mutant")

        def judge(number: int) -> list[str]:
            left = []
            for mutant in drawn[number::WORKERS]:
                tests = tests_of(mutant, by_line) if in_process else folders
                if not tests or (diff := survives(mutant, tests, trees[number])) is not None:
                    left.append(diff if tests else f"{mutant.file}:{mutant.line}: no test runs it")
                    print(f"SURVIVED {left[-1]}\n", flush=True)
            return left

        survivors = [each for left in pool.map(judge, range(WORKERS)) for each in left]
    killed = len(drawn) - len(survivors)
    print(f"{which}: {killed} of {len(drawn)} mutants killed ({killed / len(drawn):.0%}; {least:.0%} wanted)")
    return 0 if killed >= least * len(drawn) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
