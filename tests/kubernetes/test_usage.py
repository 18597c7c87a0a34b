"""What is read from a kubelet's cAdvisor of the pods of a function."""

import threading
from contextlib import closing
from typing import cast

import pytest

from framestorm.platform.kubernetes.cluster import Cluster, ClusterError
from framestorm.platform.kubernetes.usage import Kubelets, measured

EPOCH_MS = 1_700_000_000_000

CPU, THROTTLED = "container_cpu_usage_seconds_total", "container_cpu_cfs_throttled_periods_total"
RECEIVED = "container_network_receive_bytes_total"


def line(series: str, value: str, time_ms: int, container: str = "", pod: str = "cart-1", **labels: str) -> str:
    """A line as a kubelet writes it; a pod as a whole has no container, the machine has neither."""
    labels = {"container": container, "id": "/kubepods/a", "namespace": "shop", "pod": pod} | labels
    words = ",".join(f'{key}="{text}"' for key, text in labels.items())
    return f"{series}{{{words}}} {value} {EPOCH_MS + time_ms}"


TEXT = "\n".join(
    (
        f"# TYPE {CPU} counter",
        line(CPU, "7.5", 100),
        line(CPU, "0.1", 100, name="pause"),
        line(CPU, "5.5", 200, "cart"),
        line(CPU, "1", 300, "cart", "cart-2"),
        line(CPU, "0.5", 400, "proxy", "cart-2"),
        line(CPU, "9", 500, "db", "db-1", namespace="other"),
        line(CPU, "99", 600, pod="", namespace=""),
        line(THROTTLED, "5", 200, "cart"),
        line(RECEIVED, "1e+06", 700, interface="eth0"),
        line(RECEIVED, "5", 700, interface="lo"),
        line("container_fs_reads_total", "3", 700, "cart"),
    )
)


def test_a_pod_is_measured_by_its_containers_and_interfaces() -> None:
    assert {tuple(part): (value.time_ms - EPOCH_MS, value.value) for part, value in measured(TEXT, "shop").items()} == {
        ("cpu_s", "cart-1", "cart"): (200, 5.5),
        ("cpu_s", "cart-2", "cart"): (300, 1),
        ("cpu_s", "cart-2", "proxy"): (400, 0.5),
        ("cpu_throttled_s", "cart-1", "cart"): (200, 0.5),
        ("received_bytes", "cart-1", "eth0"): (700, 1e6),
    }


def test_what_is_no_text_of_cadvisor_tells_nothing() -> None:
    assert measured(f'<html>no</html>\n{CPU}{{pod="a"}} 1\n', "shop") == {}


def test_a_container_that_starts_again_takes_no_time_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pod is the sum of its containers, at the time of the newest measurement."""
    texts = iter(
        "\n".join((line(CPU, cart, time_ms, "cart", "cart-2"), line(CPU, "0.5", 50, "proxy", "cart-2")))
        for time_ms, cart in ((100, "3"), (200, "1"), (200, "1"), (300, "2"))
    )
    answered = threading.Event()

    class Answers:
        def call(self, *_: str) -> str:
            text = next(texts, None)
            if text is None:
                answered.set()
                raise ClusterError("no more")
            return text

    monkeypatch.setattr("framestorm.platform.kubernetes.usage.PERIOD_S", 0.01)
    usage = Kubelets(cast("Cluster", Answers()), "cart", "shop", lambda: {"node": {"cart-2"}})
    with closing(usage.begin()):
        assert answered.wait(10)
    rows = [(row.time_ms - EPOCH_MS, row.metric, row.detail, row.value) for row in usage.readings(0, 2 * EPOCH_MS)]
    assert rows == [(100, "cpu_s", "cart-2", 3.5), (200, "cpu_s", "cart-2", 4.5), (300, "cpu_s", "cart-2", 5.5)]
