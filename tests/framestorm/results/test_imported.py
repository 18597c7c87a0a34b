"""A JTL that no run of the kit wrote is made a run: its report, its comparison, and what cannot be read."""

import gzip
import io
import os
import xml.etree.ElementTree as ET
import zipfile
import zlib
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from framestorm import cli
from framestorm.compare.sides import read_sides
from framestorm.errors import UsageError
from framestorm.model.files import read
from framestorm.model.run import Record
from framestorm.model.summary import Summary
from framestorm.model.units import NBSP
from framestorm.report import build
from framestorm.results import jtl_xml
from framestorm.results.imported import import_jtl
from framestorm.results.samples import read_samples
from framestorm.run import dashboard
from framestorm.setup import pieces
from tests.framestorm.results.conftest import START_MS
from tests.framestorm.results.test_any_jtl import counts, jtl, rows_of

HEAD = jtl([])

XML = """<?xml version="1.0" encoding="UTF-8"?>
<testResults version="1.2">
<httpSample t="90" it="0" lt="80" ct="3" ts="1700000000000" s="true" lb="home" rc="200" rm="OK" tn="u 1-1" by="9">
  <httpSample t="40" ts="1700000000000" s="true" lb="home-0" rc="302" rm="Found" tn="u 1-1"/>
  <assertionResult><name>a</name><failure>false</failure><error>false</error></assertionResult>
  <responseData class="java.lang.String">x &lt; y</responseData><java.net.URL>http://a/home</java.net.URL>
</httpSample>
<sample t="150" ts="1700000001000" s="false" lb="visit" rc="503" tn="u 1-1"
  rm="Number of samples in transaction : 2, number of failing samples : 1">
  <httpSample t="70" ts="1700000001000" s="true" lb="cart" rc="200" rm="OK" tn="u 1-1"/>
  <httpSample t="80" ts="1700000001070" s="false" lb="pay, &quot;now&quot;" rc="200" rm="OK" tn="u 1-1">
    <assertionResult><name>b</name><failure>true</failure><error>false</error>
    <failureMessage>text expected
to contain ok</failureMessage></assertionResult></httpSample>
</sample>
</testResults>
"""


def imported(folder: Path, content: bytes) -> Summary:
    folder.mkdir(exist_ok=True)
    (folder / "old.jtl").write_bytes(content)
    import_jtl([folder / "old.jtl"], folder / "run")
    build(folder / "run")
    return read(folder / "run" / "summary.json", Summary)


def test_a_jtl_has_the_pages_of_a_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """By `./run.sh report results.jtl -o DIR`; JMeter's dashboard is made in tests/run."""
    monkeypatch.setattr(pieces, "ensure", lambda _: None)
    monkeypatch.setattr(dashboard, "make_dashboard", lambda run_dir: None)
    old = tmp_path / "results.jtl"
    old.write_bytes(jtl(rows_of()))
    words = ["report", str(old), "-o", str(tmp_path / "page"), "--fail-if", "search p95 > 1 s"]
    assert cli.main(words) == 0
    said = capsys.readouterr().out
    assert (
        "Passed: the criterion passed, on 10 samples." in said and "warning: A JTL has no figures of machines" in said
    )
    properties = ET.parse(tmp_path / "page" / "junit.xml").iter("property")  # noqa: S314
    assert {each.get("name"): each.get("value") for each in properties}["plan"] == str(old)
    assert cli.main(["report", str(tmp_path / "page")]) == 0, "the criteria are those of its run.json"
    assert cli.main(words) == 2 and "overwrites nothing" in capsys.readouterr().err
    (tmp_path / "page" / "run.json").unlink()
    assert cli.main(["report", str(tmp_path / "page")]) == 4, "a folder that lost its run.json"
    assert cli.main(["-g", str(old)]) == 2 and "./run.sh report FILE.jtl -o DIR" in capsys.readouterr().err


def test_a_label_user_of_another_jtl_is_a_label(tmp_path: Path) -> None:
    summary = imported(tmp_path, jtl(rows_of(label="user")))
    assert counts(summary) == {"user (label)": (10, 2)} and summary.users is None
    assert summary.verdict.word == "fail" and not summary.missing


