"""What becomes of the rows of a plan: transactions, times that scripts set, and samplers without a name."""

from pathlib import Path

from tests.runs import RunSh

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
