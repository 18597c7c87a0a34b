"""A platform: where the function under test runs, how it is brought to what a run asks of it, what it tells of itself.

A new platform is a module or package in this room with a subclass of `Settings` and one of `Platform`, and a line in
`registry.py`.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, ClassVar, Generic, NamedTuple, Self, TypeVar, get_args

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic_core import PydanticCustomError

from framestorm.errors import FramestormError
from framestorm.guard import Guarded
from framestorm.setup.pieces import Piece

DEFAULT_PORT = 8080
# What platforms may keep in a study's folder, for a resumed study to find: what was started, what was deployed last.
MARK, DEPLOYED = "platform.json", "stack.yml"
FILES = (MARK, DEPLOYED)


@dataclass(frozen=True)
class Site:
    """Where functions run, by the command line: what each platform makes of it is its own.

    port: for a function that the kit runs itself, on this machine's loopback.
    gateway: the address of a platform that runs elsewhere, whose functions are taken as they are there.
    over_slaves: the load comes from other machines.
    """

    port: int = DEFAULT_PORT
    gateway: str | None = None
    over_slaves: bool = False


class SettingError(FramestormError):
    """A setting of a target is wrong: `name` which, `what` is wrong, what is `allowed`, and the value `seen`."""

    def __init__(self, name: str, what: str, allowed: Sequence[str] = (), seen: str | None = None) -> None:
        super().__init__(f"{what}; allowed: {', '.join(allowed)}" if allowed else what)
        self.name = name
        self.what = what
        self.allowed = tuple(allowed)
        self.seen = seen


def _whole(least: int) -> BeforeValidator:
    """A whole number; what was calculated may be 4.0 where 4 is meant."""

    def check(value: object) -> int:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or not float(value).is_integer() or value < least:  # type: ignore[arg-type,operator]
            raise PydanticCustomError("setting", f"a whole number of at least {least}")
        return int(value)  # type: ignore[call-overload,no-any-return]

    return BeforeValidator(check)


Count = Annotated[int, _whole(1)]
CountOrNone = Annotated[int, _whole(0)]
_MUST_BE = {
    "bool_type": "true or false",
    "string_type": "a text",
    "string_too_short": "a text",
    "dict_type": "a mapping",
}


class Settings(BaseModel):
    """How a target is set up, as a study's points give it: `kind` names the platform, the rest is the platform's own.

    The fields of a subclass are what study.yml may set there: name, type, default, description.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    kind: str

    @classmethod
    def read(cls, values: Mapping[str, object]) -> Self:
        """The settings of these values, completed by the defaults.

        Raises:
            SettingError: a value is missing, unknown or wrong, or two of them do not go together.
        """
        try:
            settings = cls.model_validate(dict(values))
        except ValidationError as error:
            first = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
            name = str(first["loc"][0])
            raise cls._error(name, values.get(name), first["type"], first["msg"]) from None
        settings.check()
        return settings

    def check(self) -> None:
        """Refuse what no type tells: names that are not there, values that do not go together."""

    @classmethod
    def _error(cls, name: str, value: object, kind: str, message: str) -> SettingError:
        """What pydantic found wrong, in the words of study.yml."""
        target = cls.model_fields["kind"].default
        if kind == "extra_forbidden":
            return SettingError(name, f"target.{name} is not valid for kind {target}", tuple(cls.model_fields), name)
        if kind == "missing":
            return SettingError(name, f"a target of kind {target} needs its {name}")
        if kind == "literal_error":
            allowed = get_args(cls.model_fields[name].annotation)
            return SettingError(name, f"target.{name} cannot be {value!r}", allowed, str(value))
        must_be = _MUST_BE.get(kind, message)
        return SettingError(name, f"target.{name} is {json.dumps(value, default=str)}, but has to be {must_be}")

    def describe(self) -> str:
        """The target in words: its kind, and what is set otherwise than by default."""
        changed = self.model_dump(exclude_defaults=True, exclude={"kind"})
        return ", ".join([self.kind, *(f"{name} {value}" for name, value in changed.items())])

    def texts(self) -> dict[str, str]:
        """All settings but kind and url as texts, those that are not set left out: what a run's record keeps."""
        texts: dict[str, str] = {}
        for name, value in self.model_dump(exclude={"kind", "url"}, exclude_none=True).items():
            parts = {f"{name}.{key}": each for key, each in value.items()} if isinstance(value, dict) else {name: value}
            texts |= {key: str(each).lower() if isinstance(each, bool) else str(each) for key, each in parts.items()}
        return texts


