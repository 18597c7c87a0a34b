"""A host name that leads to several addresses: clients do not spread their requests over them."""

from dataclasses import dataclass

from framestorm.model.units import listed


@dataclass(frozen=True)
class Name:
    """A name, as host:port, that leads to several addresses, before the load.

    addresses: in the order in which a client tries them, each with why it took no connection; None if it did.
    is_first_only: the client does not try the next one.
    """

    name: str
    addresses: dict[str, str | None]
    is_first_only: bool = False

    @property
    def before_load(self) -> str:
        """Tell the addresses before the load, and which of them requests will go to."""
        every = list(self.addresses)
        refusing = [f"{address} ({why})" for address, why in self.addresses.items() if why]
        first = next((address for address, why in self.addresses.items() if not why), None)
        if not refusing:
            return f"{self.name} has {len(every)} addresses, {listed(every)}: all requests go to the first, {first}"
        takes = "takes" if len(refusing) == 1 else "take"
        said = f"{len(refusing)} of {len(every)} addresses of {self.name} {takes} no connection: {listed(refusing)}"
        if first is None:
            return said
        if self.is_first_only:
            return f"{said}; Java's own HTTP client tries only {every[0]}"
        before = every[: every.index(first)]
        tries = f", and each new connection tries {listed(before)} first" if before else ""
        return f"{said}; all requests go to {first}{tries}"