@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "packed"])
def test_xml_is_read(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    summary = imported(tmp_path, pack(XML.encode()))
    kinds = {name: (label.kind, label.n, label.failed) for name, label in summary.labels.items()}
    assert kinds == {
        "all": ("sampler", 3, 1), "home": ("sampler", 1, 0), "home-0": ("sub-result", 1, 0),
        "visit": ("transaction", 1, 1), "cart": ("sampler", 1, 0), 'pay, "now"': ("sampler", 1, 1),
    }  # fmt: skip
    assert summary.main.causes == {"failed-check: text expected to contain ok": 1} and not summary.missing


@pytest.mark.parametrize("end", range(60, len(XML), 150))
def test_xml_that_is_cut_off_is_read_up_to_there(end: int, tmp_path: Path) -> None:
    if end < XML.index("<httpSample"):
        assert imported(tmp_path, XML[:end].encode()).verdict.word == "unjudged"
        return
    summary = imported(tmp_path, XML[:end].encode())
    assert summary.main.n == XML[:end].count("\n</httpSample>")
    assert summary.missing[0] == "samples.jtl ends in the middle of a row; the row was left out"


def test_redirects_of_the_sampler_s_own_label_are_no_samples(tmp_path: Path) -> None:
    content = XML.replace('lb="home-0"', 'lb="home"').partition("<sample ")[0] + "</testResults>"
    assert imported(tmp_path, content.encode()).main.n == read_samples(tmp_path / "run").sent == 1


@pytest.mark.parametrize(
    ("written", "failure"),
    [
        ("&#x1b;[31mno", "?[31mno"), ("a&#x0;b&#0;c", "a?b????c"), ("\x1bno", "?no"), ("&#xd800;&#x263a;", "?☺"),
        ("&#12345678;", None), ("a < b", None), ("&who;", None),
    ],
)  # fmt: skip
@pytest.mark.parametrize("chunk_bytes", [1, 1 << 22])
def test_xml_goes_on_after_what_xml_does_not_allow(
    written: str, failure: str | None, chunk_bytes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """JMeter writes terminal colours so. A file with any other damage is read up to the damage."""
    monkeypatch.setattr(jtl_xml, "CHUNK_BYTES", chunk_bytes)
    summary = imported(tmp_path, (XML.replace("text expected\nto contain ok", written) + XML).encode())
    if failure is None:
        assert summary.main.n == 1
        (said,) = summary.missing
        assert "old.jtl is damaged at byte " in said and "what follows was left out" in said
        return
    assert summary.main.n == 6 and not summary.missing
    assert f"failed-check: {failure}" in summary.main.causes


def test_an_http_sample_without_its_url_has_its_status_as_cause(tmp_path: Path) -> None:
    """As JMeter 3.0 saves it where the URL is not asked for."""
    row = '<httpSample t="9" ts="1700000000000" s="false" lb="home" rc="500" rm="Server Error" tn="u 1-1"/>'
    summary = imported(tmp_path, f'<testResults version="1.2">{row}</testResults>'.encode())
    assert summary.main.causes == {"status-500": 1}


WITHOUT_DECLARATION = XML.partition("\n")[2]


@pytest.mark.parametrize(
    ("content", "n", "is_whole"),
    [
        (XML + XML, 6, True),
        (XML + WITHOUT_DECLARATION, 6, True),
        (XML[: XML.index("<sample")] + XML, 4, False),
        (XML[: XML.index('  <httpSample t="80"')] + XML, 4, False),
        (XML + XML[: XML.index("<sample")], 4, False),
        (XML + "and more", 3, False),
        ("<!DOCTYPE testResults>" + WITHOUT_DECLARATION, 0, False),
    ],
    ids=["whole", "no declaration", "the first cut off", "within a sample", "the second cut off", "no XML", "a type"],
)
def test_xml_files_that_were_joined_are_read(content: str, n: int, is_whole: bool, tmp_path: Path) -> None:
    summary = imported(tmp_path, content.encode())
    assert (summary.main.n, not summary.missing) == (n, is_whole)


@pytest.mark.parametrize("others", [(), ("whole.jtl",)])
def test_a_packed_jtl_that_is_cut_off_is_not_whole(others: tuple[str, ...], tmp_path: Path) -> None:
    """At the end of a row, where its text does not tell."""
    packer = zlib.compressobj(wbits=31)
    begin = b"".join(packer.compress(part) + packer.flush(zlib.Z_SYNC_FLUSH) for part in (HEAD, jtl(rows_of(5), None)))
    (tmp_path / "cut.jtl.gz").write_bytes(begin)
    (tmp_path / "whole.jtl").write_bytes(jtl(rows_of(2, label="other")))
    import_jtl([tmp_path / name for name in ("cut.jtl.gz", *others)], tmp_path / "run")
    build(tmp_path / "run")
    summary = read(tmp_path / "run" / "summary.json", Summary)
    assert summary.main.n == 5 + 2 * len(others) and summary.verdict.word == "partial"
    (said,) = summary.missing
    assert said.startswith(f"{tmp_path}/cut.jtl.gz ends too soon: its gzip is cut off")


def test_what_is_no_jtl_is_refused(tmp_path: Path) -> None:
    plan = b"<?xml version='1.0'?><!-- <testResults> --><jmeterTestPlan><hashTree/></jmeterTestPlan>"
    for content, problem in ((b"", ""), (b"a,b\n1,2\n", ""), (b"\0\0\0", ""), (plan, ".*<jmeterTestPlan>")):
        with pytest.raises(UsageError, match="is no JTL of JMeter" + problem):
            imported(tmp_path, content)
    assert not (tmp_path / "run").exists()


def test_two_jtls_are_compared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("framestorm.paths.DASHBOARDS", tmp_path / "dashboards")
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jtl").write_bytes(jtl(rows_of(), delimiter=";" if name == "b" else ","))
    sides = read_sides([str(tmp_path / name / "results.jtl") for name in ("a", "b")])
    assert [side.extent for side in sides] == ["10 samples"] * 2
    sources = [read(side.folders[0] / "run.json", Record).source for side in sides]
    assert sources == [str(tmp_path / name / "results.jtl") for name in ("a", "b")]


def test_jmeter_s_dashboard_is_made_of_a_jtl_in_another_form(tmp_path: Path) -> None:
    (tmp_path / "old.jtl").write_bytes(jtl(rows_of(), delimiter=";"))
    import_jtl([tmp_path / "old.jtl"], tmp_path / "run")
    dashboard.make_dashboard(tmp_path / "run")
    assert (tmp_path / "run" / "jmeter" / "index.html").exists()


TAURUS = (
    "timeStamp,elapsed,Latency,label,bytes,responseCode,responseMessage,allThreads,success\n"
    "1700000000000,120,100,home,900,200,OK,2,true\n1700000000500,150,130,home,900,500,no,2,false\n"
)
AZURE = (
    "timeStamp,elapsed,label,responseCode,responseMessage,threadName,dataType,success,failureMessage,bytes,sentBytes,"
    "grpThreads,allThreads,URL,Latency,IdleTime,Connect\n"
    "1700000000100,80,home,200,OK,users 1-1,text,true,,900,80,5,5,http://a/,70,0,3\n"
)


def together(folder: Path, files: dict[str, bytes]) -> Summary:
    for name, content in files.items():
        (folder / name).write_bytes(content)
    import_jtl([folder / name for name in files], folder / "run")
    build(folder / "run")
    return read(folder / "run" / "summary.json", Summary)


def test_other_tools_files_are_one_run(tmp_path: Path) -> None:
    """Taurus' kpi.jtl, one of Azure Load Testing, and one in XML: each has the columns that it has."""
    files = {"kpi.jtl": TAURUS.encode(), "engine1.csv": AZURE.encode(), "old.xml": XML.encode()}
    summary = together(tmp_path, files)
    assert counts(summary)["home"] == (4, 1)
    assert {host.host: host.in_samples for host in summary.hosts} == {"kpi": 2, "engine1": 1, "old": 3}
    assert summary.run.source == f"{tmp_path / 'kpi.jtl'} and 2 more"
    assert not summary.missing


def test_one_file_of_taurus_says_what_is_not_known(tmp_path: Path) -> None:
    summary = imported(tmp_path, TAURUS.encode())
    assert counts(summary) == {"home": (2, 1)}
    assert summary.main.times["latency"].n == 1
    assert {"sentBytes", "threadName", "Hostname", "Connect"} <= {*summary.facts.absent_columns}


def test_what_only_some_files_lack_is_said_of_these(tmp_path: Path) -> None:
    short = "timeStamp,elapsed,label,success,sample_kind\n1700000000000,80,home,true,sample\n"
    files = {"engine1.csv": AZURE, "s1.csv": short, "s2.csv": short.replace("80", "90"), "kpi.jtl": TAURUS}
    summary = together(tmp_path, {name: text.encode() for name, text in files.items()})
    lacking = {Path(part.name).name: part.lacks for part in summary.run.parts}
    assert lacking["engine1.csv"] == ("sample_kind",)
    assert lacking["kpi.jtl"] == ("failureMessage", "sentBytes", "threadName", "Connect", "sample_kind")
    assert "Hostname" not in lacking["s1.csv"] and "bytes" in lacking["s2.csv"]
    (engine,) = [text for text in summary.warnings if "engine1.csv lacks sample_kind, which other files have" in text]
    assert engine.endswith("so this is known of the samples of the others only: which rows are sub-results.")
    assert any(f"{tmp_path}/s1.csv and {tmp_path}/s2.csv lack responseCode, " in text for text in summary.warnings)
    assert not imported(tmp_path / "one", AZURE.encode()).run.parts


def test_what_files_do_not_say_is_said_of_them(tmp_path: Path) -> None:
    local = AZURE.replace("1700000000100", "2023-11-14 22:13:20")
    files = {"a.csv": AZURE, "b.csv": local, "c.csv": local.replace("80,home", "90,home")}
    summary = together(tmp_path, {name: text.encode() for name, text in files.items()})
    said = f"The times of {tmp_path}/b.csv and {tmp_path}/c.csv have no time zone; they are taken as UTC."
    assert said in summary.warnings


DAY_MS = 24 * 3_600_000


@pytest.mark.parametrize(
    ("starts_ms", "pause"),
    [
        ([0, 60 * DAY_MS], "for 60 days, from 2026-09-21 14:13:20 UTC to 2026-11-20 14:13:20 UTC, so throughput"),
        (
            [0, 2 * DAY_MS, 5 * DAY_MS],
            "for 3 days, from 2026-09-23 14:13:20 UTC to 2026-09-26 14:13:20 UTC, and in 1 sh",
        ),
        ([0, 1_200_000], "for 20 min 00 s, from 2026-09-21 14:13:20 UTC to 2026-09-21 14:33:20 UTC, so"),
        ([0, 300_000], None),
        ([step * 1000 for step in range(3600)] + [3600_000 + 900_000], None),
    ],
    ids=["months", "three runs", "20 minutes", "5 minutes", "a pause in a long run"],
)
def test_files_of_different_times_have_no_rate_in_common(
    starts_ms: list[int], pause: str | None, tmp_path: Path
) -> None:
    rows = [
        cells for begin in starts_ms for cells in rows_of(n=1 + (len(starts_ms) < 9) * 9, timeStamp=START_MS + begin)
    ]
    summary = imported(tmp_path, jtl(rows[::-1]))
    sentences = [text for text in summary.warnings if "Nothing was sent" in text]
    if pause is None:
        assert not sentences
        return
    assert f"Nothing was sent {pause}" in sentences[0].replace(NBSP, " ")
    assert "compare them by ./run.sh compare" in sentences[0]


def test_a_file_of_another_year_is_said_to_be_too_far(tmp_path: Path) -> None:
    rows = [*rows_of(), *rows_of(n=5, timeStamp=START_MS - 800 * DAY_MS)]
    summary = imported(tmp_path, jtl(rows))
    assert summary.main.n == 15 and summary.facts.untimed == 5
    assert any("negative, zero, or more than a year from most others" in text for text in summary.warnings)


def test_generators_with_files_of_one_name_stay_apart(tmp_path: Path) -> None:
    for name, text in (("g1", AZURE), ("g2", AZURE.replace("80,home", "90,home"))):
        (tmp_path / name).mkdir()
        (tmp_path / name / "results.jtl").write_text(text)
    files = [tmp_path / name / "results.jtl" for name in ("g1", "g2")]
    import_jtl(files, tmp_path / "run")
    build(tmp_path / "run")
    summary = read(tmp_path / "run" / "summary.json", Summary)
    assert [host.host for host in summary.hosts] == [str(file) for file in files]


def test_one_sample_and_none_are_told_in_words_that_fit(tmp_path: Path) -> None:
    one = imported(tmp_path / "one", jtl(rows_of(1)))
    few = next(text for text in one.warnings if "Insufficient data" in text)
    assert "with only 1 sample time, p90, p95 and p99 are just that one (marked †)" in few.replace(NBSP, " ")
    none = imported(tmp_path / "none", jtl([]))
    assert none.criteria[0].why == "there is no sample, so it cannot be judged and counts as failed"


def test_an_archive_of_engines_is_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with zipfile.ZipFile(tmp_path / "csv.zip", "w") as archive:
        archive.writestr("results/readme.txt", "how the test was made")
        archive.writestr("results/engine1_results.csv", AZURE)
        archive.writestr("results/engine2_results.csv", AZURE.replace("80,home", "90,home"))
    import_jtl([tmp_path / "csv.zip"], tmp_path / "run")
    build(tmp_path / "run")
    summary = read(tmp_path / "run" / "summary.json", Summary)
    assert "left out: results/readme.txt in " in capsys.readouterr().err
    assert {host.host for host in summary.hosts} == {"engine1_results", "engine2_results"}
    assert counts(summary) == {"home": (2, 0)}


def test_a_part_that_is_cut_off_makes_the_run_partial(tmp_path: Path) -> None:
    other = AZURE.replace("80,home", "90,home")
    summary = together(tmp_path, {"a.csv": AZURE.encode(), "b.csv": (other + AZURE.splitlines()[1][:30]).encode()})
    assert counts(summary) == {"home": (2, 0)}
    assert summary.missing == [f"{tmp_path / 'b.csv'} ends in the middle of a row; the row was left out"]


def test_a_part_that_is_no_jtl_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"notes\.txt is no JTL of JMeter"):
        together(tmp_path, {"a.csv": AZURE.encode(), "notes.txt": b"hello"})
    assert not (tmp_path / "run").exists()


def damaged() -> bytes:
    """An archive whose directory is whole, with a file that is not."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.csv", AZURE * 100)
    begin = packed.getvalue().index(b"a.csv") + len("a.csv")
    return packed.getvalue()[:begin] + b"\xff" * 9 + packed.getvalue()[begin + 9 :]


@pytest.mark.parametrize("content", [b"PK\x03\x04 and no more", b"PK\x05\x06" + bytes(18), damaged()])
def test_a_damaged_or_empty_archive_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "csv.zip").write_bytes(content)
    with pytest.raises(UsageError, match=r"cannot be unpacked|is no JTL of JMeter|is an archive without a file"):
        import_jtl([tmp_path / "csv.zip"], tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("time", "assumed"),
    [
        ("1700000000.250", "seconds since 1970"),
        ("1700000000250000", "microseconds since 1970"),
        ("1700000000250000000", "nanoseconds since 1970"),
        ("2023-11-14T22:13:20.250Z", ""),
        ("2023-11-15T00:13:20.250+02:00", ""),
        ("2023-11-14 22:13:20.250", "taken as UTC"),
    ],
)
def test_times_in_other_forms_are_read(tmp_path: Path, time: str, assumed: str) -> None:
    summary = imported(tmp_path, TAURUS.replace("1700000000000", time).replace("1700000000500", time).encode())
    assert summary.load is not None and summary.load.start_ms == 1_700_000_000_250
    assert bool(summary.facts.assumed) == bool(assumed)
    assert assumed in " ".join(summary.facts.assumed)


def test_several_words_are_several_jtls(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text(AZURE)
    (tmp_path / "b.csv").write_text(AZURE.replace("80,home", "90,home"))
    words = ["report", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "-o", str(tmp_path / "page")]
    assert cli.main([*words, "--fail-if", "home p95 > 1 s"]) == 0
    assert "on 2 samples" in capsys.readouterr().out
    assert not (tmp_path / "page" / "jmeter").exists(), "JMeter's dashboard is made by ./run.sh report of the folder"
    assert cli.main(["report", str(tmp_path / "a.csv"), str(tmp_path)]) == 2
    assert "is not a file: several words are several JTLs" in capsys.readouterr().err


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_a_jtl_may_come_through_a_pipe(pack: Callable[[bytes], bytes], tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    content = pack(AZURE.encode())
    with ThreadPoolExecutor(1) as writer:
        writer.submit((tmp_path / "pipe").write_bytes, content)
        assert cli.main(["report", str(tmp_path / "pipe"), "-o", str(tmp_path / "page")]) == 0
    assert counts(read(tmp_path / "page" / "summary.json", Summary)) == {"home": (1, 0)}


@pytest.mark.parametrize("n", [20, 100])
def test_an_earlier_copy_of_a_jtl_is_refused(n: int, tmp_path: Path) -> None:
    """Both orders are tried, because the longer file may be given first."""
    for name, of in (("a.csv", 50), ("b.csv", n)):
        (tmp_path / name).write_bytes(jtl(rows_of(of)))
    long, short = ("a", "b") if n < 50 else ("b", "a")
    said = rf"{tmp_path}/{long}.csv begins with all of {tmp_path}/{short}.csv, .*; name {tmp_path}/{long}.csv only"
    with pytest.raises(UsageError, match=said):
        import_jtl([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "run")
    (tmp_path / "b.csv").write_bytes(jtl([*rows_of(1, label="other"), *rows_of(n)[1:]]))
    import_jtl([tmp_path / "a.csv", tmp_path / "b.csv"], tmp_path / "run")


@pytest.mark.parametrize("second", ["a.csv", "link.csv", "copy.csv", "a.csv.gz", "csv.zip"])
def test_a_jtl_that_is_given_twice_is_refused(second: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(AZURE)
    (tmp_path / "copy.csv").write_text(AZURE)
    (tmp_path / "link.csv").symlink_to("a.csv")
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(AZURE.encode()))
    with zipfile.ZipFile(tmp_path / "csv.zip", "w") as archive:
        archive.writestr("engine1.csv", AZURE)
    names = f"{tmp_path}/a.csv and .*{second} have the same content, .* would count twice; name one of them only"
    with pytest.raises(UsageError, match=names):
        import_jtl([tmp_path / "a.csv", tmp_path / second], tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_generators_that_sent_nothing_may_have_equal_files(tmp_path: Path) -> None:
    header = AZURE.splitlines(keepends=True)[0]
    summary = together(tmp_path, {"a.csv": AZURE.encode(), "b.csv": header.encode(), "c.csv": header.encode()})
    assert counts(summary) == {"home": (1, 0)}


@pytest.mark.parametrize("words", [["gone.jtl", "-o", "page"], ["a.csv", "gone.jtl"], ["gone.jtl"]])
def test_a_file_that_is_not_there_is_named_first(
    words: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.csv").write_text(AZURE)
    assert cli.main(["report", *words]) == 2
    assert "there is no file or folder gone.jtl, nor a run of that name in dashboards/" in capsys.readouterr().err


def test_junit_has_no_time_of_a_jtl_without_a_row(tmp_path: Path) -> None:
    imported(tmp_path, jtl([]))
    suites = [*ET.parse(tmp_path / "run" / "junit.xml").iter("testsuite")]  # noqa: S314
    assert [suite.get("timestamp") for suite in suites] == [None]
    imported(tmp_path / "some", jtl(rows_of()))
    suites = [*ET.parse(tmp_path / "some" / "run" / "junit.xml").iter("testsuite")]  # noqa: S314
    assert [suite.get("timestamp") for suite in suites] == ["2026-09-21T14:13:20"]


def test_an_imported_run_has_a_baseline_and_a_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("framestorm.paths.DASHBOARDS", tmp_path / "dashboards")
    (tmp_path / "dashboards").mkdir()
    (tmp_path / "week").mkdir()
    for day in (1, 2):
        rows = rows_of(n=100, timeStamp=START_MS + day * 86_400_000)
        (tmp_path / "results.jtl").write_bytes(jtl(rows))
        out = str(tmp_path / "week" / f"day-{day}")
        status = cli.main(
            ["report", str(tmp_path / "results.jtl"), "-o", out, "--baseline", "last", "--fail-if", "n < 1"]
        )
        assert status == 0
    assert "against the baseline day-1" in capsys.readouterr().out
    assert read(tmp_path / "week" / "day-2" / "run.json", Record).baseline == "last"
    assert cli.main(["history", str(tmp_path / "week")]) == 0
    assert "results.jtl" in capsys.readouterr().out


@pytest.mark.parametrize(("time", "is_known"), [(str(START_MS), True), ("yesterday", False)])
def test_the_page_has_the_time_of_the_samples_where_it_is_known(time: str, is_known: bool, tmp_path: Path) -> None:
    imported(tmp_path, jtl([[time, *cells[1:]] for cells in rows_of()]))
    page = (tmp_path / "run" / "index.html").read_text()
    assert ("<dt>Time</dt>" in page) == is_known and "not known to not known" not in page
