"""Notes on names with several addresses: clients do not spread their requests over the addresses."""

from framestorm.model.summary import Summary
from framestorm.model.units import count, listed, plural


def names(summary: Summary) -> list[str]:
    """Return a note on each name with several addresses: how many requests each of them got."""
    sentences = []
    asked = {name.name: name for name in summary.run.names}
    for name in dict.fromkeys((*asked, *summary.facts.requests_by_address)):
        sent = summary.facts.requests_by_address.get(name, {})
        every = dict.fromkeys((*(asked[name].addresses if name in asked else ()), *sent))
        if len(every) < 2:
            continue
        if not sent:
            sentences.append(f"Before the load, {asked[name].before_load}.")
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
