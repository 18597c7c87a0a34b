"""Services of Docker Swarm, made, watched and removed by the `docker` command.

The engine is the one that `docker` speaks to (DOCKER_HOST, or its current context): a manager of the swarm.
"""

import ipaddress
import json
import shutil
import socket
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

from framestorm.endpoint import check_reachable
from framestorm.errors import FramestormError
from framestorm.machine import own_addresses, wait_until
from framestorm.model.units import listed
from framestorm.platform import images
from framestorm.platform.base import Reading
from framestorm.platform.deployment import Deployment
from framestorm.platform.openfaas import docker
from framestorm.platform.openfaas.layout import BIN
from framestorm.platform.timeline import READY, WANTED, Timeline

# Where each route is published: by the mesh on every node, by the balancer in front on the manager.
PORTS = {"mesh": 8094, "dnsrr": 8095, "redirect": 8096}
# Those with a balancer of the kit in front, by its program's name.
FRONTS = ("dnsrr", "redirect")
NETWORK = "framestorm"
# Labels: who made it, what for, and from which settings.
OWNER, FUNCTION, ROUTE, VERSION = (f"framestorm.{name}" for name in ("owner", "function", "route", "version"))
RUNS_WITHIN_S = 180.0
GOES_WITHIN_S = 60.0
ANSWERS_WITHIN_S = 20.0
FAILED = ("failed", "rejected", "orphaned")
ENDED = (*FAILED, "complete", "shutdown")
# Swarm goes on trying; what fails so often at its start will not run.
FAILS_AT_MOST = 3

Object = Mapping[str, Any]


@dataclass(frozen=True)
class SwarmService:
    """What a service is to be.

    limits: of each replica, in docker's words. version: a short name of all for which a new service is needed.
    """

    function: str
    image: str
    route: str
    port: int
    replicas: int
    version: str
    limits: Sequence[str] = ()
    environment: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Its name in the swarm."""
        return f"framestorm-{self.function}"

    def words(self, owner: str) -> list[str]:
        """Return the words that make it."""
        labels = {OWNER: owner, FUNCTION: self.function, ROUTE: self.route, VERSION: self.version}
        words = ["--name", self.name, *(f"--label={key}={value}" for key, value in labels.items()), *self.limits]
        words += [f"--env={key}={value}" for key, value in self.environment.items()]
        if self.route == "mesh":
            words += [f"--publish=published={PORTS['mesh']},target={self.port},mode=ingress"]
        elif self.route == "dnsrr":
            words += ["--endpoint-mode=dnsrr", f"--network={NETWORK}"]
        else:
            words += [f"--publish=target={self.port},mode=host"]
        return [*words, f"--replicas={self.replicas}", self.image]


def manager() -> str:
    """Return the address of the swarm's manager that docker speaks to.

    Raises:
        FramestormError: there is no docker, or its engine is no manager of a swarm.
    """
    advice = "start it, or name the engine of a swarm's manager by DOCKER_HOST"
    if shutil.which("docker") is None:
        raise FramestormError(f"this machine has no docker command; install Docker or its client alone, then {advice}")
    try:
        swarm = json.loads(docker.ENGINE.run("info", "--format", "{{json .Swarm}}"))
    except FramestormError as error:
        raise FramestormError(f"docker reaches no engine: {str(error).splitlines()[-1]} Please {advice}") from None
    if not swarm.get("ControlAvailable"):
        raise FramestormError(
            f"the Docker engine is no manager of a swarm (its state: {swarm.get('LocalNodeState', 'unknown')}); run "
            "docker swarm init, or name a manager's engine by DOCKER_HOST"
        )
    return str(swarm["NodeAddr"])


def _engine_host() -> str:
    """Return the host of the engine as docker reaches it, such as its public name; empty for one of this machine."""
    try:
        engine = docker.ENGINE.run("context", "inspect", "--format", "{{.Endpoints.docker.Host}}")
    except FramestormError:
        return ""
    return urlsplit(engine.strip()).hostname or ""


def urls_of(route: str) -> list[str]:
    """Return the URLs of what is published on a route: by the manager's address in the swarm, and as docker has it."""
    hosts = [f"[{host}]" if ":" in host else host for host in (manager(), _engine_host()) if host]
    return [f"http://{host}:{PORTS[route]}/" for host in dict.fromkeys(hosts)]


