"""A platform: where the function under test runs, how its settings are applied, and which metrics it provides.

A new platform is a module or package in this room with a subclass of `TargetSettings` and one of `Platform`, and a line
in `registry.py`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Generic, NamedTuple, Self, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from framestorm.errors import FramestormError, UsageError
from framestorm.guard import Guarded
from framestorm.model.study import Meaning
from framestorm.setup.pieces import Piece

DEFAULT_PORT = 8080
# What -R begins with where pods make the load, as in k8s:6.
PODS = "k8s:"
# What platforms may keep in a study's folder, for a resumed study to find: what was started, what was deployed last.
MARK, DEPLOYED = "platform.json", "stack.yml"
FILES = (MARK, DEPLOYED)


@dataclass(frozen=True)
class Site:
    """Where functions run, according to the command line; each platform interprets this in its own way.

    port: for a function that the kit runs itself, on this machine's loopback.
    gateway: the address of a platform that runs elsewhere; its functions are used as they are, without changes.
    over_slaves: the load comes from other machines. by_pods: it comes from pods of the cluster, to any address there.
    context: the cluster with the functions, by its name in the kubeconfig. ingress: the URL by which its functions are
        called, where the cluster does not tell.
    """

    port: int = DEFAULT_PORT
    gateway: str | None = None
    over_slaves: bool = False
    by_pods: bool = False
    context: str | None = None
    ingress: str | None = None


class SettingError(FramestormError):
    """A setting of a target is wrong: `name` which, `what` is wrong, what is `allowed`, and the value `seen`."""

    def __init__(self, name: str, what: str, allowed: Sequence[str] = (), seen: str | None = None) -> None:
        super().__init__(f"{what}; allowed: {', '.join(allowed)}" if allowed else what)
        self.name = name
        self.what = what
        self.allowed = tuple(allowed)
        self.seen = seen


def _whole(value: object) -> object:
    """Return a calculated number such as 4.0 as the whole number that is meant."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


Count = Annotated[int, Field(ge=1), BeforeValidator(_whole), Meaning("a whole number of at least 1")]
CountOrNone = Annotated[int, Field(ge=0), BeforeValidator(_whole), Meaning("a whole number of at least 0")]

ListenPort = Annotated[int, Field(ge=1, le=65535), BeforeValidator(_whole), Meaning("a port from 1 to 65535")]

# How study.yml names a function at an address of its own.
ANY_URL = ", as in target: {kind: url, url: http://example.com/function}"


class TargetSettings(BaseModel):
    """How a target is set up, as a study's points give it: `kind` names the platform, the rest is the platform's own.

    The fields of a subclass are what study.yml may set there: name, type, default, description.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """Return settings made from these values, with defaults for the rest.

        Raises:
            SettingError: a value is missing, unknown or wrong, or two of them cannot be combined.
        """
        try:
            settings = cls.model_validate(dict(values))
        except ValidationError as error:
            first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
            name = str(first["loc"][0])
            raise cls._error(name, values, first["type"], first["msg"]) from None
        settings.check()
        return settings

    def check(self) -> None:
        """Check what types cannot express: names that do not exist, values that cannot be combined."""

    @property
    def settle_s(self) -> float:
        """About how long a run waits until what its predecessor left is gone, such as replicas of an autoscaler."""
        return 0.0

    @classmethod
    def _error(cls, name: str, values: Mapping[str, object], kind: str, message: str) -> SettingError:
        """Return what pydantic found wrong, in the words of study.yml."""
        target, value = cls.model_fields["kind"].default, values.get(name)
        if kind == "extra_forbidden":
            return SettingError(name, f"target.{name} is not valid for kind {target}", tuple(cls.model_fields), name)
        if kind == "missing":
            if "kind" in values or name == "url":
                return SettingError(
                    name, f"a target of kind {target} needs its {name}{'' if name != 'url' else ANY_URL}"
                )
            return SettingError(name, f"a target needs its {name} on {target}, or its address{ANY_URL}")
        if kind == "literal_error":
            allowed = get_args(cls.model_fields[name].annotation)
            return SettingError(name, f"target.{name} cannot be {value!r}", allowed, str(value))
        return SettingError(name, f"target.{name} is {json.dumps(value, default=str)}, but has to be {message}")

    def describe(self) -> str:
        """Return the target in words: its kind, and the settings that differ from the defaults."""
        changed = self.model_dump(exclude_defaults=True, exclude={"kind"})
        return ", ".join([self.kind, *(f"{name} {value}" for name, value in changed.items())])

    def texts(self) -> dict[str, str]:
        """Return all settings except kind and url as texts, without those that are not set: for a run's record."""
        texts: dict[str, str] = {}
        for name, value in self.model_dump(exclude={"kind", "url"}, exclude_none=True).items():
            parts = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
            texts |= {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in parts.items()}
        return texts


