"""One run: have it checked, start its load, watch it, end it, and leave its raw files."""

import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from framestorm import machine, paths
from framestorm.checkout import read_checkout
from framestorm.endpoint import check_reachable
from framestorm.errors import FramestormError, UsageError
from framestorm.hosts.fleet import Fleet
from framestorm.hosts.inventory import Hosts
from framestorm.hosts.pods import find_slaves
from framestorm.machine import in_background, now_ms
from framestorm.model import facets, files
from framestorm.model import plan as plans
from framestorm.model.plan import Plan
from framestorm.model.run import Decision, JMeterProcess, Record, RunState, Target
from framestorm.model.scraped import split_series
from framestorm.model.stop_rule import STOP_IF
from framestorm.plain import note, tell_now
from framestorm.platform.embedded import FACE_BLUR, function_at
from framestorm.report.load_words import words_of
from framestorm.results.jmeter_log import read_log
from framestorm.results.jtl_file import has_rows
from framestorm.run import http2, jmeter, patches, structure
from framestorm.run.live.view import LiveView
from framestorm.run.load import LocalLoad, check_properties
from framestorm.run.options import Output, RunOptions, What, Where
from framestorm.run.output import check_output, disk_trouble
from framestorm.run.preparation import Prepared, check_criteria, prepare
from framestorm.run.scrape import check_targets, scraping
from framestorm.sinks.services import open_sinks
from framestorm.sinks.sink import finish

if TYPE_CHECKING:
    from framestorm.sinks.live_page import LivePage

RECORD = "run.json"
POLL_S = 0.2
# How long a gentle stop may take before JMeter is told to interrupt its users, then is ended.
# With JMeter's end and the report a stopped run is over in 20 s.
INTERRUPT_AFTER_S = 8.0
# After --stop-if: answers that take longer than this are cut off, so that the load is over in 3 s.
INTERRUPT_DECIDED_AFTER_S = 1.0
END_AFTER_S = 13.0


class StopSignals:
    """Counts stop signals: the first stops the run gently, the second at once."""

    def __init__(self) -> None:
        self.count = 0
        self.name = ""
        self._is_starting = False

    @contextmanager
    def caught(self) -> Iterator[None]:
        stops = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        # What is ignored stays so, as SIGHUP under nohup.
        numbers = [number for number in stops if signal.getsignal(number) is not signal.SIG_IGN]
        before = [signal.signal(number, self._note) for number in numbers]
        try:
            yield
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)

    @contextmanager
    def starting(self) -> Iterator[None]:
        """During the block, in which nothing is sent yet, a signal ends it, whatever it waits for.

        Raises:
            FramestormError: there was a signal, now or before.
        """
        try:
            self._is_starting = True
            if self.count:
                raise KeyboardInterrupt
            yield
            if self.count:  # what was loading a module may have lost it
                raise KeyboardInterrupt
        except KeyboardInterrupt:
            raise FramestormError(f"stopped by {self.name} before the run began; nothing is left of it") from None
        finally:
            self._is_starting = False

    def _note(self, number: int, frame: FrameType | None) -> None:
        if number == signal.SIGHUP and self.count:
            return  # as a terminal closes, both the kernel and the shell send it
        self.count += 1
        self.name = signal.Signals(number).name
        is_starting, self._is_starting = self._is_starting, False
        if self.count == 1:
            how = "stopping" if is_starting else "stopping gently, then reporting; a second Ctrl-C ends the run at once"
            tell_now(f"\n{how}\n")
        if is_starting:
            raise KeyboardInterrupt


