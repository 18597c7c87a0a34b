"""A watch: every change of the objects of one kind, as the API server tells it; nothing is polled."""

import json
import subprocess
import threading
import urllib.parse
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from framestorm.machine import now_ms
from framestorm.platform.kubernetes.cluster import Cluster, ClusterError, Object

# Before a cluster that does not answer is asked again.
RETRY_S = 1.0
END_WITHIN_S = 5.0


@dataclass(frozen=True)
class Kind:
    """A kind of object by its place in the API.

    is_of_cluster: it is in no namespace. fields: the field selector of the objects that are watched; empty for all.
    """

    plural: str
    api: str = "api/v1"
    is_of_cluster: bool = False
    fields: str = ""

    def path(self, namespace: str, query: dict[str, str]) -> str:
        """Return the path of all of its objects in a namespace."""
        place = "" if self.is_of_cluster else f"namespaces/{namespace}/"
        return f"/{self.api}/{place}{self.plural}?{urllib.parse.urlencode(query)}"


PODS = Kind("pods")
NODES = Kind("nodes", is_of_cluster=True)
WARNINGS = Kind("events", fields="type=Warning")
DEPLOYMENTS = Kind("deployments", "apis/apps/v1")
AUTOSCALERS = Kind("horizontalpodautoscalers", "apis/autoscaling/v2")
POD_AUTOSCALERS = Kind("podautoscalers", "apis/autoscaling.internal.knative.dev/v1alpha1")
SERVERLESS_SERVICES = Kind("serverlessservices", "apis/networking.internal.knative.dev/v1alpha1")
KNATIVE_SERVICES = Kind("services", "apis/serving.knative.dev/v1")
INFERENCE_SERVICES = Kind("inferenceservices", "apis/serving.kserve.io/v1beta1")


class ObjectChange(NamedTuple):
    """An object as it is since `at_ms`, by this machine's clock; `is_gone`: as it was last."""

    at_ms: float
    kind: Kind
    item: Object
    is_gone: bool = False


class Watch:
    """Follows one kind, from the list of what is there to `close`, through every end of a connection.

    A watch goes on from the version of the last change. Where the API server does not have that any more (410 Gone), or
    did not answer, it begins with a new list: what is gone since is a change too.
    """

    def __init__(
        self,
        cluster: Cluster,
        kind: Kind,
        namespace: str,
        take: Callable[[ObjectChange], None],
        mark: Callable[[Kind, float, bool], None],
        selector: str = "",
        name: str = "",
    ) -> None:
        """Prepare it.

        Args:
            cluster: the cluster.
            kind: what is followed.
            namespace: where it is; of no meaning for a kind of the whole cluster.
            take: is called for each change, in a thread of the watch.
            mark: is called when the objects are not known any more, and when they are again, with the time of that.
            selector: the labels of those that are followed; empty for all.
            name: that of the one which is followed; empty for all.
        """
        self.kind = kind
        self._cluster, self._namespace, self._take, self._mark = cluster, namespace, take, mark
        query = {"labelSelector": selector, "fieldSelector": f"metadata.name={name}" if name else kind.fields}
        self._query = {key: value for key, value in query.items() if value}
        self._known: dict[str, Object] = {}
        self._version = ""
        self._is_over = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._thread = threading.Thread(target=self._follow, name=f"watch {kind.plural}", daemon=True)

    def begin(self) -> None:
        """Take what is there, then follow it in the background.

        Raises:
            ClusterError: the cluster does not show it.
        """
        self._list()
        self._thread.start()

    def break_off(self) -> None:
        """End the connection, as a network may; the watch begins another."""
        if (process := self._process) is not None:
            process.terminate()

    def close(self) -> None:
        """End it; what it took stays."""
        self._is_over.set()
        self.break_off()
        if self._thread.is_alive():
            self._thread.join(END_WITHIN_S)

    def _list(self) -> None:
        answer = self._cluster.read(self.kind.path(self._namespace, self._query))
        at_ms = now_ms()
        items = {item["metadata"]["uid"]: item for item in answer.get("items") or ()}
        for uid in self._known.keys() - items.keys():
            self._note(ObjectChange(at_ms, self.kind, self._known[uid], is_gone=True))
        for item in items.values():
            self._note(ObjectChange(at_ms, self.kind, item))
        self._version = answer["metadata"]["resourceVersion"]

    def _note(self, change: ObjectChange) -> None:
        uid = change.item["metadata"]["uid"]
        if change.is_gone:
            self._known.pop(uid, None)
        else:
            self._known[uid] = change.item
        self._take(change)

    def _follow(self) -> None:
        while not self._is_over.is_set():
            if self._version:
                is_ended_by_server = self._read_changes()
                if is_ended_by_server:
                    # As it does every few minutes: the next one goes on where this one ended.
                    self._is_over.wait(RETRY_S / 10)
                    continue
            if self._is_over.is_set():
                return
            self._mark(self.kind, now_ms(), False)
            self._version = ""
            while not self._is_over.is_set():
                try:
                    self._list()
                    self._mark(self.kind, now_ms(), True)
                    break
                except ClusterError:
                    self._is_over.wait(RETRY_S)

    def _read_changes(self) -> bool:
        """Read changes until the connection ends; returns whether the next one can go on from here."""
        query = self._query | {"watch": "1", "allowWatchBookmarks": "true", "resourceVersion": self._version}
        with self._cluster.stream(self.kind.path(self._namespace, query)) as process:
            self._process = process
            if self._is_over.is_set():  # `close` has not seen the process
                process.terminate()
            for line in process.stdout or ():
                try:
                    event = json.loads(line)
                except ValueError:  # the connection broke within it
                    return False
                item = event["object"]
                if event["type"] == "ERROR":
                    process.terminate()
                    return False
                self._version = item["metadata"]["resourceVersion"]
                if event["type"] != "BOOKMARK":
                    # A list has the kind once, its items and these have it not.
                    self._note(ObjectChange(now_ms(), self.kind, item, event["type"] == "DELETED"))
        return process.returncode == 0
