"""Complete runs and a study over slaves."""

import html
import re
import shlex
from collections import Counter
from pathlib import Path

import av
import pytest
from PIL import Image

from framestorm import paths, probe
from framestorm.load import poisson
from lab import faults
from lab.hosts import LabHost
from tests.conftest import Lab
from tests.runs import COMPLETE, RunFiles, RunSh, write_study
from tests.stand_in import StartServer


def grey_video(path: Path) -> Path:
    """A video of one frame without a face."""
    with av.open(str(path), "w") as clip:
        stream = clip.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        clip.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (64, 48), (90, 90, 90)))))  # type: ignore[no-untyped-call]
        clip.mux(stream.encode(None))
    return path


def without_master(folder: Path) -> Path:
    """The inventory, so that a run's controller is on this machine."""
    text = paths.INVENTORY.read_text().replace("{{ inventory_dir }}", str(paths.ROOT))
    here = folder / "inventory.ini"
    here.write_text("\n".join(line for line in text.splitlines() if not line.startswith("master1 ")))
    return here


SHARES = {"slave1": "2", "slave2": "1"}
OF_OTHER_JARS = """
def jar = new java.util.zip.ZipFile(args[0])
def names = jar.entries()*.name.findAll { it.endsWith('.class') && !it.startsWith('framestorm/') }
def classes = names.collect { Class.forName(it[0..-7].replace('/', '.'), false, getClass().classLoader) }
println names.size() > 2 ? classes*.protectionDomain*.codeSource*.location*.path.unique().join(' ') : names
"""


def test_a_slave_has_the_classes_of_the_kit_before_those_of_other_jars(deployed: Lab) -> None:
    """Java takes the jars of a folder in any order."""
    pid = "systemctl show --property MainPID --value framestorm-jmeter-server"
    server = deployed.ssh("slave1", f"tr '\\0' ' ' < /proc/$({pid})/cmdline")
    (class_path,) = re.findall(r" -cp (\S+) ", server)
    own = "/opt/framestorm/jmeter/" + probe.PATCHES
    assert class_path.split(":").index(own) < class_path.split(":").index("/opt/framestorm/jmeter/lib/*")
    java = f"java -cp '{class_path}' groovy.ui.GroovyMain -e {shlex.quote(OF_OTHER_JARS)} {own}"
    assert deployed.ssh("slave1", java).split() == [own]


@pytest.mark.parametrize("controller", ["on the master", "here"])
def test_five_users_on_two_slaves_are_three_and_two(
    run_sh: RunSh, deployed: Lab, tmp_path: Path, controller: str, stand_in: StartServer
) -> None:
    own: tuple[str, ...] = ()
    service = stand_in({"status": 204, "body": b""})
    if controller == "here":  # with a video of one's own, which goes along
        own = ("-i", str(without_master(tmp_path)), f"-Jvideo={grey_video(tmp_path / 'grey.mp4')}", "-Jmin_faces=0")
    done = run_sh("./run.sh -R slaves -Jusers=5", "-t", "jmx/video-per-user.jmx", "-Jramp_s=1", "-Jframes=6", *own,
                  "--sink", f"influxdb:{service.origin}/write")  # fmt: skip
    points = b"\n".join(sent.body for sent in service.received).decode()
    told = Counter[str]()
    for slave, n in re.findall(r"transaction=frame,slave=(\w+),statut=all count=([\d.]+)", points):
        told[slave] += int(float(n))
    assert told == {"slave1": 18, "slave2": 12}
    assert done.count("label", "Hostname") == {
        ("user", "slave1"): 3, ("user", "slave2"): 2, ("frame", "slave1"): 18, ("frame", "slave2"): 12,
    }  # fmt: skip
    users = done.tree().findall("sample")
    assert sorted(user.get("hn") or "" for user in users) == ["slave1"] * 3 + ["slave2"] * 2
    assert all('"type":"sample"' in (user.findtext("responseData") or "") for user in users)
    run, summary = done.json("run.json"), done.json("summary.json")
    hosts = {host["inventory_name"]: host for host in run["hosts"]}
    assert {name: hosts[name]["share"]["users"] for name in ("slave1", "slave2")} == {"slave1": "3", "slave2": "2"}
    assert ("master1" in hosts) == (controller == "on the master")
    assert hosts["function1"]["role"] == "target"
    assert all(abs(host["clock_offset_ms"]) < 100 for host in hosts.values())
    rmi = run["rmi"]
    assert (rmi["mode"], rmi["ssl"], rmi["slave_ports"]) == ("GroupSender", False, "8001")
    assert "-Jmode=framestorm.GroupSender" in run["jmeter"]["arguments"]
    assert rmi["why"] in html.unescape(done.text("index.html"))
    counts = {
        row["host"]: [row[name] for name in ("sent", "in_tree", "in_samples", "shown")] for row in summary["hosts"]
    }
    assert counts == {"slave1": [18] * 4, "slave2": [12] * 4}
    machines = {(row["host"], row["part"]): row for row in summary["machines"]}
    for part in (("slave1", "generator"), ("slave2", "generator"), ("function1", "target")):
        assert machines[part]["cores_max"] > 0, part
    for part in (("slave1", "host"), ("slave2", "host"), ("function1", "target")):
        assert machines[part]["rss_max_bytes"] > 100e6
    for slave in ("slave1", "slave2"):
        assert machines[slave, "host"]["load_max"] is not None
        assert "Test has ended on host" in done.text(f"jmeter-server-{slave}.log")
    for host in ("slave1", "slave2", "master1"):  # nothing of the run stays there
        assert deployed.look(host, "sudo ls /var/lib/framestorm/runs; pgrep -f 'client[.]py|agent'") == ""


