"""What the kubelets measure of the replicas of a function: CPU, its throttling, memory and traffic, from cAdvisor."""

import re
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple, Self

from framestorm.model.scraped import split_series
from framestorm.platform.base import Reading
from framestorm.platform.kubernetes.cluster import Cluster, ClusterError

# A kubelet measures a container every 10 to 15 s by itself; each measurement is taken once, with its own time.
PERIOD_S = 5.0
END_WITHIN_S = 5.0
# By cAdvisor's name, the metric in metrics.csv.
METRICS = {
    "container_cpu_usage_seconds_total": "cpu_s",
    "container_cpu_cfs_throttled_periods_total": "cpu_throttled_s",
    "container_memory_working_set_bytes": "memory_bytes",
    "container_network_receive_bytes_total": "received_bytes",
    "container_network_transmit_bytes_total": "sent_bytes",
}
_LINE = re.compile(rf"((?:{'|'.join(METRICS)})\{{.*\}}) (\S+) (\d+)")
# Of its CPU limit, unless the cluster is set otherwise.
LIMIT_PERIOD_S = 0.1
NETWORK = ("received_bytes", "sent_bytes")


class ContainerMetric(NamedTuple):
    """What a value is of: a pod, and one of its containers; of traffic one of its interfaces."""

    metric: str
    pod: str
    name: str


class Value(NamedTuple):
    """A value, and when it was measured, in epoch ms."""

    time_ms: int
    value: float


def measured(text: str, namespace: str) -> dict[ContainerMetric, Value]:
    """Return what a kubelet tells of the pods of a namespace, in the text of its cAdvisor.

    What it tells of a pod as a whole is left out but for the traffic: it depends on the version of control groups.
    """
    values = {}
    for series, value, time_ms in _LINE.findall(text):
        name, labels = split_series(series)
        metric = METRICS[name]
        part = labels.get("interface" if metric in NETWORK else "container", "")
        if labels.get("namespace") == namespace and labels.get("pod") and part not in ("", "POD", "lo"):
            unit = LIMIT_PERIOD_S if metric == "cpu_throttled_s" else 1
            values[ContainerMetric(metric, labels["pod"], part)] = Value(int(time_ms), float(value) * unit)
    return values


class Kubelets:
    """Asks the kubelets of some pods in the background, from `begin` to `close`; what it read stays."""

    def __init__(
        self, cluster: Cluster, function: str, namespace: str, nodes: Callable[[], Mapping[str, set[str]]]
    ) -> None:
        """Prepare it; `nodes` returns the pods of the function by their node, as they are now."""
        self._cluster, self._function, self._namespace, self._nodes = cluster, function, namespace, nodes
        self._rows: dict[tuple[str, str], dict[int, float]] = defaultdict(dict)
        # Of each part, what was measured last, and what its counter had reached before it began again at 0.
        self._last: dict[ContainerMetric, Value] = {}
        self._before: dict[ContainerMetric, float] = defaultdict(float)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._follow, name="usage of replicas", daemon=True)

    def begin(self) -> Self:
        """Begin to ask."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Ask once more, and end."""
        self._is_over.set()
        if self._thread.is_alive():
            self._thread.join(END_WITHIN_S)

    def readings(self, start_ms: float, end_ms: float) -> Iterator[Reading]:
        """Yield what was measured in a span of time, and last before it."""
        for (metric, pod), rows in list(self._rows.items()):
            measurements = list(rows.items())
            first_ms = max((time_ms for time_ms, _ in measurements if time_ms <= start_ms), default=start_ms)
            for time_ms, value in measurements:
                if first_ms <= time_ms <= end_ms:
                    yield Reading(time_ms, metric, self._function, pod, value)

    def _follow(self) -> None:
        is_last = False
        while True:
            for node, pods in self._nodes().items():
                self._take(node, pods)
            if is_last:
                return
            is_last = self._is_over.wait(PERIOD_S)

    def _take(self, node: str, pods: set[str]) -> None:
        try:
            text = self._cluster.call("get", "--raw", f"/api/v1/nodes/{node}/proxy/metrics/cadvisor")
        except ClusterError:
            # A node that is gone tells nothing: its replicas have no rows from then on.
            return
        values = {part: value for part, value in measured(text, self._namespace).items() if part.pod in pods}
        for part, value in values.items():
            last = self._last.get(part)
            if last is not None and value.value < last.value and part.metric != "memory_bytes":
                self._before[part] += last.value
            self._last[part] = value
        for metric, pod in {(part.metric, part.pod) for part in values}:
            parts = [part for part in self._last if (part.metric, part.pod) == (metric, pod)]
            time_ms = max(self._last[part].time_ms for part in parts)
            self._rows[metric, pod][time_ms] = sum(self._last[part].value + self._before[part] for part in parts)
