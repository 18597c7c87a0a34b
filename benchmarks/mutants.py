"""How many random mutants of the code the tests kill: `python -m benchmarks.mutants [pure|edge] [N] [SEED] [NUMBER…]`.

A mutant has one comparison, arithmetic or boolean operator replaced (operators of cosmic-ray). It is killed if a test
fails or takes far too long. Tests are chosen by line coverage where they run in this process, by folder where they
start others; what is likeliest to notice comes first. Each mutant is printed as it is judged, by its number in the
draw, with what killed it, or as a diff if it survived. Numbers at the end judge only these mutants of the draw: to
continue one, or to judge its survivors again. Exit status 1 if fewer are killed than wanted.
"""

import difflib
import hashlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from queue import SimpleQueue

from cosmic_ray import mutating, plugins
from cosmic_ray.ast import ast_nodes, get_ast
from coverage import CoverageData

ROOT = Path(__file__).parents[1]
WORKERS = 2
# Of one test, and of all that are started together. On a busy machine a test may take long without a fault.
WITHIN_S = 300
ALL_WITHIN_S = 1800
FIRST = 40  # tests that are run before the others: most mutants need no more
PYTEST = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
# A mutant may send a signal to any process, or to all of them: as root, its tests have process ids of their own.
ALONE = ["unshare", "--pid", "--fork", "--mount-proc", "--kill-child"] if os.geteuid() == 0 else []
# By set: the rooms, the folders of their tests, whether these run the code in their own process, and the wanted share.
# The tests left out take minutes each, and what they notice is not what one operator decides.
SETS = {
    "pure": (
        ("model", "stats", "judge", "points", "results", "compare", "history", "report", "study"),
        ("tests/framestorm", "tests/golden"),
        True,
        0.9,
    ),
    "edge": (("client", "hosts"), ("tests/client", "tests/framestorm/hosts"), False, 0.8),
}
SLOW = ("tests/framestorm/test_kill_points.py", "tests/framestorm/setup")
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


def mutated(mutant: Mutant, tree: Path) -> str:
    """The mutant's file, made of that in a tree."""
    source, operator = (tree / mutant.file).read_text(), plugins.get_operator(mutant.operator)()
    changed = mutating.mutate_code(source, operator, mutant.occurrence)
    assert changed is not None
    return changed


def is_code(mutant: Mutant) -> bool:
    """Whether Python can read it: not if the ** that unpacks became another operator."""
    try:
        compile(mutated(mutant, ROOT), mutant.file, "exec")
    except SyntaxError:
        return False
    return True


def tests_by_line(folders: Sequence[str]) -> dict[tuple[str, int], set[str]]:
    """Which tests run each line, by file and line; from one run of all of them, which must pass and is kept."""
    files = sorted(file for folder in ("framestorm", "tests") for file in (ROOT / folder).rglob("*.py"))
    state = hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]
    data = ROOT / ".local" / "mutants" / state
    if not data.exists():
        data.parent.mkdir(exist_ok=True)
        ignored = [f"--ignore={path}" for path in SLOW]
        words = ["-n", str(WORKERS), "--cov=framestorm", "--cov-context=test", "--cov-report=", *ignored]
        made = data.with_suffix(".part")
        subprocess.run(
            [*PYTEST, *words, *folders], cwd=ROOT, check=True, env={**os.environ, "COVERAGE_FILE": str(made)}
        )
        made.rename(data)
    coverage = CoverageData(str(data))
    coverage.read()
    return {
        (str(Path(file).relative_to(ROOT)), line): {context.rpartition("|")[0] for context in contexts if context}
        for file in coverage.measured_files()
        for line, contexts in coverage.contexts_by_lineno(file).items()
    }


def tests_of(mutant: Mutant, by_line: Mapping[tuple[str, int], set[str]], lines: Mapping[str, int]) -> list[list[str]]:
    """The tests that run a mutant's line, in two parts; for a line that runs only at import, those that run its file.

    First come those of the mutant's room, and of these the ones that run the fewest lines.
    """
    of_file = (tests for (file, _), tests in by_line.items() if file == mutant.file)
    tests = by_line.get((mutant.file, mutant.line)) or set().union(*of_file)
    room = f"tests/{Path(*Path(mutant.file).parts[:2])}/"
    ordered = sorted(tests, key=lambda test: (not test.startswith(room), lines[test], test))
    return [ordered[:FIRST], ordered[FIRST:]]


