"""Requests to any function: what the plans for it make of their properties, of a curl command, and of an answer."""

import gzip
import json
import subprocess
from email import message_from_bytes
from email.policy import HTTP
from itertools import product
from pathlib import Path
from urllib.parse import quote

import pytest

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model import plan as plans
from framestorm.paths import JMX
from framestorm.results import table
from framestorm.results.jmeter_log import read_log
from framestorm.results.reading import read_results
from framestorm.results.table import causes
from framestorm.run import new_plan
from tests.jmx.conftest import RunPlan, groovy
from tests.stand_in import Received, StartServer, ask_for_certificate, make_certificate

SECRET = "tok-3f7a&s=1"  # noqa: S105


def test_rows_fill_url_headers_and_body(
    run_plan: RunPlan, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    (tmp_path / "people.csv").write_text('name, age\n"Ada ""A"" Lovelace",36\n\nJosé,7\n\n', encoding="utf-8-sig")
    (tmp_path / "headers").write_text("Authorization: Bearer ${env:API_TOKEN}\nX-Name: of {age}\nX-Path: C:\\new\n")
    server = stand_in({"repeats": True, "content_type": "text/plain; charset=utf-8"})
    run = run_plan(
        "request-rate", url=f"{server.url}?name={{name}}&key=${{env:API_TOKEN}}", method="PUT", rate_per_s=4, hold_s=1,
        headers=f"@{tmp_path}/headers", rows=f"@{tmp_path}/people.csv", expect="José",
        body='{"name": "{name}", "age": {age}, "of": {}}',
    )  # fmt: skip
    assert sorted(json.loads(sent.body)["age"] for sent in server.received) == [7, 7, 36, 36]
    first = next(sent for sent in server.received if b"36" in sent.body)
    assert json.loads(first.body) == {"name": 'Ada "A" Lovelace', "age": 36, "of": {}}
    assert first.path.startswith("/function/face-blur?name=Ada%20%22A%22%20Lovelace&key=")
    kinds = [first.headers[name] for name in ("Content-Type", "X-Name", "X-Path")]
    assert (first.method, kinds) == ("PUT", ["application/json", "of 36", "C:\\new"])
    assert {sent.headers["Authorization"] for sent in server.received} == {f"Bearer {SECRET}"}
    assert run.count("index", "responseMessage") == {("0", "expect-not-met"): 2, ("1", "OK"): 2}
    # The function repeats the headers in its answer, of which the tree has the beginning.
    assert "${env:API_TOKEN}" in (tmp_path / "tree.xml").read_text()
    assert [path for path in tmp_path.iterdir() if path.is_file() and SECRET in path.read_text()] == []


def test_files_are_sent_as_they_are(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.png").write_bytes(bytes(range(256)))
    (folder / "b.json").write_bytes(b'{"a": "{a}"}')
    server = stand_in({"body": b"ok"})
    run = run_plan("request-rate", url=server.url, body=f"@{folder}", rate_per_s=4, hold_s=1, keep_alive="false")
    assert set(server.requests) == {("image/png", bytes(range(256))), ("application/json", b'{"a": "{a}"}')}
    assert len({sent.port for sent in server.received}) == 4, "a connection each"
    assert run.count("index", "success") == {("0", "true"): 2, ("1", "true"): 2}


@pytest.mark.parametrize(
    ("name", "content", "kind"),
    [
        ("a.png", b"\x89PNG\0{n}\xff", "image/png"),
        ("a.csv", b"\xef\xbb\xbfa,b\n", "text/csv"),
        ("a.xml", b"<a>{n}</a>", "application/xml"),
    ],
)
def test_a_file_is_sent_as_it_is_beside_rows(
    name: str, content: bytes, kind: str, run_plan: RunPlan, stand_in: StartServer, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    (tmp_path / "rows.csv").write_text("n\n7\n")
    server = stand_in({"body": b"ok"})
    files = {"body": f"@{tmp_path}/{name}", "rows": f"@{tmp_path}/rows.csv"}
    run_plan("requests", url=f"{server.url}?n={{n}}", users=1, ramp_s=0, hold_s=0.5, **files)
    assert server.requests[0] == (kind, content.replace(b"{n}", b"7") if name == "a.xml" else content)


@pytest.mark.parametrize("of", ["body", "form"])
def test_rows_and_files_are_each_sent_in_turn(
    of: str, run_plan: RunPlan, stand_in: StartServer, tmp_path: Path
) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for name in ("1.png", "2.png"):
        (folder / name).write_bytes(b"of file " + name.encode())
    (tmp_path / "rows.csv").write_text("n\n1\n2\n3\n")
    server = stand_in({"body": b"ok"})
    files = {"rows": f"@{tmp_path}/rows.csv", of: f"@{folder}" if of == "body" else f"file=@{folder}"}
    run = run_plan("request-rate", url=f"{server.url}?n={{n}}", rate_per_s=6, hold_s=1, **files)
    sent = {(each.path[-1], b"of file 1" in each.body) for each in server.received}
    assert sent == set(product("123", (True, False)))
    assert run.count("index") == {(str(n),): 1 for n in range(6)}


def test_each_line_is_a_body(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    numbers = "[1.7E-9, 0.10, 123456789.12345678901234567890, 12345678901234567890123, 1E+400]"
    first = f'{{"id": 1700000000.5, "tags": ["ä"], "n": {numbers}}}'
    rows.write_text(f'{first}\n\n{{"id": 2, "tags": []}}\n', encoding="utf-8")
    server = stand_in({"body": b"<a><b>2</b></a>"})
    url = server.url + "/{id}"
    run = run_plan("request-rate", url=url, body=f"@{rows}", rate_per_s=2, hold_s=1, expect="//b[.='2']")
    bodies = {sent.path.rpartition("/")[2]: sent.body for sent in server.received}
    assert {number: json.loads(body)["id"] for number, body in bodies.items()} == {"1700000000.5": 1700000000.5, "2": 2}
    assert numbers.replace(" ", "").encode() in bodies["1700000000.5"], "with all digits"
    assert run.count("index", "responseMessage") == {("0", "OK"): 1, ("1", "OK"): 1}


def parts(sent: Received) -> list[tuple[str, str | None, str, bytes]]:
    """Name, file name, content type and content of each part of a form."""
    head = f"Content-Type: {sent.headers['Content-Type']}\r\n\r\n".encode()
    form = message_from_bytes(head + sent.body, policy=HTTP)
    assert form.get_content_type() == "multipart/form-data"
    return [
        (each.get_param("name", header="Content-Disposition"), each.get_filename(),
         each.get_content_type() if "Content-Type" in each else "", each.get_payload(decode=True))
        for each in form.iter_parts()
    ]  # fmt: skip


def test_a_form_of_curl_is_sent_in_parts(
    run_plan: RunPlan, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("API_TOKEN", SECRET)
    monkeypatch.chdir(tmp_path)
    pages = tmp_path / "pages"
    pages.mkdir()
    (pages / "z 1.png").write_bytes(bytes(range(256)))
    (pages / "b.bin").write_bytes(b"\r\n--")
    Path("prompt").write_text("Read\n{name}\n", encoding="utf-8")
    Path("rows.csv").write_text("name\nJosé\nAda\n", encoding="utf-8")
    server = stand_in({"body": b"ok"})
    command = (
        f"curl -F file=@pages -F 'scan=@\"prompt\";type=text/x' -F lang=en -F key=${{env:API_TOKEN}} -F 'a=x;y=z' "
        f"-F 'prompt=<prompt' -F empty= -H 'Content-Type: multipart/form-data' {server.url}"
    )
    new_plan.write(Path("ocr.jmx"), command, JMX / "request-rate.jmx")
    run = run_plan(str(tmp_path / "ocr"), rate_per_s=4, hold_s=1, rows=f"@{tmp_path}/rows.csv")
    assert run.count("index", "responseMessage") == {("0", "OK"): 2, ("1", "OK"): 2}
    texts = [("lang", None, "", b"en"), ("key", None, "", SECRET.encode()), ("a", None, "", b"x;y=z")]
    smallest, *_, largest = sorted(server.received, key=lambda sent: len(sent.body))
    first, second = ({part[0]: part for part in parts(sent)} for sent in (smallest, largest))
    for sent in (first, second):
        assert [sent[name] for name, *_ in texts] == texts
        assert sent["scan"] == ("scan", "prompt", "text/x", b"Read\n{name}\n") and sent["empty"][3] == b""
    assert first["file"] == ("file", "b.bin", "application/octet-stream", b"\r\n--")
    assert (second["file"][1:], second["prompt"][3]) == (
        ("z 1.png", "image/png", bytes(range(256))),
        b"Read\nAda\n",
    )


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_value_of_a_form_may_have_a_type(
    method: str, run_plan: RunPlan, stand_in: StartServer, tmp_path: Path
) -> None:
    (tmp_path / "rows.csv").write_text('name\n"a ""b"""\n')
    server = stand_in({"body": b"ok"})
    form = 'about={"name": "{name}"};type=application/json\\nlang=en'
    run_plan(
        "requests",
        url=server.url,
        form=form,
        method=method,
        rows=f"@{tmp_path}/rows.csv",
        users=1,
        ramp_s=0,
        hold_s=0.5,
    )
    about, lang = parts(server.received[0])
    assert (about[:3], json.loads(about[3])) == (("about", None, "application/json"), {"name": 'a "b"'})
    assert lang == ("lang", None, "text/plain", b"en")


@pytest.mark.parametrize(
    ("properties", "cause"),
    [
        ({"method": "DELETE", "expect_status": "204,4XX, 201-299"}, "status-200"),
        (
            {"method": "GET", "expect_status": "404,200-204", "expect": "regex:f.ces", "reject": "$.state == done"},
            "reject-met",
        ),
    ],
)
def test_an_answer_is_judged(properties: dict[str, str], cause: str, run_plan: RunPlan, stand_in: StartServer) -> None:
    server = stand_in({"body": b'{"faces": [1], "state": "done"}'})
    run = run_plan("requests", url=server.url, users=1, ramp_s=0, hold_s=0.5, **properties)
    assert set(run.count("responseMessage")) == {(cause,)}
    assert {(sent.method, sent.body) for sent in server.received} == {(properties["method"], b"")}
    # JMeter gives each DELETE a body, if an empty one.
    assert properties["method"] == "DELETE" or {kind for kind, _ in server.requests} == {None}


def test_an_answer_is_judged_by_the_row_of_its_request(
    run_plan: RunPlan, stand_in: StartServer, tmp_path: Path
) -> None:
    folder = tmp_path / "scans"
    folder.mkdir()
    for name in ("a.png", "b.png"):
        (folder / name).write_bytes(name.encode())
    (tmp_path / "texts.csv").write_text("text\nINVOICE\nRECEIPT\n")
    server = stand_in({"body": b'{"text": "INVOICE"}'})
    how = {"form": f"file=@{folder}", "rows": f"@{tmp_path}/texts.csv", "expect": "$.text == {text}"}
    run = run_plan("request-rate", url=server.url, rate_per_s=4, hold_s=1, **how)
    assert run.count("index", "responseMessage") == {("0", "OK"): 2, ("1", "expect-not-met"): 2}


def test_an_answer_that_breaks_http_is_the_functions(run_plan: RunPlan, stand_in: StartServer) -> None:
    loop = {"status": 307, "body": b"", "headers": (("Location", "/function/face-blur?%7B%22a%22%7C%3C100%25%3E"),)}
    server = stand_in(
        loop,
        loop,
        {"body": b"no brotli", "headers": (("Content-Encoding", "br"),)},
        {"raw": b"no HTTP\r\n\r\n"},
        {"body": b"no gzip", "headers": (("Content-Encoding", "gzip"),)},
        {"status": 307, "body": b"", "headers": (("Location", "http://[bad"),)},
        {"body": b"no type", "content_type": 'text/html; charset="'},
        {"raw": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nno chunk\r\n"},
        {"raw": b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nshort"},
        {"body": b"ok"},
    )
    run = run_plan("requests", url=server.url + '?{"a"|<100%>', method="GET", users=1, ramp_s=0, hold_s=1)
    assert {sent.path.partition("?")[2] for sent in server.received} == {"%7B%22a%22%7C%3C100%25%3E"}
    wanted = ["not-http"] * 7 + ["reset", "OK"]
    assert [row["responseMessage"] for row in run.rows()][:9] == wanted
    assert "Caused by: org.apache.http.client.CircularRedirectException" in (run.folder / "tree.xml").read_text()


def test_an_answer_in_a_coding_that_nobody_asked_for(run_plan: RunPlan, stand_in: StartServer) -> None:
    """What cannot be read is not passed because it does not have what `reject` says."""
    bodies = {"zstd": b"\x28\xb5\x2f\xfd", "gzip": gzip.compress(b"ok"), "identity": b"ok"}
    answers = [{"body": body, "headers": (("Content-Encoding", name),)} for name, body in bodies.items()]
    run = run_plan("requests", url=stand_in(*answers).url, reject="error", users=1, ramp_s=0, hold_s=1)
    assert [row["responseMessage"] for row in run.rows()][:3] == ["unknown-coding", "OK", "OK"]


def test_a_head_without_measure_has_a_cause(run_plan: RunPlan, stand_in: StartServer) -> None:
    server = stand_in(
        {"body": b"{}", "headers": (("Server-Timing", f"db{';x=1' * 15_000};dur=2"),)},
        {"body": b"{}", "headers": (("Content-Encoding", ", ".join(["gzip"] * 5000)),)},
        {"body": b"{}", "headers": (("X-Long", "x" * 200_000),)},
        {"body": b"{}", "headers": tuple((f"X-{n}", "x") for n in range(1000))},
        {"body": b"{}", "headers": (("X-Worker", "w" * 60_000),)},
        {"body": b"{}", "headers": (("Server-Timing", ", ".join(f"n{n};dur=1" for n in range(3000))),)},
    )
    run = run_plan("requests", url=server.url, method="GET", users=1, ramp_s=0, hold_s=2)
    rows = run.rows()[:6]
    assert [row["responseMessage"] for row in rows] == ["OK", "not-http", "not-http", "not-http", "OK", "OK"]
    assert json.loads(rows[0]["further_figures"]) == {"db_ms": 2}
    assert (len(rows[4]["worker"]), len(json.loads(rows[5]["further_figures"]))) == (200, 50)
    assert run.errors() == []


DEEP = [b"[" * 100_000 + b"]" * 100_000, b"<a>" * 100_000 + b"</a>" * 100_000]
LONG = b"[" + b"{}," * 8_000_000 + b"0]"


@pytest.mark.parametrize(
    ("bodies", "properties", "cause"),
    [
        (DEEP, {"expect": "$..b", "figures": "a=$..b"}, "expect-not-met"),
        (DEEP, {"expect": "//b"}, "expect-not-met"),
        (DEEP, {"expect": "regex:^(a|\\[|<|>)*x"}, "expect-not-met"),
        (DEEP, {"reject": "regex:^(a|\\[|<|>)*x"}, "reject-met"),
        ([LONG], {"expect": "$.x", "figures": "a=$.x"}, "expect-not-met"),
        ([LONG], {"reject": "$.x"}, "reject-met"),
        ([b"<a>" + b"<b/>" * 6_000_000 + b"</a>"], {"expect": "//b"}, "expect-not-met"),
        ([b"[" + b"{}," * 400_000 + b'{"x":1}]'], {"expect": "$[-1:].x"}, "OK"),
    ],
    ids=["JSON", "XML", "regex", "reject", "values", "values rejected", "elements", "not too many"],
)
def test_an_answer_too_deep_or_of_too_many_values(
    bodies: list[bytes], properties: dict[str, str], cause: str, run_plan: RunPlan, stand_in: StartServer
) -> None:
    server = stand_in(*({"body": body} for body in bodies))
    run = run_plan("requests", url=server.url, method="GET", users=2, ramp_s=0, hold_s=2, **properties)
    assert run.count("responseMessage") == {(cause,): len(server.received)}
    assert len(server.received) >= 2


@pytest.mark.parametrize("secret", ["p^w é/+ %2", 'a"b\\c', ""])
def test_a_secret_is_shown_nowhere(
    secret: str, run_plan: RunPlan, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PLAIN", secret)
    monkeypatch.setenv("LOGIN", "login-9d2f")
    server = stand_in(
        {"body": b"x" * 195 + f"login-9d2f {secret}".encode(), "headers": (("X-Worker", "login-9d2f"),)},
        {"body": json.dumps(f"login-9d2f {secret}").encode(), "headers": ()},
    )
    url = server.url.replace("//", "//me:${env:LOGIN}@") + "?key=${env:PLAIN}&of=${env:LOGIN}"
    run = run_plan("requests", url=url, method="GET", users=1, ramp_s=0, hold_s=1)
    assert set(run.count("responseMessage")) == {("OK",)}
    assert set(run.count("worker")) == {("${env:LOGIN}",), ("",)}
    kept = "".join(path.read_text() for path in tmp_path.iterdir() if path.is_file())
    forms = {secret, json.dumps(secret)[1:-1], quote(secret), quote(secret, safe="/+"), "login-9d"} - {""}
    assert [form for form in forms if form in kept] == []


@pytest.mark.parametrize("path", ["/f?key=", ""])
def test_a_secret_that_is_a_part_of_the_address_too(
    path: str, run_plan: RunPlan, stand_in: StartServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as the port, or 1 of 127.0.0.1: the answer is judged, and the path shows the secret's name."""
    server = stand_in({"body": b"no"})
    address = server.url.split("/")[2]
    monkeypatch.setenv("PART", address.rpartition(":")[2] if path else "/function")
    url = f"http://{address}{path}${{env:PART}}/1"
    run = run_plan("requests", url=url, method="GET", users=1, ramp_s=0, hold_s=0.5, expect="yes")
    assert set(run.count("responseMessage")) == {("expect-not-met",)} and run.errors() == []
    assert {row["URL"] for row in run.rows()} == {f"http://{address}{path or '/'}${{env:PART}}/1"}


def test_a_password_that_makes_the_proxys_address_wrong_is_not_shown(
    run_plan: RunPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PROXY_LOGIN", "me:se cret")
    run = run_plan("requests", url="http://h/", proxy="${env:PROXY_LOGIN}@h:1", users=1, ramp_s=0, hold_s=1)
    assert (read_log(run.folder).refusal or "").startswith("-Jproxy=${env:PROXY_LOGIN}@h:1: Illegal character")
    assert run.rows() == []
    assert [path for path in tmp_path.iterdir() if path.is_file() and "se cret" in path.read_text()] == []


def test_so_much_of_answers_is_held_as_fits_into_the_heap(run_plan: RunPlan, stand_in: StartServer) -> None:
    """All users together may hold an eighth of the heap: 64 MiB here."""
    long, short = {"body": b"x" * (30 << 20) + b"\nthe end", "pause_s": 2}, {"body": b"the end"}
    server = stand_in(*[long] * 4, *[short] * 4)
    run = run_plan("requests", url=server.url, method="GET", users=4, ramp_s=0, hold_s=8, sleep_s=0.5, expect="the end")
    causes = run.count("responseMessage")
    assert causes.keys() == {("OK",), ("generator-limit",)} and causes.total() == len(server.received)
    assert {row["responseMessage"] for row in run.rows() if int(row["bytes"]) < 1 << 20} == {"OK"}


HELD = """
org.apache.jmeter.util.JMeterUtils.loadJMeterProperties(args[0])
org.apache.jmeter.util.JMeterUtils.setProperty('framestorm.bodies_part_of_heap', '0.1')
def read = { framestorm.Body.of(new ByteArrayInputStream(new byte[1 << 20])).readAllBytes(); framestorm.Body.cut }
10.times { Thread.start(read).join() }
println read()
def stay = { def cut = read(); sleep(2000); cut } as java.util.concurrent.Callable
def users = (1..10).collect { new java.util.concurrent.FutureTask(stay) }
users.each { new Thread(it).start() }
println users*.get().contains(true)
"""


def test_what_users_held_that_have_ended_is_free() -> None:
    settings = paths.JMETER_HOME / "bin" / "jmeter.properties"
    command = groovy("-e", HELD, settings, options=("-Xmx64m",))
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout.split() == ["false", "true"]


OF_LONG = """
import framestorm.Body
import org.apache.jmeter.util.JMeterUtils

JMeterUtils.loadJMeterProperties(args[0])
JMeterUtils.setProperty('framestorm.bodies_part_of_heap', '0.1')
JMeterUtils.setProperty('httpsampler.max_bytes_to_store_per_request', '1048576')
def read = { bytes -> Body.of(new ByteArrayInputStream(new byte[bytes])).transferTo(OutputStream.nullOutputStream()) }
def all = read(8 << 20)
println "$all ${Body.cut} ${Body.tooLong}"
Thread.start { println "${read(1 << 20)} ${Body.cut} ${Body.tooLong}" }.join()
"""


def test_what_jmeter_does_not_keep_of_a_long_answer_takes_no_room() -> None:
    """The first answer alone has more bytes than all users may hold."""
    settings = paths.JMETER_HOME / "bin" / "jmeter.properties"
    command = groovy("-e", OF_LONG, settings, options=("-Xmx64m",))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == [f"{8 << 20} false true", f"{1 << 20} false false"]


READ = """
import org.apache.jmeter.protocol.http.sampler.HTTPSamplerProxy
import org.apache.jmeter.util.JMeterUtils

JMeterUtils.loadJMeterProperties(args[0])
JMeterUtils.setProperty('framestorm.bodies_part_of_heap', '0.1')
def sampler = new HTTPSamplerProxy(args[1])
sampler.method = 'GET'
sampler.path = args[2]
def result = sampler.sample()
println "${result.responseCode} ${result.responseData.length < 8 << 20} ${framestorm.Body.cut}"
"""


@pytest.mark.parametrize("implementation", ["HttpClient4", "Java"])
def test_answers_are_limited_in_both_of_jmeters_http_samplers(implementation: str, stand_in: StartServer) -> None:
    server = stand_in({"body": b"x" * (8 << 20)})
    settings = paths.JMETER_HOME / "bin" / "jmeter.properties"
    command = groovy("-e", READ, settings, implementation, server.url, options=("-Xmx64m",))
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["200", "true", "true"]


@pytest.mark.parametrize("condition", [{"expect": "the end"}, {"reject": "the end"}])
def test_an_answer_of_more_than_32_mib_is_not_judged_by_its_beginning(
    condition: dict[str, str], run_plan: RunPlan, stand_in: StartServer
) -> None:
    server = stand_in({"body": b"x" * (33 << 20) + b"the end"})
    run = run_plan("requests", url=server.url, method="GET", users=1, ramp_s=0, hold_s=1, **condition)
    assert set(run.count("responseMessage")) == {("answer-too-long",)}
    assert all(int(row["bytes"]) > 33 << 20 for row in run.rows())


def test_only_a_whole_answer_has_a_digest_and_figures(run_plan: RunPlan, stand_in: StartServer) -> None:
    server = stand_in({"body": b'{"n": 1}' + b" " * 100}, {"body": b'{"n": 2}'})
    how = {"framestorm.answer_digest": "true", "httpsampler.max_bytes_to_store_per_request": 50, "figures": "n=$.n"}
    rows = run_plan("requests", url=server.url, users=1, ramp_s=0, hold_s=1, **how).rows()[:2]
    assert rows[0]["further_figures"] == ""
    whole = json.loads(rows[1]["further_figures"])
    assert whole.keys() == {"n", "answer_digest"} and whole["n"] == 2


@pytest.mark.parametrize(("idle_s", "scheme", "cause"), [(1.3, "http:", "OK"), (None, "https:", "tls")])
def test_how_a_server_treats_connections(
    idle_s: float | None, scheme: str, cause: str, run_plan: RunPlan, stand_in: StartServer
) -> None:
    server = stand_in({"body": b"ok"})
    server.idle_s = idle_s  # it closes a connection before the user sends again
    url = server.url.replace("http:", scheme)
    run = run_plan("requests", url=url, users=1, ramp_s=0, hold_s=4, sleep_s=1.5)
    assert set(run.count("responseMessage")) == {(cause,)}
    assert len(run.rows()) > 1


def test_lines_of_json_are_an_array(run_plan: RunPlan, stand_in: StartServer) -> None:
    lines = b'{"token": "In", "done": false}\n{"token": "voice", "done": false}\n{"done": true, "tokens": 2}\n'
    pretty = b'{\n  "0": {}\n}\n'
    events = b": hello\n\n" + b"".join(b"event: token\ndata: %b\n\n" % line for line in lines.splitlines())
    separators = 'data: {"done": false}\n\ndata: {"done": true, "tokens": 2, "text": "\u2028\u2029\x85"}\n\n'.encode()
    in_parts = b'\n\ndata: {"done": false}\n\ndata:\ndata: {"done": true,\r\nid: 7\ndata:  "tokens": 2}\n'
    without_empty_lines = b"".join(b"data: %b\n" % line for line in lines.splitlines()) + b"data: [DONE]\n"
    bodies = (lines, lines[:60], pretty, events + b"data: [DONE]\n\n", events[9:150], b"\xef\xbb\xbf" + lines)
    server = stand_in(*({"body": body} for body in (*bodies, separators, in_parts, without_empty_lines)))
    how = {"expect": "$[-1].done == true", "figures": "tokens=$[-1].tokens"}
    rows = run_plan("requests", url=server.url, users=1, ramp_s=0, hold_s=3, sleep_s=0.2, **how).rows()[:9]
    unmet = ("expect-not-met", "")
    met = ("OK", '{"tokens":2}')
    answers = [(row["responseMessage"], row["further_figures"]) for row in rows]
    assert answers == [met, unmet, unmet, met, unmet, met, met, met, met]


def test_an_answer_gives_figures(run_plan: RunPlan, stand_in: StartServer) -> None:
    timing = (
        ("Server-Timing", 'db;desc="a, b";dur=53, c;dur=0.5'),
        ("Server-Timing", "total;DUR=6.025e1, start;dur=1, x;dur=1.2.3"),
    )
    page = b'{"text": "INVOICE", "usage": {"tokens": 12, "costs": [0.5], "none": []}, "name": "x"}'
    wrong = b'{"text": "", "usage": {"tokens": 0}}'
    server = stand_in(
        {"body": page, "headers": timing, "authorization": "Bearer t0k", "delay_s": 0.01},
        {"body": wrong, "headers": (), "authorization": "Bearer t0k", "delay_s": 0.01},
    )
    run = run_plan(
        "request-rate", url=server.url, body="scan", headers="Authorization: Bearer t0k", rate_per_s=4, hold_s=1,
        expect="$.text == INVOICE",
        figures="mean=$.usage.none.avg(), tokens=$.usage.tokens, cost=$.usage.costs[0,1], absent=$.x, name=$.name",
    )  # fmt: skip
    results = read_results(run.folder)
    assert causes(results.samples)[0] == {"expect-not-met": 2}, "an answer with status 200"
    of_answers = {"handler_ms", "model_ms", "c_ms", "cost", "db_ms", "tokens"}
    assert {*table.figures(results.samples)} == {*of_answers, "latency_ms", "connect_ms"}
    good = results.samples.filter("ok").select("handler_ms", "c_ms", "cost", "db_ms", "tokens").collect().rows()
    assert good == [(60.25, 0.5, 0.5, 53.0, 12.0)] * 2
    assert all(float(row["Latency"]) > 0 for row in run.rows()), "time to the first byte"


def test_a_number_beyond_all_bounds_in_an_answer_does_not_keep_it_from_being_judged(
    run_plan: RunPlan, stand_in: StartServer
) -> None:
    numbers = ("1e999", "-1e999", "NaN", "Infinity", "9" * 400, "[1e999, 5]")
    server = stand_in(*({"body": b'{"n": %b}' % number.encode()} for number in numbers))
    load = {"users": 1, "ramp_s": 0, "hold_s": 2}
    run = run_plan("requests", url=server.url, body="x", figures="n=$.n", expect="found", **load)
    assert set(run.count("responseMessage")) == {("expect-not-met",)} and len(run.rows()) >= len(numbers)
    assert run.errors() == []


def test_a_client_certificate_is_shown(run_plan: RunPlan, stand_in: StartServer, tmp_path: Path) -> None:
    server = stand_in({"body": b"ok"})
    both = ask_for_certificate(server, tmp_path)
    run = run_plan("requests", url=server.url, body="x", users=1, ramp_s=0, hold_s=0.5, certificate=f"@{both}")
    assert set(run.count("responseMessage")) == {("OK",)}


TWICE = """
2.times { framestorm.ClientCertificate.use(new File(args[0]), '') }
def stores = new File(System.getProperty('java.io.tmpdir')).list().findAll { it.endsWith('.p12') }
println([new File(System.getProperty('javax.net.ssl.keyStore')).name] == stores)
"""


def test_the_key_of_an_earlier_test_stays_in_no_file(tmp_path: Path) -> None:
    """A server of slaves runs several tests in one Java."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    command = groovy("-e", TWICE, make_certificate(tmp_path), options=(f"-Djava.io.tmpdir={folder}",))
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == "true\n"
    assert list(folder.glob("*.p12")) == []


def test_a_plan_sends_what_curl_would(
    run_plan: RunPlan, stand_in: StartServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "t0")
    monkeypatch.chdir(tmp_path)
    Path("scan.json").write_text('{"a": 1}')
    server = stand_in({"body": b"ok"})
    curl = "curl -X PUT -H 'Authorization: Bearer ${env:TOKEN}' -H 'X-A: b, c' -d @scan.json "
    curl += f"'{server.url}/(x)[1]?a=1,2&b[]=c'"
    assert new_plan.write(Path("ocr.jmx"), curl, JMX / "requests.jmx") == [Path("ocr.jmx"), Path("ocr.headers")]
    run = run_plan(str(tmp_path / "ocr"), users=1, ramp_s=0, hold_s=0.5)
    assert set(run.count("label", "responseMessage")) == {("request", "OK")}
    sent = server.received[0]
    assert (sent.method, sent.path, sent.body) == ("PUT", "/function/face-blur/%28x%29%5B1%5D?a=1,2&b[]=c", b'{"a": 1}')
    kinds = [sent.headers[name] for name in ("Authorization", "X-A", "Content-Type")]
    assert kinds == ["Bearer t0", "b, c", "application/json"]


def test_secrets_of_url_and_proxy_are_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = "curl 'http://h/f?api_key=abc' -x http://me:pw@proxy:3128"
    new_plan.write(tmp_path / "a.jmx", command, JMX / "requests.jmx")
    told = capsys.readouterr().err
    assert "the plan has a secret: api_key in -Jurl has a literal value" in told
    assert "the plan has a secret: -Jproxy has a literal password" in told


def test_a_body_on_the_command_line_gets_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "b.jmx"
    new_plan.write(path, """curl --json '{"x": "é)"}' http://h/f -k -u me:pw -E both.pem""", JMX / "request-rate.jmx")
    assert json.loads((tmp_path / "b.body.json").read_text()) == {"x": "é)"}
    assert "Authorization: ${env:BASIC_LOGIN}" in (tmp_path / "b.headers").read_text()
    assert "export BASIC_LOGIN=" in capsys.readouterr().err
    assert [path for path in tmp_path.iterdir() if "pw" in path.read_text() or "bWU6cHc" in path.read_text()] == []
    defaults = plans.read(path).defaults
    assert (defaults["method"], defaults["body"], defaults["headers"]) == ("POST", "@b.body.json", "@b.headers")
    assert defaults["ca"] == "none"
    assert (path.parent / defaults["certificate"][1:]).resolve() == Path("both.pem").resolve()
    # A secret is filled in within the plan only, not in a file.
    text, path = '{"a": "${env:K} (b, c)", "d": "\\n $x"}', tmp_path / "c.jmx"
    new_plan.write(path, f"curl http://h/f -d '{text}'", JMX / "requests.jmx")
    assert plans.read(path).defaults["body"] == text


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("curl http://h/f", "exists"),
        ("curl http://h/f -d 'a) ${env:K}'", "unpaired bracket"),
        ("curl http://h/f -X PURGE", "one of GET"),
        ("curl http://h/f -x socks5://h:1080", "proxy"),
        ("curl -F 'a=@b;filename=c' http://h/", "filename"),
    ],
)
def test_what_no_plan_can_do_makes_none(command: str, reason: str, tmp_path: Path) -> None:
    path = tmp_path / "b.jmx"
    if reason == "exists":
        path.touch()
    with pytest.raises(UsageError, match=reason):
        new_plan.write(path, command, JMX / "requests.jmx")
    assert list(tmp_path.iterdir()) == ([path] if reason == "exists" else [])
