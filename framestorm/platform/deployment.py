"""A deployment: what a platform runs for a function, and between which numbers of replicas it may scale it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from framestorm.platform.quantities import amount

# Twice the replicas that the cores of a cluster hold by their request: room to see an autoscaler ask for too much,
# and still no load that takes a cluster down. Without a bound, an autoscaler under overload asked for 1,158 pods.
REPLICAS_PER_ROOM = 2


@dataclass(frozen=True)
class Deployment:
    """What runs for a function, as the platform itself says.

    revision: the platform's name of this version. requests, limits: cpu and memory, as the platform writes them.
    concurrency_limit: requests in one replica at a time; 0 if there is no limit.
    max_scale: None if nothing bounds the number of replicas.
    """

    function: str
    image: str
    revision: str = ""
    requests: Mapping[str, str] = field(default_factory=dict)
    limits: Mapping[str, str] = field(default_factory=dict)
    concurrency_limit: int = 0
    min_scale: int = 0
    max_scale: int | None = None

    def texts(self) -> dict[str, str]:
        """Return it as texts by name, without what is not set: for a run's record."""
        texts = {"function": self.function, "image": self.image, "revision": self.revision}
        for what, amounts in (("request", self.requests), ("limit", self.limits)):
            texts |= {f"{name}_{what}": value for name, value in amounts.items()}
        texts |= {
            "concurrency_limit": str(self.concurrency_limit or "none"),
            "min_scale": str(self.min_scale),
            "max_scale": "none" if self.max_scale is None else str(self.max_scale),
        }
        return {name: value for name, value in texts.items() if value}


def usual_max_scale(cores: float, cpu_request: str) -> int:
    """Return how far a function may scale on nodes with so many cores in all, if nobody says."""
    return max(1, int(REPLICAS_PER_ROOM * cores / amount(cpu_request)))
