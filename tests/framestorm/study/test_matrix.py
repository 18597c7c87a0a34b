"""Points of a matrix: how many, what each sets, in which order they run."""

import pytest

from framestorm.errors import UsageError
from framestorm.model.study import Study
from framestorm.model.units import as_text
from framestorm.points.folder import Overrides
from framestorm.study.design import matrix
from framestorm.study.design.yaml_lines import PointError

CONTENT = {
    "title": "Matrix",
    "question": "Which points?",
    "plan": "jmx/requests.jmx",
    "target": {"function": "noop-{way}", "replicas": "=users", "environment": {"a": 1}},
    "properties": {"hold_s": 4, "body": "{way} of {users}"},
    "factors": {
        "way": {"fork": {"target": {"environment": {"b": 2.5}}}, "java": {"properties": {"hold_s": "=2 * users"}}},
        "users": [1, 2, 3],
    },
    "run_s": "=hold_s",
    "metrics": ["mean_ms"],
}


def study(**changes: object) -> Study:
    return Study.model_validate({**CONTENT, **changes, "name": "matrix"})


def test_the_full_cross_in_the_order_of_the_factors():
    ids = [point.id for point in matrix.points(study())]
    assert ids == [f"way={way},users={users}" for way in ("fork", "java") for users in (1, 2, 3)]


def test_blocks_are_a_union_and_a_factor_not_named_takes_all():
    blocks = [{"way": ["fork"], "users": [1, 3]}, {"users": [3]}, {"way": ["fork"], "users": [3, 1]}]
    ids = [point.id for point in matrix.points(study(blocks=blocks))]
    assert ids == ["way=fork,users=1", "way=fork,users=3", "way=java,users=3"]


def test_a_point_is_what_its_levels_set():
    point = {point.id: point for point in matrix.points(study())}["way=java,users=3"]
    assert point.factors == {"way": "java", "users": 3}
    assert point.properties == {"hold_s": "6", "body": "java of 3", "users": "3"}
    assert (point.target.function, point.target.replicas, point.target.route) == ("noop-java", 3, "gateway")  # type: ignore[attr-defined]
    assert point.target.environment == {"a": "1"}  # type: ignore[attr-defined]
    environment = matrix.points(study())[0].target.environment  # type: ignore[attr-defined]
    assert environment == {"a": "1", "b": "2.5"}, "environments are put together"
    assert point.load_s == 6


ROWS = {"rows": "@users.csv", "hold_s": 4}


def test_columns_of_data_rows_are_left_to_each_request():
    properties = {**ROWS, "body": '{"name": "{name}", "n": {users}}', "expect": "$.name == {name}", "form": "a={name}"}
    target = {"kind": "url", "url": "http://127.0.0.1:9/{name}?n={users}"}
    [point] = matrix.points(study(properties=properties, target=target, factors={"users": [2]}))
    assert point.properties["body"] == '{"name": "{name}", "n": 2}'
    assert (point.properties["expect"], point.properties["form"]) == ("$.name == {name}", "a={name}")
    assert point.target.url == "http://127.0.0.1:9/{name}?n=2"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("properties", "environment"),
    [
        ({"hold_s": 4, "body": "{name}"}, {}),
        ({**ROWS, "content_type": "{name}"}, {}),
        (ROWS, {"body": "{name}"}),
    ],
)
def test_what_no_row_fills_in_is_a_factor(properties, environment):
    target = {"function": "noop", "environment": environment}
    with pytest.raises(PointError, match=r"\{name\} is not a factor"):
        matrix.points(study(properties=properties, target=target, factors={"users": [2]}))


def test_a_level_may_change_the_plan_and_the_estimate():
    way = {"fork": {}, "java": {"plan": "jmx/request-rate.jmx", "run_s": "=2 * hold_s"}}
    changed = study(factors={"way": way}, target={"function": "noop"}, properties={"hold_s": 4})
    points = matrix.points(changed)
    assert [point.plan for point in points] == ["jmx/requests.jmx", "jmx/request-rate.jmx"]
    assert [point.load_s for point in points] == [4, 8]


def test_a_property_has_to_be_of_every_plan_it_goes_to():
    way = {"fork": {}, "java": {"plan": "jmx/face-blur-http.jmx"}}
    with pytest.raises(PointError, match=r"jmx/face-blur-http\.jmx has no property 'body'") as caught:
        matrix.points(study(factors={"way": way}, target={"function": "noop"}, properties={"body": "x"}))
    assert caught.value.place == ("properties", "body")


