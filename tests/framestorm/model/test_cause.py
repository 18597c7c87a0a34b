"""Causes: the words of clients and plans stand in the one table, and the table has no others."""

import ast
import re
from itertools import chain

import grpc
import pytest

from framestorm import paths
from framestorm.model.cause import CAUSES, TIMEOUTS, WORD, Side, describe, request_cause, transaction_cause, user_cause

# Words of clients, which are also those of plans, have their rows; these are made by the results themselves.
BY_RESULTS = {"error", "never-ended", "failed-check"}
STATUS = {word for word in CAUSES if word.startswith("status-")}
GRPC = {f"grpc-{code.name.lower().replace('_', '-')}" for code in grpc.StatusCode if code is not grpc.StatusCode.OK}


class CauseWords:
    """The words that the client's modules assign, pass or return as a cause."""

    def __init__(self) -> None:
        trees = [ast.parse(path.read_text()) for path in paths.CLIENT.glob("*.py")]
        self._constants: dict[str, ast.expr] = {}
        self._returned: dict[str, list[ast.expr]] = {}  # by the name of a function
        places = [self._definitions(tree) for tree in trees]
        everywhere: dict[str, set[int]] = {}
        for name, each in chain.from_iterable(of_module.items() for of_module in places):
            everywhere.setdefault(name, set()).update(each)
        self.words: set[str] = set()
        for tree, of_module in zip(trees, places, strict=True):
            for node in ast.walk(tree):
                for value in causes_in(node, everywhere | of_module):
                    self._take(value)

    def _definitions(self, tree: ast.Module) -> dict[str, set[int]]:
        """Note what constants are and functions return; which arguments of functions and named tuples are causes."""
        places: dict[str, set[int]] = {}
        for node in ast.walk(tree):
            match node:
                case ast.FunctionDef(name=name):
                    names = [each.arg for each in node.args.args if each.arg != "self"]
                    results = (each.value for each in ast.walk(node) if isinstance(each, ast.Return))
                    self._returned.setdefault(name, []).extend(filter(None, results))
                case ast.ClassDef(name=name, body=body):
                    names = [name_of(each.target) for each in body if isinstance(each, ast.AnnAssign)]
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name.isupper():
                    self._constants[name] = value
                    continue
                case _:
                    continue
            places.setdefault(name, set()).update(place for place, each in enumerate(names) if each == "cause")
        return places

    def _take(self, value: ast.expr | None) -> None:
        """Take the words that a cause may be."""
        match value:
            case ast.Constant(value=str() as word):
                self.words.add(word)
            case ast.IfExp(body=body, orelse=orelse):
                self._take(body)
                self._take(orelse)
            case ast.Tuple(elts=[first, *_]):  # a cause and figures
                self._take(first)
            case ast.BoolOp(values=parts) | ast.Dict(keys=parts):
                for part in parts:
                    self._take(part)
            case ast.Name(id=name):
                self._take(self._constants.get(name))
            case ast.Call(func=function):
                for each in self._returned.pop(name_of(function), []):
                    self._take(each)


def causes_in(node: ast.AST, places: dict[str, set[int]]) -> list[ast.expr]:
    """What a node assigns to a name of a cause, or passes as one."""
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=targets)], value=value):
            values = value.elts if isinstance(value, ast.Tuple) else [value] * len(targets)
            return [each for target, each in zip(targets, values, strict=True) if "cause" in name_of(target)]
        case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
            return [value] if "cause" in name_of(target).lower() else []
        case ast.Call(func=function, args=args, keywords=keywords):
            of_places = [each for place, each in enumerate(args) if place in places.get(name_of(function), ())]
            return of_places + [keyword.value for keyword in keywords if keyword.arg == "cause"]
    return []


def name_of(node: ast.expr) -> str:
    """The last name of what is called or assigned to."""
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def java_words() -> set[str]:
    """What the classes that plans call return or choose as a cause."""
    texts = [
        (paths.JMX / "java/plan" / f"{name}.java").read_text()
        for name in ("Answer", "Breakage", "ClientSample", "Picture", "User")
    ]
    literals = chain.from_iterable(
        re.findall(r'(?:(?:return|\?|(?<!\w):) |setResponseMessage\()"([a-z][a-z0-9]*(?:-[a-z0-9]+)*)"', text)
        for text in texts
    )
    return set(literals)


