"""A sink that is slow or gone costs the run nothing."""

from threading import Event

import pytest

from framestorm.sinks import sink
from framestorm.sinks.sink import Sink, Update
from tests.framestorm.sinks.updates import BEGAN_S, interval_of, update


class Slow(Sink):
    """Takes nothing until it is released."""

    def __init__(self) -> None:
        self.is_released = Event()
        self.seconds: list[float] = []
        super().__init__("slow")

    def take(self, update: Update) -> None:
        self.is_released.wait()
        self.seconds.append(update.now_s)


def test_a_sink_gets_each_update_in_order() -> None:
    quick = Slow()
    quick.is_released.set()
    for second in range(sink.MAX_WAITING):
        quick.put(update(second))
    sink.finish([quick])
    assert [each - BEGAN_S for each in quick.seconds] == list(range(sink.MAX_WAITING)) and quick.n_missed == 0


def test_a_slow_sink_misses_intervals_which_are_counted() -> None:
    slow = Slow()
    # One that it works at, as many as may wait, and those without room, of 3 intervals each.
    for second in range(sink.MAX_WAITING + 11):
        slow.put(update(second, *(interval_of(second, 5.0, label=label) for label in "abc")))
    assert slow.n_missed in {30, 33}  # its thread may not have taken the first one yet
    slow.is_released.set()
    sink.finish([slow])
    assert len(slow.seconds) == sink.MAX_WAITING + 11 - slow.n_missed // 3


def test_a_sink_that_hangs_does_not_hold_up_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a limit the test does not come to its end."""
    monkeypatch.setattr(sink, "END_WITHIN_S", 0.05)
    hanging, full = Slow(), Slow()
    hanging.put(update(1, interval_of(1, 5.0)))
    for second in range(sink.MAX_WAITING + 2):
        full.put(update(second))
    sink.finish([hanging, full])
    assert hanging.seconds == full.seconds == []
    hanging.is_released.set()
    full.is_released.set()


class Faulty(Sink):
    """Fails at each second update."""

    def __init__(self) -> None:
        self.n_taken = 0
        super().__init__("faulty")

    def take(self, update: Update) -> None:
        self.n_taken += 1
        if self.n_taken % 2:
            raise KeyError("a label")


class FaultyAtItsEnd(Sink):
    """Takes all, and fails once nothing more comes."""

    def take(self, update: Update) -> None:
        pass

    def end(self) -> None:
        raise KeyError("a label")


def test_a_fault_of_a_sink_is_said_once_and_ends_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    faulty = Faulty()
    for second in range(4):
        faulty.put(update(second, interval_of(second, 5.0)))
    sink.finish([faulty])
    assert (faulty.n_taken, faulty.n_intervals, faulty.n_missed) == (4, 4, 2)
    assert capsys.readouterr().err == "note: faulty: KeyError: 'a label'; the run goes on\n"


def test_a_fault_at_the_end_of_a_sink_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    sink.finish([FaultyAtItsEnd("faulty")])
    assert capsys.readouterr().err == "note: faulty: KeyError: 'a label'; the run goes on\n"