def run(options: RunOptions, stop_signals: StopSignals | None = None, page: "LivePage | None" = None) -> Path:
    """Make one run; signals that ask to stop are counted by `stop_signals`, for a caller with more to do than this run.

    page: shows the run while it goes on.

    Returns:
        The run's folder, raw files complete as far as they got.

    Raises:
        UsageError: plan, properties, hosts or folder are wrong; nothing was started or written.
        FramestormError: the run could not start; nothing of it is left.
    """
    prepared, hosts = _prepare(options)
    stop_signals = stop_signals or StopSignals()
    with ExitStack() as stack:
        stack.enter_context(stop_signals.caught())  # before there is a folder that they could leave behind
        while not _made(prepared.run_dir):
            if options.output.run_dir is not None:
                raise UsageError(f"{prepared.run_dir} was made by another run; choose another folder with -o")
            prepared, hosts = _prepare(options)
        run_dir, plan = prepared.run_dir, prepared.plan
        load = stack.enter_context(closing(Fleet(prepared, hosts) if hosts else LocalLoad(prepared)))
        try:
            with stop_signals.starting():
                begun = _begun(prepared, options.output)
                files.write(run_dir / RECORD, begun, indent=2)
                prepared.write_load()
                if (no_op := options.what.no_op) is not None:
                    note(f"calibrating the path to the function by {no_op} …")
                    prepared.platform.calibrate(no_op, run_dir)
                stack.enter_context(prepared.platform.watching())
                load.start()
        except BaseException:
            load.close()
            shutil.rmtree(run_dir)
            raise
        process = JMeterProcess(load.arguments)
        began_s = time.monotonic()
        begun = replace(begun, started_ms=now_ms(), hosts=load.hosts(), rmi=load.rmi(), jmeter=process)
        if options.where.whole_plan:
            slaves = max(1, len(begun.slaves))
            begun = replace(begun, loads=tuple(each.on_each_of(slaves) for each in begun.loads))
        files.write(run_dir / RECORD, begun, indent=2)
        stack.enter_context(scraping(run_dir, options.output.scrape, options.output.criteria))
        name = options.output.name or run_dir.name
        services = open_sinks(options.output.sinks, name, begun)
        if page is not None:
            page.begin(name, begun, plan.label)
        sinks = [*services, *([page] if page is not None else [])]
        view = LiveView(run_dir, plan.has_journal, plan.label, sinks)
        with in_background(view.watch):
            reason, stopping_ms, decision, is_interrupted = _watch(load, run_dir, stop_signals, view)
        reasons = [reason, *load.collect()]
        if sinks:
            view.read()  # what came last, also from slaves
            finish(sinks)
        # After a refusal nothing was sent, by this JMeter, or by one of several slaves, whose share is missing.
        if refusal := read_log(run_dir).refusal:
            if not has_rows(run_dir / "samples.jtl"):
                load.close()
                shutil.rmtree(run_dir)
                raise UsageError(refusal)
            reasons.append(f"a part of the load was not sent: {refusal}")
        status = load.exit_status()
        if not any(reasons) and status != 0:
            reasons.append(f"JMeter {_how_ended(status)}{jmeter.failure(run_dir)}; see jmeter.log and jmeter.out")
        why = "; ".join(each for each in reasons if each)
        ended_ms, passed_s = now_ms(), time.monotonic() - began_s
        ended = replace(
            begun,
            state="stopped" if is_interrupted else "failed" if why else _state_of(decision),
            reason=why or None,
            decision=decision,
            hosts=load.hosts(),
            losses=load.losses(),
            sinks=tuple(each.outcome() for each in services),
            stopping_ms=stopping_ms,
            ended_ms=ended_ms,
            http2_only=http2.servers(run_dir, prepared.proxies),
            clock_step_ms=round(ended_ms - float(begun.started_ms or 0) - 1000 * passed_s, 1),
            jmeter=JMeterProcess(load.arguments, load.exit_status()),
        )
        files.sync_all(run_dir)
        files.write(run_dir / RECORD, ended, indent=2)
    for name, letter, copy in (
        ("samples.jtl", "-l", options.output.samples_copy),
        ("jmeter.log", "-j", options.output.log_copy),
    ):
        if copy is not None and (run_dir / name).exists():
            try:
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(run_dir / name, copy)
            except OSError as error:
                # The run stands, and its report is still to be made.
                note(f"{letter} {copy}: {error.strerror or error}; see {run_dir / name}")
    return run_dir


def _state_of(decision: Decision | None) -> RunState:
    """Return the state of a run that lacks nothing: one that was long enough is complete."""
    return "decided" if decision is not None and decision.option == STOP_IF else "complete"


