"""Which samples of a label are worth a look in a tracing system."""

from pathlib import Path

from framestorm.model.traced import TracedSample
from framestorm.results.table import read_table
from framestorm.results.traces import MAX_SLOWEST, read_traces

START_MS = 1_790_000_000_000.0


def test_the_slowest_and_the_first_of_each_cause(tmp_path: Path) -> None:
    rows = [f"request,{START_MS + n},{n}.0,true,,{n:032x}" for n in range(1, 9)]
    rows += [f"request,{START_MS + n},{n}.0,false,{cause},{n:032x}" for n, cause in
             ((11, "reset"), (12, "status-500"), (13, "status-500"), (14, "status-500"))]  # fmt: skip
    rows += [f"request,{START_MS + 20},900.0,true,,"]
    (tmp_path / "samples.csv").write_text("\n".join(["label,start_ms,rtt_ms,ok,cause,trace_id", *rows, ""]))
    traces = read_traces(read_table(tmp_path / "samples.csv"))
    assert traces is not None
    assert [sample.rtt_ms for sample in traces.slowest] == [8.0, 7.0, 6.0, 5.0, 4.0][:MAX_SLOWEST]
    assert traces.slowest[0] == TracedSample(f"{8:032x}", START_MS + 8, 8.0)
    assert [(sample.cause, sample.rtt_ms) for sample in traces.failed] == [
        ("status-500", 12.0), ("status-500", 13.0), ("reset", 11.0)
    ]  # fmt: skip


def test_without_ids_there_is_nothing_to_look_up(tmp_path: Path) -> None:
    (tmp_path / "samples.csv").write_text(f"label,start_ms,rtt_ms,ok,cause\nrequest,{START_MS},1.0,true,\n")
    assert read_traces(read_table(tmp_path / "samples.csv")) is None
