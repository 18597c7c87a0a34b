"""The address of a function: where its URL leads, whether something answers there, and with a valid certificate."""

import base64
import http.client
import ipaddress
import ssl
import urllib.parse
from collections.abc import Sequence
from pathlib import Path

from framestorm.connections import CONNECT_WITHIN_S, connection, why_unreached
from framestorm.errors import FramestormError, UsageError

# What to do about a certificate, by OpenSSL's X509_V_ERR; in all other cases its authority is not known here.
_ADVICE = {
    9: "set the clock right, here or there",
    10: "renew it",
    18: "to trust it, give its file by {option}file",
    62: "call the server by a name in its certificate",
    64: "call the server by a name or an address in its certificate",
}

# The variable of the environment by which the kit's clients find authorities, as Python's requests does.
CLIENTS_AUTHORITIES = "REQUESTS_CA_BUNDLE"
_DEFAULT_PORTS = {"http": 80, "https": 443, "grpc": 80, "grpcs": 443}
_ISSUER_UNKNOWN = 20  # OpenSSL's X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY


def host_and_port(url: str) -> tuple[str, int]:
    """Return where a URL leads to.

    Raises:
        UsageError: the URL has no scheme of HTTP or gRPC, no host, a wrong port, or a login, which no client here
            would send.
    """
    try:
        parts = urllib.parse.urlsplit(url)
        port = parts.port
    except ValueError as error:
        raise UsageError(f"{url}: {error}") from None
    if (
        not url.startswith(tuple(f"{scheme}://" for scheme in _DEFAULT_PORTS))
        or not parts.hostname
        or url != url.strip()
        or not url.isprintable()
    ):
        raise UsageError(f"{url!r} is not a URL such as http://host:8080/path, with http:// or https:// and a host")
    if port == 0:
        raise UsageError(f"{url}: nothing can listen on port 0")
    if "@" in parts.netloc:
        raise UsageError(
            "the URL contains a login; put it into a header: Authorization: Basic ${env:LOGIN}, where LOGIN is "
            "user:password in base64 (printf %s user:password | base64 -w0)"
        )
    # As RFC 6874 writes the zone of an address: [fe80::1%25eth0].
    return parts.hostname.replace("%25", "%", 1), port or _DEFAULT_PORTS[parts.scheme]


def is_on_this_machine(url: str) -> bool:
    """Return whether a URL leads to this machine's loopback."""
    try:
        host, _ = host_and_port(url)
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except (UsageError, ValueError):
        return False


def check_reachable(url: str, proxy: str = "", hosts: Sequence[str] = ()) -> None:
    """Check that something accepts connections at a URL; sends no request, because a function may be costly.

    proxy: host:port of the proxy on the way; what is on its other side cannot be looked at from here.
    hosts: where the name in the URL leads instead of where the system says; one that answers is enough.

    Raises:
        UsageError: the URL is wrong.
        FramestormError: nothing answers there.
    """
    host, port = host_and_port(url)
    target = f"{host}:{port}"
    if proxy and (why := why_unreached(proxy)):
        raise FramestormError(
            f"nothing answers at the proxy {proxy} ({why}), by which {target} is called; check its address, and that "
            "it is running"
        )
    if not proxy and (why := why_unreached(target, hosts)):
        raise FramestormError(
            f"nothing answers at {target} ({why}); check the URL, and that the gateway or the function is running"
        )