def bring_to(wanted: SwarmService, owner: str) -> str:
    """Have a service as wanted, and wait until its replicas run and are reached; returns its URL.

    Raises:
        FramestormError: it does not run, or another has its place.
    """
    urls = urls_of(wanted.route)
    fronts = [each for each in _made() if each["Spec"]["Name"] == _front(wanted.name)]
    is_there = False
    for each in made():
        labels, name = each["Spec"]["Labels"], each["Spec"]["Name"]
        if labels[OWNER] != owner:
            raise FramestormError(
                f"the swarm has the service {name} of another study or command; end that first, or, if nothing uses "
                f"it, docker service rm {name}"
            )
        is_there |= name == wanted.name and labels[VERSION] == wanted.version
    if is_there:
        docker.ENGINE.run("service", "scale", "--detach", f"{wanted.name}={wanted.replicas}")
    else:
        remove(owner)
        if wanted.route == "dnsrr":
            docker.ENGINE.run("network", "create", "--driver=overlay", f"--label={OWNER}={owner}", NETWORK)
        _create(wanted.words(owner))
    _wait_until_running(wanted.name, wanted.replicas)
    if wanted.route in FRONTS:
        if not (is_there and fronts and _knows_replicas(fronts[0], wanted)):
            if is_there and fronts:
                docker.ENGINE.run("service", "rm", _front(wanted.name))
            _create(_front_words(wanted, owner))
        _wait_until_running(_front(wanted.name), 1)
    return _reached(urls)


def _create(words: Sequence[str]) -> None:
    # The image as the nodes have it: its digest is not asked of a registry, which may not know it. Nodes that pull it
    # need this user's login.
    docker.ENGINE.run("service", "create", "--detach", "--no-resolve-image", "--with-registry-auth", *words)


def _front(name: str) -> str:
    """Return the name of the service that stands in front of another."""
    return f"{name}-front"


def _front_words(wanted: SwarmService, owner: str) -> list[str]:
    """Return the words that make the balancer in front of a service whose replicas run, on the manager."""
    route = wanted.route
    image, program = f"{docker.PREFIX}/{route}:{docker.TAG}", f"/{route}"
    with tempfile.TemporaryDirectory() as folder:
        archive = Path(folder) / "front.tar"
        images.write([images.Image((image,), {program: BIN / route}, (program,))], archive)
        docker.ENGINE.load(archive)
    node = docker.ENGINE.run("info", "--format", "{{.Swarm.NodeID}}").strip()
    labels = {OWNER: owner, FUNCTION: "", ROUTE: route, VERSION: wanted.version}
    words = ["--name", _front(wanted.name), *(f"--label={key}={value}" for key, value in labels.items())]
    words += [f"--constraint=node.id=={node}", f"--publish=published={PORTS[route]},target=8080,mode=host"]
    if route == "dnsrr":
        return [*words, f"--network={NETWORK}", image, "-name", wanted.name, "-port", str(wanted.port)]
    return [*words, image, "-listen", ":8080", "-workers", _published(wanted.name)]


def _knows_replicas(front: Object, wanted: SwarmService) -> bool:
    """Return whether the balancer in front of a service leads to its replicas as they are now.

    The redirect has been told them: one that the swarm has replaced since is at another port, perhaps of another node.
    """
    arguments = front["Spec"]["TaskTemplate"]["ContainerSpec"].get("Args") or ()
    return wanted.route != "redirect" or _published(wanted.name) in arguments


