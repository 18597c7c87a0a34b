"""A function that numbers the requests it gets, and the moods that faults put it into."""

import socket
import struct
import threading
from typing import Any

from tests.stand_in import Answer, Received, StandIn


class Witness(StandIn):
    """A function that numbers the requests it gets; the number comes back as the worker, a column of samples.csv."""

    def __init__(self, host: str) -> None:
        super().__init__([], host)
        self.is_up = True
        self.mood: dict[str, Any] = {}
        self._serve()

    def _serve(self) -> None:
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
            number = len(self.received)
        # A frame comes back as it is, with one face.
        frame = (
            {"body": request.body, "content_type": "image/jpeg"} if request.headers["Accept"] == "image/jpeg" else {}
        )
        headers = (("X-Worker", str(number)), ("X-Faces", "[[1, 1, 9, 9, 0.9]]"))
        return Answer(**{"body": b"fine", "delay_s": 0.02, "headers": headers, **frame, **self.mood})

    def verify_request(self, request: Any, client_address: Any) -> bool:
        if self.mood is RESETS:
            request.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        return self.mood is not RESETS

    def go_away(self) -> None:
        if self.is_up:
            self.is_up = False
            self.shutdown()
            self.server_close()

    def come_back(self) -> None:
        if not self.is_up:
            self.socket = socket.socket()
            self.server_bind()
            self.server_activate()
            self.is_up = True
            self._serve()

    def close(self) -> None:
        self.released.set()
        self.go_away()


RESETS: dict[str, Any] = {"delay_s": 0.0}  # and connections are refused
MOODS: dict[str, dict[str, Any]] = {
    "function is slow": {"delay_s": 1.0},
    "function hangs": {"delay_s": 60.0},
    "function answers garbage": {"body": b"\x00\xff<[/x]>\x1b[2J=1+1"},
    "function answers 500": {"status": 500},
    "function breaks off": {"sent_bytes": 2},
    "function resets": RESETS,
}
