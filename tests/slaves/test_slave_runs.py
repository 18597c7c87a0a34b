"""Complete runs over slaves."""

import html
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

VIDEO_ONCE = ("-t", "jmx/video-per-user.jmx", "-Jramp_s=1", "-Jframes=3")


@pytest.mark.parametrize("controller", ["on the master", "here"])
def test_five_users_on_two_slaves_are_three_and_two(
    run_slaves: Callable[..., Any], deployed: Any, master_here: Path, controller: str
) -> None:
    inventory = ("-i", str(master_here)) if controller == "here" else ()
    done = run_slaves(*VIDEO_ONCE, "-Jusers=5", *inventory)
    assert done.status == 0, done.stderr
    assert done.rows() == {("user", "slave1"): 3, ("user", "slave2"): 2, ("frame", "slave1"): 9, ("frame", "slave2"): 6}
    users = ET.parse(done.folder / "tree.xml").getroot().findall("sample")  # noqa: S314
    assert sorted(user.get("hn") or "" for user in users) == ["slave1"] * 3 + ["slave2"] * 2
    assert all('"type":"sample"' in (user.findtext("responseData") or "") for user in users)
    hosts = {host["inventory_name"]: host for host in done.json("run.json")["hosts"]}
    assert {name: hosts[name]["share"]["users"] for name in ("slave1", "slave2")} == {"slave1": "3", "slave2": "2"}
    assert ("master1" in hosts) == (controller == "on the master")
    assert all(abs(host["clock_offset_ms"]) < 100 for host in hosts.values())
    way = done.json("run.json")["rmi"]
    assert (way["mode"], way["ssl"], way["slave_ports"]) == ("Standard", False, "8001")
    assert "-Jmode=Standard" in done.json("run.json")["jmeter"]["arguments"]
    assert way["why"] in html.unescape((done.folder / "index.html").read_text())
    told = {row["host"]: row for row in done.json("summary.json")["hosts"]}
    for slave, sent in (("slave1", 9), ("slave2", 6)):
        counts = {name: told[slave][name] for name in ("sent", "in_tree", "in_samples", "shown")}
        assert counts == {"sent": sent, "in_tree": sent, "in_samples": sent, "shown": sent}
    machines = {(row["host"], row["part"]): row for row in done.json("summary.json")["machines"]}
    for slave in ("slave1", "slave2"):
        assert machines[slave, "generator"]["cores_max"] > 0
        assert machines[slave, "host"]["rss_max_bytes"] > 100e6
        assert machines[slave, "host"]["load_max"] is not None
        assert "Test has ended on host" in (done.folder / f"jmeter-server-{slave}.log").read_text()
    assert hosts["function1"]["role"] == "target"
    assert machines["function1", "target"]["cores_max"] > 0
    assert machines["function1", "target"]["rss_max_bytes"] > 100e6
    for host in ("slave1", "slave2", "master1"):  # nothing of the run stays there
        assert deployed.ssh(host, "sudo ls /var/lib/framestorm/runs").split() == []
        assert deployed.ssh(host, "pgrep -f 'client[.]py|agent'", check=False) == ""


def test_a_rate_is_split_too(run_slaves: Callable[..., Any]) -> None:
    done = run_slaves("-t", "jmx/face-blur-http.jmx", "-Jrate_per_s=3", "-Jhold_s=6", "-Jencoding=jpeg")
    assert done.status == 0, done.stderr
    rows = done.rows()
    assert 7 <= rows["frame", "slave1"] <= 11
    assert 7 <= rows["frame", "slave2"] <= 11
    assert (
        done.json("summary.json")["labels"]["frame"]["times"]["model"]["n"]
        == rows["frame", "slave1"] + rows["frame", "slave2"]
    )


def test_arrivals_that_found_no_thread_are_counted_on_slaves_too(run_slaves: Callable[..., Any]) -> None:
    load = ("-Jrate_per_s=60", "-Jconcurrency_limit=2", "-Jramp_s=0", "-Jhold_s=5", "-Jencoding=jpeg")
    done = run_slaves("-t", "jmx/face-blur-http.jmx", *load)
    assert done.status == 0, done.stderr
    summary = done.json("summary.json")
    assert summary["facts"]["arrivals"] > summary["labels"]["frame"]["n"] > 0
    assert "not_offered" in summary["doubts"]


def test_a_pattern_chooses_slaves_and_spare_ones_are_left_out(run_slaves: Callable[..., Any]) -> None:
    done = run_slaves(*VIDEO_ONCE, "-Jusers=1")
    assert done.status == 4, done.stderr
    assert "fewer users than slaves" in done.json("run.json")["reason"]
    done = run_slaves(*VIDEO_ONCE, "-Jusers=1", "-R", "198.18.0.12")
    assert done.status == 0, done.stderr
    assert done.rows() == {("user", "slave2"): 1, ("frame", "slave2"): 3}


def test_ones_own_video_goes_along(run_slaves: Callable[..., Any], tmp_path: Path) -> None:
    import av
    from PIL import Image

    video = tmp_path / "grey.mp4"
    with av.open(str(video), "w") as clip:
        stream = clip.add_stream("libx264", rate=25)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        clip.mux(stream.encode(av.VideoFrame.from_image(Image.new("RGB", (64, 48), (90, 90, 90)))))  # type: ignore[no-untyped-call]
        clip.mux(stream.encode(None))
    done = run_slaves(*VIDEO_ONCE, "-Jusers=2", f"-Jvideo={video}", "-Jmin_faces=0")
    assert done.status == 0, done.stderr
    assert done.json("summary.json")["labels"]["frame"]["ok"] == 6