def _published(name: str) -> str:
    """Return where the replicas of a service are reached, as host:port of their nodes, with commas between them."""
    nodes = {each["ID"]: each["Status"]["Addr"] for each in _nodes()}
    running = [each for each in tasks(name) if each["Status"]["State"] == "running"]
    return ",".join(
        sorted(
            f"{nodes[each['NodeID']]}:{each['Status']['PortStatus']['Ports'][0]['PublishedPort']}" for each in running
        )
    )


def _nodes() -> list[Object]:
    return _inspected("node", docker.ENGINE.run("node", "ls", "--quiet").split())


def _wait_until_running(name: str, replicas: int) -> None:
    def of_state(*states: str) -> list[Object]:
        return [each for each in tasks(name) if each["Status"]["State"] in states]

    def is_decided() -> bool:
        running = of_state("running")
        wanted = [each for each in running if each["DesiredState"] == "running"]
        return len(wanted) == len(running) == replicas or len(of_state(*FAILED)) - before >= FAILS_AT_MOST

    before = len(of_state(*FAILED))
    wait_until(is_decided, RUNS_WITHIN_S, 0.2)
    running = len(of_state("running"))
    if running == replicas:
        return
    whys = [each["Status"].get("Err") or each["Status"]["Message"] for each in of_state(*FAILED) or tasks(name)]
    raise FramestormError(
        f"service {name}: {running} of {replicas} replicas run: {whys[-1] if whys else 'it has no task'}; see docker "
        f"service ps --no-trunc {name}"
    )


def _reached(urls: list[str]) -> str:
    """Wait until one of these URLs is reached, and return it."""

    def is_reached(url: str) -> bool:
        try:
            check_reachable(url)
        except FramestormError:
            return False
        return True

    url = wait_until(lambda: next(filter(is_reached, urls), None), ANSWERS_WITHIN_S)
    if url is None:
        port = urlsplit(urls[0]).port
        raise FramestormError(
            f"the replicas run, and nothing answers at {listed(urls)}; port {port} of the nodes has to be open to this "
            "machine, and the routing mesh needs a kernel with IP_VS (modules ip_vs and xt_ipvs) on each node, and "
            "ports 4789/udp and 7946 open between them"
        )
    return url


def made() -> list[Object]:
    """Return the services in the swarm that were made here, by whomever, without the balancers in front."""
    return [each for each in _made() if each["Spec"]["Labels"][FUNCTION]]


def _made() -> list[Object]:
    names = docker.ENGINE.run("service", "ls", "--quiet", "--filter", f"label={OWNER}").split()
    return _inspected("service", names)


def _inspected(kind: str, names: Sequence[str]) -> list[Object]:
    found: list[Object] = json.loads(docker.ENGINE.run("inspect", "--type", kind, *names)) if names else []
    return found


def tasks(name: str) -> list[Object]:
    """Return the tasks of a service, those that ended too, as far as the swarm keeps them; the oldest first."""

    def ask() -> list[Object]:
        return _inspected("task", docker.ENGINE.run("service", "ps", "--quiet", "--no-trunc", name).split())

    try:
        found = ask()
    except FramestormError:
        found = ask()  # the swarm may have forgotten one between the two calls
    return sorted(found, key=lambda each: str(each["CreatedAt"]))


def leads_to(service: Object, address: SplitResult) -> bool:
    """Return whether an address is that of a service: of any node by the mesh, of the manager by the proxy."""
    route = service["Spec"]["Labels"][ROUTE]
    if address.port != PORTS[route]:
        return False
    nodes = {manager()} if route in FRONTS else {each["Status"]["Addr"] for each in _nodes()}
    nodes |= _addresses(_engine_host())
    places = _addresses(address.hostname or "")
    # What nodes publish, they publish on all of their addresses.
    is_here = any(ipaddress.ip_address(each).is_loopback for each in places) and not nodes.isdisjoint(own_addresses())
    return is_here or not nodes.isdisjoint(places)