class Reading(NamedTuple):
    """One value that a platform saw: a row of metrics.csv.

    metric: replicas_wanted, replicas_ready, replicas_lost, replicas_short_s, requests_per_s and gateway_p95_s are of a
        function; in_flight, cpu_s, cpu_throttled_s, received_bytes, sent_bytes and memory_bytes of one replica of it.
    detail: the replica; of requests_per_s the status code.
    """

    time_ms: int
    metric: str
    function: str
    detail: str
    value: float


@dataclass(frozen=True)
class Check:
    """Something that a study needs: whether it is there, or why not and what to do."""

    what: str
    is_there: bool
    words: str


def attempt(what: str, words: str, action: Callable[[], object]) -> Check:
    """Whether `action` goes well, which is described by `words`, or the reason why it does not."""
    try:
        action()
    except FramestormError as error:
        return Check(what, False, str(error))
    return Check(what, True, words)


S = TypeVar("S", bound=Settings)


class Platform(ABC, Generic[S]):
    """One platform during a run or a study, from the first `prepare` to `close`.

    kind: its name in study.yml and run.json. settings: what can be set there.
    serves_any_function: a plan's own choice of function can run there.
    takes_gateway: it can be used where it runs elsewhere, by `Site.gateway`.
    runs_with_load: its function answers only inside `serving`, and only to a load from this machine.
    url: the address of the function under test, once that is known. current: the settings that it was brought to.
    """

    kind: ClassVar[str]
    settings: ClassVar[type[Settings]]
    serves_any_function: ClassVar[bool] = True
    takes_gateway: ClassVar[bool] = False
    runs_with_load: ClassVar[bool] = False

    def __init__(self, site: Site, folder: Path | None = None) -> None:
        """`folder` is where it keeps files of a study that a resumed one must find again."""
        self.site = site
        self.folder = folder
        self.url = ""
        self.current: S | None = None

    @classmethod
    def at(cls, url: str) -> Self | None:
        """The platform on this machine that `url` leads to; None where it leads elsewhere."""
        return None

    def pieces(self) -> Sequence[Piece]:
        """The set-up that it needs beside that of any run."""
        return ()

    @abstractmethod
    def checks(self, points: Mapping[str, S], usual: Mapping[str, object]) -> Iterator[Check]:
        """What the points need of it, and whether that is there; nothing is started.

        Args:
            points: the settings of each point, by the point's name.
            usual: the settings of the study itself, as they are written; a point may differ from them.
        """

    def prepare(self, settings: S) -> str:
        """Bring the function to the settings, ready to answer; its `url`."""
        self.url = self._bring_to(settings)
        self.current = settings
        return self.url

    @abstractmethod
    def _bring_to(self, settings: S) -> str:
        """Do what `prepare` says."""

    def serving(self, run_dir: Path) -> AbstractContextManager[Mapping[str, Guarded]]:
        """Run what is to run for the length of one run; its processes, by their part in resources.csv."""
        return nullcontext({})

    def trouble(self) -> str | None:
        """Why a run against `url` cannot be trusted any more; None while all is well."""
        return None

    def metrics(self, start_ms: float, end_ms: float) -> list[Reading] | None:
        """What it saw of its functions in a span of time; None where it sees nothing."""
        return None

    def settings_as_text(self) -> dict[str, str]:
        """What the function was brought to, as far as that was done here."""
        return self.current.texts() if self.current else {}

    def close(self) -> str | None:
        """Leave everything as it was found; what is to be said of what goes on running."""
        return None
