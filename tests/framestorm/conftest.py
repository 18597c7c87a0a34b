"""What tests of packages share: a summary made by hand, and a look at pages in a browser."""

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from framestorm.model.function_summary import FunctionSummary, ReplicaUsage
from framestorm.model.run import Record
from framestorm.model.series import Series
from framestorm.model.summary import Facts, LabelSummary, Summary, Verdict

CHROMIUM_FLAGS = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--virtual-time-budget=20000",
)  # fmt: skip


def summary_of(n: int = 0, **fields: Any) -> Summary:
    """The summary of a run of n frames without an error, with the fields that differ."""
    frames = LabelSummary("frame", n, n, 0, 0, {}, 1.0 if n else None, None, None, None, {})
    blank: dict[str, Any] = {
        "name": "a-run", "label": "frame", "verdict": Verdict("pass", 0, "met"), "criteria": [], "missing": [],
        "warnings": [], "doubts": [], "run": Record(), "load": None, "hosts": [], "losses": [], "machines": [],
        "functions": [], "facts": Facts(0, 0, None), "files": [], "series": Series(),
    }  # fmt: skip
    labels = {"frame": frames} | fields.pop("labels", {})
    return Summary(**blank | fields, labels=labels)


def own_text(page: str) -> str:
    """The page without the drawing library, which stands in a script element of its own."""
    scripts = re.findall(r"<script>.*?</script>", page, flags=re.DOTALL)
    assert len(scripts) == 2
    return page.replace(max(scripts, key=len), "")


def function_of(*replicas: dict[str, float | None], **fields: Any) -> FunctionSummary:
    """A function of which nothing is known but what is given, with its replicas."""
    names = ("name", "cores_mean", "throttled_mean", "memory_max_bytes", "received_bytes_per_s", "sent_bytes_per_s")
    made = [ReplicaUsage(**dict.fromkeys(names[1:]) | replica, name=f"r{n}") for n, replica in enumerate(replicas)]
    blank = dict.fromkeys((*names[1:], "wanted", "ready", "in_flight_max", "cores_max", "short_worst"))
    counts = {"seen": len(made), "short_s": 0.0, "lost": 0, "vanished": []}
    return FunctionSummary(**{**blank, **counts, "function": "face-blur", "replicas": made, **fields})


@pytest.fixture
def draws(tmp_path: Path) -> Callable[[Path, int], None]:
    """Assert that the page of a folder draws that many charts, on a phone and on a desk.

    The page reports on itself: every chart drawn and downloaded, no script error, nothing wider than the window. Where
    there is a choice of labels, the charts are those of the last one.
    """

    def check(made: Path, charts: int) -> None:
        probe = """<script>
          const errors = [], images = [];
          addEventListener("error", (event) => errors.push(event.message));
          addEventListener("load", () => {
            Plotly.downloadImage = (figure, options) => Plotly.toImage(figure, options).then((url) => images.push(url));
            const labels = document.querySelector("#label");
            if (labels) {
              labels.value = labels.options[labels.options.length - 1].value;
              labels.dispatchEvent(new Event("change"));
            }
            const buttons = document.querySelectorAll("figure:not([hidden]) :is(.choice, .download)");
            buttons.forEach((button) => button.click());
          });
          setInterval(() => {
            const plots = [...document.querySelectorAll("figure:not([hidden]) .plot")], root = document.documentElement;
            const drawn = plots.filter((plot) => plot.querySelector("svg.main-svg [class*=title]")).length;
            parent.postMessage(JSON.stringify({ drawn, wide: root.scrollWidth - root.clientWidth, errors,
              images: images.filter((url) => url.startsWith("data:image/svg+xml")).length }), "*");
          }, 100);
        </script>"""
        page = (made / "index.html").read_text().replace("<head>", "<head>" + probe, 1)
        (made / "probe.html").write_text(page)
        # Headless Chromium has no window narrower than 500 pixels: a frame does.
        (made / "outer.html").write_text(
            """<script>
              const said = {};
              addEventListener("message", (event) => {
                said[event.source === frames[0] ? "phone" : "desk"] = JSON.parse(event.data);
                document.title = JSON.stringify(said);
              });
            </script>
            <iframe src="probe.html" style="width:360px;height:800px"></iframe>
            <iframe src="probe.html" style="width:1500px;height:800px"></iframe>"""
        )
        command = ["chromium", *CHROMIUM_FLAGS, f"--user-data-dir={tmp_path / 'profile'}",
                   "--dump-dom", (made / "outer.html").as_uri()]  # fmt: skip
        shown = subprocess.run(command, capture_output=True, text=True, timeout=240, check=True).stdout
        title = re.search(r"<title>(.*?)</title>", shown)
        assert title, shown
        good = {"drawn": charts, "wide": 0, "errors": [], "images": charts}
        assert json.loads(title[1]) == {"phone": good, "desk": good}

    return check
