"""Headlines of runs of any format, and of what is left of runs."""

import json
from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.history.headlines import read_headline, read_headlines
from framestorm.model.files import FORMAT
from framestorm.model.headline import LoadKey
from framestorm.model.load import Load
from framestorm.model.run import Target
from tests.framestorm.history.conftest import START_MS, MakeRun

KEY = LoadKey("requests.jmx", "http://127.0.0.1:8080/", "4 users for 60 s")


def test_a_headline_has_the_figures_of_the_main_samples(make_run: MakeRun) -> None:
    headline = read_headline(make_run("nightly-1"))
    assert (headline.run, headline.key, headline.label, headline.n) == ("nightly-1", KEY, "request", 1000)
    assert (headline.verdict, headline.kit, headline.started_ms) == ("pass", "0.1.0", START_MS)
    assert (headline.figures["median_ms"].value, headline.figures["median_ms"].ends) == (20.0, (19.0, 21.0))
    assert (headline.figures["success"].value, headline.figures["success"].ends) == (0.99, (0.98, 0.995))
    assert headline.figures["p99_ms"].bound == "lower"
    assert (headline.figures["served_per_s"].value, headline.figures["served_per_s"].ends) == (50.0, (48.0, 52.0))
    assert (headline.doubts, headline.problem) == (("saturated",), "")


def test_figures_of_the_steady_part_are_a_group_of_their_own(make_run: MakeRun) -> None:
    assert read_headline(make_run("nightly-1", judges_steady=True)).key == KEY._replace(settings=("steady=true",))


def test_a_run_of_another_format_keeps_its_figures(make_run: MakeRun) -> None:
    folder = make_run("later")
    before = read_headline(folder)
    content = json.loads((folder / "summary.json").read_text()) | {"format": FORMAT + 1, "new": []}
    (folder / "summary.json").write_text(json.dumps(content))
    headline = read_headline(folder)
    assert (headline.figures, headline.key, headline.verdict) == (before.figures, before.key, "pass")
    assert headline.problem == f"its report has format {FORMAT + 1}, of another version of the kit"


def test_a_run_of_the_first_format_keeps_its_figures(tmp_path: Path) -> None:
    rtt = {"n": 9, "p50": {"value": 31.0, "low": 30.0, "high": None, "bound": "exact", "few": False},
           "p95": {"value": 99.0, "low": None, "high": None, "bound": "exact", "few": True}}  # fmt: skip
    run = {"plan": "jmx/face-blur.jmx", "started_ms": 5, "properties": {"users": "3", "hold_s": "30"},
           "target": {"kind": "embedded", "url": "http://127.0.0.1:8090/function/face-blur"}}  # fmt: skip
    frames = {"n": 9, "success": 1.0, "rate_per_s": 0.3, "times": {"rtt": rtt}}
    content = {"format": 1, "unit": "frame", "verdict": {"word": "pass"}, "run": run, "frames": frames}
    folder = tmp_path / "old"
    folder.mkdir()
    (folder / "run.json").write_text("{}")
    (folder / "summary.json").write_text(json.dumps(content))
    headline = read_headline(folder)
    assert headline.key == LoadKey("face-blur.jmx", "embedded", "3 users for 30 s")
    assert (headline.label, headline.n, headline.verdict) == ("frame", 9, "pass")
    # A percentile that is just the largest of few samples is none.
    assert {name: figure.value for name, figure in headline.figures.items()} == {
        "median_ms": 31.0, "success": 1.0, "served_per_s": 0.3,
    }  # fmt: skip
    assert "format 1" in headline.problem


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", "", '{"labels": 3, "run": [], "verdict": {"word": "great"}}', "\udcff"]
)
def test_an_unreadable_report_keeps_its_line(make_run: MakeRun, text: str) -> None:
    folder = make_run("broken")
    (folder / "summary.json").write_bytes(text.encode(errors="surrogateescape"))
    headline = read_headline(folder)
    assert (headline.run, headline.figures, headline.verdict) == ("broken", {}, None)
    assert headline.problem.endswith(f": make it by ./run.sh report {folder}")


def test_a_run_without_a_report_has_what_its_record_says(make_run: MakeRun) -> None:
    folder = make_run("unfinished", title="nightly")
    (folder / "summary.json").unlink()
    headline = read_headline(folder)
    assert (headline.key, headline.title, headline.started_ms) == (KEY, "nightly", START_MS)
    assert headline.problem.startswith("summary.json is missing: make it by ./run.sh report ")


def test_no_report_is_advised_that_another_version_has_to_make(make_run: MakeRun) -> None:
    folder = make_run("old")
    (folder / "summary.json").unlink()
    record = json.loads((folder / "run.json").read_text())
    (folder / "run.json").write_text(json.dumps(record | {"format": 1}))
    assert read_headline(folder).problem == "its record has format 1, of another version of the kit"


def test_runs_are_found_however_deep_and_each_once(make_run: MakeRun, tmp_path: Path) -> None:
    make_run("b/same", day=1)
    make_run("a/runs/same", day=0)
    (tmp_path / "b" / "same" / "jmeter").mkdir()
    (tmp_path / "b" / "same" / "jmeter" / "run.json").write_text("{}")
    headlines = read_headlines([tmp_path, tmp_path / "a"])
    assert [Path(each.folder).relative_to(tmp_path).as_posix() for each in headlines] == ["a/runs/same", "b/same"]


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is not a folder"):
        read_headlines([tmp_path / "none"])


