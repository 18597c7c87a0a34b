"""study.yml: what it means, and what is said of one that is wrong: the line, and what is allowed."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from framestorm.errors import UsageError
from framestorm.model.study import Study
from framestorm.study.design import matrix, reading

PLAN = "plan: jmx/video-per-user.jmx"
TARGET = "target: {function: face-blur}"
RAMP = '  ramp_s: "=4 * users"'
LEVEL = "    kept-alive: {}"
USERS = "  users: [1, 2, 4]"
SLEEP = "  sleep_s: [0, 5]"
REPETITIONS = "repetitions: 3"
STOP = "stop: {metric: mean_ms, within_percent: 5, at_most: 8}"
RUN_S = 'run_s: "=frames + sleep_s + 1"'
METRICS = "metrics: [mean_ms, overhead, ratio]"
DERIVED = '  overhead: "=outside_mean_ms / mean_ms * users"'
SMALL = """\
title: Small
question: Is it small?
plan: jmx/video-per-user.jmx
target: {function: face-blur}
properties:
  frames: 3
  ramp_s: "=4 * users"
factors:
  way:
    fork: {target: {function: face-blur-fork}, run_s: "=10 * users"}
    kept-alive: {}
  users: [1, 2, 4]
  sleep_s: [0, 5]
repetitions: 3
run_s: "=frames + sleep_s + 1"
metrics: [mean_ms, overhead, ratio]
derived:
  overhead: "=outside_mean_ms / mean_ms * users"
  ratio: {metric: mean_ms, against: {way: fork}, as: ratio}
hypotheses:
  - name: sleep helps
    text: Sleep lowers the mean.
    claims:
      - {metric: mean_ms, compare: {sleep_s: [5, 0]}, where: {way: fork, users: [2, 4]}, expect: "< 1"}
      - {metric: served_per_s, knee: {over: users}, expect: "< 4"}
      - {metric: mean_ms, trend: users, expect: "> 0"}
charts:
  - {title: Mean, metric: mean_ms, x: users, lines: sleep_s, panels: way, where: {users: [1, 2]}}
  - {title: Frames, kind: per-frame, rows: sleep_s}
quick:
  properties: {frames: 1}
  factors: {way: [fork], users: [1]}
  repetitions: 2
