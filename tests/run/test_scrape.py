"""The target's own figures, read while a real run goes on."""

from tests.runs import RunSh
from tests.stand_in import StartServer

METRICS = b'# TYPE jobs_waiting gauge\njobs_waiting{queue="a"} 12\n# TYPE jobs_done_total counter\njobs_done_total 5\n'


def test_a_series_of_the_target_fails_a_run(run_sh: RunSh, stand_in: StartServer) -> None:
    url, away = stand_in({"body": b"ok"}).url, "http://127.0.0.1:9/metrics"
    text = {"raw": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n" + METRICS}
    # The last answers are those of a target that is too slow: no scrape after the first ones.
    target = stand_in(*[text] * 12, *[{"delay_s": 60.0}] * 60).url
    load = ("-t", "jmx/requests.jmx", f"-Jurl={url}", "-Jusers=2", "-Jramp_s=0", "-Jhold_s=13")
    criteria = ("--fail-if", "jobs_waiting max > 8", "--fail-if", 'jobs_waiting{queue="a"} last > 12')
    refused = run_sh(*load, "--scrape", away, *criteria, out="away", status=2)
    assert f"--scrape {away}: it cannot be reached" in refused.stderr and not refused.folder.exists()
    refused = run_sh(*load, "--scrape", url, "--check", out="no-text", status=2)
    assert "is not in Prometheus' text format" in refused.stderr
    done = run_sh(*load, "--scrape", target, *criteria, status=3)
    summary = done.json("summary.json")
    assert {each["text"]: (each["state"], each["value"]) for each in summary["criteria"]} == {
        "jobs_waiting max > 8": ("failed", 12), 'jobs_waiting{queue="a"} last > 12': ("passed", 12),
    }  # fmt: skip
    assert [each["name"] for each in summary["series"]["scraped"]] == ['jobs_waiting{queue="a"}']
    assert "of these got no answer in time" in done.text("index.html")
    assert done.stderr.count(f"--scrape {target}: it does not answer within 2 s; the run goes on") == 1
    assert {row["value"] for row in done.rows("scrapes.csv") if row["kind"] == "up"} == {"0", "1"}
    assert summary["missing"] == []
