"""One run: have it checked, storm, watch, end it, and leave its raw files."""

import shutil
import time
from contextlib import closing
from pathlib import Path

from framestorm import paths, properties
from framestorm.errors import FramestormError, UsageError
from framestorm.interrupts import Interrupts
from framestorm.live import LiveView
from framestorm.preparation import LOCAL_MODE, Prepared, RunOptions, choose_run_dir, prepare
from framestorm.record import RunRecord, now_ms
from framestorm.slaves.fleet import Fleet
from framestorm.slaves.inventory import Hosts, find_hosts
from framestorm.storm import LocalStorm, Storm

POLL_S = 0.2
# How long a gentle stop may take before JMeter is told to interrupt its users, then is ended.
INTERRUPT_AFTER_S = 15.0
END_AFTER_S = 25.0


def run(options: RunOptions, interrupts: Interrupts | None = None) -> Path:
    """Make one run; signals that ask to stop are counted by `interrupts`, for a caller with more to do than this run.

    Returns:
        The run's folder, raw files complete as far as they got.

    Raises:
        UsageError: plan, properties, hosts or folder are wrong; nothing was started or written.
        FramestormError: the run could not start; nothing of it is left.
    """
    run_dir = choose_run_dir(options)
    hosts = find_hosts(options.inventory, options.slaves) if options.slaves is not None else None
    if hosts is not None:
        _check_for_slaves(options, hosts)
    prepared = prepare(options, run_dir, hosts.function_url if hosts else None)
    interrupts = interrupts or Interrupts()
    with interrupts.caught(), closing(Fleet(prepared, hosts) if hosts else LocalStorm(prepared)) as storm:
        run_dir.mkdir(parents=True)
        try:
            record = _open_record(prepared)
            storm.start()
            if interrupts.count:
                raise FramestormError(f"stopped by {interrupts.name} before the run began; nothing is left of it")
        except BaseException:
            storm.close()
            shutil.rmtree(run_dir)
            raise
        jmeter = {"exit_code": None, "arguments": storm.arguments}
        record.update(started_ms=now_ms(), hosts=storm.hosts(), rmi=storm.rmi(), jmeter=jmeter)
        with LiveView(run_dir, prepared.has_users, prepared.unit):
            reason = _watch(storm, interrupts)
        reasons = [reason, *storm.collect()]
        if not interrupts.count and not any(reasons) and storm.exit_status() != 0:
            reasons.append(f"JMeter ended with status {storm.exit_status()}; see jmeter.log and jmeter.out")
        said = "; ".join(each for each in reasons if each)
        record.update(
            state="stopped" if interrupts.count else "failed" if said else "complete",
            reason=said or None,
            losses=storm.losses(),
            ended_ms=now_ms(),
            jmeter={"exit_code": storm.exit_status(), "arguments": storm.arguments},
        )
    if options.samples_copy is not None and (run_dir / "samples.jtl").exists():
        shutil.copyfile(run_dir / "samples.jtl", options.samples_copy)
    return run_dir


def _check_for_slaves(options: RunOptions, hosts: Hosts) -> None:
    if options.plan.resolve().parent != paths.JMX:
        raise UsageError(f"{options.plan}: slaves have the scripts of the plans in jmx/ only; copy the plan there")
    if options.influxdb_url is not None:
        raise UsageError("--influxdb works on one machine; for slaves add the Backend Listener to the plan in the GUI")
    knobs = properties.read_plan(options.plan)
    if len(hosts.slaves) > 1 and properties.has_users(options.plan) and "users" not in knobs:
        names = ", ".join(host.name for host in hosts.slaves)
        raise UsageError(
            f"{options.plan.name} has one user, who cannot be on {len(hosts.slaves)} slaves ({names}): name one by -R"
        )
    if "url" in knobs and "url" not in options.given and knobs["url"].default and hosts.function_url is None:
        raise UsageError(f"[function] of {options.inventory} is empty, so say what to test by -Jurl=")


def _open_record(prepared: Prepared) -> RunRecord:
    options = prepared.options
    return RunRecord(
        prepared.run_dir,
        plan=paths.shown(options.plan.resolve()),
        has_users=prepared.has_users,
        unit=prepared.unit,
        command=list(options.command),
        properties=dict(prepared.values),
        given={**options.given, **options.extra},
        criteria=list(options.criteria),
        default_criteria=not options.criteria,
        target=_target(prepared),
    )


def _target(prepared: Prepared) -> dict[str, str | None]:
    url = prepared.values.get("url")
    if prepared.values.get("mode") == LOCAL_MODE:
        return {"kind": "local", "url": None}
    return {"kind": "embedded" if prepared.is_embedded else "url", "url": url}


def _watch(storm: Storm, interrupts: Interrupts) -> str | None:
    """Wait for JMeter's end, stopping it where asked to or where something is lost; why it was stopped."""
    reason: str | None = None
    stopping_since_s = 0.0
    interrupted = False
    while storm.wait(POLL_S) is None:
        trouble = storm.trouble()
        if reason is None:
            reason = f"stopped by {interrupts.name}" if interrupts.count else trouble
            stopping_since_s = time.monotonic()
            if reason is None:
                continue
        storm.stop_gently()
        waited_s = time.monotonic() - stopping_since_s
        if interrupts.count > 1 or waited_s > END_AFTER_S:
            storm.stop()
        elif waited_s > INTERRUPT_AFTER_S and not interrupted:
            storm.interrupt()
            interrupted = True
    return reason or storm.trouble()
