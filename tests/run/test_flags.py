"""JMeter's own options, as someone with a plan and a habit gives them."""

import base64
import shutil
from pathlib import Path

import psutil

from tests.runs import RunSh
from tests.stand_in import StartServer

HERE = Path(__file__).parent


def test_jmeters_options_mean_what_they_mean_in_jmeter(run_sh: RunSh, stand_in: StartServer, tmp_path: Path) -> None:
    """Joined or not, short or long; the requests go through the proxy, whose password is nowhere to be seen."""
    wanted = {"status": 407, "headers": [("Proxy-Authenticate", 'Basic realm="r"')]}
    proxy = stand_in(wanted, *[{"body": b"results", "content_type": "text/plain", "delay_s": 0.3}] * 40)
    shutil.copy(HERE / "shop.jmx", tmp_path)
    (tmp_path / "names.csv").write_text("ada\n")
    (tmp_path / "shop.properties").write_text("visits=9\nurl=http://shop.test\n")
    (tmp_path / "java.properties").write_text("from.file=1\n")
    words = f"-n -e -X --testfile {tmp_path}/shop.jmx -l{tmp_path}/my.jtl --jmeterlogfile {tmp_path}/my.log"
    words += f" -q {tmp_path}/shop.properties --jmeterproperty visits=3 -Dmy.system=7 -S {tmp_path}/java.properties"
    words += f" -LDEBUG -L org.apache=INFO -H 127.0.0.1 -P{proxy.server_port} -u me --password a-secret-word"
    running = run_sh.start(*words.split())
    running.until(lambda: len(proxy.received) > 3)
    lines = [" ".join(each.info["cmdline"] or ()) for each in psutil.process_iter(["cmdline"])]
    assert [line for line in lines if "a-secret-word" in line] == []
    done = running.ended(0)
    assert {sent.path.partition("/login")[0] for sent in proxy.received} == {
        "http://shop.test",
        "http://shop.test/search",
    }
    expected = "Basic " + base64.b64encode(b"me:a-secret-word").decode()
    assert {sent.headers["Proxy-Authorization"] for sent in proxy.received} == {None, expected}
    assert done.count("label") == {("log in",): 6, ("search",): 6, ("whole visit",): 6}
    assert (tmp_path / "my.jtl").read_bytes() == (done.folder / "samples.jtl").read_bytes()
    log = (tmp_path / "my.log").read_text()
    assert log == done.text("jmeter.log") and "my.system=7" in log and "DEBUG" in log
    assert [path for path in done.folder.rglob("*") if path.is_file() and b"a-secret-word" in path.read_bytes()] == []
    assert done.json("run.json")["properties"] == {"visits": "3", "url": "http://shop.test"}
