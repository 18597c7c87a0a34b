"""The options of a run: what is run, where its load is made, and what it leaves."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

from framestorm import paths
from framestorm.model.run import Undecided
from framestorm.model.sink import SinkAddress
from framestorm.platform.base import DEFAULT_PORT, PODS, Platform, Site

DEFAULT_PLAN = paths.JMX / "face-blur.jmx"


@dataclass(frozen=True)
class What:
    """A plan, and what is set for it; `given`: its properties, also by the files of -q, `property_files`.

    extra: the properties of -G; jmeter_options: further words for JMeter.
    port: that of the embedded target. context, ingress: of the cluster with the function, as in `Site`.
    no_op: the image by which the path to the function is calibrated.
    platform: already has the settings to measure; if None, it is found by the url or is the embedded target.
    anyway: what a check would refuse is a note.
    is_unpatched: JMeter runs with none of its classes patched.
    is_traced: each request gets a trace id of its own.
    """

    plan: Path = DEFAULT_PLAN
    given: Mapping[str, str] = field(default_factory=dict)
    extra: Mapping[str, str] = field(default_factory=dict)
    property_files: tuple[Path, ...] = ()
    jmeter_options: tuple[str, ...] = ()
    proxy_password: str | None = field(default=None, repr=False)
    port: int = DEFAULT_PORT
    context: str | None = None
    ingress: str | None = None
    no_op: str | None = None
    platform: Platform[Any] | None = None
    anyway: bool = False
    is_unpatched: bool = False
    is_traced: bool = False
    is_for_gui: bool = False

    def site(self, where: "Where") -> Site:
        """Return where functions run, for a load that is made there."""
        return Site(
            self.port,
            over_slaves=where.is_over_slaves,
            by_pods=where.is_by_pods,
            context=self.context,
            ingress=self.ingress,
        )

    @property
    def all_property_files(self) -> list[Path]:
        """JMeter's property files, in the order in which it reads them."""
        return [*(Path(word[2:]) for word in self.jmeter_options if word.startswith("-p")), *self.property_files]

    @property
    def for_jmeter(self) -> list[str]:
        """JMeter's own options, in the order in which it has to read them."""
        return [*self.jmeter_options, *(f"-q{path}" for path in self.property_files)]


@dataclass(frozen=True)
class Where:
    """The hosts that make the load: `slaves` are those of the inventory, or pods, and None is this machine.

    image: of pods.
    """

    slaves: str | None = None
    inventory: Path = paths.INVENTORY
    without_faulty: bool = False
    continue_on_loss: bool = False
    split_csv: bool = False
    whole_plan: bool = False
    image: str | None = None

    @property
    def is_over_slaves(self) -> bool:
        """Whether other hosts make the load."""
        return self.slaves is not None

    @property
    def is_by_pods(self) -> bool:
        """Whether pods make the load."""
        return self.slaves is not None and self.slaves.startswith(PODS)


HERE = Where()


@dataclass(frozen=True)
class Output:
    """What a run leaves, what it has to meet, and what ends it early; `command`: how people called it.

    scrape: addresses of the target's own figures; sinks: services that are told of the run while it goes on.
    name: of the run for these and for the live page; None: that of its folder.
    """

    run_dir: Path | None = None
    samples_copy: Path | None = None
    log_copy: Path | None = None
    title: str | None = None
    criteria: tuple[str, ...] = ()
    scrape: tuple[str, ...] = ()
    sinks: tuple[SinkAddress, ...] = ()
    name: str | None = None
    stop_if: tuple[str, ...] = ()
    stop_when: tuple[str, ...] = ()
    baseline: str | None = None
    thresholds: tuple[str, ...] = ()
    undecided: Undecided = "pass"
    accepts_overload: bool = False
    judges_steady: bool = False
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class RunOptions:
    """The options of a command line, in three parts."""

    what: What = field(default_factory=What)
    where: Where = HERE
    output: Output = field(default_factory=Output)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Return the options with these values; each has the name of a field of one of the parts.

        Raises:
            TypeError: no part has such a field.
        """
        parts = {
            part: {each.name: values.pop(each.name) for each in fields(part) if each.name in values} for part in PARTS
        }
        if values:
            raise TypeError(f"no option of a run: {', '.join(values)}")
        return cls(*(part(**of_part) for part, of_part in parts.items()))


PARTS: tuple[Any, ...] = (What, Where, Output)
