"""What becomes of the rows of a plan: transactions, times that scripts set, samplers without a name, and failures."""

from pathlib import Path

import pytest

from framestorm import cli
from tests.runs import RunFiles, RunSh
from tests.stand_in import StartServer

CASES = Path(__file__).parent


def test_what_each_row_of_a_plan_is(run_sh: RunSh, tmp_path: Path) -> None:
    """transactions.jmx has transactions of every kind twice, times that scripts set, and a thread that ends early."""
    own = tmp_path / "own"
    run = run_sh(
        "-t", str(CASES / "transactions.jmx"), f"-Jown={own}", "--fail-if", "* errors > 0", "--fail-if", "'' p95 > 1 s"
    )
    summary = run.json("summary.json")
    kinds: dict[str, dict[str, int]] = {}
    for name, label in summary["labels"].items():
        kinds.setdefault(label["kind"], {})[name] = label["n"]
    assert kinds["sampler"].pop("all") == sum(kinds["sampler"].values())
    assert [kinds["sampler"].pop(name) >= 2 for name in ("s0", "s1", "s2")] == [True] * 3
    assert kinds == {
        # "c" is in a transaction in a transaction in a transaction, "d" and "g" are side by side with others.
        "sampler": {"a": 2, "b": 4, "c": 2, "d": 4, "/home-1": 2, "/home-2": 2, "e": 2, "says so": 2, "search": 2}
        | {"f": 2, "g": 2, "h": 2, "zero": 1, "early": 1, "huge": 1, "hour": 1, "": 2},
        # Its message is that of a transaction.
        "sub-result": {"says so-0": 2, "says so-1": 2, "part-0": 2},
        "transaction": dict.fromkeys(
            [
                "outer",
                "inner",
                "innermost",
                "side by side",
                "/home-1 (transaction)",
                "renamed",
                "within",
                "around",
                "in parallel",
                "empty",
                "txn",
            ],
            2,
        ),
    }
    facts = summary["facts"]
    assert facts["cut_transactions"] == {"txn": 2} and facts["untimed"] == 4
    assert any(text.startswith("2 transactions (txn) were cut off") for text in summary["warnings"])
    assert summary["labels"]["huge"]["times"]["rtt"]["n"] == 0 and summary["load"]["duration_ms"] < 60_000
    judged = {each["label"]: each["state"] for each in summary["criteria"] if each["metric"] == "p95"}
    assert judged == {"": "passed"}
    rows = run.count("label", "sample_kind")
    assert rows["txn", "cut-transaction"] == 2 and rows["/home-1", "transaction"] == rows["/home-1", "sample"] == 2
    # The plan's own listeners write what they would without the kit.
    first, *others = own.with_suffix(".csv").read_text().splitlines()
    assert first == "elapsed,label,success"
    assert {line.count(",") for line in others} == {2}
    tree = own.with_suffix(".xml").read_text()
    assert 'lb="outer"' in tree and "elapsed_us" not in tree and "sample_kind" not in tree


def test_a_failure_has_its_own_cause(stand_in: StartServer, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Not that of the assertion which it meets too; and two different checks are two causes."""
    server = stand_in(*[{"body": b'{"n": 10.0}'}] * 3, {"body": b'{"n": 9007199254740992}'})
    words = ["-t", str(CASES / "failures.jmx"), f"-Jport={server.server_port}", "-o", str(tmp_path / "run")]
    assert cli.main(words) == 3
    summary = RunFiles(tmp_path / "run").json("summary.json")
    assert {name: list(label["causes"].items()) for name, label in summary["labels"].items() if name != "all"} == {
        "tls": [("tls: SSLException: Unsupported or unrecognized SSL message", 2)],
        "add": [("failed-check: Test failed: code expected to equal 201, received 200", 2)],
        "update": [("failed-check: Test failed: code expected to equal 204, received 200", 2)],
        "price": [("failed-check: Value expected to be '10', but found '10.0'", 2)],
        "id": [("failed-check: Value expected to be '9007199254740993', but found '9007199254740992'", 2)],
        "search": [("connect", 2)],
    }
    # The LDAP sampler failed before its time began.
    assert summary["facts"]["untimed"] == 2
    assert "success < 100 % of 6 labels (tls, add, update, …)" in capsys.readouterr().out
