"""What can go wrong in a run, and the choice among it by a seed."""

import os
import random
import signal
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from framestorm.errors import FramestormError
from framestorm.hosts.member import NAME as AGENT_NAME
from lab import faults
from lab.hosts import LabHost
from tests.nemesis.scheme import HOLD_S, PLANS, Attack, Scheme
from tests.nemesis.witness import MOODS

DISK_BYTES = 256 << 20
OVER_SLAVES = ("requests", "request-rate", "face-blur")
PHASES: tuple[tuple[str, float], ...] = (("load", HOLD_S), ("load", HOLD_S), ("start", 5.0), ("end", 4.0))


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong: `strike` returns when it is over."""

    strike: Callable[[Attack], object]
    locally: bool = True
    over_slaves: bool = True
    plans: tuple[str, ...] = tuple(PLANS)
    needs_root: bool = False

    def fits(self, plan: str, over_slaves: bool) -> bool:
        is_able = not self.needs_root or os.geteuid() == 0
        return plan in self.plans and is_able and (self.over_slaves if over_slaves else self.locally)


def sends(part: str, *numbers: signal.Signals) -> Callable[[Attack], object]:
    """Send signals to one of the run's processes on this machine, and let the fault last between one and the next."""

    def strike(attack: Attack) -> None:
        process = attack.target(part)
        attack.is_killed = attack.is_killed or (part == CONDUCTOR and numbers[0] == signal.SIGKILL)
        for number, pause_s in zip(numbers, [0.0, *([attack.scheme.lasts_s] * len(numbers))], strict=False):
            time.sleep(pause_s)
            with suppress(psutil.NoSuchProcess):
                if process is not None:
                    process.send_signal(number)

    return strike


def feels(mood: dict[str, Any]) -> Callable[[Attack], object]:
    def strike(attack: Attack) -> None:
        def change(mood: dict[str, Any]) -> None:
            attack.witness.mood = mood

        with attack.lasting(lambda: change(mood), lambda: change({})):
            pass

    return strike


def goes_away(attack: Attack) -> None:
    with attack.lasting(attack.witness.go_away, attack.witness.come_back):
        pass


def fills_disk(attack: Attack) -> None:
    """Leave a few pages of the file system that holds the run's folder, to the end of the run."""
    disk = attack.running.folder.parent
    usage = os.statvfs(disk)
    remount(disk, (usage.f_blocks - usage.f_bfree + 1 + int(attack.scheme.pick * 4)) * usage.f_frsize)


def fills_disk_for_a_while(attack: Attack) -> None:
    with attack.lasting(lambda: fills_disk(attack), lambda: remount(attack.running.folder.parent, DISK_BYTES)):
        pass


