"""index.html: the summary as one page that needs nothing else, neither the network nor a server."""

from framestorm.model import cause, units
from framestorm.model.activation import Activation
from framestorm.model.criteria import ALL, USER
from framestorm.model.function_summary import Range
from framestorm.model.goodput import Goodput
from framestorm.model.metric import Metric, metric, unit
from framestorm.model.run import Target
from framestorm.model.sample import FIGURE_WORDS
from framestorm.model.summary import LabelSummary, Summary, Times
from framestorm.plain import as_label
from framestorm.report import overview
from framestorm.report.charts import charts
from framestorm.report.document import render
from framestorm.report.load_words import load_in_words
from framestorm.results.hosts import share_text
from framestorm.stats.estimate import Ends, Estimate

COLUMNS = {"mean": "mean", "p50": "median", "p90": "p90", "p95": "p95", "p99": "p99", "min": "min", "max": "max"}
WITH_INTERVAL = ("p50", "p95", "p99")
# What a target is; one that is just a URL needs no word, other platforms have their name.
TARGET_WORDS = {
    "url": "",
    "embedded": "embedded: the function's own server, started on the generator",
    "none": "what the plan itself calls or runs",
}
SERIES_NAMES = {
    "rtt": "response time",
    "warm": "response time, warm",
    "cold": "response time, cold",
    "outside": "outside the handler",
    "latency": "time to the first byte",
    "connect": "time to connect",
}
MAX_GROUPS = 3  # labels with a group of rows for each, and not a row in each group
MOSTLY = 0.5  # of the time
MAX_REPLICAS = 20  # with a row of their own
MAX_TRACED = 10  # labels whose traces are on the page


def page_html(summary: Summary) -> str:
    """Return the page, made of the summary and nothing else."""
    first = overview.overview(summary)
    return render(
        "run.html.j2",
        [*([first] if first else []), *charts(summary)],
        filters={
            "share": share_text,
            "figure": figure_text,
            "interval": interval_text,
            "success_interval": _success_interval,
            "goodput_interval": _goodput_interval,
            "rate_interval": rate_interval,
            "of_figure": _of_figure,
            "figure_title": _figure_title,
            "cause": cause.describe,
            "as_label": as_label,
            "range": _range,
            "after": _after,
            "moment": _moment,
            "path_words": _path_words,
        },
        s=summary,
        run=summary.run,
        main=summary.main,
        users=summary.users,
        overview=first,
        load_words=load_in_words(summary),
        error_words=overview.errors_in_words(summary),
        criteria=overview.criteria(summary),
        key_figures=_key_figures(summary),
        target_kind=_target_kind(summary.run.target, summary.run.url),
        max_replicas=MAX_REPLICAS,
        max_traced=MAX_TRACED,
        all_label=ALL,
        times=_times(summary),
        definitions=_definitions(summary),
        verdict_word=summary.verdict.title,
        columns=COLUMNS,
        with_interval=WITH_INTERVAL,
        command=summary.run.command,
    )


def _key_figures(summary: Summary) -> list[tuple[str, str, str]]:
    """Name, figure and interval of each key figure; of an open load what was asked for beside what was answered."""
    main, rates = summary.main, summary.facts.rates
    rtt = main.times.get("rtt")
    figures = [(f"{summary.unit.capitalize()}s", units.count(main.n), "")]
    if summary.users:
        figures.append(("Users", units.count(summary.users.n), ""))
    if main.success is not None:
        figures.append(("Success rate", units.percent(main.success), _success_interval(main)))
    if (goodput := summary.goodput) and goodput.share is not None:
        figures.append(("Goodput", units.percent(goodput.share), _goodput_interval(goodput)))
    if rates.asked_per_s is not None:
        most = rates.asked_most_per_s or 0.0
        # With a ramp-up the mean is below the rate that people set.
        up_to = f"up to {units.rate(most)}" if most > rates.asked_per_s else ""
        figures.append(("Asked for", units.rate(rates.asked_per_s), up_to))
        answered = units.NONE if rates.answered_per_s is None else units.rate(rates.answered_per_s)
        ends = rates.answered_low_per_s, rates.answered_high_per_s
        figures.append(("Answered", answered, _rate_ends(rates.answered_per_s, ends)))
    elif main.rate_per_s is not None:
        figures.append(("Throughput", units.rate(main.rate_per_s), rate_interval(main)))
    for name, figure in (("Median response", rtt.p50), ("p95 response", rtt.p95)) if rtt and rtt.n else ():
        figures.append((f"{name} time", figure_text(figure), interval_text(figure)))
    if rates.asked_per_s is not None and rates.in_flight is not None:
        figures.append(("In flight, at most", units.count(rates.in_flight), ""))
    return figures