def test_what_else_was_set_keeps_runs_apart_and_the_port_of_the_embedded_target_does_not(make_run: MakeRun) -> None:
    embedded = [Target("embedded", f"http://127.0.0.1:{port}/function/face-blur") for port in (8090, 8091)]
    one, other = (make_run(f"at-{n}", target=each, given={"url": each.url}) for n, each in enumerate(embedded))
    assert read_headline(one).key == read_headline(other).key
    large = make_run("large", given={"body": "@large.json", "url": "http://127.0.0.1:8080/"})
    assert read_headline(large).key == KEY._replace(settings=("body=@large.json",))


def test_jtls_of_one_name_are_of_one_group_where_they_are_one_file(make_run: MakeRun) -> None:
    sources = ("orders/results.jtl", "pay/results.jtl", "pay/results.jtl")
    runs = (make_run(f"jtl-{n}", plan=None, source=source) for n, source in enumerate(sources))
    orders, *pay = (read_headline(run).key for run in runs)
    assert orders != pay[0] == pay[1] and {orders.name, pay[0].name} == {"results.jtl"}


def test_jtls_of_one_title_are_of_one_group(make_run: MakeRun) -> None:
    """As those of a workspace that each build has of its own."""
    builds = (("build-1/out.jtl", "orders"), ("build-2/out.jtl", "orders"), ("build-2/out.jtl", "pay"))
    runs = [make_run(f"jtl-{n}", plan=None, source=jtl, title=title) for n, (jtl, title) in enumerate(builds)]
    first, second, pay = (read_headline(run).key for run in runs)
    assert first == second != pay and first.name == "orders"


def test_settings_of_the_target_keep_runs_apart(make_run: MakeRun) -> None:
    """As those of a study's points, and of the probes of a search over replicas."""
    url = "http://127.0.0.1:8080/"
    of_each = [make_run(f"replicas-{n}", target=Target("openfaas", url, {"replicas": str(n)})) for n in (1, 2)]
    assert [read_headline(each).key.settings for each in of_each] == [("target.replicas=1",), ("target.replicas=2",)]


def test_versions_of_a_function_of_a_cluster_are_of_one_group(make_run: MakeRun) -> None:
    """Also where its Service has another port of the nodes by now; another function there is of another group."""
    of_all = {"context": "staging", "namespace": "shop", "max_scale": "5"}
    made = [
        make_run(
            f"run-{n}",
            target=Target(
                "kubernetes",
                f"http://198.18.0.1:{30000 + n}/pay",
                {**of_all, "function": function, "image": f"shop:{n}", "revision": str(n)},
            ),
        )
        for n, function in enumerate(("cart", "cart", "orders"))
    ]
    first, second, other = (read_headline(each).key for each in made)
    assert first == second != other
    assert first.settings == tuple(f"target.{name}" for name in sorted(
        ("context=staging", "function=cart", "max_scale=5", "namespace=shop")
    ))  # fmt: skip
    assert first.target == "kubernetes staging/shop/cart/pay"


def test_images_of_a_study_keep_runs_apart_and_revisions_do_not(make_run: MakeRun) -> None:
    """A function that the kit made has a port, too."""
    url, of_kit = "http://127.0.0.1:8094/", {"function": "noop", "port": "8080"}
    versions = (("a", "1"), ("a", "2"), ("b", "3"))
    made = [
        make_run(f"run-{revision}", target=Target("swarm", url, {**of_kit, "image": image, "revision": revision}))
        for image, revision in versions
    ]
    first, again, other = (read_headline(each).key for each in made)
    assert first == again != other


def test_draws_of_random_arrivals_are_of_one_group(make_run: MakeRun) -> None:
    """As those of the repetitions of a study; a plan may use a property of this name otherwise."""
    line = {"x": [0, 60], "y": [5, 5]}
    drawn = [
        make_run(
            f"r{seed}", loads=(Load("", "ThreadGroup", "arrivals", 300, line, seed=seed),), given={"seed": str(seed)}
        )
        for seed in (1, 2)
    ]
    expected = KEY._replace(load="5/s for 60 s, arriving at random (Poisson)")
    assert [read_headline(each).key for each in drawn] == [expected, expected]
    assert read_headline(make_run("users", given={"seed": "2"})).key.settings == ("seed=2",)


def test_a_seed_that_draws_no_arrivals_keeps_runs_apart(make_run: MakeRun) -> None:
    """Whatever the names of thread groups: a plan may use a property of this name otherwise."""
    line = {"x": [0, 60], "y": [4, 4]}
    groups = [tuple(Load(name, "ThreadGroup", "users", 4, line) for name in (f"buy, seed {n}", "see")) for n in (1, 2)]
    one, other = (read_headline(make_run(f"g{n}", loads=of, given={"seed": "1"})).key for n, of in enumerate(groups))
    assert one.settings == other.settings == ("seed=1",)
    assert one.load == "buy, seed 1: 4 users for 60 s; see: 4 users for 60 s" != other.load


def test_runs_of_different_builds_are_of_one_group(make_run: MakeRun) -> None:
    """The plan reads `tenant`, and nothing reads `build`."""
    builds = [make_run(f"build-{n}", given={"build": str(n), "tenant": "a"}, unread=("build",)) for n in (1, 2)]
    assert {read_headline(each).key for each in builds} == {KEY._replace(settings=("tenant=a",))}
