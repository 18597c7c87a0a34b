"""Each slave's part of schedules: of an Open Model Thread Group and of the throughput timers of a plan."""

import math
import re

from framestorm.hosts.division import Division, holder, number_text, parts, title
from framestorm.load import timers
from framestorm.load.fields import Fields, UnknownValueError
from framestorm.load.schedule import Step, read_schedule

# So much more than a whole number of arrivals, of which JMeter leaves out what is no whole one.
_MORE = 0.001
_FEEDBACK = re.compile(r"\$\{__tstFeedback\((?P<words>(?:[^(){}]|\$\{[^{}]*\})*)\)\}")
_CALL = re.compile(r"(?P<name>\w+)\s*\((?P<words>[^()]*)\)")


def divide_open_model(fields: Fields, division: Division) -> None:
    """Divide each step's arrivals in whole numbers, so that all slaves together send as many as one JMeter would."""
    field = holder(fields.element, "OpenModelThreadGroup.schedule")
    try:
        steps = read_schedule(fields.text("OpenModelThreadGroup.schedule"))
    except UnknownValueError as text:
        division.undivided.append(f"schedule of {fields.name}: {text} is known only during the run")
        return
    if field is None:
        return
    texts = [""] * division.slaves
    totals = [0] * division.slaves
    for number, step in enumerate(steps):
        own = [int(part) for part in parts(str(step.arrivals), division.slaves, is_whole_number=True)]
        for slave in range(division.slaves):
            # Not always the first slave has one more.
            part = own[(slave - number) % division.slaves]
            totals[slave] += part
            texts[slave] += _step_text(step, part)
    first = steps[0] if steps else None
    if first is not None and not first.is_random and first.start > 0:
        # In turn, not all slaves at once.
        waits_s = [slave / first.start for slave in range(division.slaves)]
        texts = [f"rate(0) even_arrivals({wait_s:.9f} s) {text}" for wait_s, text in zip(waits_s, texts, strict=True)]
    field.tag, field.text = "stringProp", division.reference([text.strip() for text in texts])
    division.shared(f"arrivals of {fields.name}", str(sum(totals)), [str(total) for total in totals])
    divide_seed(fields, "OpenModelThreadGroup.random_seed", division)


def _step_text(step: Step, arrivals: int) -> str:
    mean = (step.start + step.end) / 2 * step.length_s
    share = (arrivals + _MORE) / mean if mean else 0.0
    kind = "random_arrivals" if step.is_random else "even_arrivals"
    return f"rate({step.start * share:.12f}/s) {kind}({step.length_s:.9f} s) rate({step.end * share:.12f}/s) "


def divide_precise_timer(fields: Fields, division: Division) -> None:
    """Divide the arrivals of a Precise Throughput Timer's duration in whole numbers: JMeter rounds each part up."""
    try:
        rate, period_s = fields.number("throughput"), fields.number("throughputPeriod")
        lasts_s, batch = fields.number("duration"), max(1, fields.whole("batchSize", 1))
    except UnknownValueError as text:
        division.undivided.append(f"rate of {fields.name}: {text} is known only during the run")
        return
    field = holder(fields.element, "throughput")
    batches = math.ceil(round(rate / period_s / batch * lasts_s, 9)) if period_s else 0
    own = [int(part) for part in parts(str(batches), division.slaves, is_whole_number=True)]
    if field is None or not rate:
        return
    if not lasts_s or not all(own):
        whole = number_text(str(rate), is_whole_number=False) or "0"
        texts = division.divided(f"rate of {fields.name}", whole, is_whole_number=False)
    else:
        texts = [f"{(part - 1e-6) * batch / lasts_s * period_s:.9f}" for part in own]
        counts = [str(part * batch) for part in own]
        division.shared(f"arrivals of {fields.name}", str(batches * batch), counts)
    field.tag, field.text = "stringProp", division.reference(texts)
    divide_seed(fields, "randomSeed", division)


def divide_seed(fields: Fields, name: str, division: Division) -> None:
    """A seed of its own for each slave: with the same, all would send at the same times."""
    field, text = holder(fields.element, name), fields.raw(name).strip()
    if field is not None and re.fullmatch(r"-?\d+", text) and int(text):
        seeds = [str(int(text) + slave) for slave in range(division.slaves)]
        field.tag, field.text = "stringProp", division.reference(seeds)


def divide_feedback(fields: Fields, division: Division) -> None:
    """Divide the users of a pool that follows a timer: its first ones, and the most of them."""

    def divided(call: re.Match[str]) -> str:
        text = fields.known.value(call["words"])
        if text is None:
            division.undivided.append(f"users of {title(fields.element)}: {call[0]} is known only during the run")
            return call[0]
        words = [word.strip() for word in text.split(",")]
        for place, what in ((1, "first users"), (2, "most users")):
            number = number_text(words[place], is_whole_number=True) if place < len(words) else None
            if number and number != "0":
                name = f"{what} of {title(fields.element)}"
                words[place] = division.reference(division.divided(name, number, is_whole_number=True, least=1))
        return f"${{__tstFeedback({','.join(words)})}}"

    for field in fields.element:
        if field.text:
            field.text = _FEEDBACK.sub(divided, field.text)


def divide_property(name: str, text: str, division: Division) -> None:
    """Divide the schedule that a property gives to a plug-in, in place of that in the plan."""
    divided = _divided_profile if name.endswith("load_profile") else _divided_spawns
    texts = divided(name, text, division)
    if texts is None:
        division.undivided.append(f"{name}: {text}")
        return
    for properties, own in zip(division.properties, texts, strict=True):
        properties[name] = " ".join(own)


def _divided_spawns(name: str, text: str, division: Division) -> list[list[str]] | None:
    """Return each slave's calls of an Ultimate Thread Group's schedule; None if one is not known.

    A call without users would still start one: such calls are the last ones, which the slave does not reach.
    """
    texts: list[list[str]] = [[] for _ in range(division.slaves)]
    for number, call in enumerate(_CALL.finditer(text), 1):
        first, *others = (word.strip() for word in call["words"].split(","))
        users = number_text(first, is_whole_number=True)
        if users is None:
            return None
        parts_of = division.divided(f"users of {name}, row {number}", users, is_whole_number=True)
        for own, part in zip(texts, parts_of, strict=True):
            own.append(f"{call['name']}({','.join((part, *others))})")
    for own in texts:
        own.sort(key=lambda call: "(0," in call)
    return texts


def _divided_profile(name: str, text: str, division: Division) -> list[list[str]] | None:
    """Return each slave's rows of a Shaping Timer's schedule; None if one is not known.

    A step becomes its rates, each of which is divided: its increment on a slave would make another number of them.
    """
    texts: list[list[str]] = [[] for _ in range(division.slaves)]
    number = 0
    for call in _CALL.finditer(text):
        try:
            rows = list(timers.profile(call[0]))
        except UnknownValueError:
            return None
        for start, end, length_s in rows:
            number += 1
            different = (start,) if start == end else (start, end)
            ends = [number_text(str(rate), is_whole_number=True) for rate in different]
            if None in ends:
                return None
            shares = [
                division.divided(f"{what} of {name}, row {number}", rate or "0", is_whole_number=True)
                for what, rate in zip(("rate at the start", "rate at the end"), ends, strict=False)
            ]
            length = f"{length_s:.0f}s" if length_s == int(length_s) else str(length_s)
            for own, rates in zip(texts, zip(*shares, strict=True), strict=True):
                own.append(f"{'const' if len(rates) == 1 else 'line'}({','.join(rates)},{length})")
        if not rows:
            return None
    return texts
