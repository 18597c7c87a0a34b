"""What became of the rules that may end the load before its time: a judgement of each --stop-if, and notes."""

from dataclasses import replace

from framestorm.model import stop_rule, units
from framestorm.model.criteria import EACH
from framestorm.model.judgement import Judgement
from framestorm.model.metric import quoted
from framestorm.model.run import Decision, Record

NEVER = "never true"


def stop_judgements(record: Record, label: str) -> list[Judgement]:
    """Judge each --stop-if as a criterion: it failed if it ended the load."""
    judged = []
    for rule in stop_rule.of_run(record, label):
        if rule.option != stop_rule.STOP_IF:
            continue
        of_rule = vars(rule.criterion) | {"text": rule.text}
        passed = Judgement(**of_rule, state="passed", measured=NEVER, value=None, bound=None, why="")
        decision = record.decision
        if decision is None or (decision.option, decision.text) != (rule.option, rule.text):
            judged.append(passed)
            continue
        why = f"{stop_sentence(decision, record)}, and the run has failed"
        judged.append(
            replace(passed, state="failed", measured=decision.measured, value=decision.value, bound="exact", why=why)
        )
    return judged


def stop_sentence(decision: Decision, record: Record) -> str:
    """Say which rule ended the load, when, and what was measured."""
    after = units.duration(max(0, round(decision.at_ms - (record.started_ms or decision.at_ms), -2)))
    of = f" for {quoted(decision.label)}" if decision.text.startswith(EACH) else ""
    rule = f"{decision.option} '{decision.text}'"
    return f"{rule} ended the load {after} after the start of the run: measured {decision.measured}{of}"


def stop_notes(record: Record) -> list[str]:
    """Return a note on each --stop-when: it ended the load, or why it did not."""
    decision, notes = record.decision, []
    for text in record.stop_when:
        if decision is not None and (decision.option, decision.text) == (stop_rule.STOP_WHEN, text):
            notes.append(f"{stop_sentence(decision, record)}. The run was long enough, and is judged as usual.")
        elif decision is None:
            notes.append(
                f"{stop_rule.STOP_WHEN} '{text}' did not end the load: by its end the figure was not known so well, or "
                "still changed. Let the run last longer, or allow a wider interval."
            )
    return notes
