"""`./run.sh target`: the local OpenFaaS started, shown, changed and stopped."""

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import FramestormError, UsageError
from framestorm.openfaas import balancers, deployment, gateway, stack, state
from framestorm.openfaas.layout import (
    CREDENTIALS,
    FAAS_CLI,
    GATEWAY_URL,
    LOGS,
    PROMETHEUS_URL,
    STACK,
)

BACKENDS = ("process", "docker")


def main(argv: Sequence[str]) -> int:
    """Do what the words after `target` ask for; the exit status of run.sh.

    Raises:
        FramestormError: as errors.py has it.
    """
    parser = argparse.ArgumentParser(
        prog="./run.sh target", description="A real OpenFaaS on this machine, which runs on until `down`."
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, action: Callable[[argparse.Namespace], int], help_text: str) -> argparse.ArgumentParser:
        added = verbs.add_parser(name, help=help_text, description=help_text)
        added.set_defaults(action=action)
        return added

    up = verb("openfaas", _up, "build it (first use only) and start it, or what of it is missing")
    up.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0], help="how replicas run (default: %(default)s)")
    verb("status", _status, "show its parts, functions, replicas and balancers; exit status 1 if a part has ended")
    verb("down", _down, "end all that was started")
    deploy = verb("deploy", _deploy, "check a stack file, then deploy it by faas-cli, whose other options may follow")
    deploy.add_argument("-f", dest="file", type=Path, default=STACK, help=f"default: {paths.shown(STACK)}")
    deploy.add_argument("--filter", metavar="NAME", help="just this function, or those like noop*")
    scale = verb("scale", _scale, "set a function's number of replicas, through the gateway, and wait for them")
    scale.add_argument("function")
    scale.add_argument("replicas", type=int)
    balance = verb("balance", _balance, "start a balancer over a function's ready replicas, past the gateway")
    balance.add_argument("kind", choices=tuple(balancers.KINDS))
    balance.add_argument("function")
    balance.add_argument("--policy", choices=balancers.POLICIES, default=balancers.POLICIES[0])
    restart = verb("restart", _restart, "end one part and start it again")
    restart.add_argument("part")
    asked, more = parser.parse_known_args(list(argv))
    if more and asked.verb != "deploy":
        parser.error(f"unrecognized arguments: {' '.join(more)}")
    asked.more = more
    action: Callable[[argparse.Namespace], int] = asked.action
    return action(asked)


def _up(asked: argparse.Namespace) -> int:
    stack.up(asked.backend)
    cli, stack_file = paths.shown(FAAS_CLI), paths.shown(STACK)
    print(f"gateway     {GATEWAY_URL}")
    print(f"Prometheus  {PROMETHEUS_URL}")
    print("deploy      ./run.sh target deploy --filter face-blur")
    print(f"run         ./run.sh -Jurl={GATEWAY_URL}/function/face-blur")
    print(f"faas-cli    {cli} login --password-stdin <{paths.shown(CREDENTIALS)}/basic-auth-password")
    print(f"            {cli} deploy --filter face-blur -f {stack_file}")
    return 0


def _status(_asked: argparse.Namespace) -> int:
    started = state.read()
    if started is None:
        print("the local OpenFaaS was not started")
        return 1
    for name, service in started.services.items():
        alive = "running" if service.process() else f"ENDED; see {paths.shown(LOGS / name)}.log"
        print(f"{name:<14}{service.pid:>8}  {alive}")
    dead = started.dead()
    if "provider" not in dead:
        for function in gateway.functions():
            ready, wanted = function.get("availableReplicas", 0), function.get("replicas", 0)
            print(f"function {function['name']}: {ready} of {wanted} replicas ready, image {function['image']}")
            for replica in gateway.replicas(function["name"]):
                address = replica.get("address", "")
                print(f"  {replica['name']}  {replica['state']}  {address}  {replica['in_flight']} under way")
    for kind, service in balancers.running().items():
        alive = balancers.describe(kind) if service.process() else "ENDED"
        print(f"balancer {kind}: {alive}")
    return 1 if dead else 0


def _down(_asked: argparse.Namespace) -> int:
    ended = stack.down()
    print(f"ended: {', '.join(ended)}" if ended else "nothing was running")
    return 0


def _deploy(asked: argparse.Namespace) -> int:
    if not asked.file.is_file():
        raise UsageError(f"there is no stack file {asked.file}")
    deployment.deploy(asked.file, [*asked.more, *(["--filter", asked.filter] if asked.filter else [])])
    return 0


def _scale(asked: argparse.Namespace) -> int:
    gateway.scale(asked.function, asked.replicas)
    gateway.wait_for_replicas(asked.function, asked.replicas)
    return 0


def _balance(asked: argparse.Namespace) -> int:
    print(balancers.start(asked.kind, asked.function, asked.policy))
    print(balancers.describe(asked.kind))
    return 0


def _restart(asked: argparse.Namespace) -> int:
    stack.restart(asked.part)
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except FramestormError as error:
        print(f"framestorm: {error}", file=sys.stderr)
        sys.exit(error.exit_status)