"""


@pytest.fixture
def load(tmp_path: Path) -> Callable[..., Study]:
    def load(text: str = SMALL, quick: bool = False) -> Study:
        folder = tmp_path / "small"
        folder.mkdir(exist_ok=True)
        (folder / "study.yml").write_text(text)
        return reading.load(folder, quick)

    return load


def line_of(text: str, part: str) -> int:
    return next(number for number, line in enumerate(text.splitlines(), start=1) if part in line)


def test_a_study_is_read_with_its_defaults(load):
    study = load()
    assert (study.name, study.title, study.repetitions, study.order) == ("small", "Small", 3, "randomised")
    assert (study.warm_up_s, study.temperature, study.budget_min, study.stop) == (0, "any", None, None)
    assert study.factors["users"].values == (1, 2, 4)
    assert study.factors["way"].is_named and not study.factors["users"].is_named


def test_quick_overrides_and_leaves_the_rest(load):
    study = load(quick=True)
    assert study.repetitions == 2
    assert study.properties == {"frames": 1, "ramp_s": "=4 * users"}
    assert {name: factor.values for name, factor in study.factors.items()} == {
        "way": ("fork",),
        "users": (1,),
        "sleep_s": (0, 5),
    }
    # Claims of the whole study stand, also those on levels that are left out.
    assert study.hypotheses == load().hypotheses


OWN_URL = (
    SMALL.replace(PLAN, "plan: jmx/requests.jmx").replace("  frames: 3\n", "  hold_s: 3\n").replace("{frames: 1}", "{}")
)
OWN_URL = OWN_URL.replace("{target: {function: face-blur-fork}, run_s", "{properties: {method: GET}, run_s")
OWN_URL = OWN_URL.replace("frames + ", "").replace("outside_mean_ms", "p95_ms")


@pytest.mark.parametrize("target", ["{kind: url, url: http://127.0.0.1/f}", "{url: http://127.0.0.1/f}"])
def test_a_function_at_any_address_needs_no_platform(load, target):
    study = load(OWN_URL.replace("{function: face-blur}", target))
    targets = [point.target.model_dump() for point in matrix.points(study)]
    assert targets == [{"kind": "url", "url": "http://127.0.0.1/f"}] * len(targets)


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("{}", "a target needs its function on openfaas, or its address, as in target: {kind: url, url: http://"),
        ("{kind: openfaas}", "a target of kind openfaas needs its function"),
        ("{kind: url}", "a target of kind url needs its url, as in target: {kind: url, url: http://"),
    ],
)
def test_a_target_that_lacks_its_address_is_told_how_to_give_it(load, target, words):
    with pytest.raises(UsageError, match=re.escape(words)):
        load(OWN_URL.replace("{function: face-blur}", target))


@pytest.mark.parametrize(
    ("was", "becomes", "words"),
    [
        ("title: Small", "titel: Small", "unknown key 'titel'; did you mean title?; allowed: title, question"),
        ("title: Small", "title: [", "line 3: this is not YAML"),
        ("title: Small", "title: Small\nname: small", "line 2: a study is a mapping without name"),
        ("title: Small", "title: &a {b: *a}", "nested too deeply, or contains itself"),
        ("title: Small", "title: &a [*a, *a]", "nested too deeply, or contains itself"),
        ("title: Small", "title: 3", "title is 3, but has to be a text"),
        ("title: Small", "title:", "title is null (nothing stands there), but has to be a text"),
        ("title: Small", "2024-02-30: Small", "a name has to be a text"),
        ("question: Is it small?", "question: ''", 'question is "", but has to be a text'),
        (PLAN, "plan: jmx/none.jmx", "no plan at"),
        (PLAN, "plan: README.md", 'plan is "README.md", but has to be a path'),
        (TARGET, "target: {function: face-blurr}", "unknown function 'face-blurr'"),
        (TARGET, TARGET[:-1] + ", rute: nginx}", "target.rute is not valid for kind openfaas; did you mean route?"),
        # A level is to blame, not what it changes.
        (TARGET, "target: {kind: embedded}", "line 10: target.function cannot be"),
        (TARGET, "target: {kind: url}", "line 10: target.function is not valid for kind url"),
        (TARGET, TARGET[:-1] + ", replicas: '=1 / users'}", "target.replicas is 0.5"),
        (TARGET, TARGET[:-1] + ", replicas: 2, route: direct}", "route direct is the address of one replica"),
        ("  frames: 3", "  frams: 3", "has no property 'frams'; did you mean frames?; allowed: encoding, frames"),
        ("  frames: 3", "  frames: 3\n  frames: 4", "line 7: this is not YAML: found duplicate key"),
        ("  frames: 3", "  users: 3\n  frames: 3", "users is a factor, and a fixed property too"),
        ("  frames: 3", "  frames: some", "frames=some: frames must be"),
        (
            "  frames: 3",
            "  url: http://127.0.0.1/",
            "the address of the function is set by the target, not by a property; give target: {kind: url, ",
        ),
        (RAMP, '  ramp_s: "=4 * user"', "unknown name 'user'; did you mean users?"),
        (RAMP, '  ramp_s: "=4 * way"', "way is 'fork', which is not a number"),
        (RAMP, '  ramp_s: "=1 / sleep_s"', "with sleep_s = 0: division by zero"),
        (RAMP, '  ramp_s: "=4 * ramp_s"', "ramp_s needs itself"),
        (RAMP, '  ramp_s: "{ways}"', "{ways} is not a factor; did you mean way?"),
        (LEVEL, "    kept-alive: {properties: {frame: 3}}", "has no property 'frame'; did you mean frames?"),
        (
            LEVEL,
            "    kept-alive: {propertys: {users: 1}}",
            "unknown key 'propertys' in factors.way.kept-alive; did you",
        ),
        (LEVEL, "    a: &a {properties: {frams: 1}}\n    kept-alive: {<<: *a}", "has no property 'frams'"),
        (LEVEL, "    true: {}", "a name has to be a text; put this one in quotes"),
        (LEVEL, "    ? [a, b]", "a name has to be a text"),
        (LEVEL, "    kept alive: {}", "the name 'kept alive' in factors.way has to be letters, digits"),
        (USERS, "  users: []", "factors.users is [], but has to have at least one"),
        (USERS, '  users: [1, "1", 4]', '1 and "1" are the same level of users; leave one out'),
        (USERS, "  users: [0, 1, 2, 4]", "users=0: users must be"),
        (USERS, "  users: 4", "factors.users is 4, but has to be a list of values, or a mapping from"),
        ("{users: [1, 2]}", '{users: [1, "2"]}', "charts[0].where.users[1]; write it as 2; allowed: 1, 2, 4"),
        (REPETITIONS, "repetitions: none", 'repetitions is "none", but has to be a whole number'),
        (REPETITIONS, "repetitions: 2.0", "repetitions is 2.0, but has to be a whole number from 1 to 1000"),
        (REPETITIONS, "repetitions: 0", "repetitions is 0, but has to be a whole number from 1 to 1000"),
        (REPETITIONS, "warm_up_s: .inf", "warm_up_s is Infinity, but has to be a number of at least 0"),
        (REPETITIONS, "order: random", "order cannot be 'random'; did you mean randomised?"),
        (REPETITIONS, "temperature: true", "temperature cannot be True (an unquoted true or false is not a text)"),
        (
            REPETITIONS,
            "stop: {metric: mean_s, within_percent: 5, at_most: 8}",
            "unknown metric 'mean_s' in stop.metric; did",
        ),
        (REPETITIONS, "stop: {metric: mean_ms, within_percent: 5, at_most: 2}", "stop.at_most is 2, below"),
        (
            REPETITIONS,
            "stop: {metric: ratio, within_percent: 5, at_most: 8}",
            "stop.metric is the derived metric 'ratio'; it has to be of one run",
        ),
        (REPETITIONS, "stop: {metric: mean_ms, at_most: 2}", "within_percent is missing in stop"),
        (REPETITIONS, "blocks: [{usr: [1]}]", "unknown factor 'usr' in blocks[0]; did you mean users?; allowed: way,"),
        (REPETITIONS, "blocks: [{users: [3]}]", "unknown level '3' of users in blocks[0].users[0]; allowed: 1, 2, 4"),
        (REPETITIONS, "published_from: someone", "published_from without published"),
        (REPETITIONS, "published: results.csv", "published is 'results.csv', a file of the study's"),
        (REPETITIONS, "published: data/theirs.csv", "published is 'data/theirs.csv', but has to be a file beside"),
        (RUN_S, "run_s: .nan", "run_s is NaN, but has to be a number"),
        (RUN_S, f"run_s: {'9' * 400}", "but has to be a number"),
        (RUN_S, "run_s: -1", "run_s is -1"),
        (RUN_S, 'run_s: "=frames + sleep"', "unknown name 'sleep'; did you mean sleep_s?"),
        (RUN_S, 'run_s: "=sleep_s"', "run_s is 0 s at way=kept-alive,users=1,sleep_s=0"),
        (
            METRICS,
            "metrics: [user p75]",
            "metrics[0] is 'user_p75_ms': users have mean, median, p50, p90, p95, p99, min",
        ),
        (METRICS, "metrics: [mean_s]", "unknown metric 'mean_s' in metrics[0]; did you mean mean_ms?"),
        (METRICS, "metrics: [fame p95]", "no sampler has the label 'fame' of metrics[0]; did you mean frame?; allowed"),
        (DERIVED, "  overhead: \"='fame p95' / mean_ms\"", "no sampler has the label 'fame' of derived.overhead"),
        (DERIVED, "  overhead: \"='frame speed' / mean_ms\"", "'frame speed'\" is not arithmetic"),
        (DERIVED, '  rate: "=n / 2"', "derived metric 'rate' has the name of a metric"),
        (DERIVED, '  overhead: "=outside / mean_ms"', "unknown name 'outside' in derived.overhead"),
        (
            DERIVED,
            '  overhead: "=ratio / mean_ms"',
            "derived.overhead is the derived metric 'ratio'; it has to be of one run, or derived above it",
        ),
        (DERIVED, '  mean_ms: "=1 + 1"', "derived metric 'mean_ms' has the name of a metric"),
        (DERIVED, '  cut_off: "=1 + 1"', "derived metric 'cut_off' has the name of a metric"),
        (SLEEP, "  state: {cold: {}, warm: {}}", "factor 'state' has the name of a metric"),
        (
            "{way: fork}, as: ratio",
            "{way: forked}, as: ratio",
            "unknown level 'forked' of way in derived.ratio.against",
        ),
        ("{way: fork}, as: ratio", "{way: fork}, as: share", "as cannot be 'share'"),
        ("{way: fork, users: [2, 4]}", "{user: [2, 4]}", "unknown factor 'user' in hypotheses[0].claims[0].where; did"),
        (
            "{way: fork, users: [2, 4]}",
            "{users: [2, 5]}",
            "unknown level '5' of users in hypotheses[0].claims[0].where",
        ),
        ("compare: {sleep_s: [5, 0]}", "compare: {sleep_s: [5]}", "compare.sleep_s is [5]"),
        ("compare: {sleep_s: [5, 0]}", "compare: {sleep_s: [5, 5]}", "claims[0].compare compares a level with itself"),
        ("compare: {sleep_s: [5, 0]}", "compare: {sleep_s: [5, false]}", "unknown level 'false' of sleep_s"),
        ('expect: "< 1"', 'expect: "> 9.5.0"', 'expect is "> 9.5.0", but has to be "< 0.9"'),
        ("knee: {over: users}", "knee: {over: way}", "over is way, whose levels are not numbers"),
        ("trend: users", "trend: way", "trend is way, whose levels are not numbers"),
        ("trend: users", "trend: users, compare: {users: [2, 1]}", "trend is users, which is compared too"),
        ("knee: {over: users}", "knee: {over: users}, compare: {way: [fork, kept-alive]}", "does not go with a knee"),
        ("served_per_s, knee", "mean_ms, knee", "claims[1].metric is mean_ms, a time; the knee is of a rate"),
        ("trend: users", "as: difference", "hypotheses[0].claims[2].as without compare"),
        ("knee: {over: users}", "knee: {over: users}, trend: users", "has a trend and a knee"),
        ("metric: mean_ms, x: users", "metric: mean_ms", "line 28: x is missing in charts[0]"),
        ("metric: mean_ms, x: users", "x: users", "charts[0] needs either metric or metrics"),
        ("metric: mean_ms, x: users", "metrics: [n, ok], x: users", "has a line for each metric"),
        ("panels: way", "panels: ways", "unknown factor 'ways' in charts[0].panels; did you mean way?"),
        (
            "lines: sleep_s, panels: way",
            "lines: sleep_s",
            "charts[0] has several points at one place, which differ in way: choose levels by where, or add lines or",
        ),
        (
            "x: users, lines: sleep_s, panels: way",
            "x: users",
            "charts[0] has several points at one place, which differ in way and sleep_s: choose",
        ),
        ("kind: per-frame, rows: sleep_s", "kind: per-frame", "rows is missing in charts[1]"),
        ("  repetitions: 2", f"  repetitions: 1\n  {STOP}", "line 33: repetitions is 1: the stop rule needs"),
        ("  properties: {frames: 1}", "  property: {frames: 1}", "unknown key 'property' in quick; did you mean prop"),
        ("  properties: {frames: 1}", "  properties: {frams: 1}", "has no property 'frams'"),
        ("{way: [fork], users: [1]}", "{ways: [fork]}", "unknown factor 'ways' in quick.factors; did you mean way?"),
        ("{way: [fork], users: [1]}", "{way: [forks]}", "unknown level 'forks' of way in quick.factors.way[0]; did"),
    ],
)
def test_each_mistake_has_its_line(load, was, becomes, words):
    assert was in SMALL
    text = SMALL.replace(was, becomes, 1)
    with pytest.raises(UsageError) as caught:
        load(text)
    said = str(caught.value).splitlines()
    own = f"line {line_of(text, becomes.splitlines()[0])}: "
    wanted = words if words.startswith("line ") else own + words
    number, _, rest = wanted.removeprefix("line ").partition(": ")
    assert any(f"study.yml:{number}: " in line and rest in line for line in said), said


@pytest.mark.parametrize(
    ("factor", "words"),
    [
        (
            "target.replica: [1, 3]",
            "target.replica is not valid for kind openfaas; did you mean replicas?; allowed: kind, ",
        ),
        ("target.kind: [opnfaas]", "target.kind cannot be 'opnfaas'; did you mean openfaas?; allowed: openfaas, "),
        ("target.replicas: [.inf]", "factors.target.replicas[0] is Infinity, but has to be a number"),
        ("target.cpu: [1, -3]", "target.cpu is -3"),
        ("target.memory: [512]", "target.memory is 512, but has to be a number of bytes of at least 1M (512Mi)"),
        ("target.autoscale: [1, 0]", "target.autoscale is 1"),
        ("target.environment: [lots]", 'target.environment is "lots", but has to be a mapping'),
    ],
)
def test_listed_parts_of_the_target_are_checked_as_those_of_the_target_are(load, factor, words):
    text = SMALL.replace(SLEEP, f"{SLEEP}\n  {factor}")
    with pytest.raises(UsageError) as caught:
        load(text)
    assert f"study.yml:{line_of(text, factor)}: {words}" in str(caught.value)


def test_listed_parts_of_the_target(load):
    text = SMALL.replace("  sleep_s: [0, 5]", "  target.replicas: [1, 3]\n  target.cpu: [250m, 0.5]\n  sleep_s: [0, 5]")
    text = text.replace("where: {users: [1, 2]}", "where: {target.replicas: 1, target.cpu: 250m}")
    targets = [point.target for point in matrix.points(load(text))]
    found = {(each.replicas, each.cpu) for each in targets}  # type: ignore[attr-defined]
    assert found == {(1, "250m"), (1, "0.5"), (3, "250m"), (3, "0.5")}


def test_a_chart_need_not_tell_apart_what_is_one_point_at_each_place(load):
    text = SMALL.replace("lines: sleep_s, panels: way", "lines: sleep_s")
    blocks = "blocks: [{way: [fork], sleep_s: [0]}, {way: [kept-alive], sleep_s: [5]}]"
    for each in (
        text.replace("where: {users: [1, 2]}", "where: {way: fork}"),
        text.replace(REPETITIONS, f"{REPETITIONS}\n{blocks}"),
    ):
        assert len(load(each).charts) == 2


def test_all_problems_are_said_at_once_in_order(load):
    text = (
        SMALL.replace("metrics: [mean_ms", "metrics: [mean_s")
        .replace("x: users", "x: user")
        .replace("trend: users", "trend: u")
    )
    with pytest.raises(UsageError) as caught:
        load(text)
    assert [line.split(": ")[1].split(";")[0] for line in str(caught.value).splitlines()] == [
        "unknown metric 'mean_s' in metrics[0]",
        "unknown factor 'u' in hypotheses[0].claims[2].trend",
        "unknown factor 'user' in charts[0].x",
    ]


def test_a_study_without_quick_has_none(load):
    text = SMALL[: SMALL.index("quick:")]
    assert load(text).repetitions == 3
    with pytest.raises(UsageError, match="has no part `quick`"):
        load(text, quick=True)


def test_named_levels_are_written_with_quotes(load):
    named = SMALL.replace("  users: [1, 2, 4]", '  users: [1, 2, 4]\n  limit:\n    "1": {}\n    "2": {}')
    for was, becomes in (
        ("where: {users: [1, 2]}", "where: {limit: 1}"),
        ("factors: {way: [fork], users: [1]}", "factors: {limit: [1]}"),
    ):
        with pytest.raises(UsageError, match=r'of limit.*; write it as "1"; allowed: 1, 2'):
            load(named.replace(was, becomes))


def test_what_is_no_file_is_said(tmp_path):
    with pytest.raises(UsageError, match=r"study.yml cannot be read"):
        reading.load(tmp_path)
    for text, line, what in (
        ("", 1, "empty"),
        ("hello", 1, "something else"),
        ("# A list.\n- a\n", 2, "something else"),
    ):
        (tmp_path / "study.yml").write_text(text)
        words = rf"study.yml:{line}: a study is a mapping; the file is {what}; allowed: title, question"
        with pytest.raises(UsageError, match=words):
            reading.load(tmp_path)
    for value in ("\x07", "9" * 5000):
        (tmp_path / "study.yml").write_text(SMALL.replace("repetitions: 3", f"repetitions: {value}"))
        with pytest.raises(UsageError, match=r"study.yml cannot be read"):
            reading.load(tmp_path)