def _addresses(host: str) -> set[str]:
    """Return the addresses that a host's name leads to; none if there is no such host, or no name."""
    if not host:
        return set()
    try:
        return {str(info[4][0]).partition("%")[0] for info in socket.getaddrinfo(host, None)}
    except (OSError, UnicodeError):
        return set()


def remove(owner: str) -> list[str]:
    """Remove an owner's services and network, wait until they are gone, and return the services' names."""
    names = [each["Spec"]["Name"] for each in _made() if each["Spec"]["Labels"][OWNER] == owner]
    if names:
        docker.ENGINE.run("service", "rm", *names)
    label = ("--filter", f"label={OWNER}={owner}")

    def is_removed() -> bool:
        # A network is in use until the last task has let go of it.
        networks = docker.ENGINE.run("network", "ls", "--quiet", *label).split()
        return not networks or docker.ENGINE.succeeds("network", "rm", *networks)

    if not wait_until(is_removed, GOES_WITHIN_S, 0.5):
        raise FramestormError(f"the network {NETWORK} is still in use {GOES_WITHIN_S:.0f} s after its services")
    return names


def deployment(service: Object) -> Deployment:
    """Return what runs for a service, as the swarm says."""
    spec = service["Spec"]
    container = spec["TaskTemplate"]["ContainerSpec"]
    limits = spec["TaskTemplate"].get("Resources", {}).get("Limits", {})
    texts = {"cpu": f"{limits['NanoCPUs'] / 1e9:g}"} if limits.get("NanoCPUs") else {}
    texts |= {"memory": str(limits["MemoryBytes"])} if limits.get("MemoryBytes") else {}
    replicas = spec["Mode"]["Replicated"]["Replicas"]
    version = str(service["Version"]["Index"])
    return Deployment(spec["Labels"][FUNCTION], container["Image"], version, {}, texts, 0, replicas, replicas)


def readings(service: Object, start_ms: float, end_ms: float) -> Iterator[Reading]:
    """Yield the replicas of a service over a span of time, and how those ended that did."""
    function, timeline = service["Spec"]["Labels"][FUNCTION], Timeline(service["Spec"]["Labels"][FUNCTION])
    changes: list[tuple[float, int]] = []
    ends = []
    for task in tasks(service["Spec"]["Name"]):
        status, at_ms = task["Status"], _time_ms(task["Status"]["Timestamp"])
        if status["State"] == "running":
            changes.append((at_ms, 1))
        elif status["State"] in ENDED and start_ms <= at_ms <= end_ms:
            # When it began to run is not told any more; what was made before the span ran then.
            changes += [(start_ms, 1), (at_ms, -1)] if _time_ms(task["CreatedAt"]) < start_ms else []
            # One that the swarm was asked to end is none that was lost.
            if status["State"] != "shutdown":
                what = f"{service['Spec']['Name']}.{task['Slot']}: {status.get('Err') or status['State']}"
                exit_status = status.get("ContainerStatus", {}).get("ExitCode", 0)
                ends.append(Reading(round(at_ms), "replica_ended", function, what, exit_status))
    timeline.set(WANTED, 0, service["Spec"]["Mode"]["Replicated"]["Replicas"])
    timeline.set(READY, 0, 0)
    ready = 0
    for at_ms, step in sorted(changes):
        ready += step
        timeline.set(READY, at_ms, ready)
    timeline.set("replicas_lost", 0, 0)
    for count, end in enumerate(sorted(ends), start=1):
        timeline.set("replicas_lost", end.time_ms, count)
    yield from timeline.readings(start_ms, end_ms)
    yield from ends


def _time_ms(text: str) -> float:
    """Return a time as Docker writes it, with nanoseconds."""
    seconds, _, fraction = text.rstrip("Z").partition(".")
    return datetime.fromisoformat(f"{seconds}+00:00").timestamp() * 1000 + float(f"0.{fraction or 0}") * 1000
