"""A no-op in Python: `noop.py serve [PORT]` kept alive behind HTTP, `noop.py fork` for one request on stdin.

Everything but sys is imported by serve alone: imports are most of a forked function's time.
"""

from __future__ import annotations

import sys

ANSWER = b"ok"


def serve() -> None:
    """Answer until SIGTERM, behind the HTTP shell that face-blur has too."""
    import os
    from pathlib import Path

    sys.path.insert(0, str(Path(__file__).resolve().parents[3]))
    from function.exchange import Answer, Handler
    from function.http_app import serve as serve_http
    from function.limits import limits_from

    def load() -> Handler:
        return lambda _body, _accept: Answer(ANSWER, "text/plain")

    host, port = os.environ.get("host", "0.0.0.0"), sys.argv[2:] or [os.environ.get("port", "8080")]  # noqa: S104, SIM112
    limits, workers = limits_from(os.environ), os.cpu_count() or 1
    serve_http("noop-python", load, limits, workers=workers, host=host, port=int(port[0]))


def main() -> int:
    if sys.argv[1:] == ["fork"]:
        sys.stdin.buffer.read()
        sys.stdout.buffer.write(ANSWER)
        return 0
    if sys.argv[1:2] == ["serve"]:
        serve()
    print("usage: noop.py fork | noop.py serve [PORT]", file=sys.stderr)
    return 2


if __name__ == "__main__":
    sys.exit(main())
