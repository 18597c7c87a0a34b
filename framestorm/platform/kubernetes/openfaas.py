"""Functions of a stack file on the OpenFaaS of the cluster made here.

Images of this kit are made and put on the nodes when one of them is deployed: with TensorFlow they are large.
"""

from collections.abc import Sequence
from contextlib import closing
from fnmatch import fnmatchcase
from pathlib import Path

from ruamel.yaml import YAML

from framestorm.errors import FramestormError
from framestorm.platform.kubernetes import kind, layout, needs, pod, watch
from framestorm.platform.kubernetes.cluster import Cluster
from framestorm.platform.kubernetes.function import PASSES_WITHIN_S
from framestorm.platform.kubernetes.observation import Observation, Workload
from framestorm.platform.kubernetes.pod import Trouble
from framestorm.platform.openfaas import docker, gateway, parts
from framestorm.platform.openfaas.layout import NAMESPACE
from framestorm.platform.openfaas.platform import with_variables
from framestorm.setup import pieces as setup

READY_WITHIN_S = 120.0
NAME_LABEL = "faas_function"


def deploy(stack_file: Path, pattern: str | None, words: Sequence[str]) -> None:
    """Deploy the functions whose names match a pattern, and wait until they are ready.

    Raises:
        UsageError: the stack file is wrong; nothing was deployed.
        FramestormError: there is no cluster, it refused a function, or one does not become ready.
    """
    if not kind.is_there():
        raise FramestormError("the cluster was not made; make it by: ./run.sh target kind --from-source")
    gateway.check(stack_file)
    images = _images(stack_file, pattern)
    _bring(sorted({image for image in images.values() if image.startswith(f"{docker.PREFIX}/")}))
    gateway.faas_cli(["deploy", "-f", str(stack_file), "-g", layout.GATEWAY_URL, *words])
    cluster = Cluster(layout.CONTEXT, layout.KUBECONFIG)
    for name in images:
        _wait(cluster, name)


def _images(stack_file: Path, pattern: str | None) -> dict[str, str]:
    """Return the image of each function of a stack file whose name matches a pattern."""
    functions = YAML(typ="safe").load(stack_file)["functions"]
    return {
        name: with_variables(function["image"])
        for name, function in functions.items()
        if fnmatchcase(name, pattern or "*")
    }


def _bring(images: Sequence[str]) -> None:
    """Make images of the kit and put them on the nodes."""
    if not images:
        return
    setup.ensure((*parts.PIECES, docker.BASE_IMAGE))
    with docker.engine():
        docker.make_images()
        load(images)


def load(images: Sequence[str]) -> None:
    """Put images of the machine's own engine on the nodes."""
    ids = docker.ENGINE.run("image", "inspect", "--format", "{{.Id}}", *images).split()
    kind.load(dict(zip(images, ids, strict=True)), lambda archive: docker.ENGINE.save(images, archive))


def _wait(cluster: Cluster, name: str) -> None:
    workload = Workload(name, NAMESPACE, f"{NAME_LABEL}={name}", watch.DEPLOYMENTS, name)
    with closing(Observation(cluster, workload).begin()) as observation:

        def is_ready() -> bool:
            item = observation.item()
            if item is None or not pod.is_current(item):
                return False  # what its status tells is of the version before
            counts = {item["status"].get(name, 0) for name in ("replicas", "updatedReplicas", "availableReplicas")}
            return counts == {item["spec"]["replicas"]}

        def trouble() -> Trouble | None:
            return observation.trouble({NAME_LABEL: name})

        if observation.wait(lambda: is_ready() or trouble() is not None, READY_WITHIN_S):
            observation.wait(is_ready, PASSES_WITHIN_S)
        if is_ready():
            return
        why = trouble() or needs.why(observation.item() or {})
    raise FramestormError(f"{name} does not become ready: {why}")
