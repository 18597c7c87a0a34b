"""Why a connection could not be made, and so nothing was sent."""

import errno
import ssl

# The generator has no descriptor, port or memory left: of many short connections, all ports may be in TIME_WAIT.
_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
_NOT_CONNECTED = {"connect", "connect-timeout", "tls", "generator-limit"}


def connect_cause(error: object) -> str:
    """Return the cause of a request by the error of its connection: whether it tells of the generator's own limits."""
    return "generator-limit" if isinstance(error, OSError) and error.errno in _LIMITS else "connect"


def tls_cause(error: ssl.SSLError) -> str:
    """Return the cause of a failed handshake, with what is wrong with the certificate or the protocol."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
    else:
        why = (error.reason or "").replace("_", " ").lower()
    return f"tls: {why}" if why else "tls"


def is_connected(cause: str | None) -> bool:
    """Return whether there was a connection, by which something was sent."""
    return (cause or "").partition(":")[0] not in _NOT_CONNECTED