def remount(disk: Path, size_bytes: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={size_bytes}", disk], check=True)


def in_lab(
    begin: Callable[[LabHost], object], end: Callable[[LabHost], object] = lambda host: None
) -> Callable[..., object]:
    def strike(attack: Attack) -> None:
        # A process that has ended already cannot be hit.
        with suppress(FramestormError), attack.lasting(lambda: begin(attack.slave), lambda: end(attack.slave)):
            pass

    return strike


def signal_agent(host: LabHost, number: signal.Signals) -> None:
    """Send a signal to the agent alone: not to sudo, which started it, nor to the fence, which it started."""
    agents = faults.matching(host, "framestorm-agent")
    agents = [pid for pid in agents if Path(f"/proc/{pid}/comm").read_text().startswith("python3")]
    for pid in agents:
        if psutil.Process(pid).ppid() not in agents:  # the fence's is the agent
            os.kill(pid, number)


CONDUCTOR, JMETER, GUARD = "", "ApacheJMeter.jar", r"/guard\.py"
CLIENTS, FUNCTION = r"^\S*python[0-9.]* (-\S+ )*\S*/client\.py ", r"^\S*python[0-9.]* \S*/app\.py "
SLAVE_DISK_FULL, RUNS = "slave's disk full", "/var/lib/framestorm/runs"
KILL, STOP, CONT, INT = signal.SIGKILL, signal.SIGSTOP, signal.SIGCONT, signal.SIGINT
NUMBERED = ("requests", "request-rate", "face-blur", "process")
FAULTS: dict[str, Fault] = {
    "nothing": Fault(lambda attack: None),
    "conductor killed": Fault(sends(CONDUCTOR, KILL)),
    "conductor frozen": Fault(sends(CONDUCTOR, STOP, CONT)),
    "JMeter killed": Fault(sends(f"^[^ ]*java .*{JMETER}", KILL), over_slaves=False),
    "JMeter frozen": Fault(sends(f"^[^ ]*java .*{JMETER}", STOP, CONT), over_slaves=False),
    "guard killed": Fault(sends(GUARD, KILL), over_slaves=False),
    "client killed": Fault(sends(CLIENTS, KILL), over_slaves=False, plans=("face-blur", "process", "embedded")),
    "client frozen": Fault(sends(CLIENTS, STOP, CONT), over_slaves=False, plans=("face-blur", "process", "embedded")),
    "target killed": Fault(sends(FUNCTION, KILL), over_slaves=False, plans=("embedded",)),
    "target frozen": Fault(sends(FUNCTION, STOP, CONT), over_slaves=False, plans=("embedded",)),
    "Ctrl-C": Fault(sends(CONDUCTOR, INT)),
    "Ctrl-C twice": Fault(sends(CONDUCTOR, INT, INT)),
    "ended": Fault(sends(CONDUCTOR, signal.SIGTERM)),
    "hung up": Fault(sends(CONDUCTOR, signal.SIGHUP)),
    "disk full for a while": Fault(fills_disk_for_a_while, needs_root=True),
    "disk full": Fault(fills_disk, needs_root=True),
    "function goes away": Fault(goes_away, plans=NUMBERED),
    **{name: Fault(feels(mood), over_slaves=False, plans=NUMBERED) for name, mood in MOODS.items()},
    "a second run": Fault(lambda attack: None, over_slaves=False, plans=NUMBERED),
    "slave's JMeter killed": Fault(in_lab(lambda host: faults.kill(host, JMETER)), locally=False),
    "slave's JMeter frozen": Fault(
        in_lab(lambda host: faults.freeze(host, JMETER), lambda host: faults.thaw(host, JMETER)), locally=False
    ),
    "agent killed": Fault(in_lab(lambda host: signal_agent(host, KILL)), locally=False),
    "agent stopped": Fault(in_lab(lambda host: signal_agent(host, STOP)), locally=False),
    "agent frozen": Fault(
        in_lab(lambda host: faults.freeze(host, AGENT_NAME), lambda host: faults.thaw(host, AGENT_NAME)), locally=False
    ),
    "slave's clients killed": Fault(
        in_lab(lambda host: faults.kill(host, "/client/client.py")), locally=False, plans=("face-blur",)
    ),
    "slave cut off": Fault(in_lab(faults.cut, faults.reconnect), locally=False),
    "slave deaf": Fault(
        in_lab(lambda host: faults.drop(host, "INPUT"), lambda host: faults.pass_all(host, "INPUT")), locally=False
    ),
    "slave mute": Fault(
        in_lab(lambda host: faults.drop(host, "OUTPUT"), lambda host: faults.pass_all(host, "OUTPUT")), locally=False
    ),
    SLAVE_DISK_FULL: Fault(in_lab(lambda host: faults.fill_disk(host, RUNS)), locally=False),
    "slave rebooted": Fault(in_lab(faults.reboot), locally=False),
    "controller killed": Fault(in_lab(lambda _: faults.kill(LabHost("master1"), JMETER)), locally=False),
}


def scheme_of(seed: int, number: int, over_slaves: bool) -> Scheme:
    choice = random.Random(f"{seed} {number} {over_slaves}")  # noqa: S311
    plan = choice.choice(OVER_SLAVES if over_slaves else tuple(PLANS))
    phase, within_s = choice.choice(PHASES)
    return Scheme(
        name=f"seed {seed} run {number}",
        plan=plan,
        fault=choice.choice([name for name, fault in FAULTS.items() if fault.fits(plan, over_slaves)]),
        phase=phase,
        after_s=round(choice.uniform(0, within_s), 2),
        lasts_s=round(choice.choice((0.3, 3, 15 if over_slaves else 6)) * choice.uniform(0.5, 1.5), 2),
        pick=choice.random(),
        continues=over_slaves and choice.random() < 0.5,
        over_slaves=over_slaves,
    )