def test_clients_and_plans_say_the_words_of_the_table() -> None:
    of_clients, of_plans = CauseWords().words, java_words()
    assert of_clients - CAUSES.keys() == set()
    assert of_plans - CAUSES.keys() == set()
    assert CAUSES.keys() - of_clients - of_plans == BY_RESULTS | STATUS | GRPC


@pytest.mark.parametrize("word", sorted(CAUSES))
def test_each_cause_is_a_word_with_a_sentence(word: str) -> None:
    cause = CAUSES[word]
    assert WORD.fullmatch(word) and cause.word == word
    assert cause.sentence and not cause.sentence.endswith(".")
    assert cause.is_timeout is (word in TIMEOUTS)


@pytest.mark.parametrize(
    ("word", "sentence", "side"),
    [
        ("status-418", "HTTP 418", Side.FUNCTION),
        ("exit-3", "the client's process ended with exit status 3", Side.GENERATOR),
        ("too-rude", "too-rude", Side.FUNCTION),
    ],
)
def test_a_word_without_a_row(word: str, sentence: str, side: Side) -> None:
    assert (describe(word).sentence, describe(word).side) == (sentence, side)


@pytest.mark.parametrize(
    ("code", "message", "failure", "cause"),
    [
        ("200", "too-few-faces", "", "too-few-faces"),
        ("200", "OK", "not-json", "not-json"),
        ("reset", "reset", "", "reset"),
        ("201", "status-201", "", "status-201"),
        ("Non HTTP response code: org.apache.http.conn.ConnectTimeoutException", "x", "", "connect-timeout"),
        ("Non HTTP response code: java.net.SocketTimeoutException", "Read timed out", "", "timeout"),
        ("Non HTTP … org.apache.http.conn.HttpHostConnectException", "Connection refused", "", "connect"),
        ("Non HTTP response code: java.net.UnknownHostException", "nowhere", "", "connect"),
        ("Non HTTP response code: org.apache.http.NoHttpResponseException", "failed to respond", "", "reset"),
        ("Non HTTP response code: java.net.SocketException", "Connection reset", "", "reset"),
        (
            "Non HTTP response code: java.net.SocketException",
            "Socket closed",
            "",
            "exception: SocketException: Socket closed",
        ),
        ("Non HTTP response code: java.net.SocketException", "Too many open files", "", "generator-limit"),
        ("Non HTTP response code: org.apache.http.client.ClientProtocolException", "x", "", "not-http"),
        ("Non HTTP response code: java.io.IOException", "Exceeded maximum number of redirects: 20", "", "not-http"),
        ("Non HTTP response code: org.apache.http.MessageConstraintException", "Maximum line length", "", "not-http"),
        ("Non HTTP response code: org.apache.http.MalformedChunkCodingException", "Bad chunk header", "", "not-http"),
        ("Non HTTP response code: org.apache.http.TruncatedChunkException", "Truncated chunk", "", "reset"),
        ("Non HTTP response code: java.io.EOFException", "Unexpected end of ZLIB input stream", "", "not-http"),
        ("Non HTTP response code: java.io.EOFException", "null", "", "not-http"),
        ("Non HTTP response code: java.io.IOException", "Brotli stream decoding failed", "", "not-http"),
        (
            "Non HTTP response code: java.net.SocketException",
            "Broken pipe; the server closed while the body was sent (81920 of 5000000 bytes): a size limit?",
            "",
            "closed-early: ... of 5000000 bytes",
        ),
        (
            "Non HTTP response code: java.net.SocketException",
            "Connection reset; the server closed while the body was sent (81920 of unknown bytes): a size limit?",
            "",
            "closed-early",
        ),
        (
            "Non HTTP response code: org.apache.http.client.ClientProtocolException",
            "Non HTTP response message: URI does not specify a valid host name: http:/x",
            "Test failed: code expected to equal /",
            "no-server",
        ),
        (
            "Non HTTP response code: javax.net.ssl.SSLException",
            "Non HTTP response message: Unsupported or unrecognized SSL message",
            "Test failed: code expected to equal /",
            "tls: SSLException: Unsupported or unrecognized SSL message",
        ),
        (
            "200",
            "OK",
            "Test failed: code expected to equal /\n\n****** received  : 20[[[0]]]\n\n"
            "****** comparison: 20[[[1]]]\n\n/",
            "failed-check: Test failed: code expected to equal 201, received 200",
        ),
        (
            "200",
            "OK",
            "Test failed: message expected to equal /\n\n****** received  : [[[Created]]]\n\n"
            "****** comparison: [[[OK     ]]]\n\n/",
            "failed-check: Test failed: message expected to equal OK, received Created",
        ),
        ("999", "Request denied", "", "status-999"),
        (
            "Non HTTP response code: java.lang.StringIndexOutOfBoundsException",
            "begin 1, end 0, length 1",
            "",
            "not-http",
        ),
        (
            "Non HTTP response code: java.net.SocketException",
            "Sample Timeout: Non HTTP response message: Socket closed",
            "",
            "timeout",
        ),
        ("503", "oops", "", "status-503"),
        (
            "200",
            "OK",
            'Test failed: text expected,\nbut "this" came',
            'failed-check: Test failed: text expected, but "this" came',
        ),
        ("200", "OK", "It took 1,203 milliseconds, but", "failed-check: It took ... milliseconds, but"),
        ("200", "OK", "x" * 999 + "y", f"failed-check: {'x' * 80} ... {'x' * 39}y"),
        ("500", "Process timeout reached after 300 milliseconds", "", "timeout"),
        ("MY-1", "stock\nempty", "", "error: MY-1 stock empty"),
        ("null 0", "java.sql.SQLException: no such table", "", "exception: java.sql.SQLException: no such table"),
        (
            "Non HTTP response code: java.net.URISyntaxException",
            "Non HTTP response message: Illegal character",
            "",
            "exception: URISyntaxException: Illegal character",
        ),
        (
            "Non HTTP response code: javax.net.ssl.SSLHandshakeException",
            "Non HTTP response message: PKIX path",
            "",
            "tls: SSLHandshakeException: PKIX path",
        ),
        (
            "",
            "javax.script.ScriptException: a.CompilationErrorsException: failed: Script12.groovy: 1: }",
            "",
            "exception: a.CompilationErrorsException: failed: Script.groovy: 1: }",
        ),
        ("200", "OK", "", "unknown"),
    ],
)
def test_why_a_request_failed(code: str, message: str, failure: str, cause: str) -> None:
    assert request_cause(code, message, failure) == cause


