"""`./run.sh target`: the local OpenFaaS started, shown, changed and stopped; a cluster made; and what one lacks."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from framestorm import paths
from framestorm.errors import UsageError
from framestorm.model.units import plural
from framestorm.parser import Parser, whole_number
from framestorm.plain import note, say
from framestorm.platform.kubernetes import kind, layout, needs, openfaas
from framestorm.platform.kubernetes.cluster import Cluster
from framestorm.platform.openfaas import balancers, gateway, services, stack
from framestorm.platform.openfaas.layout import (
    CREDENTIALS,
    FAAS_CLI,
    GATEWAY_URL,
    LOGS,
    NAMESPACE,
    PROMETHEUS_URL,
    STACK,
)
from framestorm.platform.swarm import platform as swarm

BACKENDS = ("process", "docker")


def main(argv: Sequence[str]) -> int:
    """Do what the words after `target` ask for; the exit status of run.sh."""
    parser = _parser()
    arguments, more = parser.parse_known_args(list(argv))
    if more and arguments.verb != "deploy":
        parser.refuse(more)
    match arguments.verb:
        case "openfaas":
            stack.up(arguments.backend)
            _show_use()
        case "kind":
            if arguments.from_source:
                kind.up(arguments.nodes)
                _show_cluster()
            elif arguments.nodes != 1:
                raise UsageError("--nodes is for --from-source: the published cluster has one node")
            else:
                kind.up_published()
        case "status":
            return _show_status()
        case "down":
            ended = [*stack.down(), *kind.down(), *swarm.down()]
            say(f"ended: {', '.join(ended)}" if ended else "nothing was running")
        case "deploy":
            if any(word.startswith("--image") for word in more):
                raise UsageError(
                    "target deploy takes a stack file, not --image, which faas-cli would ignore; give it to "
                    f"{paths.shown(FAAS_CLI)} itself, after the login that ./run.sh target openfaas prints"
                )
            if not arguments.file.is_file():
                raise UsageError(f"there is no stack file {arguments.file}")
            words = [*more, *(["--filter", arguments.filter] if arguments.filter else [])]
            if arguments.on == "kind":
                _refuse_other_choices(more)
                openfaas.deploy(arguments.file, arguments.filter, words)
                return 0
            with stack.locked():
                gateway.deploy(arguments.file, words)
            _note_not_ready()
        case "scale":
            with stack.locked():
                gateway.scale(arguments.function, arguments.replicas)
                gateway.wait_for_replicas(arguments.function, arguments.replicas)
        case "balance":
            _balance(arguments)
        case "restart":
            stack.restart(arguments.part)
        case platform:
            return _check_cluster(platform, Cluster.of(arguments.context, arguments.kubeconfig))
    return 0


def _parser() -> Parser:
    parser = Parser(
        prog="./run.sh target",
        description="Start, show, change or stop a real OpenFaaS on this machine, which runs until `down`; make a "
        "cluster here, or check what one lacks.",
    )
    verbs = parser.add_subparsers(dest="verb", required=True, metavar="VERB")

    def verb(name: str, help_text: str) -> Parser:
        return verbs.add_parser(name, help=help_text, description=help_text)

    up = verb("openfaas", "build OpenFaaS (on first use) and start it, or start its missing parts")
    up.add_argument("--backend", choices=BACKENDS, default=BACKENDS[0], help="how replicas run (default: %(default)s)")
    cluster = verb("kind", "make a Kubernetes cluster on this machine by kind, with OpenFaaS, which runs until `down`")
    cluster.add_argument(
        "--from-source",
        action="store_true",
        help="build Kubernetes, Knative, KServe and OpenFaaS here (default: OpenFaaS alone, by published images)",
    )
    cluster.add_argument(
        "--nodes", type=whole_number(1, 8), metavar="N", default=1,
        help="with --from-source: number of nodes, at most 8 (default: %(default)s)",
    )  # fmt: skip
    verb("status", "show OpenFaaS's parts, functions, replicas and balancers; exit status 1 if a part has ended")
    verb("down", "stop OpenFaaS and the balancers, and remove the cluster that `kind` made")
    deploy = verb("deploy", "check a stack file, then deploy it by faas-cli, whose other options may follow")
    deploy.add_argument("-f", "--yaml", dest="file", type=Path, default=STACK, help=f"default: {paths.shown(STACK)}")
    deploy.add_argument(
        "--filter", metavar="NAME", help="only this function, or those that match a pattern such as noop*"
    )
    deploy.add_argument(
        "--on",
        choices=("openfaas", "kind"),
        default="openfaas",
        help="the local OpenFaaS, or that of the cluster made by `kind --from-source` (default: %(default)s)",
    )
    scale = verb("scale", "set a function's number of replicas, through the gateway, and wait for them")
    scale.add_argument("function")
    scale.add_argument("replicas", type=whole_number(0))
    balance = verb("balance", "start a balancer over a function's ready replicas, without the gateway")
    balance.add_argument("kind", choices=(*balancers.KINDS, *swarm.BALANCERS))
    balance.add_argument("function")
    balance.add_argument("--policy", choices=balancers.POLICIES, default=balancers.POLICIES[0])
    balance.add_argument(
        "--workers", type=whole_number(1), help="replicas of the service that swarm-* make (default: 1)"
    )
    balance.add_argument("--image", help="image of the function on a swarm (default: that of function/stack.yml)")
    verb("restart", "end one part of OpenFaaS and start it again").add_argument("part")
    for platform in needs.NEEDS:
        check = verb(platform, f"check what a cluster lacks for functions on {needs.TITLES[platform]}; changes nothing")
        check.add_argument("--context", metavar="NAME", help="context of the kubeconfig (default: its current one)")
        check.add_argument("--kubeconfig", metavar="FILE", type=Path, help="default: KUBECONFIG, or ~/.kube/config")
    return parser


def _refuse_other_choices(words: Sequence[str]) -> None:
    """Refuse options of faas-cli that deploy other functions than those whose images are made, or elsewhere."""
    if any(word.startswith("--regex") for word in words):
        raise UsageError("target deploy --on kind does not know --regex: choose functions by --filter")
    if any(word.startswith(("--namespace", "-n")) for word in words):
        raise UsageError(
            f"target deploy --on kind deploys to namespace {NAMESPACE}: leave --namespace out, and choose functions "
            "by --filter"
        )


def _balance(arguments: argparse.Namespace) -> None:
    """Start the requested balancer and print its URL."""
    kind, function = arguments.kind, arguments.function
    if kind in swarm.BALANCERS:
        if arguments.policy != balancers.POLICIES[0]:
            raise UsageError(f"--policy {arguments.policy}: {kind} has {balancers.POLICIES[0]} alone")
        workers = 1 if arguments.workers is None else arguments.workers
        url = swarm.balance(kind, function, workers, arguments.image)
        say(f"balancer {kind}: {url} {balancers.POLICIES[0]} over {plural(workers, 'replica')}")
        return
    for name in ("workers", "image"):
        if getattr(arguments, name) is not None:
            raise UsageError(f"--{name} is for {' and '.join(swarm.BALANCERS)}: {kind} balances what is deployed")
    with stack.locked():
        balancers.start(kind, function, arguments.policy)
    say(_balancer(kind))


def _check_cluster(platform: str, cluster: Cluster) -> int:
    """Print what a platform needs of a cluster, line by line; returns 1 if something is missing."""
    is_complete = True
    for check in needs.checks(cluster, platform):
        say(str(check))
        is_complete &= check.is_there
    return 0 if is_complete else 1


def _show_use() -> None:
    cli, stack_file = paths.shown(FAAS_CLI), paths.shown(STACK)
    say(f"gateway     {GATEWAY_URL}")
    say(f"Prometheus  {PROMETHEUS_URL}")
    say("deploy      ./run.sh target deploy --filter face-blur")
    say(f"run         ./run.sh -Jurl={GATEWAY_URL}/function/face-blur")
    say(f"faas-cli    {cli} login --password-stdin <{paths.shown(CREDENTIALS)}/basic-auth-password")
    say(f"            {cli} deploy --filter face-blur -f {stack_file}")


def _show_cluster() -> None:
    options = f"--kubeconfig {paths.shown(layout.KUBECONFIG)}"
    say(f"kubeconfig  {paths.shown(layout.KUBECONFIG)}, context {layout.CONTEXT}")
    say(f"Knative     http://{layout.ADDRESS}:{layout.INGRESS_PORT}, with the Host header of the service's URL")
    say(f"gateway     {layout.GATEWAY_URL}")
    say("deploy      ./run.sh target deploy --on kind --filter face-blur")
    say(f"run         ./run.sh -Jurl={layout.GATEWAY_URL}/function/face-blur")
    say(f"check       ./run.sh target knative {options}     # or: kserve, kubernetes")


def _note_not_ready() -> None:
    """The provider waits some time for a new function; faas-cli calls it deployed all the same."""
    waiting = [each["name"] for each in gateway.functions() if each["replicas"] and not each["availableReplicas"]]
    if waiting:
        note(
            f"no replica of {', '.join(waiting)} is ready: GET /_/health on port 8080, or the path in the annotation "
            "com.openfaas.ready.http.path, has to be answered with status 200; ./run.sh target status shows them"
        )


def _show_status() -> int:
    started = services.read()
    if started is None:
        say("the local OpenFaaS was not started")
        return 1
    for name, service in started.services.items():
        alive = "running" if service.process() else f"ENDED; see {paths.shown(LOGS / name)}.log"
        say(f"{name:<14}{service.pid:>8}  {alive}")
    dead = started.dead()
    for function in gateway.functions() if "provider" not in dead else ():
        ready, wanted = function["availableReplicas"], function["replicas"]
        say(f"function {function['name']}: {ready} of {wanted} replicas ready, image {function['image']}")
        for replica in gateway.replicas(function["name"]):
            address = replica.get("address", "")
            say(f"  {replica['name']}  {replica['state']}  {address}  {replica['in_flight']} in flight")
    for name in balancers.running():
        say(_balancer(name))
    return 1 if dead else 0


def _balancer(name: str) -> str:
    """Return a started balancer in words."""
    if balancers.running()[name].process() is None:
        return f"balancer {name}: ENDED; see {paths.shown(LOGS / name)}.log"
    what = balancers.balanced(name)
    workers = f"{len(what.workers)} of {what.function}: {', '.join(what.workers)}"
    return f"balancer {name}: {balancers.KINDS[name].url} {what.policy} over {workers}"