def files_of(mutant: Mutant) -> list[list[str]]:
    """The tests of a mutant's folder: those of the file of its name, then the others."""
    path = Path(mutant.file)
    files = {str(file.relative_to(ROOT)) for file in (ROOT / "tests" / path.parent).glob("test_*.py")}
    own = files & {str(Path("tests") / path.parent / f"test_{path.name}")}
    return [sorted(own), sorted(files - own)]


def failure(tests: Sequence[str], tree: Path) -> str:
    """What fails first of these tests in a copy of the tree, or nothing."""
    limits = ["-o", f"faulthandler_timeout={WITHIN_S}", "-o", "faulthandler_exit_on_timeout=true"]
    try:
        done = subprocess.run([*ALONE, *PYTEST, "-x", *limits, *tests], cwd=tree, timeout=ALL_WITHIN_S,
                              capture_output=True, text=True, errors="replace", check=False)  # fmt: skip
    except subprocess.TimeoutExpired:
        return f"over {ALL_WITHIN_S} s"
    if done.returncode == 0:
        return ""
    # A busy machine is no reason to be killed: who sees these words looks at the mutant.
    if "Timeout (" in done.stderr:
        return f"over {WITHIN_S} s"
    told = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return told[0][:160] if told else f"exit status {done.returncode}"


def judged(mutant: Mutant, parts: Sequence[Sequence[str]], tree: Path) -> tuple[str, str]:
    """Run the tests part by part; returns what noticed the mutant, empty if nothing did, and the mutant's diff."""
    path = tree / mutant.file
    source, changed = path.read_text(), mutated(mutant, tree)
    path.write_text(changed)
    killer = next((told for part in parts if part and (told := failure(part, tree))), "")
    path.write_text(source)
    lines = difflib.unified_diff(source.splitlines(), changed.splitlines(), mutant.file, lineterm="", n=1)
    return killer, "\n".join(lines)


def main(which: str = "pure", wanted: str = "200", seed: str = "1", *numbers: str) -> int:
    """Draw mutants, run their tests, print what became of each."""
    rooms, folders, in_process, least = SETS[which]
    parents = [ROOT / room if (ROOT / room).is_dir() else ROOT / "framestorm" / room for room in rooms]
    files = sorted(file for parent in parents for file in parent.rglob("*.py"))
    places = mutants(files)
    chance = random.Random(int(seed))  # noqa: S311
    shuffled = (chance.choice(places[place]) for place in chance.sample(sorted(places), len(places)))
    drawn = list(islice(filter(is_code, shuffled), int(wanted)))
    chosen = [int(number) for number in numbers] or list(range(len(drawn)))
    by_line = tests_by_line(folders) if in_process else {}
    lines = Counter(test for tests in by_line.values() for test in tests)
    with tempfile.TemporaryDirectory() as scratch, ThreadPoolExecutor(WORKERS) as pool:
        trees = SimpleQueue[Path]()
        for number in range(WORKERS):
            tree = Path(scratch) / str(number)
            shutil.copytree(ROOT, tree, ignore=shutil.ignore_patterns(".git", ".local", "dashboards", "__pycache__"))
            (tree / ".local").symlink_to(ROOT / ".local")
            trees.put(tree)
        if not in_process and not numbers and (told := failure(folders, tree)):
            raise SystemExit(f"the tests of {', '.join(folders)} fail without any mutant: {told}")

        def judge(number: int) -> tuple[int, str, str]:
            mutant, tree = drawn[number], trees.get()
            parts = tests_of(mutant, by_line, lines) if in_process else files_of(mutant)
            killer, diff = judged(mutant, parts, tree)
            trees.put(tree)
            return number, killer, diff if any(parts) else f"{diff}\nno test runs it"

        killed = 0
        for done, each in enumerate(as_completed([pool.submit(judge, number) for number in chosen]), 1):
            number, killer, diff = each.result()
            killed += bool(killer)
            where = f"{drawn[number].file}:{drawn[number].line}"
            told = f"{where} killed by {killer}" if killer else f"SURVIVED\n{diff}\n"
            print(f"{killed} of {done}: {number}: {told}", flush=True)
    print(f"{which}: {killed} of {done} mutants killed ({killed / done:.0%}; {least:.0%} wanted)")
    return 0 if killed >= least * done else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
