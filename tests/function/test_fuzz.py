"""A function's server under requests that are nearly HTTP."""

from pathlib import Path

from tests import fuzz
from tests.function.conftest import start

SCRIPT = Path(__file__).with_name("slow_function.py")
PATHS = (b"/", b"/function/slow", b"/_/health", b"/_/ready", b"/%00", b"/../..", b"*", b"http://x/", b"/" + b"a" * 9000)


def test_the_server_outlives_every_request_with_its_memory() -> None:
    with start(SCRIPT, "0", exec_timeout="1s") as client:
        requests = list(fuzz.requests(7, PATHS))
        for request in requests[:200]:
            fuzz.send(client.port, request)
        before_mb = client.rss_mb
        for request in requests[200:]:
            fuzz.send(client.port, request)
        assert client("POST", "/", b"ping").status_code == 200
        assert client.rss_mb - before_mb < 20
        assert client.process.poll() is None
