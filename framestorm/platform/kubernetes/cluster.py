"""A Kubernetes cluster, as its kubeconfig leads to it; all that the kit asks of it goes through kubectl.

kubectl is what people have who have a cluster, and it logs in everywhere: by certificates, tokens, and the programs of
cloud providers.
"""

import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from framestorm.errors import FramestormError, UsageError
from framestorm.model.units import listed
from framestorm.platform.kubernetes.layout import KUBE

# An object of Kubernetes, or what a command prints, as its JSON says.
Object = dict[str, Any]

MANAGER = "framestorm"
# Where the kit makes functions.
NAMESPACE = "framestorm"
# The label of all objects that the kit makes.
MANAGED = {"app.kubernetes.io/managed-by": MANAGER}
ANSWERS_WITHIN_S = 10
# Of kubectl as a whole: a program that logs in may ask somewhere else first.
CALL_WITHIN_S = 60
# Lines of kubectl's log (E0102 03:04:05 …), and what it warns of.
_LOG = re.compile(r"[IWEF]\d{4} |Warning: ")


class ClusterError(FramestormError):
    """The cluster refused something, or does not answer; the message has the reason that it gave."""


class ForbiddenError(ClusterError):
    """The kubeconfig's user may not do it."""


@dataclass(frozen=True)
class Cluster:
    """A cluster and how to reach it.

    context: of the kubeconfig. kubeconfig: a file; without one what KUBECONFIG or the user's home has.
    """

    context: str
    kubeconfig: Path | None = None

    @classmethod
    def of(cls, context: str | None, kubeconfig: Path | None = None) -> "Cluster":
        """Return the cluster of a context, or of the current one.

        Raises:
            UsageError: there is no such context, or no kubeconfig.
        """
        config = json.loads(_kubectl(_file(kubeconfig), "config", "view", "--output", "json"))
        contexts = [each["name"] for each in config.get("contexts") or ()]
        context = context or config.get("current-context") or None
        where = str(kubeconfig) if kubeconfig else "the kubeconfig (KUBECONFIG, or ~/.kube/config)"
        if context is None:
            there = f"choose one by --context: {', '.join(contexts)}" if contexts else "it has no contexts at all"
            raise UsageError(f"{where} has no current context; {there}")
        if context not in contexts:
            raise UsageError(f"{where} has no context {context!r}; it has {listed(contexts) if contexts else 'none'}")
        return cls(context, kubeconfig)

    def call(self, *words: str, stdin: str | None = None) -> str:
        """Call kubectl; returns what it prints.

        Raises:
            ClusterError: the cluster refused it, with its reason, or does not answer.
        """
        reach = ("--context", self.context, f"--request-timeout={ANSWERS_WITHIN_S}s")
        try:
            return _kubectl([*_file(self.kubeconfig), *reach], *words, stdin=stdin)
        except ClusterError as error:
            raise type(error)(f"{self.context}: {error}") from None

    def command(self, *words: str) -> list[str]:
        """Return the command line of kubectl for this cluster, for a call that is more than its output."""
        return [*_program(), *_file(self.kubeconfig), "--context", self.context, *words]

    def get(self, kind: str, name: str = "", namespace: str = "", selector: str = "") -> Object:
        """Return an object, or the list of all of a kind, with the labels of a selector."""
        labels = ["--selector", selector] if selector else []
        return self._json("get", kind, *([name] if name else []), *_namespace(namespace), *labels)

    def every(self, kind: str) -> list[Object]:
        """Return all objects of a kind, of all namespaces; none if the cluster has no such kind."""
        try:
            return list(self._json("get", kind, "--all-namespaces")["items"])
        except ClusterError as error:
            if "doesn't have a resource type" in str(error):
                return []
            raise

    def visible(self, kind: str) -> list[Object]:
        """Return the objects of a kind that the user may see; none if the cluster has no such kind.

        Without the right to those of all namespaces, these are the ones of the context's own namespace and the kit's.
        """
        try:
            return self.every(kind)
        except ForbiddenError:
            return [item for namespace in ("", NAMESPACE) for item in self._visible_in(namespace, kind)]

    def _visible_in(self, namespace: str, kind: str) -> list[Object]:
        try:
            return list(self.get(kind, namespace=namespace)["items"])
        except ForbiddenError:
            return []

    def serves(self, kind: str) -> bool:
        """Return whether the cluster has a kind, by its plural name and group, which all users may see."""
        plural, _, group = kind.partition(".")
        try:
            versions = self.read(f"/apis/{group}")["versions"]
        except ClusterError as error:
            if "(NotFound)" in str(error):
                return False
            raise
        served = [self.read(f"/apis/{version['groupVersion']}")["resources"] for version in versions]
        return any(each["name"] == plural for resources in served for each in resources)

    def find(self, kind: str, name: str, namespace: str = "") -> Object | None:
        """Return an object, None if it is not there."""
        text = self.call("get", kind, name, *_namespace(namespace), "--ignore-not-found", "--output", "json")
        return dict(json.loads(text)) if text.strip() else None

    def create(self, item: Mapping[str, Any]) -> None:
        """Create an object that does not exist yet."""
        self.call("create", "--filename", "-", stdin=json.dumps(item))

    def apply(self, objects: Iterable[Mapping[str, Any]], is_validated: bool = True) -> None:
        """Create or change objects; a field that somebody else has set since is taken back.

        is_validated: a field that no schema has is refused.
        """
        text = json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)})
        options = ["--server-side", "--force-conflicts", f"--field-manager={MANAGER}", "--filename", "-"]
        options += [] if is_validated else ["--validate=false"]
        self.call("apply", *options, stdin=text)

    def would_take(self, item: Mapping[str, Any]) -> str | None:
        """Return why the cluster would refuse an object, by its webhooks too; None if it would take it."""
        options = ("--dry-run=server", "--filename", "-")
        try:
            self.call("create", *options, stdin=json.dumps(item))
        except ClusterError as error:
            return str(error)
        return None

    def may(self, verb: str, resource: str, namespace: str) -> bool:
        """Return whether the kubeconfig's user has a right."""
        return not self.lacking([(verb, resource)], namespace)

    def lacking(self, rights: Sequence[tuple[str, str]], namespace: str) -> list[tuple[str, str]]:
        """Return which of some rights, verb and resource each (nodes/proxy: a part of it), the user has not."""
        reviews = []
        for verb, resource in rights:
            whole, _, group = resource.partition(".")
            name, _, part = whole.partition("/")
            # A namespace is in none while it is created, and in itself from then on.
            place = "" if (verb, name) == ("create", "namespaces") else namespace
            attributes = {"verb": verb, "resource": name, "subresource": part, "group": group, "namespace": place}
            review = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
            reviews.append({**review, "spec": {"resourceAttributes": attributes}})
        # Who may do little may not read the schemas by which kubectl validates.
        options = ("--validate=false", "--filename", "-", "--output", "jsonpath={.status.allowed}{'\\n'}")
        text = self.call("create", *options, stdin=json.dumps({"apiVersion": "v1", "kind": "List", "items": reviews}))
        answers = text.split()
        return [right for right, answer in zip(rights, answers, strict=True) if answer != "true"]

    def delete(self, kind: str, name: str, namespace: str = "", *, waits: bool = False) -> None:
        """Begin to delete an object, if it is there; `waits`: and wait until it is gone, but not for its pods."""
        options = ("--ignore-not-found", f"--wait={str(waits).lower()}")
        self.call("delete", kind, name, *_namespace(namespace), *options)

    def read(self, path: str) -> Object:
        """Return what the API server answers to a path."""
        return dict(json.loads(self.call("get", "--raw", path)))

    def stream(self, path: str) -> subprocess.Popen[str]:
        """Start kubectl on a path whose answer has no end; it writes lines of JSON to its stdout.

        When nobody reads them any more, it ends at the next line.
        """
        return subprocess.Popen(
            self.command("get", "--raw", path), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        )  # fmt: skip

    def version(self) -> str:
        """Return the version of its API server, which has to answer."""
        return str(self._json("version")["serverVersion"]["gitVersion"])

    def _json(self, *words: str) -> Object:
        return dict(json.loads(self.call(*words, "--output", "json")))