class Reading(NamedTuple):
    """One value that a platform measured: a row of metrics.csv.

    metric: replicas_wanted, replicas_ready, replicas_lost, replicas_short_s, requests_per_s and gateway_p95_s are of a
        function; in_flight, cpu_s, cpu_throttled_s, received_bytes, sent_bytes and memory_bytes of one replica of it.
        From a cluster, of a function: replicas_terminating, autoscaler_wanted, autoscaler_use_percent, and
        activator_in_path, 1 where requests go through Knative's activator (mode Proxy); of a replica: replica_ready,
        restarts, replica_ended with its exit status, and those of `Activation`; node_ready of a node that had one;
        warning, as often as Kubernetes told it since it was told last.
    detail: the replica or node; of requests_per_s the status code; of replica_ended the replica and the reason; of
        warning its object, reason and message.
    """

    time_ms: int
    metric: str
    function: str
    detail: str
    value: float


@dataclass(frozen=True)
class Check:
    """Something that a study needs: whether it is available, or why not and what to do."""

    what: str
    is_there: bool
    words: str

    def __str__(self) -> str:
        return f"{'ok' if self.is_there else 'MISSING':<8}{self.what}: {self.words}"


def attempt(what: str, words: str, action: Callable[[], object]) -> Check:
    """Check that `action` succeeds, with `words` as its description; if it fails, the check has the reason."""
    try:
        action()
    except FramestormError as error:
        return Check(what, False, str(error))
    return Check(what, True, words)


S = TypeVar("S", bound=TargetSettings)


class Platform(ABC, Generic[S]):
    """One platform during a run or a study, from the first `prepare` to `close`.

    kind: its name in study.yml and run.json. settings: what can be set there.
    serves_any_function: a plan's own choice of function can run there.
    takes_gateway: one that runs elsewhere can be used, at `Site.gateway`. takes_context: it is on `Site.context`.
    runs_with_load: its function answers only inside `serving`, and only to a load from this machine.
    url: the address of the function under test, once that is known. current: the settings last applied to it.
    """

    kind: ClassVar[str]
    settings: ClassVar[type[TargetSettings]]
    serves_any_function: ClassVar[bool] = True
    takes_gateway: ClassVar[bool] = False
    takes_context: ClassVar[bool] = False
    runs_with_load: ClassVar[bool] = False

    def __init__(self, site: Site, folder: Path | None = None) -> None:
        """`folder` is where it keeps files that a study needs again when it is resumed."""
        self.site = site
        self.folder = folder
        self.url = ""
        self.current: S | None = None

    @classmethod
    def at(cls, url: str, site: Site, host: str = "") -> Self | None:
        """Return the platform that a URL leads to, on this machine or the site's cluster; None if it leads elsewhere.

        host: the name in the requests' own Host header; empty for the URL's.
        """
        return None

    @property
    def is_address_only(self) -> bool:
        """Whether it knows no more of its functions than the address: a run looks where that leads."""
        return False

    def headers(self) -> Mapping[str, str]:
        """Return the headers that requests to `url` need."""
        return {}

    def pieces(self, settings: Sequence[S] = ()) -> Sequence[Piece]:
        """Return the set-up that it needs beside that of every run; `settings` are those of the points of a study."""
        return ()

    @abstractmethod
    def checks(self, points: Mapping[str, S], usual: Mapping[str, object]) -> Iterator[Check]:
        """Check whether what the points need from it is available; nothing is started.

        Args:
            points: the settings of each point, by the point's name.
            usual: the settings of the study itself, as they are written; a point may differ from them.
        """

    def prepare(self, settings: S) -> str:
        """Apply the settings to the function, wait until it is ready, and return its `url`."""
        self.url = self._bring_to(settings)
        self.current = settings
        return self.url

    @abstractmethod
    def _bring_to(self, settings: S) -> str:
        """Apply the settings to the function and wait until it is ready; returns its URL."""

    def leave(self) -> None:
        """Take away what would disturb a point on another platform; `prepare` brings it back."""
        return

    def serving(self, run_dir: Path) -> AbstractContextManager[Mapping[str, Guarded]]:
        """Keep running what is needed during one run; gives its processes by their name in resources.csv."""
        return nullcontext({})

    def versions(self) -> Mapping[str, str]:
        """Return what its functions are run by, as far as it knows: names with their versions."""
        return {}

    def watching(self) -> AbstractContextManager[None]:
        """Note during one run, wherever its load comes from, what `metrics` gives after it."""
        return nullcontext()

    def calibrate(self, image: str, folder: Path) -> None:
        """Measure before a run, with a no-op of this image, what the parts of the path to the function add.

        Raises:
            UsageError: the path to these functions has no parts that are known.
        """
        raise UsageError(f"--calibrate: the path to a function of kind {self.kind} has no parts that are known")

    def trouble(self) -> str | None:
        """Return why a run against `url` can no longer be trusted; None if there is no problem."""
        return None

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading] | None:
        """Return the metrics of its functions in a span of time; None if it has no metrics."""
        return None

    def settings_as_text(self) -> dict[str, str]:
        """Return the function's settings, as far as they were applied here."""
        return self.current.texts() if self.current else {}

    def close(self) -> str | None:
        """Restore everything as it was at the start; returns a message on what continues to run."""
        return None
