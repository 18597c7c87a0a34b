"""The authorities that may have signed a server's certificate: those of a file or a folder, or else the system's.

Where the system has none, such as an image without ca-certificates, those that come with the client's libraries count.
"""

import os
import re
import ssl
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

VARIABLE = "REQUESTS_CA_BUNDLE"
# gRPC reads the file of this one itself.
_OF_GRPC = "GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"
# OpenSSL looks into a folder by such names only.
_HASHED = re.compile(r"[0-9a-f]{8}\.[0-9]+")


def tls_context() -> ssl.SSLContext:
    """Return a context that trusts them; the same one again, as to make it takes 25 ms of CPU.

    Raises:
        ValueError: the environment names what has no certificates.
    """
    return _context(*map(os.environ.get, (VARIABLE, "SSL_CERT_FILE", "SSL_CERT_DIR")))


@lru_cache(maxsize=4)
def _context(named: str | None, *_of_system: str | None) -> ssl.SSLContext:
    path = named or None
    is_folder = path is not None and Path(path).is_dir()
    try:
        context = ssl.create_default_context(cafile=None if is_folder else path, capath=path if is_folder else None)
        if next(_files(), None) is None:
            if path is not None:
                raise OSError("the folder has no certificates under the names that `openssl rehash` gives them")
            import certifi  # imported here: few need it

            context.load_verify_locations(certifi.where())
        return context
    except OSError as error:
        raise ValueError(f"{VARIABLE} {path} cannot be used: {error}") from error


def in_pem() -> bytes | None:
    """Return their certificates as gRPC takes them; None if it has to look for them itself.

    Raises:
        ValueError: the environment names what has no certificates.
        OSError: a file cannot be read.
    """
    if os.environ.get(VARIABLE):
        tls_context()  # gRPC would blame the handshake of each request for wrong ones
    elif os.environ.get(_OF_GRPC):
        return None
    return b"\n".join(file.read_bytes() for file in _files()) or None


def _files() -> Iterator[Path]:
    system = ssl.get_default_verify_paths()
    named = os.environ.get(VARIABLE)
    for place in map(Path, filter(None, [named] if named else [system.cafile, system.capath])):
        if place.is_dir():
            yield from sorted(file for file in place.iterdir() if _HASHED.fullmatch(file.name) and file.is_file())
        else:
            yield place
