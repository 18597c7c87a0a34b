"""A function for the tests of the HTTP shell: sleeps as many seconds as its body says, echoes anything else.

That a sleep has begun is a line on stderr.
"""

import os
import sys
import time

from function.exchange import Answer, Handler
from function.http_app import serve
from function.limits import limits_from


def handle(body: bytes, accept: str) -> Answer:
    if body == b"raise":
        raise ZeroDivisionError("a secret")
    if body.startswith(b"sleep "):
        sys.stderr.write("begun\n")  # One write: print writes the line end by itself, between lines of other threads.
        time.sleep(float(body[6:]))
    return Answer(body, "text/plain", headers=(("X-Accept", accept),))


def load() -> Handler:
    if os.environ.get("FAIL"):
        raise RuntimeError("the model is missing")
    time.sleep(float(os.environ.get("LOAD_S", "0")))
    return handle


serve(
    "slow",
    load,
    limits_from(os.environ),
    workers=int(os.environ.get("WORKERS", "4")),
    host="127.0.0.1",
    port=int(sys.argv[1]),
)