def _how_ended(status: int | None) -> str:
    """In words; what guards JMeter ends as shells do, with 128 and the signal that ended JMeter."""
    number = 0 if status is None else -status if status < 0 else status - 128
    name = signal.strsignal(number) if 0 < number < signal.NSIG else None
    return f"was ended by signal {number} ({name})" if name else f"ended with status {status}"


def _made(run_dir: Path) -> bool:
    """Make a run's folder; False if another run was faster."""
    try:
        run_dir.mkdir(parents=True)
    except FileExistsError:
        return False
    return True


def check(options: RunOptions) -> list[str]:
    """Make every check of a run and no run: nothing is sent to the function, and nothing is written.

    Returns:
        What was found, a line each.

    Raises:
        UsageError, FramestormError: as for a run.
    """
    prepared, hosts = _prepare(options)
    plan, needs, url = prepared.plan, prepared.needs, prepared.platform.url
    ways = {address: address.way(prepared.proxies) for address in needs.addresses}
    if not plan.is_for_kit and hosts is None:
        for address, way in ways.items():
            check_reachable(address.url, way, address.hosts)
    check_properties(prepared)
    lines = [f"plan: {paths.shown(plan.path.resolve())}"]
    lines += [f"sampler: {name}" for name in dict.fromkeys(needs.samplers)]
    for name in plan.settable:
        if prepared.kit_load and prepared.kit_load.words and prepared.kit_load.takes_place_of(name):
            continue
        value = prepared.settings.properties.get(name, "as JMeter works it out")
        is_given = name in prepared.settings.given
        if not is_given and not plan.settable[name].has_default:
            lines.append(f"property: {name} has no default: give -J{name}=")
        else:
            lines.append(f"property: {name}={value}" + ("" if is_given else " (default)"))
    lines += [f"load: {load.name}: {words_of(load)}" for load in prepared.loads if not load.is_aside]
    lines += [f"scrape: {url}" for url in options.output.scrape]
    lines += [f"sink: {sink.shown}" for sink in options.output.sinks]
    lines += [f"baseline: {options.output.baseline}"] if options.output.baseline else []
    lines += [f"stop if: {text}" for text in options.output.stop_if]
    lines += [f"stop when: {text}" for text in options.output.stop_when]
    lines += [f"property of JMeter: {name}={value}" for name, value in prepared.settings.of_jmeter.items()]
    lines += [f"file: {paths.shown(path.resolve())}" for path in needs.files if path.exists()]
    lines += [f"file whose name is known only during the run: {text}" for text in needs.unknown]
    lines += (
        [f"target: {url}"]
        if url
        else [f"target: {address.url}" + (f", by the proxy {way}" if way else "") for address, way in ways.items()]
    )
    if hosts is not None:
        with closing(Fleet(prepared, hosts)) as fleet:
            fleet.connect()
            lines += [f"slave: {slave.host.name} ({slave.host.address})" for slave in fleet.slaves]
    return lines


def _prepare(options: RunOptions) -> tuple[Prepared, Hosts | None]:
    """Make the checks of a run that need no host of the inventory."""
    what, where, output = options.what, options.where, options.output
    run_dir = output.run_dir.absolute() if output.run_dir else paths.new_dashboard(what.plan.stem)
    hosts = find_slaves(where.slaves, where.inventory, where.image, what.context) if where.slaves is not None else None
    plan = plans.read(what.plan)
    if hosts is not None:
        _check_for_slaves(what, where, plan, hosts)
    check_output(run_dir, output.samples_copy, output.log_copy)
    if what.is_unpatched:
        note(f"--unpatched: {'; '.join(patches.missing())}")
    families = {split_series(each.series)[0] for of_one in check_targets(output.scrape).values() for each in of_one}
    check_criteria(plan, output, families)
    prepared = prepare(what, run_dir, where, hosts.function_url if hosts else None, plan)
    structure.check_elements(plan.path.name, plan.root)
    for path in prepared.needs.fragments:
        structure.check_elements(path.name, plans.parse(path))
    return prepared, hosts


