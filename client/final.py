"""The final answer to a request: informational ones before it, such as 103 Early Hints, are passed over."""

import http.client
from http import HTTPStatus


class FinalResponse(http.client.HTTPResponse):
    """A response of http.client, which by itself passes over 100 Continue only."""

    def _read_status(self) -> tuple[str, int, str]:
        version, status, reason = super()._read_status()  # type: ignore[misc]
        while HTTPStatus.SWITCHING_PROTOCOLS < status < HTTPStatus.OK:
            http.client.parse_headers(self.fp)
            version, status, reason = super()._read_status()  # type: ignore[misc]
        return version, status, reason
