"""How what a cluster serves is reached from outside: by a load balancer's address, or by a port of a node."""

import re
import socket
import urllib.parse
from collections.abc import Iterable

from framestorm.endpoint import host_and_port
from framestorm.errors import FramestormError
from framestorm.model.units import listed
from framestorm.platform.kubernetes import pod
from framestorm.platform.kubernetes.cluster import Cluster, ForbiddenError, Object

# By the scheme of a URL that names no port: those of a Service that may be meant, the likeliest first, by their number
# or by what their name begins with, as in http-web.
_PORTS: dict[str, tuple[int | str, ...]] = {
    "http": (80, "http", "http2"),
    "grpc": ("grpc", "h2c", 80, "http2", "http"),
    "https": (443, "https"),
    "grpcs": ("grpcs", 443, "https", "grpc"),
}


def of_service(cluster: Cluster, name: str, namespace: str, scheme: str = "http", number: int | None = None) -> str:
    """Return the URL of a Service as it is seen from outside of the cluster.

    number: which of its ports; without it, the one for the scheme.

    Raises:
        FramestormError: it is not published, or there is no such Service or port.
    """
    service = cluster.get("service", name, namespace)
    port = _port(service, scheme, number)
    for address in (*_places(service), *(service["spec"].get("externalIPs") or ())):
        return f"{scheme}://{_in_url(address)}:{port['port']}"
    if node_port := port.get("nodePort"):
        return f"{scheme}://{_in_url(_node_address(cluster, namespace))}:{node_port}"
    raise FramestormError(
        f"service {name} in namespace {namespace} of {cluster.context} is not published: it has no load balancer and "
        "no node port; forward a port to it, and give the address by --ingress URL"
    )


def is_of(service: Object, parts: urllib.parse.SplitResult) -> bool:
    """Return whether a URL is the address of a Service: its own, its load balancer's, or a port of the nodes.

    A port of the nodes has only one Service, whatever leads to them.
    """
    _, number = host_and_port(parts.geturl())
    for port in service["spec"].get("ports") or ():
        places = {*_places(service), *(service["spec"].get("externalIPs") or ()), service["spec"].get("clusterIP", "")}
        if (port["port"] == number and parts.hostname in places) or port.get("nodePort") == number:
            return True
    return False


def backends(ingresses: Iterable[Object], host: str, path: str) -> list[tuple[Object, str]]:
    """Return the Ingresses that lead a path of a host to a Service, each with the Service's name; the likeliest first.

    As the controllers do, a rule for the host itself goes before one for *.example.com or for any, and then the longest
    path before others.
    """
    found = []
    for item in ingresses:
        usual = {"http": {"paths": [{"backend": item["spec"].get("defaultBackend") or {}}]}}
        for rule in (*(item["spec"].get("rules") or ()), usual):
            of_rule = rule.get("host", "")
            is_wild = of_rule.startswith("*.") and of_rule[2:] == host.partition(".")[2]
            if not (of_rule == host or is_wild or (not of_rule and host in _places(item))):
                continue
            for each in (rule.get("http") or {}).get("paths") or ():
                start, service = each.get("path") or "/", each["backend"].get("service")
                is_below = f"{path}/".startswith(f"{start.rstrip('/')}/")
                if service and (path == start if each.get("pathType") == "Exact" else is_below):
                    found.append(((of_rule == host, is_wild, len(start)), item, str(service["name"])))
    return [(item, name) for _, item, name in sorted(found, key=lambda each: each[0], reverse=True)]


def of_ingress(ingress: Object, scheme: str) -> str:
    """Return the URL of the load balancer of an Ingress.

    Raises:
        FramestormError: it has none.
    """
    if places := _places(ingress):
        return f"{scheme}://{_in_url(places[0])}"
    name, namespace = pod.name_of(ingress), ingress["metadata"]["namespace"]
    raise FramestormError(f"ingress {name} in namespace {namespace} has no address; give that by --ingress URL")


def leads_somewhere(host: str) -> bool:
    """Return whether a name has an address here."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):  # the latter of a name such as a..b
        return False
    return True


def at(url: str, base: str) -> str:
    """Return the address of `url`'s path on the server of `base`, which is called by the protocol of `url`."""
    path = urllib.parse.urlsplit(url)._replace(scheme="", netloc="").geturl() or "/"
    server = re.sub(r"^(http|grpc)(?=s?://)", "grpc" if url.startswith("grpc") else "http", base.rstrip("/"))
    return f"{server}{path}"


def host_of(url: str) -> str:
    """Return the host that a URL names, in small letters, without a port."""
    return urllib.parse.urlsplit(url).hostname or ""


def _places(item: Object) -> list[str]:
    """Return the addresses of the load balancer of a Service or an Ingress."""
    published = item.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
    return [place for each in published for place in (each.get("ip"), each.get("hostname")) if place]


def _port(service: Object, scheme: str, number: int | None) -> Object:
    """Return the port of a number; without one that for a scheme, by its number or name, or else the first.

    Raises:
        FramestormError: there is none.
    """
    ports: list[Object] = service["spec"].get("ports") or []

    def is_called(port: Object, what: int | str) -> bool:
        return what in (port["port"], port.get("name", "").partition("-")[0])

    meant = _PORTS[scheme] if number is None else (number,)
    fitting = [port for what in meant for port in ports if is_called(port, what)] or (ports if number is None else [])
    if not fitting:
        there = listed([str(each["port"]) for each in ports] or ["none"])
        raise FramestormError(
            f"service {pod.name_of(service)} in namespace {service['metadata']['namespace']} has no port {meant[0]}; "
            f"its ports: {there}"
        )
    return fitting[0]


def _node_address(cluster: Cluster, namespace: str) -> str:
    """Return an address of a node, an external one if there is one, of those that are ready first.

    If nodes are not shown, it is that of a pod in the namespace.
    """
    try:
        nodes = sorted(cluster.get("nodes")["items"], key=pod.is_ready, reverse=True)
    except ForbiddenError as error:
        for each in cluster.get("pods", namespace=namespace)["items"]:
            if not pod.is_over(each) and (host := each.get("status", {}).get("hostIP")):
                return str(host)
        raise FramestormError(f"{error}; give the address of the function by --ingress URL") from None
    addresses = [each for node in nodes for each in node["status"].get("addresses") or ()]
    for kind in ("ExternalIP", "InternalIP"):
        for each in addresses:
            if each["type"] == kind:
                return str(each["address"])
    raise FramestormError(f"the nodes of {cluster.context} have no addresses; give the ingress by --ingress URL")


def _in_url(address: str) -> str:
    return f"[{address}]" if ":" in address else address