def _file(kubeconfig: Path | None) -> list[str]:
    return ["--kubeconfig", str(kubeconfig)] if kubeconfig else []


def _namespace(name: str) -> list[str]:
    return ["--namespace", name] if name else []


def _program() -> list[str]:
    """Return the user's kubectl, or else the one that was built here."""
    program = shutil.which("kubectl")
    if program is None and not KUBE.exists():
        raise FramestormError("kubectl was not found; install it (kubernetes.io/docs/tasks/tools)")
    return [program] if program else [str(KUBE), "kubectl"]


def _kubectl(options: Sequence[str], *words: str, stdin: str | None = None) -> str:
    command = [*_program(), *options, *words]
    try:
        result = subprocess.run(
            command, input=stdin or "", capture_output=True, text=True, check=False, timeout=CALL_WITHIN_S,
            start_new_session=True,  # a Ctrl-C is for the conductor, which decides
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ClusterError(f"`kubectl {' '.join(words[:3])}` did not end within {CALL_WITHIN_S} s") from None
    if result.returncode != 0:
        reason = _reason(result.stderr.strip() or result.stdout.strip())
        raise (ForbiddenError if reason.startswith("(Forbidden)") else ClusterError)(reason)
    return result.stdout


def _reason(text: str) -> str:
    """Return why, of what kubectl printed: without its log and warnings, and what it puts in front of each line."""
    lines = [line.strip() for line in text.splitlines() if line.strip() and not _LOG.match(line)]
    reasons = [line.removeprefix("error: ").removeprefix("Error from server ") for line in lines]
    return " ".join(dict.fromkeys(reasons)) or "kubectl gave no reason"
