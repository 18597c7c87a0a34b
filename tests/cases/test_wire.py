"""What a server may do to a request: each sample has the cause that the wire had, and the side that can mend it."""

import re
import ssl
import subprocess
import xml.etree.ElementTree as ET
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from framestorm import cli, conductor, paths, report
from framestorm.load.reading import read_loads
from framestorm.model import plan as plans
from framestorm.run import needs
from framestorm.run.options import Output, RunOptions, What
from tests.odd_server import SETTINGS_FRAME, OddServer, answer, compressed_answers, serving_oddly
from tests.runs import RunFiles
from tests.stand_in import make_certificate

CASES = Path(__file__).parent
BODY_BYTES = 8_000_000


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def labels_of(name: str, folder: Path, **given: object) -> tuple[RunFiles, dict[str, Any]]:
    """Run a plan of this folder; its labels in summary.json."""
    words = {key: str(value) for key, value in given.items()}
    run = RunFiles(conductor.run(RunOptions(What(CASES / f"{name}.jmx", words), output=Output(folder / "run"))))
    report.build(run.folder)
    return run, run.json("summary.json")["labels"]


def causes(labels: dict[str, Any]) -> dict[str, str | None]:
    """The one cause of each label's errors, None if it has none."""
    return {name: next(iter(label["causes"]), None) for name, label in labels.items() if name != "all"}


def test_the_answer_counts_that_comes_before_the_whole_body_is_sent(tmp_path: Path) -> None:
    body = tmp_path / "image.bin"
    body.write_bytes(bytes(BODY_BYTES))
    with serving_oddly(OddServer()) as server:
        run, labels = labels_of("early-answers", tmp_path, port=server.port, file=body)
    refused = ("413 close", "413 linger", "413 stay", "413 read", "413 some", "multipart", "put")
    assert causes(labels) == {
        **dict.fromkeys(refused, "status-413"),
        "413 none": f"closed-early: ... of {BODY_BYTES} bytes",
        "early 200": None,
        "early 102": None,
        "next": None,
    }
    rows = {row["label"]: row for row in run.rows()}
    assert all(int(rows[label]["bytes"]) > 40 for label in refused)
    assert f"of {BODY_BYTES} bytes): a size limit?" in rows["413 none"]["responseMessage"]


def test_an_empty_answer_is_empty_in_any_coding_and_an_error_stays_that_error(tmp_path: Path) -> None:
    with serving_oddly(OddServer(compressed_answers)) as server:
        _, labels = labels_of("compressed-answers", tmp_path, port=server.port)
    broken = ("gz-head-only", "gz-cut", "df-cut", "br-cut", "gz-plain")
    failed = {name: cause for name, cause in causes(labels).items() if cause}
    assert failed == {
        **dict.fromkeys(broken, "not-http"),
        **dict.fromkeys(("gz-500", "gz-cut-500"), "status-500"),
    }
    assert len(labels) > 2 * len(failed)


def test_a_connection_that_was_closed_while_idle_is_told_from_one_that_broke(tmp_path: Path) -> None:
    def replies(path: str) -> bytes:
        return b"" if path == "/d" else answer()

    with serving_oddly(OddServer(replies, idle_s=0.2)) as server:
        _, labels = labels_of("idle-connections", tmp_path, port=server.port)
    idle = {"get": "idle-closed", "post": "idle-closed"}
    assert causes(labels) == {"first": None, "second": None, "third": None, **idle, "broken": "reset"}


def test_a_name_of_the_dns_cache_manager_is_checked_where_the_plan_sends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_oddly(OddServer()) as server:
        plan = tmp_path / "host-in-dns-cache.jmx"
        plan.write_text((CASES / plan.name).read_text().replace(">21001<", f">{server.port}<"))
        assert cli.main(["-t", str(plan), "--check"]) == 0
        assert f"target: http://shop.invalid:{server.port}" in capsys.readouterr().out.splitlines()
    plan.write_text(plan.read_text().replace("shop.invalid</stringProp>", "Shop.Invalid</stringProp>", 1))
    assert cli.main(["-t", str(plan), "--check"]) == 1
    assert (
        "calls shop.invalid, and its DNS Cache Manager has Shop.Invalid: JMeter has no address"
        in capsys.readouterr().err
    )