ON = {name: {"on": {"target": {"environment": {"a": name}}}} for name in ("one", "two")}
PLANS = {name: {"on": {"plan": "jmx/requests.jmx"}} for name in ("one", "two")}
LOAD = {"users": [1, 3], "load": {"light": {}, "heavy": {"properties": {"users": 50}}}}
SIZE = {"size": {"big": {"target": {"replicas": 5}}}, "target.replicas": [1, 2]}


@pytest.mark.parametrize(
    ("factors", "place", "words"),
    [
        (LOAD, ("load", "heavy", "properties", "users"), "users=1 and load=heavy both set properties.users; a point"),
        (SIZE, ("target.replicas", 0, "target", "replicas"), "size=big and target.replicas=1 both set target.replicas"),
        (ON, ("two", "on", "target", "environment", "a"), "one=on and two=on both set target.environment.a"),
        (PLANS, ("two", "on", "plan"), "both set plan"),
    ],
)
def test_two_factors_do_not_set_the_same(factors, place, words):
    with pytest.raises(PointError, match=words) as caught:
        matrix.points(study(factors=factors, target={"function": "noop"}, properties={}, run_s=1))
    assert caught.value.place == ("factors", *place)


def test_two_factors_set_variables_of_one_environment():
    factors = {name: {"on": {"target": {"environment": {name: 1}}}} for name in ("one", "two")}
    [point] = matrix.points(study(factors=factors, target={"function": "noop"}, properties={}))
    assert point.target.environment == {"one": "1", "two": "1"}  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("plan", "properties", "is_right"),
    [
        ("requests", {}, False),
        ("tasks", {"mode": "push"}, False),
        ("tasks", {}, True),
        ("video-per-user", {}, True),
    ],
)
def test_the_embedded_target_is_not_of_every_plan(plan, properties, is_right):
    changed = {"plan": f"jmx/{plan}.jmx", "properties": properties, "factors": {"way": {"only": {}}}, "run_s": 1}
    if is_right:
        assert matrix.points(study(target={"kind": "embedded"}, **changed))
        return
    with pytest.raises(PointError, match=r"but target\.kind embedded serves only its own") as caught:
        matrix.points(study(target={"kind": "embedded"}, **changed))
    assert caught.value.place == ("target", "kind")


@pytest.mark.parametrize(
    ("value", "text"), [(True, "true"), (4.0, "4"), (2.5, "2.5"), (3, "3"), ("a b", "a b"), (1e300, "1e+300")]
)
def test_values_as_jmeter_has_them(value, text):
    assert as_text(value) == text


def test_each_repetition_is_shuffled_anew_and_the_seed_says_how():
    points = matrix.points(study())
    runs = matrix.schedule(points, 3, 7, "randomised")
    rounds = [[point.id for point, number in runs if number == repetition] for repetition in (1, 2, 3)]
    assert [number for _, number in runs] == [1] * 6 + [2] * 6 + [3] * 6
    assert all(sorted(each) == sorted(point.id for point in points) for each in rounds)
    assert len({tuple(each) for each in rounds}) == 3
    assert matrix.schedule(points, 3, 7, "randomised") == runs
    assert matrix.schedule(points, 3, 8, "randomised") != runs
    # More repetitions leave the order of those before them as it was.
    assert matrix.schedule(points, 4, 7, "randomised")[: len(runs)] == runs
    assert matrix.schedule(points, 2, 7, "as-listed") == [(point, number) for number in (1, 2) for point in points]


@pytest.mark.parametrize(
    ("only", "ids"),
    [
        (["way=fork"], ["way=fork,users=1", "way=fork,users=2", "way=fork,users=3"]),
        (["users=1,3", "way=java"], ["way=java,users=1", "way=java,users=3"]),
        (["users=1", "users=2", "way=java"], ["way=java,users=1", "way=java,users=2"]),
    ],
)
def test_only_some_points(only, ids):
    chosen = matrix.choose(matrix.points(study()), only)
    assert [point.id for point in chosen] == ids


STUDY = study(
    target={"function": "noop"},
    properties={"hold_s": 4},
    factors={"users": [1, 2], "way": {"quick": {"properties": {"timeout_s": 1}}, "slow": {}}},
    blocks=[{"users": [1]}, {"way": ["slow"]}],
    stop={"metric": "mean_ms", "within_percent": 5, "at_most": 4},
)