def _times(summary: Summary) -> list[tuple[str, list[tuple[str, Times]]]]:
    """The rows of the table of times: by label the series, or of several labels by series the labels, to compare them.

    Times within a response time that are all 0 have no row: a label whose connections are kept alive has no time to
    connect.
    """
    labels = list(summary.labels.values())
    shown = [
        (as_label(each.label), "whole process" if each.label == USER else _series_title(name), times)
        for each in labels
        for name, times in each.times.items()
        if name == "rtt" or each.label == USER or times.max is None or times.max.value > 0
    ]
    groups: dict[str, list[tuple[str, Times]]] = {}
    for label, name, times in shown:
        group, row = (label, name) if len(labels) <= MAX_GROUPS else (name, label)
        groups.setdefault(group, []).append((row, times))
    return list(groups.items())


def _series_title(name: str) -> str:
    """Return a series of times in words, with the name that criteria know if its words are others."""
    column = f"{name}_ms"
    return _figure_title(column) if column in FIGURE_WORDS else SERIES_NAMES.get(name, name)


def _figure_title(name: str) -> str:
    """Return the title of a figure with its name in samples.csv, or the name alone."""
    return f"{FIGURE_WORDS[name][0]} ({name})" if name in FIGURE_WORDS else name


def _definitions(summary: Summary) -> dict[str, str]:
    """Return the definitions of the figures in the tables that have one, by their titles."""
    names = [f"{name}_ms" for each in summary.labels.values() for name in each.times]
    names += [name for each in summary.labels.values() for name in each.figures]
    return {FIGURE_WORDS[name][0]: FIGURE_WORDS[name][1] for name in names if name in FIGURE_WORDS}


def figure_text(figure: Estimate | None, *, is_whole: bool = False) -> str:
    """Return a statistic of times; `is_whole`: these were taken in whole ms, as JMeter's Latency and Connect."""
    if figure is None:
        return units.NONE
    text = units.duration(round(figure.value) if is_whole else figure.value)
    return ("> " if figure.bound == "lower" else "") + text + ("†" if figure.few else "")


def _of_figure(figure: Estimate | None, name: str) -> str:
    """Return a statistic of a further figure that is not a time, in the unit that its name ends in."""
    text = Metric(name, unit(name), name).text(figure.value if figure else None)
    return text + ("†" if figure and figure.few else "")


def interval_text(figure: Estimate | None) -> str:
    """Return a percentile's interval; an open end where the sample is too small or cut off there."""
    if figure is None or figure.few:
        return ""
    return units.ends(*(None if end is None else units.duration(end) for end in (figure.low, figure.high)))


def _goodput_interval(goodput: Goodput) -> str:
    if goodput.low is None or goodput.high is None:
        return ""
    return units.ends(units.percent(goodput.low), units.percent(goodput.high))


def _success_interval(label: LabelSummary) -> str:
    if label.success_low is None or label.success_high is None:
        return ""
    return units.ends(units.percent(label.success_low), units.percent(label.success_high))


def rate_interval(label: LabelSummary) -> str:
    """Return the interval of the rate of samples without error; empty if it has none."""
    return _rate_ends(label.rate_per_s, (label.rate_low_per_s, label.rate_high_per_s))


def _rate_ends(per_s: float | None, ends: Ends) -> str:
    return "" if per_s is None else metric("served_per_s").ends_text(per_s, *ends)


def _target_kind(target: Target | None, url: str | None) -> str:
    if target is None or (target.kind == "none" and url):
        return ""
    settings = [f"{name} {text}" for name, text in target.settings.items()]
    words = [word for word in (TARGET_WORDS.get(target.kind, target.kind), *settings) if word]
    return f"({', '.join(words)})" if words and url else ", ".join(words)


def _path_words(summary: Summary) -> str:
    """Return what of the run's response time the parts of its path are, as far as the calibration knows them."""
    calibration, rtt = summary.calibration, summary.main.times.get("rtt")
    shares = [each.activator_share for each in summary.functions if each.activator_share is not None]
    if calibration is None or rtt is None or rtt.p50 is None or not rtt.p50.value:
        return ""
    words, on_path = "", {part.name for part in calibration.parts}
    if shares:
        words = f"During the load, requests went through the activator for {units.percent(shares[0])} of the time. "
        on_path -= {"activator"} if shares[0] < MOSTLY else set()
    parts = [part for part in calibration.parts if part.adds and part.name in on_path]
    if not parts:
        return words
    added_ms = sum(part.adds.value for part in parts if part.adds)
    names, share = units.listed([part.name for part in parts]), units.percent(added_ms / rtt.p50.value)
    median, are = units.duration(rtt.p50.value), "is" if len(parts) == 1 else "are"
    return f"{words}Of the run's median, {median}, {names} {are} about {units.duration(added_ms)} ({share})."


def _moment(since_ms: float) -> str:
    """Return a moment by its time since a start; what was before that is said to be."""
    return units.duration(since_ms) if since_ms >= 0 else f"{units.duration(-since_ms)} before"


def _after(activation: Activation, step: str) -> str:
    """Return how long after a replica was asked for it came to a step."""
    at_ms = getattr(activation, f"{step}_ms")
    return units.NONE if at_ms is None else units.duration(round(at_ms - activation.asked_ms))


def _range(ends: Range | None) -> str:
    if ends is None:
        return units.NONE
    return str(ends.min) if ends.min == ends.max else f"{ends.min} {units.NONE} {ends.max}"
