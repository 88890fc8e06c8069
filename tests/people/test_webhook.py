"""Webhooks, posted to a real server on this machine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import NamedTuple

import msgspec
import pytest

from people.test_mail import NOTICE
from standfast import ConfigurationError, Fail, Retry, Settings, Webhook
from standfast.testing import ManualEngine

LOCAL = ["127.0.0.1"]
KEY = bytes(range(32))
SECRET = f"whsec_{base64.b64encode(KEY).decode()}"


class Request(NamedTuple):
    """What the receiver got."""

    path: str
    headers: dict[str, str]
    body: bytes


class Receiver:
    """A server that answers as the test says."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self.status = 204
        self.headers: dict[str, str] = {}
        self.body = b""
        self.meanwhile: Callable[[], object] = lambda: None
        """What happens between a request and its answer."""
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                receiver.requests.append(Request(self.path, headers, body))
                receiver.meanwhile()
                self.send_response(receiver.status)
                for name, value in receiver.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(receiver.body)

            def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - so the server calls it
                """Say nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hooks?from=standfast"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A server for the test."""
    made = Receiver()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.server.shutdown()
    thread.join()
    made.server.server_close()


@pytest.mark.row("EH-13")
def test_what_is_posted_is_signed(receiver: Receiver) -> None:
    """The signature is that of Standard Webhooks: an HMAC of id, timestamp and body with the shared secret."""
    Webhook(receiver.url, secret=SECRET, allow=LOCAL, headers={"x-own": "1"}).send(NOTICE)
    (request,) = receiver.requests
    signed = f"{request.headers['webhook-id']}.{request.headers['webhook-timestamp']}.".encode() + request.body
    wanted = base64.b64encode(hmac.new(KEY, signed, hashlib.sha256).digest()).decode()
    assert request.headers["webhook-signature"] == f"v1,{wanted}"
    assert request.headers["webhook-timestamp"] == str(int(NOTICE.at.timestamp()))
    assert (request.path, request.headers["x-own"]) == ("/hooks?from=standfast", "1")
    assert request.headers["content-type"] == "application/json"
    said = json.loads(request.body)
    assert said["data"]["subject"] == "Order 7"
    assert said["data"]["to"] == {"kind": "user", "name": "ann"}


def test_a_notice_that_is_posted_again_has_the_same_id(receiver: Receiver) -> None:
    """The same notice has the same id at each attempt, and a timestamp of its own."""
    channel = Webhook(receiver.url, secret=SECRET, allow=LOCAL)
    later = NOTICE.at.replace(hour=13)
    for each in (NOTICE, msgspec.structs.replace(NOTICE, at=later), msgspec.structs.replace(NOTICE, key="another")):
        channel.send(each)
    first, again, other = (each.headers for each in receiver.requests)
    assert first["webhook-id"] == again["webhook-id"] != other["webhook-id"]
    assert first["webhook-timestamp"] != again["webhook-timestamp"]


@pytest.mark.parametrize("status", [408, 425, 429, 500, 503])
def test_what_may_be_taken_later_is_tried_again(receiver: Receiver, status: int) -> None:
    """A fault of the server's, or a wish for patience, is not final."""
    receiver.status, receiver.headers = status, {"Retry-After": "120"}
    with pytest.raises(Retry, match=str(status)) as raised:
        Webhook(receiver.url, secret=SECRET, allow=LOCAL).send(NOTICE)
    assert raised.value.after is not None
    assert raised.value.after.total_seconds() == 120


def test_nobody_is_put_off_for_days(receiver: Receiver) -> None:
    """A server may ask for an hour; what is no number counts for nothing."""
    receiver.status, receiver.headers = 503, {"Retry-After": "999999"}
    with pytest.raises(Retry) as raised:
        Webhook(receiver.url, secret=SECRET, allow=LOCAL).send(NOTICE)
    assert raised.value.after is not None
    assert raised.value.after.total_seconds() == 3600
    receiver.headers = {"Retry-After": "Wed, 21 Oct 2065 07:28:00 GMT"}
    with pytest.raises(Retry) as raised:
        Webhook(receiver.url, secret=SECRET, allow=LOCAL).send(NOTICE)
    assert raised.value.after is None


@pytest.mark.parametrize("status", [301, 307, 400, 401, 404, 410])
def test_what_will_never_be_taken_is_final(receiver: Receiver, status: int) -> None:
    """A fault of ours stays one, and a redirection is not followed."""
    receiver.status, receiver.headers = status, {"Location": receiver.url}
    with pytest.raises(Fail, match=str(status)):
        Webhook(receiver.url, secret=SECRET, allow=LOCAL).send(NOTICE)
    assert len(receiver.requests) == 1


def test_a_place_that_is_away_is_tried_again(receiver: Receiver) -> None:
    """Nobody listens: that may change."""
    with pytest.raises(Retry, match="cannot be reached"):
        Webhook("http://127.0.0.1:1/hooks", secret=SECRET, allow=LOCAL).send(NOTICE)


def test_a_place_of_the_own_network_is_not_reached_unasked(receiver: Receiver) -> None:
    """Neither by its address nor by a name that has it; a webhook that is a channel of an engine follows the settings of that."""
    for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(Fail, match=r"a loopback address.*outbound_allow"):
            Webhook(url, secret=SECRET).send(NOTICE)
    assert not receiver.requests
    channel = Webhook(receiver.url, secret=SECRET)
    with ManualEngine(settings=Settings(outbound_allow=("127.0.0.0/8",))).channel("erp", channel):
        channel.send(NOTICE)
    assert len(receiver.requests) == 1


def test_what_a_receiver_says_besides_its_status_is_not_read(receiver: Receiver) -> None:
    """It has taken the notice, however long it talks."""
    receiver.status, receiver.headers = 200, {"Content-Length": "999999999"}
    Webhook(receiver.url, secret=SECRET, allow=LOCAL).send(NOTICE)


@pytest.mark.parametrize("headers", [{"x-own": "1\r\nx-other: 2"}, {"x own": "1"}, {"Host": "other"}])
def test_a_header_that_could_be_another_one_is_refused(headers: dict[str, str]) -> None:
    """What cannot be a header is found when the webhook is made."""
    with pytest.raises(ConfigurationError, match="header"):
        Webhook("https://example.com", secret=SECRET, headers=headers)


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.com",
        "example.com/hook",
        "https://",
        "file:///etc/passwd",
        "https://ann:secret@example.com",
        "https://example.com/a b",
        "https://example.com:99999/",
    ],
)
def test_a_place_that_is_none_is_refused(url: str) -> None:
    """Only the web can be posted to."""
    with pytest.raises(ConfigurationError, match="no address of a webhook"):
        Webhook(url, secret=SECRET)


@pytest.mark.parametrize(
    "secret", ["", "whsec_", "whsec_c2hvcnQ=", "secret", SECRET.removeprefix("whsec_"), "whsec_%%%"]
)
def test_a_secret_that_is_none_is_refused_and_not_shown(secret: str) -> None:
    """A weak secret is refused with a sentence that does not repeat it."""
    with pytest.raises(ConfigurationError) as refused:
        Webhook("https://example.com", secret=secret)
    assert "random bytes" in str(refused.value)
    assert len(secret) < 8 or secret not in str(refused.value)
