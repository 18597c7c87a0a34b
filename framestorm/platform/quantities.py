"""Amounts of CPU and memory as Kubernetes and OpenFaaS write them (250m, 512Mi)."""

import re
from decimal import Decimal
from typing import Annotated

from pydantic import AfterValidator, BeforeValidator, Field

from framestorm.model.study import Meaning

_UNITS: dict[str, int | Decimal] = {
    "": 1, "m": Decimal("0.001"), "k": 10**3, "K": 10**3, "M": 10**6, "G": 10**9, "T": 10**12,
    "g": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40,
}  # fmt: skip

# No program runs in less: whoever writes 512 means 512Mi.
_LEAST_BYTES = 10**6


def _number_as_text(value: object) -> object:
    return str(value) if isinstance(value, int | float) and not isinstance(value, bool) else value


def _runs(size: str) -> str:
    if amount(of_kubernetes(size)) < _LEAST_BYTES:
        raise ValueError("no program runs in so little")
    return size


Cores = Annotated[
    str,
    Field(pattern=r"^[0-9]*\.?[0-9]+m?$"),
    BeforeValidator(_number_as_text),
    Meaning("cores, or thousandths of one (250m)"),
]
Bytes = Annotated[
    str,
    Field(pattern=r"^[0-9]*\.?[0-9]+([KMG]i|[kKMGmg])?$"),
    BeforeValidator(_number_as_text),
    AfterValidator(_runs),
    Meaning("a number of bytes of at least 1M (512Mi)"),
]


def of_kubernetes(size: str) -> str:
    """Return a number of bytes as Kubernetes writes it: OpenFaaS and Docker take a small g and m, too."""
    return size.replace("g", "G").replace("m", "M").replace("K", "k") if not size.endswith("i") else size


def amount(quantity: str) -> float:
    """Return a quantity of Kubernetes as a number: cores, or bytes.

    Raises:
        ValueError: it is none.
    """
    parts = re.fullmatch(r"([0-9]*\.?[0-9]+)([a-zA-Z]*)", quantity)
    if parts is None or parts[2] not in _UNITS:
        raise ValueError(f"{quantity!r} is not a quantity such as 250m or 512Mi")
    return float(Decimal(parts[1]) * _UNITS[parts[2]])
