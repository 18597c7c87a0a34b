"""A function of OpenFaaS that is deployed again: when it counts as ready."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from framestorm.errors import FramestormError
from framestorm.machine import wait_until
from framestorm.platform.kubernetes import openfaas
from framestorm.platform.kubernetes.cluster import Cluster
from tests.kubernetes import objects
from tests.kubernetes.conftest import remove_namespace

NAMESPACE, LABELS = "openfaas-fn", {openfaas.NAME_LABEL: "ocr"}
SERVES = {"replicas": 1, "updatedReplicas": 1, "availableReplicas": 1, "readyReplicas": 1}


def deployed(replicas: int, image: str) -> dict[str, Any]:
    item = objects.deployment(NAMESPACE, "ocr", LABELS, replicas)
    item["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return item


@pytest.fixture
def updated(serving: Cluster) -> Iterator[Cluster]:
    """A cluster with a function whose first version serves, and whose second one no controller has seen yet."""
    serving.apply([objects.namespace(NAMESPACE), deployed(1, "example.com/ocr:1")])
    objects.set_status(serving, "deployment", "ocr", NAMESPACE, SERVES | {"observedGeneration": 1})
    serving.apply([deployed(1, "example.com/ocr:2")])
    yield serving
    remove_namespace(serving, NAMESPACE)


def test_a_new_version_is_waited_for(updated: Cluster) -> None:
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(openfaas._wait, updated, "ocr")
        assert not wait_until(waiting.done, 3)
        # The first version serves on until the second does.
        changing = SERVES | {"observedGeneration": 2, "updatedReplicas": 0}
        objects.set_status(updated, "deployment", "ocr", NAMESPACE, changing)
        assert not wait_until(waiting.done, 3)
        objects.set_status(updated, "deployment", "ocr", NAMESPACE, SERVES | {"observedGeneration": 2})
        waiting.result(30)


def test_a_new_version_that_does_not_start_is_named(updated: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openfaas, "PASSES_WITHIN_S", 1.0)
    updated.apply([objects.pod(NAMESPACE, "ocr-2", LABELS)])
    objects.set_status(updated, "pod", "ocr-2", NAMESPACE, objects.waiting("ErrImagePull", "not found"))
    with pytest.raises(FramestormError, match=r"ocr does not become ready: pod ocr-2 .*ErrImagePull: not found"):
        openfaas._wait(updated, "ocr")


def test_one_without_replicas_need_not_start(updated: Cluster) -> None:
    updated.apply([deployed(0, "example.com/ocr:3")])
    none = dict.fromkeys(SERVES, 0)
    objects.set_status(updated, "deployment", "ocr", NAMESPACE, none | {"observedGeneration": 3})
    openfaas._wait(updated, "ocr")
