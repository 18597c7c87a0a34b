"""What names with several addresses mean for a run: clients do not spread their requests over them."""

from framestorm.model.run import Name
from framestorm.model.summary import Summary
from framestorm.model.units import count, listed, plural


def before_load(name: Name) -> str:
    """The addresses of a name before the load, and which of them requests will go to."""
    every = list(name.addresses)
    refusing = [f"{address} ({why})" for address, why in name.addresses.items() if why]
    first = next((address for address, why in name.addresses.items() if not why), None)
    if not refusing:
        return f"{name.name} has {len(every)} addresses, {listed(every)}: all requests go to {first}, the first of them"
    takes = "takes" if len(refusing) == 1 else "take"
    said = f"{len(refusing)} of {len(every)} addresses of {name.name} {takes} no connection: {listed(refusing)}"
    if first is None:
        return said
    if name.is_first_only:
        return f"{said}; Java's own HTTP client tries only {every[0]}"
    before = every[: every.index(first)]
    tries = f", and each new connection tries {listed(before)} first" if before else ""
    return f"{said}; all requests go to {first}{tries}"


def names(summary: Summary) -> list[str]:
    """A note on each name with several addresses: how many requests each of them got."""
    sentences = []
    asked = {name.name: name for name in summary.run.names}
    for name in dict.fromkeys((*asked, *summary.facts.requests_by_address)):
        sent = summary.facts.requests_by_address.get(name, {})
        every = dict.fromkeys((*(asked[name].addresses if name in asked else ()), *sent))
        if len(every) < 2:
            continue
        if not sent:
            sentences.append(f"Before the load, {before_load(asked[name])}.")
            continue
        got = listed([f"{address} got {plural(sent[address], 'request')}" for address in every if address in sent])
        why = asked[name].addresses if name in asked else {}
        none = [
            address + (f" ({why[address]} before the load)" if why[address] else "")
            for address in every
            if address not in sent
        ]
        more = f", and {listed(none)} none" if none else ""
        sentences.append(f"Of the {count(len(every))} addresses of {name}, {got}{more}.")
    return sentences
