"""Warnings that elements of the plan did not do what they are there for, of which JMeter's rows say nothing."""

from framestorm.model.summary import Summary
from framestorm.model.units import listed, plural
from framestorm.plain import as_label

MOST_NAMED = 8


def errors(summary: Summary) -> list[str]:
    every = summary.facts.element_errors
    sentences = []
    for each in every[:MOST_NAMED]:
        so = f": {each.consequence}" if each.consequence else ""
        sentences.append(f"{each.element} failed {plural(each.n, 'time')} ({each.message}){so}; see jmeter.log.")
    more = every[MOST_NAMED:]
    if more:
        n = sum(each.n for each in more)
        sentences.append(f"{plural(len(more), 'further element')} failed {plural(n, 'time')}; see jmeter.log.")
    return sentences


def unreplaced(summary: Summary) -> list[str]:
    """Return a warning on each text that was sent in place of a value, with the labels."""
    by_text: dict[str, list[str]] = {}
    for each in summary.facts.unreplaced:
        by_text.setdefault(each.text, []).append(f"{plural(each.n, 'sample')} of {as_label(each.label)}")
    sentences = []
    for text, labels in list(by_text.items())[:MOST_NAMED]:
        why = "nothing had defined that variable"
        if "EOF" in text.upper() and "{" not in text:
            why = "a CSV data set had no row left, or a blank one"
        elif text.startswith("${__"):
            why = "JMeter has no function of that name, or not with such arguments"
        more = f" and {len(labels) - MOST_NAMED} more labels" if len(labels) > MOST_NAMED else ""
        sentences.append(f"{listed(labels[:MOST_NAMED])}{more} had the text {text} in place of a value: {why}.")
    if (left := len(by_text) - MOST_NAMED) > 0:
        sentences.append(f"{plural(left, 'further text')} had no value either: summary.json has all of them.")
    return sentences
