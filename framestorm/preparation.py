"""What a run is asked for, and every check that can be made before anything of it starts."""

import shutil
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from framestorm import influxdb, paths, properties, target, video
from framestorm.errors import FramestormError, UsageError
from framestorm.openfaas.layout import GATEWAY_URL
from framestorm.report import criteria

DEFAULT_PLAN = paths.JMX / "face-blur.jmx"
SAMPLE_VARIABLES = "index,intended_ms,handler_ms,model_ms,cold,faces,worker"
LOCAL_MODE = "local"  # of tasks.jmx: no function is asked
NEEDED_DISK_BYTES = 200 * 2**20


@dataclass(frozen=True)
class RunOptions:
    """What the command line asked for."""

    plan: Path = DEFAULT_PLAN
    given: Mapping[str, str] = field(default_factory=dict)
    criteria: tuple[str, ...] = ()
    run_dir: Path | None = None
    samples_copy: Path | None = None
    extra: Mapping[str, str] = field(default_factory=dict)
    slaves: str | None = None
    inventory: Path = paths.INVENTORY
    without_faulty: bool = False
    continue_on_loss: bool = False
    port: int = target.DEFAULT_PORT
    influxdb_url: str | None = None
    command: tuple[str, ...] = ()


@dataclass(frozen=True)
class Prepared:
    """A run that passed every check here and has not started."""

    options: RunOptions
    run_dir: Path
    values: Mapping[str, str]
    jmeter_values: Mapping[str, str]
    is_embedded: bool
    has_users: bool
    unit: str
    # What JMeter reads: the plan asked for, or a copy of it for this run.
    plan: Path


def prepare(options: RunOptions, run_dir: Path, function_url: str | None = None) -> Prepared:
    """Check plan, properties, places and target; cut the video; find the values of all properties.

    Args:
        options: what the command line asked for.
        run_dir: the folder that the run will make.
        function_url: the function of the inventory, for a run over slaves that names none.

    Raises:
        UsageError: plan, properties or folder are wrong.
        FramestormError: something that the run needs is not to be had.
    """
    knobs = properties.read_plan(options.plan)
    values = properties.effective(knobs, options.given)
    for name in properties.unknown_to_jmeter(options.given):
        print(f"note: -J{name}: JMeter's own property files do not mention it; passed on as it is", file=sys.stderr)
    _check_output(options, run_dir)
    has_users, unit = properties.has_users(options.plan), properties.unit(options.plan)
    _check_criteria(options, unit, ("user", unit) if has_users else (unit,))
    # A plan without a function of its own can be for any: which is not for the kit to guess.
    has_default = "url" in knobs and bool(knobs["url"].default)
    is_embedded = has_default and "url" not in options.given and options.slaves is None
    if values.get("mode") == LOCAL_MODE:
        values["url"] = ""
    elif is_embedded:
        target.check_port_free(options.port)
        values["url"] = target.embedded_url(options.port)
    elif "url" in knobs:
        values["url"] = options.given.get("url") or (function_url if has_default else None) or ""
        if not values["url"]:
            example = f"{GATEWAY_URL}/function/noop"
            raise UsageError(f"{options.plan.name} can send to any function: say to which, as in -Jurl={example}")
        target.check_reachable(values["url"])
    values |= {name: value for name, value in _kit_values(values, options.given, run_dir).items() if name in knobs}
    jmeter_values = {name: value for name, value in options.given.items() if "." in name}
    if not has_users:
        # Columns that the plan without clients fills; any other would leave them "null" in every row.
        jmeter_values["sample_variables"] = SAMPLE_VARIABLES
    plan = influxdb.with_listener(options.plan, options.influxdb_url) if options.influxdb_url else options.plan
    return Prepared(options, run_dir, values, jmeter_values, is_embedded, has_users, unit, plan)


def _check_criteria(options: RunOptions, unit: str, labels: Sequence[str]) -> None:
    for text in options.criteria:
        label = criteria.parse(text, unit).label
        if label not in labels:
            has = " and ".join(f"{each}s" for each in labels)
            raise UsageError(f"--fail-if '{text}': {options.plan.name} has no {label}s, it has {has}")


def choose_run_dir(options: RunOptions, suffix: str = "") -> Path:
    """The folder asked for, else one named after the plan and the time."""
    if options.run_dir is not None:
        return options.run_dir.absolute()
    return paths.DASHBOARDS / f"{options.plan.stem}{suffix}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}"


def _kit_values(values: Mapping[str, str], given: Mapping[str, str], run_dir: Path) -> dict[str, str]:
    """The properties that only the kit can know: where its parts, the video's frames and the run's files are."""
    kit = {
        "python": str(paths.CLIENT_PYTHON),
        "client": str(paths.CLIENT / "client.py"),
        "client_log": str(run_dir / "client.log"),
        "cache": str(paths.FRAME_CACHE),
        "journal": str(run_dir / "journal.jsonl"),
        "tree": str(run_dir / "tree.xml"),
        "stop": str(run_dir / "stop"),
    }
    if "video" in values:
        source = Path(given.get("video", paths.SAMPLE_VIDEO)).expanduser().absolute()
        cut = video.prepare(source, values.get("encoding", "png-base64"), paths.FRAME_CACHE)
        kit |= {"video": str(source), "frame_dir": str(cut.frame_dir)}
    return kit


def _check_output(options: RunOptions, run_dir: Path) -> None:
    if run_dir.exists():
        raise UsageError(f"{run_dir} exists; a run's folder is made new, choose another by -o")
    if options.samples_copy is not None and options.samples_copy.exists():
        raise UsageError(f"-l {options.samples_copy}: the file exists; results are never appended to or overwritten")
    parent = next(folder for folder in run_dir.parents if folder.exists())
    try:
        probe = parent / f".{run_dir.name}.probe"
        probe.touch()
        probe.unlink()
    except OSError as error:
        raise FramestormError(
            f"nothing can be written to {parent}: {error.strerror}; free it, or choose another folder by -o"
        ) from None
    free_bytes = shutil.disk_usage(parent).free
    if free_bytes < NEEDED_DISK_BYTES:
        raise FramestormError(
            f"{parent} has {free_bytes / 2**20:.0f} MiB left and a run wants {NEEDED_DISK_BYTES / 2**20:.0f}; make room"
        )
