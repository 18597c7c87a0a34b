"""Requests to parts on this machine, past any proxy of the environment, which must not get their passwords."""

from typing import TYPE_CHECKING, Any

from framestorm.errors import FramestormError

if TYPE_CHECKING:
    from requests import Response

TIMEOUT_S = 30.0
PROBE_WITHIN_S = 2.0


def request(
    method: str, url: str, *, content: Any = None, auth: tuple[str, str] | None = None, timeout_s: float = TIMEOUT_S
) -> "Response":
    """Send a request with JSON content; the answer, whatever its status.

    Raises:
        FramestormError: nothing answered.
    """
    import requests  # takes 0.1 s, which a run without such a part is spared

    with requests.Session() as session:
        session.trust_env = False
        try:
            return session.request(method, url, json=content, auth=auth, timeout=timeout_s)
        except requests.RequestException as error:
            raise FramestormError(f"{method} {url}: {error}") from None


def answers(url: str, timeout_s: float = PROBE_WITHIN_S) -> bool:
    """Whether a page is there."""
    try:
        return request("GET", url, timeout_s=timeout_s).status_code // 100 == 2
    except FramestormError:
        return False
