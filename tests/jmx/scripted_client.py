"""Stands in for the frame client: each process takes one of the files in $SCRIPT_DIR and behaves as its name says."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

# Has the form of the names that the kit's clients give their users.
USER = f"u-{os.getpid()}-{time.time() * 1000:.0f}"


def take() -> str:
    for script in sorted(Path(os.environ["SCRIPT_DIR"]).iterdir()):
        try:
            script.unlink()
        except FileNotFoundError:  # taken by another user
            continue
        return script.name
    return "good"


def frame(index: int, *, cause: str | None = None, status: int | None = 200) -> None:
    now_ms = time.time() * 1000
    line = {"type": "sample", "label": "frame", "user": USER, "index": index, "intended_ms": now_ms, "start_ms": now_ms}
    line |= {"rtt_ms": 12.6, "handler_ms": 11.5, "model_ms": 9.5, "status": status, "ok": cause is None, "cause": cause}
    line |= {"censored": cause == "timeout", "sent_bytes": 1000, "received_bytes": 2000, "faces": 1, "cold": False}
    print(json.dumps(line | {"verified": True}), flush=True)


def user(cause: str | None = None) -> None:
    print(json.dumps({"type": "user", "user": USER, "ok": cause is None, "cause": cause}), flush=True)


def main() -> int:
    script = take()
    os.write(2, f"on stderr: {script}\n".encode())
    frame(0)
    if script == "garbage":
        os.write(1, b"\x00\x1b\xff no JSON\n")
    elif script == "not-a-frame":
        print('{"type": "sample", "index": 1}')
    elif script == "list":
        print("[1]")
    elif script == "no-user-line":
        return 0
    elif script == "usage":
        return 2
    elif script == "killed":
        print('{"type": "sample", "ind', end="", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    elif script == "timeout":
        frame(1, cause="timeout", status=None)
        user("timeout")
        return 1
    elif script == "hang":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        with subprocess.Popen(["sleep", "61"]):
            pass
    elif script == "slow":
        time.sleep(3)
    user()
    return 0


sys.exit(main())
