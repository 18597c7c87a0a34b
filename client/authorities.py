"""The authorities that may have signed a server's certificate: those of a file or a folder, or else the usual ones."""

import os
import ssl
from pathlib import Path

VARIABLE = "REQUESTS_CA_BUNDLE"


def tls_context() -> ssl.SSLContext:
    """Return a context that trusts them.

    Raises:
        ValueError: the environment names what has no certificates.
    """
    path = os.environ.get(VARIABLE) or None
    is_folder = path is not None and Path(path).is_dir()
    try:
        return ssl.create_default_context(cafile=None if is_folder else path, capath=path if is_folder else None)
    except OSError as error:
        raise ValueError(f"{VARIABLE} {path} cannot be used: {error}") from error
