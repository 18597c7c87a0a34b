"""The server that the plans of this room were made for: pages, a login, a JSON service, a card reader's gateway."""

import itertools
import json
import re
import socketserver
from collections.abc import Iterator
from contextlib import contextmanager

from tests.in_thread import in_thread
from tests.stand_in import Answer, Received, StandIn

PEOPLE = {"ada": ("lovelace", "Ada"), "bo": ("derek", "Bo"), "cy": ("young", "Cy")}
PAGE = '<html><head><link rel="stylesheet" href="/static/shop.css"><script src="/static/shop.js"></script></head>'
# What the assertions of JMeter's templates look for.
TITLE = "<title>Apache JMeter - {}</title>"
CHANGES = TITLE.format("Changes") + '<a href="https://bz.apache.org/bugzilla/show_bug.cgi?id=42">42</a>'
BUG = "This is <b>ASF Bugzilla</b>: the Apache Software Foundation bug system"
FORECAST = "<soap:Envelope><GetCityForecastByZIPResult></GetCityForecastByZIPResult></soap:Envelope>"
LOGO = '<img src="/static/logo.png">'
FRONT = f"{PAGE}{TITLE.format('Apache JMeter&trade;')}<body><h1>Example Domain</h1>{LOGO}</body></html>"
ARTICLE = f'{PAGE}<body><h1>Shoes</h1><img src="/static/shoe.png"></body></html>'
BROKEN = f'<html><body>{LOGO}<img src="/gone.png"></body></html>'
FORM = '<form method="post" action="/login"><input name="user"><input name="csrf" value="{}"></form>'


def _page(text: str, status: int = 200, *headers: tuple[str, str]) -> Answer:
    return Answer(status, "text/html; charset=utf-8", text.encode(), headers)


def _json(content: object, status: int = 200) -> Answer:
    return Answer(status, body=json.dumps(content).encode(), headers=())


class Site(StandIn):
    """Answers by method and path."""

    def __init__(self, host: str = "127.0.0.1") -> None:
        super().__init__([], host)
        self.host = host
        self.numbers = itertools.count(1)
        self.polls: dict[str, int] = {}

    def next_answer(self, request: Received) -> Answer:
        with self.lock:
            self.received.append(request)
        path = request.path.partition("?")[0]
        body = request.body.decode(errors="replace")
        match request.method, path.strip("/").split("/"):
            case "GET", [""]:
                return _page(FRONT, 200, ("Set-Cookie", "visit=1; Path=/"))
            case "GET", ["old"]:
                return _page("", 302, ("Location", "/article"))
            case "GET", ["article"]:
                return _page(ARTICLE)
            case "GET", ["changes.html"]:
                return _page(CHANGES)
            case "GET", ["bugzilla", _]:
                return _page(BUG)
            case "POST", ["WeatherWS", _]:
                return _page(FORECAST)
            case "GET", ["redirected"]:
                return _page(f'<html><body><img src="/old">{LOGO}</body></html>')
            case "GET", ["broken-page"]:
                return _page(BROKEN)
            case "GET", ["static", name]:
                return Answer(200, "text/plain", name.encode() * 100, (("Cache-Control", "max-age=60"),))
            case "GET", ["login"]:
                return _page(FORM.format(f"t{next(self.numbers)}"))
            case "POST", ["login"]:
                fields = dict(pair.split("=") for pair in body.split("&"))
                password, name = PEOPLE.get(fields.get("user", ""), ("", ""))
                if fields.get("password") != password or not re.fullmatch(r"t\d+", fields.get("csrf", "")):
                    return _page("<p>Wrong password</p>")
                return _page("", 302, ("Location", "/account"), ("Set-Cookie", f"session={name}; Path=/"))
            case "GET", ["account"]:
                session = re.search(r"session=(\w+)", request.headers.get("Cookie", ""))
                return _page(f"<h1>Hello {session[1]}</h1>" if session else "<p>Log in first</p>")
            case "GET", ["api", "slow"]:
                return Answer(body=b"[]", delay_s=0.1)
            case "GET", ["api", "error"]:
                return _json({"error": "out of order"}, 500)
            case "GET", ["api", "items", "4"] | ["items", "4"]:
                return _json({"error": "no such item"}, 404)
            case "GET", ["api", "items", number] | ["items", number]:
                return _json({"id": int(number), "name": f"item {number}"})
            case "POST", ["api", "items"]:
                return _json({"id": next(self.numbers)}, 201)
            case "POST", ["api", "jobs"]:
                return _json({"token": f"job{next(self.numbers)}"}, 202)
            case "GET", ["api", "jobs", token, "result"]:
                return _json({"kind": "thumbnail", "tags": ["small", "grey"]})
            case "GET", ["api", "jobs", token]:
                self.polls[token] = self.polls.get(token, 0) + 1
                return _json({"state": "pending" if self.polls[token] < 3 else "done"})
            case "POST", ["graphql"]:
                number = json.loads(body)["variables"]["id"]
                if number == 2:
                    return _json({"data": {"item": None}, "errors": [{"message": "no such item"}]})
                return _json({"data": {"item": {"name": f"item {number}"}}})
            case "POST", ["pay", card]:
                return _page("declined" if card.startswith("4") else "paid")
            case _, ["api", "missing"] | ["nowhere"] | ["test"] | ["gone.png"]:
                return _page("nothing here", 404)
        return _page(f"<p>{path}</p>")


class _Gateway(socketserver.StreamRequestHandler):
    def handle(self) -> None:
        for line in self.rfile:
            number = line.decode().strip()
            self.wfile.write(b"CAPTURED\n" if number == "CAPTURE" else f"{number}: AUTH OK\n".encode())


@contextmanager
def card_gateway(host: str = "127.0.0.1") -> Iterator[int]:
    """A server that answers lines; its port."""
    with in_thread(socketserver.ThreadingTCPServer((host, 0), _Gateway)) as server:
        server.daemon_threads = True
        yield int(server.server_address[1])
