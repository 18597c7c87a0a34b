"""The first commands of README, of CI and of finding a rate, run as a reader would on a new machine, with less load."""

import re
import socket
import subprocess
import sys
from collections.abc import Iterator

import pytest

from framestorm import paths
from framestorm.machine import wait_until
from tests.docs.test_pages import shown
from tests.runs import RunSh

SERVER = "python3 -m http.server 8080 --bind 127.0.0.1 &"
TOKEN = "export API_TOKEN=secret"  # noqa: S105 - that of an example
RUNS = """\
./run.sh -t jmx/requests.jmx -Jurl=http://127.0.0.1:8080/ -Jmethod=GET -Jusers=4 -Jhold_s=10 -Jheaders='Authorization: Bearer ${env:API_TOKEN}' -Jexpect=README.md --fail-if 'p95 > 200 ms' --fail-if 'errors > 1 %' -o dashboards/a
./run.sh -t jmx/request-rate.jmx -Jurl=http://127.0.0.1:8080/ -Jmethod=GET -Jrate_per_s=50 -Jhold_s=10 -Jexpect=README.md --fail-if 'p95 > 200 ms'
"""  # noqa: E501
COMPARE = "./run.sh compare dashboards/a dashboards/b"


@pytest.fixture
def url() -> Iterator[str]:
    """The address of the server that stands for a function, on a port that nothing else holds."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    words = SERVER.replace("8080", port).split()[1:-1]
    with subprocess.Popen([sys.executable, *words], cwd=paths.ROOT, stderr=subprocess.DEVNULL) as server:
        try:
            assert wait_until(lambda: _answers(int(port)), 20)
            yield f"http://127.0.0.1:{port}/"
        finally:
            server.terminate()


def _answers(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def test_first_commands(run_sh: RunSh, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*TOKEN.removeprefix("export ").split("="))
    in_ci, against = shown("ci.md")
    for name, command in zip("abc", [*RUNS.splitlines(), in_ci], strict=True):
        # How fast the answers are depends on what else this machine does.
        words = command.replace("http://127.0.0.1:8080/", url).replace("200 ms", "20 s").partition(" -o ")[0]
        words = words.replace("rate_per_s=50", "rate_per_s=10")
        done = run_sh(words, "-Jhold_s=2", "-Jramp_s=0", out=name)
        assert done.json("summary.json")["verdict"]["word"] == "pass"
        assert "secret" not in done.text("run.json") + done.text("index.html") + done.text("jmeter.log")
    words = against.replace("http://127.0.0.1:8080/", url).partition(" -o ")[0]
    for name in ("d", "e"):
        done = run_sh(words, "-Jhold_s=2", "-Jramp_s=0", out=name, status=(0, 3))
    assert done.json("summary.json")["against"]["baseline"] == "d"
    assert (run_sh.folder / "e" / "baseline" / "index.html").exists()
    folders = COMPARE.replace("dashboards/", f"{run_sh.folder}/")
    assert run_sh(folders, out="compared", status=(0, 3)).text("comparison.json")


def test_examples_of_each_ci(run_sh: RunSh, url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command in them is a run that could begin, or makes the history of runs."""
    monkeypatch.setenv("API_TOKEN", "secret")
    text = (paths.ROOT / "docs" / "ci.md").read_text()
    examples = "\n".join(re.findall(r"^```(?:yaml|groovy)\n(.*?)^```", text, flags=re.DOTALL | re.MULTILINE))
    # A command ends with its line, or in folded YAML before the next key.
    commands = re.findall(r"\./run\.sh .*?(?=\n(?! +-))", examples, flags=re.DOTALL)
    variables = r"\$\{\{ github.run_id \}\}|\$CI_PIPELINE_ID|\$BUILD_NUMBER"
    kinds = []
    for command in commands:
        words = re.sub(variables, "7", " ".join(command.split()))
        words = re.sub(r"\$\{\{ vars.FUNCTION_URL \}\}|\$FUNCTION_URL", url, words)
        # Jenkins has it between quotation marks.
        words = words.removesuffix('"') if words.count('"') % 2 else words
        if words.startswith("./run.sh history"):
            kinds.append("history")
            done = run_sh(words.replace("dashboards/ci", str(run_sh.folder)), out="", status=1)
            assert "there is no run in" in done.stderr
        else:
            kinds.append("run")
            words = words.replace("$GITHUB_STEP_SUMMARY", str(run_sh.folder / "summary.md"))
            done = run_sh(re.sub(r" -o \S+", "", words), "--check", out=f"checked-{len(kinds)}")
            assert f"target: {url}" in done.stdout
    assert kinds == ["run", "history"] * 3


def test_finding_a_rate(run_sh: RunSh, url: str) -> None:
    page = (paths.ROOT / "docs" / "finding-a-rate.md").read_text()
    study, payloads = re.findall(r"^```yaml\n(.*?)^```", page, flags=re.DOTALL | re.MULTILINE)
    with_payloads = re.sub(r"factors:\n  rate_per_s: .*\n", payloads.replace("[20, 40]", "[20, 40, 60, 80]"), study)
    for name, text in {"rates": study, "payloads": with_payloads}.items():
        (run_sh.folder / name).mkdir()
        (run_sh.folder / name / "study.yml").write_text(text.replace("http://127.0.0.1:8080/", url))
        runs = 24 if name == "payloads" else 12
        assert f"{runs} runs" in run_sh("study", str(run_sh.folder / name), "--dry-run", out="").stdout
    rate, search, ladder, staircase, at_random, users, ramp, spike = (
        command.replace("http://127.0.0.1:8080/", url)
        for command in shown("finding-a-rate.md")
        if "--over target." not in command  # test_openfaas_pages.py has it
    )
    run_sh(rate.replace("200 ms", "20 s"), "-Jrate_per_s=10", "-Jhold_s=2", out="rate")
    short = ("--over", "rate_per_s=20..30", "--slo", "p95 < 20 s", "--probe-s", "2", "-Jhold_s=2", "-Jramp_s=0")
    found = run_sh(search.replace("200 ms", "20 s"), *short, out="find", status=(0, 3)).json("find.json")
    assert found["state"] == "complete"
    assert found["objectives"] == ["p95 < 20 s"], "one that is given twice counts once"
    capacity = run_sh(ladder, "--over", "users=1..2", "--probe-s", "1", out="ladder").json("find.json")["answer"][
        "capacity"
    ]
    assert capacity["value"] > 0
    checked = run_sh(staircase, "--check", out="staircase-checked").stdout
    assert "load: arrivals: 10/s for 5 s, to 60/s in 10 s, 60/s for 5 s, 10/s for 5 s\n" in checked
    checked = run_sh(users, "--check", out="users-checked").stdout
    assert "load: users: 0 to 20 users in 5 s, 20 users for 5 s, 60 users for 5 s, to 5 users in 5 s\n" in checked
    (reached,) = run_sh(at_random, "-Jhold_s=2", out="random").json("summary.json")["reached"]
    assert reached["asked"] == reached["sent"] != 80 and reached["is_kept"]
    for name, command in (("ramp", ramp), ("spike", spike)):
        schedule = "-Jschedule=rate(5/s) random_arrivals(2 s) rate(9/s)"
        checked = run_sh(command, "--check", out=f"{name}-checked").stdout
        assert "property: schedule=rate(5/s) random_arrivals(" in checked
    done = run_sh(ramp, schedule, out="ramp")
    assert done.json("summary.json")["labels"]["request"]["n"] == 14
    assert "from 5 to 9/s in 2 s" in done.text("index.html")