def test_which_addresses_of_a_name_take_a_connection_and_how_many_requests_each_got(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serving_oddly(OddServer()) as server:
        plan = tmp_path / "host-in-dns-cache.jmx"
        addresses = "127.0.0.2, 127.0.0.1 ,127.0.0.3"
        text = (CASES / plan.name).read_text().replace(">127.0.0.1<", f">{addresses}<")
        plan.write_text(text.replace(">21001<", f">{server.port}<"))
        name = f"shop.invalid:{server.port}"
        refused = (f"2 of 3 addresses of {name}", "127.0.0.2 (Connection refused) and 127.0.0.3 (Connection refused)")
        tried = "all requests go to 127.0.0.1, and each new connection tries 127.0.0.2 first"
        assert cli.main(["-t", str(plan), "--check"]) == 0
        before = capsys.readouterr().err
        assert all(words in before for words in (*refused, tried)), before
        assert cli.main(["-t", str(plan), "-o", str(tmp_path / "run")]) == 0
    said = capsys.readouterr()
    assert refused[0] in said.err
    counted = f"Of the 3 addresses of {name}, 127.0.0.1 got {len(server.received)} request"
    assert counted in said.out and "127.0.0.3 (Connection refused before the load) none" in said.out


@pytest.mark.parametrize(
    "name",
    ["HTTPSampler", "HTTPSampler2", "HTTPSampler_", "org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy"],
)
def test_a_sampler_of_an_old_plan_is_an_http_sampler_by_any_name_of_its_class(name: str, tmp_path: Path) -> None:
    text = (CASES / "http2-only.jmx").read_text()
    plan = tmp_path / "theirs.jmx"
    for each in ("ThreadGroup", "TestPlan"):
        text = re.sub(rf"(</?){each}\b", rf"\1{CLASSES[each]}", text)
    plan.write_text(re.sub(r"(</?)HTTPSamplerProxy", rf"\1{name}", text))
    assert plans.read(plan).labels == {"plain", "encrypted"}
    urls = [address.url for address in needs.look(plans.read(plan), {}).addresses]
    assert urls == ["http://127.0.0.1:21001", "https://127.0.0.1:21002"]
    (load,) = read_loads(plans.read(plan), [], {})
    assert (load.kind, load.total) == ("ThreadGroup", 1)


CLASSES = {"ThreadGroup": "org.apache.jmeter.threads.ThreadGroup", "TestPlan": "org.apache.jmeter.testelement.TestPlan"}
DEFAULTS = (
    '<ConfigTestElement enabled="true"><stringProp name="HTTPSampler.domain">127.0.0.1</stringProp></ConfigTestElement>'
)


@pytest.mark.parametrize(
    ("there", "instead", "is_noted"),
    [
        ("", "", True),
        (">/x<", ">http://127.0.0.1:9/x<", False),
        (">/x<", ">${__groovy(props.get('url'))}<", False),
        ("<HTTPSamplerProxy", f"{DEFAULTS}<hashTree/><HTTPSamplerProxy", False),
    ],
    ids=["none", "in the path", "known under load", "by defaults"],
)
def test_a_sampler_without_a_server_is_noted_before_the_load(
    there: str, instead: str, is_noted: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = tmp_path / "theirs.jmx"
    plan.write_text((CASES / "no-host.jmx").read_text().replace(there, instead, 1))
    needs.look(plans.read(plan), {})
    assert ("theirs.jmx: get names no server" in capsys.readouterr().err) is is_noted


def test_a_server_of_http_2_only_is_named(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))
    plain = OddServer(greeting=SETTINGS_FRAME)
    encrypted = OddServer(greeting=SETTINGS_FRAME, context=context)
    with serving_oddly(plain), serving_oddly(encrypted):
        _, labels = labels_of("http2-only", tmp_path, port=plain.port, tls_port=encrypted.port)
    assert causes(labels) == {"plain": "http2-only", "encrypted": "http2-only"}


@pytest.mark.parametrize(("is_http2_only", "cause"), [(True, "http2-only"), (False, "reset")])
def test_a_server_that_closes_connections_of_http_1_1_is_told_from_one_that_closes_all(
    is_http2_only: bool, cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))
    if is_http2_only:
        context.set_alpn_protocols(["h2"])
    plain = OddServer(lambda _: b"", is_http2_only=is_http2_only)
    encrypted = OddServer(lambda _: b"", is_http2_only=is_http2_only, context=context)
    with serving_oddly(plain), serving_oddly(encrypted):
        _, labels = labels_of("http2-only", tmp_path, port=plain.port, tls_port=encrypted.port)
    note = f"https://127.0.0.1:{encrypted.port} agrees to HTTP/2 only"
    assert (note in capsys.readouterr().err) is is_http2_only
    assert causes(labels) == {"plain": cause, "encrypted": cause}


def test_a_host_header_arrives_as_it_was_given_and_so_does_its_name_in_the_handshake(tmp_path: Path) -> None:
    names: list[str | None] = []
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(make_certificate(tmp_path))
    context.sni_callback = lambda _, name, __: names.append(name)

    def replies(path: str) -> bytes:
        where = {
            "/relative": "/ok",
            "/absolute": f"http://127.0.0.1:{server.port}/ok",
            "/elsewhere": f"http://127.0.0.1:{other.port}/there",
        }.get(path)
        return answer(b"", f"Location: {where}", status="302 Found") if where else answer()

    encrypted, other, proxy = OddServer(context=context), OddServer(), OddServer(tunnel=context)
    with (
        serving_oddly(OddServer(replies)) as server,
        serving_oddly(encrypted),
        serving_oddly(other),
        serving_oddly(proxy),
    ):
        ports = {"port": server.port, "tls_port": encrypted.port, "proxy_port": proxy.port}
        _, labels = labels_of("host-header", tmp_path, **ports)
    assert set(causes(labels).values()) == {None}
    hosts = Counter((path, headers["host"]) for path, headers in server.received)
    name = "hello.default.example.com"
    redirected = {(path, name): 1 for path in ("/relative", "/absolute", "/elsewhere")}
    assert hosts == {("/ok", name): 3, **redirected, ("/port", "here.example:80"): 1}
    assert [headers["host"] for _, headers in other.received] == [f"127.0.0.1:{other.port}"]
    assert [each for each in names if each is not None] == [name, name]  # before the load, an address alone is asked
    assert [headers["host"] for _, headers in encrypted.received] == [name]
    assert [headers["host"] for _, headers in proxy.received] == [f"127.0.0.1:{encrypted.port}", name]


def test_a_machine_whose_own_name_leads_nowhere_has_its_xml_files(tmp_path: Path) -> None:
    command = ["unshare", "--uts", "sh", "-c", 'hostname own-name.invalid && exec "$@"', "sh", paths.ROOT / "run.sh"]
    done = subprocess.run(
        [*command, "-t", CASES / "unresolvable-own-name.jmx", "-o", tmp_path / "run"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "2  connect" in done.stdout and "warning: ListenerNotifier" not in done.stdout, done.stderr
    results = ET.parse("own-results.xml").getroot()  # noqa: S314
    assert [sample.get("lb") for sample in results] == ["call", "call"]