def check_certificate(url: str, option: str, authorities: str, proxy: str = "", server_name: str = "") -> None:
    """Check a server's certificate by a handshake without a request. JMeter itself accepts any.

    Args:
        url: the function's; one without TLS has none.
        option: the option that gives the authorities, or CLIENTS_AUTHORITIES.
        authorities: who may have signed it: `@file`, empty for those of the system, or `none` for no check. Those of
            clients have no `@`, and may be a folder.
        proxy: URL of the proxy on the way, with its login.
        server_name: the name in the requests' own Host header, which the handshake then has; empty for the URL's.

    Raises:
        UsageError: the file holds no certificates.
        FramestormError: the certificate is not valid, or there is no TLS.
    """
    if not url.startswith("https://") or authorities == "none":
        return
    host, port = host_and_port(url)
    is_of_clients = option == CLIENTS_AUTHORITIES
    if is_of_clients and not authorities and not _has_system_authorities():
        return  # the clients' libraries bring some
    file = authorities.removeprefix("@") or None
    folder = file if is_of_clients and Path(file or "").is_dir() else None
    try:
        context = ssl.create_default_context(cafile=None if folder else file, capath=folder)
    except OSError as error:
        raise UsageError(f"{option}={authorities}: no certificates in PEM can be read there: {error}") from None
    way = urllib.parse.urlsplit(proxy)
    place = (way.hostname or host, (way.port or 80) if proxy else port)
    client = http.client.HTTPConnection(*place, timeout=CONNECT_WITHIN_S)
    # http.client has no other way to tell it how to connect: it would give each address of a name all of the time.
    client._create_connection = lambda *_: connection(place[:1], place[1])  # type: ignore[attr-defined]
    name = server_name or host.partition("%")[0]
    if proxy:
        login = base64.b64encode(urllib.parse.unquote(f"{way.username}:{way.password or ''}").encode()).decode()
        client.set_tunnel(host, port, {"Proxy-Authorization": f"Basic {login}"} if way.username else {})
    try:
        name.encode("idna")  # where this fails, wrap_socket would leave the connection open
        client.connect()
        context.wrap_socket(client.sock, server_hostname=name).close()
    except ssl.SSLCertVerificationError as error:
        called = f" for the Host header's name {server_name}" if server_name else ""
        advice = _ADVICE.get(error.verify_code, "{option}ca.pem names the authority that signed it")
        advice = advice.format(option=f"{option}=" if is_of_clients else f"{option}=@")
        if error.verify_code == _ISSUER_UNKNOWN and not proxy and (issuer := _issuer_of_one(host, port, name)):
            advice = (
                f"the server sends this certificate alone, signed by {issuer}: if that is an intermediate authority, "
                f"have the server send its whole chain, or add it to the file; if not, {advice}"
            )
        raise FramestormError(
            f"the certificate of {host}:{port}{called} is not valid: {error.verify_message.rstrip('.')}; "
            + advice
            + ("" if is_of_clients else f", or accept any certificate by {option}=none")
        ) from None
    except ssl.SSLError as error:
        if error.reason == "WRONG_VERSION_NUMBER":
            raise FramestormError(f"{host}:{port} does not speak TLS: does its URL begin with http://?") from None
        # It may want a client's certificate, which the samples show.
    except (OSError, ValueError, http.client.HTTPException) as error:  # the second of a name such as a..b
        raise FramestormError(f"no TLS connection to {host}:{port}: {error}") from None
    finally:
        client.close()


def _has_system_authorities() -> bool:
    paths = ssl.get_default_verify_paths()
    return bool(paths.cafile or (paths.capath and any(Path(paths.capath).iterdir())))


def _issuer_of_one(host: str, port: int, name: str) -> str | None:
    """Return the name of who signed a server's certificate, if the server sends no other; None if it sends a chain."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            connection((host,), port) as plain,
            context.wrap_socket(plain, server_hostname=name) as encrypted,
        ):
            # Before Python 3.13, only this way leads to a chain that is not valid.
            chain = encrypted._sslobj.get_unverified_chain()  # type: ignore[attr-defined]
            issuers = [each.get_info()["issuer"] for each in chain]
    except (OSError, AttributeError):
        return None
    names = {name: value for part in issuers[0] for name, value in part}
    return (names.get("commonName") or names.get("organizationName")) if len(issuers) == 1 else None


def proxy_url(proxy: str) -> str:
    """Return the URL of a proxy given as host:port, with or without a login or scheme; empty without a proxy.

    Raises:
        UsageError: it is neither.
    """
    url = proxy if "://" in proxy or not proxy else f"http://{proxy}"
    try:
        parts = urllib.parse.urlsplit(url)
        is_usable = not url or (parts.scheme in ("http", "https") and parts.hostname and parts.port)
    except ValueError:
        is_usable = False
    if not is_usable:
        raise UsageError("-Jproxy: a proxy is host:port or user:password@host:port")
    return url
