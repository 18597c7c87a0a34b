"""Images of containers, made from programs without a registry and without an engine: an archive as `docker save` has.

The same files give the same layer, and a layer that several images have is in the archive once.
"""

import hashlib
import io
import json
import platform
import tarfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

NOBODY = "65532"
ARCHITECTURES = {"x86_64": "amd64", "aarch64": "arm64"}
PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Image:
    """An image of one layer of files, on top of others.

    names: NAME:TAG, several for one image. files: where each is in the image, and here. links: where each is, and what
    it leads to. below: archives of layers below. environment: what programs have beside PATH. user: nobody, as clusters
    demand of what needs no rights.
    """

    names: tuple[str, ...]
    files: Mapping[str, Path]
    entrypoint: tuple[str, ...] = ()
    links: Mapping[str, str] = field(default_factory=dict)
    below: tuple[Path, ...] = ()
    environment: tuple[str, ...] = ()
    user: str = NOBODY


def write(images: Sequence[Image], archive: Path) -> None:
    """Write images into one archive."""
    manifest = []
    added: set[str] = set()

    def add(name: str, content: bytes) -> None:
        if name not in added:
            added.add(name)
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))

    with tarfile.open(archive, "w") as tar:
        for image in images:
            layers = [*(path.read_bytes() for path in image.below), _layer(image)]
            digests = [hashlib.sha256(layer).hexdigest() for layer in layers]
            for digest, layer in zip(digests, layers, strict=True):
                add(f"{digest}/layer.tar", layer)
            config = _config(image, digests)
            name = f"{hashlib.sha256(config).hexdigest()}.json"
            add(name, config)
            paths = [f"{digest}/layer.tar" for digest in digests]
            manifest.append({"Config": name, "RepoTags": list(image.names), "Layers": paths})
        add("manifest.json", json.dumps(manifest).encode())


def _config(image: Image, digests: Sequence[str]) -> bytes:
    settings = {"Env": [PATH, *image.environment], "Entrypoint": list(image.entrypoint), "User": image.user}
    layers = {"type": "layers", "diff_ids": [f"sha256:{digest}" for digest in digests]}
    machine = platform.machine()
    system = {"architecture": ARCHITECTURES.get(machine, machine), "os": "linux"}
    return json.dumps({**system, "config": settings, "rootfs": layers}).encode()


def _layer(image: Image) -> bytes:
    """Return a layer with the image's files, their folders, and an empty /tmp."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        entries = {path.strip("/") for path in (*image.files, *image.links)}
        folders = {str(parent) for entry in entries for parent in Path(entry).parents} - {"."}
        for folder in sorted({*folders, "tmp"}):
            tar.addfile(_info(folder, tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755))
        for path, source in sorted(image.files.items()):
            info = _info(path.strip("/"), tarfile.REGTYPE, 0o755 if source.stat().st_mode & 0o100 else 0o644)
            info.size = source.stat().st_size
            with source.open("rb") as content:
                tar.addfile(info, content)
        for path, target in sorted(image.links.items()):
            info = _info(path.strip("/"), tarfile.SYMTYPE, 0o777)
            info.linkname = target
            tar.addfile(info)
    return buffer.getvalue()


def _info(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.mode = kind, mode
    return info
