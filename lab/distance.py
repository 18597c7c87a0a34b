"""A long way to a host: every frame to it and from it arrives late, and some never do.

The program stands between two network devices that it makes, and does in user space what a kernel built with `netem`
could do. Run it in the lab's network: `python lab/distance.py NEAR FAR --delay-ms 100 --loss 0.02`; the devices go with
it.
"""

from __future__ import annotations

import argparse
import fcntl
import math
import os
import random
import selectors
import struct
import time
from collections import deque
from contextlib import suppress

_TUNSETIFF, _IFF_TAP, _IFF_NO_PI = 0x400454CA, 0x0002, 0x1000  # linux/if_tun.h
_LONGEST_FRAME = 65_536
_MOST_UNDER_WAY = 10_000  # frames in one direction; what comes beyond is lost, as in a router


def make_device(name: str) -> int:
    """A network device of that name; frames that the kernel sends to it are read from the file descriptor returned."""
    device = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(device, _TUNSETIFF, struct.pack("16sH22x", name.encode(), _IFF_TAP | _IFF_NO_PI))
    return device


def pass_on(near: int, far: int, delay_s: float, loss: float) -> None:
    """Carry frames both ways for ever."""
    ways: dict[int, tuple[int, deque[tuple[float, bytes]]]] = {near: (far, deque()), far: (near, deque())}
    arrivals = selectors.DefaultSelector()
    for device in ways:
        arrivals.register(device, selectors.EVENT_READ)
    while True:
        due = [frames[0][0] for _, frames in ways.values() if frames]
        ready = arrivals.select(max(0.0, min(due) - time.monotonic()) if due else None)
        for key, _ in ready:
            frame = os.read(key.fd, _LONGEST_FRAME)
            _, frames = ways[key.fd]
            if random.random() >= loss and len(frames) < _MOST_UNDER_WAY:  # noqa: S311 - chance, not a secret
                frames.append((time.monotonic() + delay_s, frame))
        for receiver, frames in ways.values():
            while frames and frames[0][0] <= time.monotonic():
                with suppress(OSError):  # a frame to a device that is not up is lost
                    os.write(receiver, frames.popleft()[1])


def main() -> None:
    parser = argparse.ArgumentParser(prog="distance.py", description=__doc__)
    parser.add_argument("near")
    parser.add_argument("far")
    parser.add_argument("--delay-ms", type=float, required=True, help="each way")
    parser.add_argument("--loss", type=float, required=True, help="share of frames lost, each way")
    asked = parser.parse_args()
    # Python's float takes nan and inf too.
    if not (0 <= asked.delay_ms < math.inf and 0 <= asked.loss <= 1):
        parser.error("--delay-ms must be finite and not negative, and --loss from 0 to 1")
    pass_on(make_device(asked.near), make_device(asked.far), asked.delay_ms / 1000, asked.loss)


if __name__ == "__main__":
    main()
