"""How what a cluster serves is reached from outside: by a load balancer's address, or by a port of a node."""

import socket
import urllib.parse

from framestorm.errors import FramestormError
from framestorm.model.units import listed
from framestorm.platform.kubernetes import pod
from framestorm.platform.kubernetes.cluster import Cluster, ForbiddenError, Object

# By the scheme of a URL: the port where it names none, and what Services call such ports.
_PORTS = {
    "http": (80, ("http", "http2")),
    "grpc": (80, ("grpc", "h2c", "http2", "http")),
    "https": (443, ("https",)),
    "grpcs": (443, ("https", "grpcs")),
}


def of_service(cluster: Cluster, name: str, namespace: str, scheme: str = "http", number: int | None = None) -> str:
    """Return the URL of a Service as it is seen from outside of the cluster.

    number: which of its ports; without it, the one for the scheme.

    Raises:
        FramestormError: it is not published, or there is no such Service or port.
    """
    service = cluster.get("service", name, namespace)
    port = _port(service, scheme, number)
    for each in service.get("status", {}).get("loadBalancer", {}).get("ingress") or ():
        return f"{scheme}://{_in_url(each.get('ip') or each['hostname'])}:{port['port']}"
    for address in service["spec"].get("externalIPs") or ():
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
    number = parts.port or _PORTS[parts.scheme][0]
    for port in service["spec"].get("ports") or ():
        published = service.get("status", {}).get("loadBalancer", {}).get("ingress") or ()
        places = {place for each in published for place in (each.get("ip"), each.get("hostname")) if place}
        places |= {*(service["spec"].get("externalIPs") or ()), service["spec"].get("clusterIP", "")}
        if (port["port"] == number and parts.hostname in places) or port.get("nodePort") == number:
            return True
    return False


def leads_somewhere(host: str) -> bool:
    """Return whether a name has an address here."""
    try:
        socket.getaddrinfo(host, None)
    except (OSError, UnicodeError):  # the latter of a name such as a..b
        return False
    return True


def at(url: str, base: str) -> str:
    """Return the address of `url`'s path on the server of `base`."""
    path = urllib.parse.urlsplit(url)._replace(scheme="", netloc="").geturl() or "/"
    return f"{base.rstrip('/')}{path}"


def host_of(url: str) -> str:
    """Return the host that a URL names, in small letters, without a port."""
    return urllib.parse.urlsplit(url).hostname or ""


def _port(service: Object, scheme: str, number: int | None) -> Object:
    """Return the port of a number; without one that for a scheme, by its usual number or name, or else the first.

    Raises:
        FramestormError: there is none.
    """
    ports: list[Object] = service["spec"].get("ports") or []
    usual, names = _PORTS[scheme]
    if number is None:
        fitting = [each for each in ports if each["port"] == usual or each.get("name") in names] or ports
    else:
        fitting = [each for each in ports if each["port"] == number]
    if not fitting:
        there = listed([str(each["port"]) for each in ports] or ["none"])
        raise FramestormError(
            f"service {pod.name_of(service)} in namespace {service['metadata']['namespace']} has no port "
            f"{number or usual}; its ports: {there}"
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
