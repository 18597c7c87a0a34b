"""Functions on a real Docker Swarm, by each of its routes; by hand, because its hosts take minutes:

./run.sh lab swarm
.local/test-venv/bin/python -m tests.swarm
./run.sh lab down
"""

import os
import sys
import tempfile
from collections import Counter
from pathlib import Path

import requests

from framestorm.machine import wait_until
from framestorm.platform.swarm import services
from lab import swarm
from tests.runs import RunSh

MANAGER, SECOND, THIRD = swarm.Node(1), swarm.Node(2), swarm.Node(3)
WORKERS = 2


def asked(url: str, *, is_kept: bool) -> Counter[str]:
    """Send 12 requests; returns how many each worker answered."""
    with requests.Session() as session:
        if not is_kept:
            session.headers["Connection"] = "close"
        answers = [session.post(url, data=b"1", timeout=30) for _ in range(12)]
    assert {answer.status_code for answer in answers} == {200}
    return Counter(answer.headers["X-Worker"] for answer in answers)


def the_mesh_balances_connections() -> None:
    """From each node, that without a worker too."""
    for node in (MANAGER, SECOND, THIRD):
        url = f"http://{node.address}:{services.PORTS['mesh']}/"
        assert len(asked(url, is_kept=False)) == WORKERS, node
        assert len(asked(url, is_kept=True)) == 1, node


def a_worker_that_is_killed_is_on_the_page(run_sh: RunSh) -> None:
    """And the users' requests that it had are failures, with its end beside them."""
    victim = next(node for node in (SECOND, THIRD, MANAGER) if node.docker("ps", "--quiet"))
    url = f"http://{MANAGER.address}:{services.PORTS['mesh']}/"
    running = run_sh.start("-t", "jmx/requests.jmx", "-Jusers=2", "-Jhold_s=60", f"-Jurl={url}")
    running.until_lines("samples.jtl")
    victim.docker("kill", victim.docker("ps", "--quiet").split()[0])
    done = running.ended(3)
    (function,) = done.json("summary.json")["functions"]
    (ended,) = function["ended"]
    assert ended["exit_status"] == 137 and "non-zero exit (137)" in ended["reason"], ended


def main() -> int:
    """Make the function with each route, and look at who answers."""
    os.environ["DOCKER_HOST"] = MANAGER.engine
    run_sh = RunSh(Path(tempfile.mkdtemp(prefix="swarm-")))
    for route in services.PORTS:
        run_sh("target", "balance", f"swarm-{route}", "noop", "--workers", str(WORKERS), out="")
        url = services.url_of(route)
        if route == "mesh":
            the_mesh_balances_connections()
            a_worker_that_is_killed_is_on_the_page(run_sh)
        else:
            assert len(asked(url, is_kept=False)) == WORKERS, route
        print(f"{route}: {url}", flush=True)
    run_sh("target", "down", out="")
    assert wait_until(lambda: not MANAGER.docker("service", "ls", "--quiet"), 10)
    assert not MANAGER.docker("network", "ls", "--quiet", "--filter", f"label={services.OWNER}")
    print("all routes lead to all workers, and nothing is left in the swarm")
    return 0


if __name__ == "__main__":
    sys.exit(main())