def _check_for_slaves(what: What, where: Where, plan: Plan, hosts: Hosts) -> None:
    if what.is_unpatched:
        raise UsageError("--unpatched works on one machine; JMeter's server on a slave starts with the patched classes")
    if where.whole_plan and plan.totals:
        raise UsageError(f"--whole-plan: {what.plan.name} declares its totals, which are split over the slaves")
    if len(hosts.slaves) > 1 and plan.is_for_kit and not plan.totals:
        names = ", ".join(host.name for host in hosts.slaves)
        raise UsageError(
            f"{what.plan.name} has no total to split over {len(hosts.slaves)} slaves ({names}): name one with -R"
        )
    url = plan.url
    if url and facets.EMBEDDED in url.facets and url.name not in what.given and hosts.function_url is None:
        raise UsageError(f"[function] of {where.inventory} is empty: give the function under test as -J{url.name}=")
    if url and facets.EMBEDDED in url.facets and url.name not in what.given and function_at(url.default) != FACE_BLUR:
        raise UsageError(
            f"[function] of {where.inventory} is {FACE_BLUR}, and {what.plan.name} calls another function: give its "
            f"address as -J{url.name}="
        )


def _begun(prepared: Prepared, output: Output) -> Record:
    """Return the record of a run that begins now."""
    settings, platform = prepared.settings, prepared.platform
    return Record(
        kit=machine.kit(),
        checkout=read_checkout(Path.cwd(), os.environ),
        plan=paths.shown(prepared.plan.path.resolve()),
        title=output.title,
        command=output.command,
        state="running",
        pid=os.getpid(),
        started_ms=now_ms(),
        label=prepared.plan.label,
        has_users=prepared.plan.has_users,
        has_journal=prepared.plan.has_journal,
        properties=dict(settings.properties),
        given={**settings.given, **settings.extra},
        unread=prepared.unread,
        loads=prepared.loads,
        names=prepared.names,
        criteria=output.criteria,
        scrapes=output.scrape,
        stop_if=output.stop_if,
        stop_when=output.stop_when,
        baseline=output.baseline,
        thresholds=output.thresholds,
        undecided=output.undecided,
        accepts_overload=output.accepts_overload,
        judges_steady=output.judges_steady,
        target=Target(platform.kind, prepared.url or None, platform.settings_as_text()),
        versions={**machine.versions(), **platform.versions()},
        unpatched=patches.missing() if prepared.what.is_unpatched else (),
    )


def _watch(
    load: Fleet | LocalLoad, run_dir: Path, stop_signals: StopSignals, view: LiveView
) -> tuple[str | None, float | None, Decision | None, bool]:
    """Wait for JMeter to end; stop it if asked to, by a stop rule, or if something that the run needs is lost.

    Returns:
        why it was stopped, None if it was not or by a rule; since when (epoch ms), None if it was not; that rule; and
        whether a signal stopped it, not one that came when the load was over.
    """
    reason: str | None = None
    decision: Decision | None = None
    is_interrupted = False
    stopping_ms: float | None = None
    stopping_since_s = 0.0
    interrupted = False
    while load.wait(POLL_S) is None:
        view.losses = load.losses()
        trouble = load.trouble() or disk_trouble("the disk of the results", shutil.disk_usage(run_dir).free)
        if reason is None and decision is None:
            is_interrupted = stop_signals.count > 0
            reason = f"{stop_signals.name} was received" if is_interrupted else trouble
            decision = view.decision if reason is None else None
            if reason is None and decision is None:
                continue
            stopping_since_s, stopping_ms = time.monotonic(), now_ms()
            view.is_stopping = True
        elif reason is None:
            reason = trouble
        load.stop_gently()
        waited_s = time.monotonic() - stopping_since_s
        is_decided = decision is not None and decision.option == STOP_IF
        interrupt_after_s = INTERRUPT_DECIDED_AFTER_S if is_decided else INTERRUPT_AFTER_S
        if stop_signals.count > 1 or waited_s > END_AFTER_S:
            load.stop()
        elif waited_s > interrupt_after_s and not interrupted:
            load.interrupt()
            interrupted = True
    return reason or load.trouble(), stopping_ms, decision, is_interrupted