def test_a_transaction_fails_with_its_samples_or_by_itself() -> None:
    of_two, slow = "Number of samples in transaction : 2, number of failing samples : ", "It took 9 milliseconds, but"
    causes = [transaction_cause(f"{of_two}{n}", failure) for n in (2, 0) for failure in ("", slow)]
    assert causes == [*["failed-sample"] * 2, "failed-check", "failed-check: It took ... milliseconds, but"]
    # Whatever a script wrote as its message.
    assert [transaction_cause("mine", failure) for failure in ("", "no")] == ["failed-sample", "failed-check: no"]


def test_what_sends_no_http_has_no_status_of_the_function() -> None:
    failed = ("500", "javax.script.ScriptException: no such property", "Test failed: text expected")
    assert request_cause(*failed, is_http=False) == "exception: javax.script.ScriptException: no such property"
    assert request_cause("500", "mailbox full", "", is_http=False) == "error: 500 mailbox full"
    assert request_cause(*failed) == request_cause("500", "", "", is_http=False) == "status-500"


@pytest.mark.parametrize(
    ("code", "message", "cause"),
    [
        ("1", "status-500", "status-500"),
        ("500", "Process timeout", "user-timeout"),
        ("500", "Interrupted while running", "stopped"),
        ("500", "Exception in call", "not-started"),
        ("137", "KO", "exit-137"),
        ("", "", "exit-unknown"),
    ],
)
def test_why_a_user_failed(code: str, message: str, cause: str) -> None:
    assert user_cause(code, message) == cause
