"""A sink that sends its figures to a service by HTTP, once a second, and keeps for later what it could not send."""

import http.client
import ssl
from abc import abstractmethod
from collections.abc import Mapping
from urllib.parse import urlsplit

from framestorm import __version__
from framestorm.model.run import Record
from framestorm.model.sink import SinkAddress, SinkOutcome
from framestorm.sinks.sink import Sink, Update

EVERY_S = 1.0
WITHIN_S = 2.0
# Of an answer that refuses what was sent, for people.
MAX_REASON = 200
# Of the client's errors those that the same body need not get again: it came too slowly, or among too many.
PASSING = (408, 429)


class Refused(Exception):  # noqa: N818 - what the service did
    """The service takes what was sent neither now nor later."""

    def __init__(self, said: str, status: int) -> None:
        super().__init__(said)
        self.status = status


class PushedSink(Sink):
    """Sends the figures of one run; `run` is its name there.

    IS_CUMULATIVE: each sending has all samples so far, so that one that fails loses none of them.
    n_unsent: intervals that were taken and are not yet known to be there.
    """

    IS_CUMULATIVE = False

    def __init__(self, address: SinkAddress, run: str, record: Record) -> None:
        self.address, self.run = address, run
        self.plan = (record.plan or "").rpartition("/")[2].removesuffix(".jmx")
        self._url = urlsplit(address.url)
        self._connection: http.client.HTTPConnection | None = None
        self._sent_s = 0.0
        self._last: Update | None = None
        self.n_unsent = 0
        super().__init__(f"--sink {address.shown}")

    def outcome(self) -> SinkOutcome:
        """Return what became of the intervals, once the run is over."""
        return SinkOutcome(
            self.address.shown, self.n_intervals, min(self.n_missed + self.n_unsent, self.n_intervals), self.problem
        )

    def take(self, update: Update) -> None:
        self.collect(update)
        self.n_unsent += len(update.intervals)
        self._last = update
        if update.now_s - self._sent_s >= EVERY_S:
            self._sent_s = update.now_s
            self._push(update.now_s)

    def end(self) -> None:
        if self._last is not None:
            self._push(self._last.now_s)
        if self._connection is not None:
            self._connection.close()

    @abstractmethod
    def collect(self, update: Update) -> None:
        """Keep what is to be sent of an update."""

    @abstractmethod
    def body(self, now_s: float) -> bytes:
        """Return what is sent now: all that was not delivered."""

    def other_body(self, status: int) -> bytes:
        """Return what to send instead of a body that was refused with that status; nothing if there is nothing."""
        return b""

    @abstractmethod
    def delivered(self) -> None:
        """Forget what was sent."""

    def left_out(self, answer: bytes) -> str:
        """Return what the service says that it left out of a body that it took; empty if it has all of it."""
        return ""

    @abstractmethod
    def headers(self) -> Mapping[str, str]:
        """Return the headers of the format, and those with a secret of the environment."""

    def _push(self, now_s: float) -> None:
        body = self.body(now_s)
        if not body:
            return
        try:
            try:
                self._send(body)
            except Refused as refusal:
                if not (other := self.other_body(refusal.status)):
                    raise
                self._send(other)
        except Refused as error:
            self.say(str(error))
            if self.IS_CUMULATIVE:
                return
            self.n_missed += self.n_unsent
        except (ValueError, http.client.InvalidURL):
            # Its words would show the secret.
            self.say("the address, or a header with a secret, has a character that cannot be sent")
            return
        except (OSError, http.client.HTTPException) as error:
            self.say(_why(error))
            return
        self.n_unsent = 0
        self.delivered()

    def _send(self, body: bytes) -> None:
        """Send it on a connection that is kept; one that the service closed meanwhile is made again."""
        for attempt in (1, 2):
            is_kept = self._connection is not None
            connection = self._connection or self._connect()
            self._connection = None
            try:
                path = self._url.path + (f"?{self._url.query}" if self._url.query else "")
                connection.request("POST", path, body, {"User-Agent": f"framestorm/{__version__}", **self.headers()})
                answer = connection.getresponse()
                text = answer.read(1 << 16)
            except (ConnectionError, http.client.BadStatusLine):
                connection.close()
                if is_kept and attempt == 1:
                    continue
                raise
            except BaseException:
                connection.close()
                raise
            if answer.will_close or not answer.isclosed():
                connection.close()
            else:
                self._connection = connection
            if answer.status // 100 != 2:
                said = f"it answers with status {answer.status}{in_brackets(text.decode(errors='replace'))}"
                is_final = answer.status // 100 in {3, 4} and answer.status not in PASSING
                raise Refused(said, answer.status) if is_final else OSError(said)
            if said := self.left_out(text):
                raise Refused(said, answer.status)
            return

    def _connect(self) -> http.client.HTTPConnection:
        host, port = self._url.hostname or "", self._url.port
        if self._url.scheme == "https":
            return http.client.HTTPSConnection(host, port, timeout=WITHIN_S, context=ssl.create_default_context())
        return http.client.HTTPConnection(host, port, timeout=WITHIN_S)


def in_brackets(reason: str) -> str:
    """Return a reason that a service gives, shortened to a part of a line; empty without one."""
    shown = " ".join(reason.split())[:MAX_REASON]
    return f" ({shown})" if shown else ""


def _why(error: Exception) -> str:
    if isinstance(error, TimeoutError):
        return f"it does not answer within {WITHIN_S:g} s"
    if isinstance(error, OSError) and error.strerror:
        return f"it cannot be reached ({error.strerror})"
    return str(error) or type(error).__name__
