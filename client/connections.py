"""Why a connection could not be made, and so nothing was sent."""

import errno

# The generator has no descriptor, port or memory left: of many short connections, all ports may be in TIME_WAIT.
_LIMITS = {errno.EMFILE, errno.ENFILE, errno.EADDRNOTAVAIL, errno.ENOBUFS, errno.ENOMEM}
NOT_CONNECTED = frozenset({"connect", "connect-timeout", "tls", "generator-limit"})


def connect_cause(error: object) -> str:
    """Return the cause of a request by the error of its connection: whether it tells of the generator's own limits."""
    return "generator-limit" if isinstance(error, OSError) and error.errno in _LIMITS else "connect"
