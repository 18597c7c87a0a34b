from framestorm.comparison.contrast import Contrast, Side
from framestorm.comparison.judgement import judge, parse
from framestorm.comparison.repetitions import over_repetitions

LIMIT = parse("mean 10 %")


def slower(point: int, new: list[float]) -> tuple[str, Contrast]:
    evidence = over_repetitions([99.0, 100.0, 101.0], new)
    return "B", Contrast("mean_ms", Side(100.0), Side(new[1]), evidence, "", point=str(point))


def test_what_shows_alone_may_not_show_among_many() -> None:
    """A regression by its interval, of which there is one in so many by chance."""
    alone = judge([LIMIT], [slower(0, [116.0, 118.0, 120.0])])
    among = judge([LIMIT], [slower(n, [116.0, 118.0, 120.0] if n == 0 else [99.0, 100.0, 101.0]) for n in range(40)])
    assert [each.state for each in alone] == ["regression"]
    assert among[0].state == "undecided"
    assert among[0].as_json()["why"] == "alone it would be a regression, but not among so many judgements"
    assert {(each.state, each.as_json()["why"]) for each in among[1:]} == {("within", None)}