@pytest.mark.long
def test_a_video_of_100_mb_arrives_over_a_slow_network(run_sh: RunSh, deployed: Lab, tmp_path: Path) -> None:
    video = grey_video(tmp_path / "grey.mp4")
    with video.open("ab") as file:  # an MP4 box without meaning
        file.write((100 << 20).to_bytes(4, "big") + b"free")
        file.truncate(file.tell() - 8 + (100 << 20))
    faults.slow_down(LabHost("slave2"), "50mbit")
    try:
        words = ("-t", "jmx/video-per-user.jmx", "-Jusers=2", "-Jramp_s=0", "-Jframes=2", "-Jmin_faces=0")
        done = run_sh("-R", "slaves", *words, f"-Jvideo={video}")
    finally:
        faults.speed_up(LabHost("slave2"))
    assert done.count("label", "Hostname")["frame", "slave2"] == 2


@pytest.mark.long
def test_a_slave_on_a_slow_and_lossy_network(run_sh: RunSh, deployed: Lab) -> None:
    slave = LabHost("slave2")
    faults.slow_down(slave, "10mbit")
    faults.move_away(slave, delay_ms=100, loss=0.02)
    try:
        done = run_sh("-R", "slaves", "-t", "jmx/video-per-user.jmx", "-Jusers=4", "-Jramp_s=0", "-Jframes=1")
    finally:
        faults.move_back(slave)
        faults.speed_up(slave)
    of_slave = [row for row in done.rows("samples.csv") if (row["label"], row["host"]) == ("frame", "slave2")]
    assert min(float(row["rtt_ms"]) for row in of_slave) > 200, "what the network alone takes"
    assert {host["host"]: host["shown"] for host in done.json("summary.json")["hosts"]} == {"slave1": 2, "slave2": 2}


def test_a_load_in_words_is_shared_and_dropped_arrivals_are_counted(run_sh: RunSh, deployed: Lab) -> None:
    load = ("-Jload=60/s for 5 s", "-Jarrivals=poisson", "-Jseed=3", "-Jconcurrency_limit=2", "-Jencoding=jpeg")
    done = run_sh("-R", "slaves", "-t", "jmx/face-blur-http.jmx", *load, "--accept-overload")
    summary = done.json("summary.json")
    # Of both slaves together what one machine would draw, by chance not quite 300.
    assert summary["facts"]["arrivals"] == poisson.count(300, 3) > summary["labels"]["frame"]["n"]
    assert "not_offered" in summary["doubts"]
    rows = done.count("Hostname")
    assert min(rows["slave1",], rows["slave2",]) > 0
    assert summary["labels"]["frame"]["times"]["model"]["n"] == rows["slave1",] + rows["slave2",]


@pytest.mark.long
def test_a_pattern_chooses_slaves(run_sh: RunSh, deployed: Lab) -> None:
    done = run_sh("./run.sh -R 'slaves:!slave2' -Jusers=4", "-Jramp_s=0", "-Jhold_s=1", "-Jframes=2")
    assert {host for _, host in done.count("label", "Hostname")} == {"slave1"}


def test_users_in_words_are_shared(run_sh: RunSh, deployed: Lab) -> None:
    done = run_sh("-R", "slaves", "-Jload=1 user for 2 s, 3 users for 3 s", "-Jframes=2", "-Jsleep_s=0.1")
    (users,) = (each for each in done.json("run.json")["loads"] if not each["is_aside"])
    assert (users["total"], users["curve"]["y"]) == (3, [1, 1, 3, 3])
    times: dict[str, list[int]] = {}
    for row in done.rows():
        times.setdefault(f"{row['Hostname']} {row['threadName']}", []).append(int(row["timeStamp"]))
    of_slave1 = [min(each) for thread, each in times.items() if thread.startswith("slave1 ")]
    assert {each["name"]: each["share"]["users"] for each in done.json("run.json")["hosts"] if each["share"]} == SHARES
    # The first of the three users, and the third, are of slave1.
    assert len(times) == 3 and len(of_slave1) == 2 and max(of_slave1) - min(of_slave1) > 1000


@pytest.mark.long
def test_a_study_over_slaves(run_sh: RunSh, deployed: Lab, tmp_path: Path) -> None:
    done = run_sh("study", write_study(tmp_path), "-R", "slaves", "--repetitions", "1", status=COMPLETE)
    rows = {row["users"]: row for row in done.rows("results.csv")}
    assert {users: (row["n"], row["success"]) for users, row in rows.items()} == {"2": ("4", "1.0"), "3": ("6", "1.0")}
    for users, row in rows.items():
        hosts = {host["inventory_name"]: host for host in RunFiles(done.folder / row["run"]).json("run.json")["hosts"]}
        shares = [int(hosts[name]["share"]["users"]) for name in ("slave1", "slave2")]
        assert (sum(shares), shares[1]) == (int(users), 1)
        assert hosts["function1"]["role"] == "target"


def test_a_stop_rule_ends_the_load_of_all_slaves(run_sh: RunSh, deployed: Lab) -> None:
    load = ("-Jrate_per_s=10", "-Jhold_s=120", "-Jencoding=jpeg")
    rule = ("--stop-if", "p95 > 1 ms for 3 s", "--accept-overload")
    done = run_sh("-R", "slaves", "-t", "jmx/face-blur-http.jmx", *load, *rule, status=3)
    run, summary = done.json("run.json"), done.json("summary.json")
    assert (run["state"], run["decision"]["option"], summary["missing"]) == ("decided", "--stop-if", [])
    sent: dict[str, int] = {}
    for row in done.rows():
        sent[row["Hostname"]] = max(sent.get(row["Hostname"], 0), int(row["timeStamp"]))
    assert set(sent) == {"slave1", "slave2"}
    assert max(sent.values()) < run["decision"]["at_ms"] + 3000
