"""Functions on a real Docker Swarm, by each of its routes, and docs/swarm.md as it is shown.

By hand, as root, because its hosts take minutes: `.local/test-venv/bin/python -m tests.swarm`.
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
from tests.docs.test_pages import blocks
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
    """With the reason that the swarm gives."""
    victim = next(node for node in (SECOND, THIRD, MANAGER) if node.docker("ps", "--quiet"))
    url = f"http://{MANAGER.address}:{services.PORTS['mesh']}/"
    running = run_sh.start("-t", "jmx/requests.jmx", "-Jusers=2", "-Jhold_s=60", f"-Jurl={url}")
    running.until_lines("samples.jtl")
    victim.docker("kill", victim.docker("ps", "--quiet").split()[0])
    done = running.ended(0, 3)  # whether it had a request then is up to the moment
    (function,) = done.json("summary.json")["functions"]
    (ended,) = function["ended"]
    assert ended["exit_status"] == 137 and "non-zero exit (137)" in ended["reason"], ended


def the_page_s_commands(run_sh: RunSh, block: str) -> None:
    """With the swarm of the lab in the place of the reader's, whose engine the environment names."""
    here = {"--image registry.example.com/noop:1 ": "", "swarm1.example.com": MANAGER.address}
    for line in block.splitlines():
        for theirs, ours in here.items():
            line = line.replace(theirs, ours)  # noqa: PLW2901
        if line.startswith("./run.sh"):
            is_run = line.startswith("./run.sh -")
            run_sh(line, *(["-Jhold_s=5"] if is_run else []), out="page" if is_run else "")


def main() -> int:
    """Make a swarm and the function with each route, and look at who answers."""
    run_sh = RunSh(Path(tempfile.mkdtemp(prefix="swarm-")))
    on_a_swarm, of_the_lab = blocks("swarm.md", "console")
    up, status, down = (line.removeprefix("sudo ") for line in of_the_lab.splitlines())
    run_sh(up, out="")
    run_sh(status, out="")
    os.environ["DOCKER_HOST"] = MANAGER.engine
    try:
        look_at_all_routes(run_sh)
        the_page_s_commands(run_sh, on_a_swarm)
    finally:
        del os.environ["DOCKER_HOST"]
        run_sh(down, out="")
    return 0


def look_at_all_routes(run_sh: RunSh) -> None:
    """And see that nothing is left of them."""
    for route in services.PORTS:
        run_sh("target", "balance", f"swarm-{route}", "noop", "--workers", str(WORKERS), out="")
        url = services.urls_of(route)[0]
        if route == "mesh":
            the_mesh_balances_connections()
            a_worker_that_is_killed_is_on_the_page(run_sh)
        else:
            assert len(asked(url, is_kept=False)) == WORKERS, route
        print(f"{route}: {url}", flush=True)
    run_sh("target", "down", out="")
    assert wait_until(lambda: not MANAGER.docker("service", "ls", "--quiet"), 10)
    assert not MANAGER.docker("network", "ls", "--quiet", "--filter", f"label={services.OWNER}")
    print("all routes lead to all workers, and nothing is left in the swarm", flush=True)


if __name__ == "__main__":
    sys.exit(main())
