"""face-blur for one request, from stdin to stdout: what OpenFaaS's classic watchdog starts anew for each.

The watchdog gives the request's headers as `Http_*` variables. Errors are JSON on stdout with exit status 1, which the
watchdog turns into its 500; the real status is in the JSON.
"""

from __future__ import annotations

import gc
import os
import sys
import time
from pathlib import Path

if str(ROOT := Path(__file__).resolve().parents[2]) not in sys.path:
    sys.path.insert(0, str(ROOT))

from function.exchange import Answer, RefusalError, refusal
from function.limits import VariableError
from settings import prepare_libraries, settings_from


def main() -> int:
    # Importing TensorFlow makes much that lives on, which the collector would walk through again and again.
    gc.disable()
    answer = respond()
    sys.stdout.buffer.write(answer.body)
    sys.stdout.buffer.flush()
    return 0 if answer.status == 200 else 1


def respond() -> Answer:
    try:
        settings = settings_from(os.environ)
    except VariableError as error:
        return refusal(500, str(error))
    most = settings.limits.max_body_bytes
    body = sys.stdin.buffer.read(most + 1)
    if len(body) > most:
        return refusal(413, f"the body has more than {most} bytes, the most that max_body_bytes allows")
    prepare_libraries()
    from detector import ModelError
    from handler import FaceBlur

    accept = os.environ.get("Http_Accept", "")  # noqa: SIM112 (the watchdog writes it so)
    try:
        return FaceBlur(settings)(body, accept, start_ms=since_start_ms())
    except RefusalError as error:
        return refusal(error.status, str(error))
    except ModelError as error:
        return refusal(500, str(error))


def since_start_ms() -> float:
    """Milliseconds since the kernel started this process (to a hundredth of a second, as /proc/self/stat has it)."""
    # The second field, the program's name in brackets, may hold spaces.
    fields = Path("/proc/self/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    started_s = int(fields[19]) / os.sysconf("SC_CLK_TCK")
    return (time.clock_gettime(time.CLOCK_BOOTTIME) - started_s) * 1000


if __name__ == "__main__":
    # The kernel takes a process back at once; taking TensorFlow down in order lasts half a second of the caller's time.
    os._exit(main())