def test_levels_may_hold_commas():
    loads = ["5/s for 3 s", "1/s for 1 s, to 3/s in 2 s", "9/s for 1 s, pause 2 s"]
    made = study(plan="jmx/request-rate.jmx", properties={}, target={"function": "noop"}, factors={"load": loads})
    chosen = matrix.choose(matrix.points(made), [f"load={loads[1]},{loads[0]}"])
    assert [point.factors["load"] for point in chosen] == loads[:2]


def test_properties_and_repetitions_are_overridden():
    changed = matrix.override(STUDY, Overrides({"hold_s": "9", "body": "x"}, 6))
    point = matrix.points(changed)[0]
    assert (point.properties["hold_s"], point.properties["body"]) == ("9", "x")
    assert (changed.repetitions, changed.stop.at_most) == (6, 6)
    assert STUDY.repetitions == 3 and STUDY.properties == {"hold_s": 4}


@pytest.mark.parametrize(
    ("given", "repetitions", "said"),
    [
        ({"holds": "9"}, None, "no property 'holds'; did you mean hold_s"),
        ({"hold_s": "long"}, None, "hold_s=long: hold_s must be"),
        ({"users": "9"}, None, "-Jusers: the study varies it, by its factor users; choose levels by --only"),
        ({"timeout_s": "9"}, None, "varies it, by its factor way"),
        ({}, 1, "--repetitions 1: the study's stop rule needs at least 2"),
    ],
)
def test_what_may_not_be_overridden(given, repetitions, said):
    with pytest.raises(UsageError, match=said):
        matrix.points(matrix.override(STUDY, Overrides(given, repetitions)))


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("users", "give factor=level, for example --only users=1"),
        ("user=1", "unknown factor 'user'; did you mean users\\?; allowed: users, way"),
        ("users=3", "unknown level '3' of users; allowed: 1, 2"),
        ("way=slw", "unknown level 'slw' of way; did you mean slow\\?"),
        ("users=1,3", "unknown level '3'"),
    ],
)
def test_only_names_what_there_is(word, said):
    with pytest.raises(UsageError, match=said):
        matrix.choose(matrix.points(STUDY), [word])


def test_only_what_no_block_has_leaves_nothing():
    with pytest.raises(UsageError, match="no point with users=2 way=quick"):
        matrix.choose(matrix.points(STUDY), ["users=2", "way=quick"])


@pytest.mark.parametrize(
    ("target", "settle_s"),
    [
        ({"function": "noop"}, 0),
        ({"function": "noop", "autoscale": True}, 15),
        ({"kind": "knative", "function": "noop", "from_zero": True, "min_scale": 0}, 60),
        ({"kind": "knative", "function": "noop", "from_zero": True, "min_scale": 0, "window_s": 30}, 30),
        ({"kind": "knative", "function": "noop", "min_scale": 1}, 60),
        ({"kind": "knative", "function": "noop", "min_scale": 1, "max_scale": 1}, 0),
        ({"kind": "knative", "function": "noop", "min_scale": 1, "autoscaler": "hpa"}, 300),
        ({"kind": "kserve", "function": "noop", "window_s": 30}, 30),
        ({"kind": "kserve", "function": "noop", "mode": "raw", "max_scale": 4}, 300),
        ({"kind": "kserve", "function": "noop", "mode": "raw", "max_scale": 1}, 0),
        ({"kind": "kubernetes", "function": "noop", "autoscaler": "hpa", "max_scale": 4, "window_s": 20}, 20),
        ({"kind": "kubernetes", "function": "noop", "autoscaler": "hpa", "max_scale": 1}, 0),
    ],
)
def test_the_estimate_has_the_time_until_an_autoscaler_has_settled(target, settle_s):
    [point, *_] = matrix.points(study(run_s=10, target=target))
    assert matrix.time_s([point]) == 15.5 + settle_s


def test_what_runs_took_beside_their_load_makes_the_estimate_better():
    [point, *_] = matrix.points(study(run_s=10))
    assert matrix.time_s([point, point]) == 2 * 15.5
    assert matrix.time_s([point], [9.5, 0]) == 10 + (5.5 + 9.5 + 0) / 3
    assert matrix.time_s([point], [-100]) == 0
