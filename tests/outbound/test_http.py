"""Requests to a real server that is slow, broken, or lies; and what they never reach."""

from __future__ import annotations

import gzip
import hashlib
import socket
import ssl
import threading
import zlib
from collections.abc import Callable, Sequence

import pytest
import trustme

from outbound.serving import Line, Received, Server, answer, serving
from standfast import Fail, Retry
from standfast.outbound.addresses import AddressAllowance
from standfast.outbound.http import Cut, HttpLimits, HttpRequest, HttpResponse, Outbound, judge
from standfast.outbound.json_bodies import json_of
from standfast.outbound.urls import place_of

LOCAL = AddressAllowance.of(["127.0.0.0/8"])
SOON = HttpLimits(total_seconds=0.5, response_bytes=10_000, request_bytes=1_000)
LIMITS = HttpLimits(response_bytes=10_000, request_bytes=1_000)


def sent(
    url: str,
    *,
    limits: HttpLimits = LIMITS,
    method: str = "GET",
    outbound: Outbound | None = None,
    headers: dict[str, str] | None = None,
    body: bytes | None = None,
) -> HttpResponse:
    """The answer of a server on this machine."""
    request = HttpRequest(
        method=method,
        place=place_of(url),
        headers=headers or {},
        body=body,
    )
    return (outbound or Outbound(LOCAL)).send(request, limits)


def resolving(*addresses: str) -> tuple[list[str], Callable[[str, int], Sequence[str]]]:
    """A resolver of the test's own, and what it was asked for: the last address again and again."""
    asked: list[str] = []
    left = list(addresses)

    def resolve(host: str, _port: int) -> list[str]:
        asked.append(host)
        return [left.pop(0) if len(left) > 1 else left[0]]

    return asked, resolve


# -- where to


@pytest.mark.row("EO-29", "EH-13")
@pytest.mark.parametrize(
    "url",
    [
        "http://127.0.0.1:{port}/",
        "http://localhost:{port}/",
        "http://2130706433:{port}/",
        "http://0x7f.1:{port}/",
        "http://[::ffff:127.0.0.1]:{port}/",
        "http://0.0.0.0:{port}/",
    ],
)
def test_the_own_machine_is_not_reached(server: Server, url: str) -> None:
    """However it is written: the address is judged, and not the name."""
    with pytest.raises(Fail, match="address, which is not reached unless it is allowed"):
        sent(url.format(port=server.port), outbound=Outbound())
    assert not server.received


def test_the_address_that_was_judged_is_the_one_that_is_reached(server: Server) -> None:
    """A name that is public when it is judged and loopback a moment later is resolved once: the second answer is never asked for."""
    asked, resolve = resolving("127.0.0.1", "10.0.0.1")
    there = sent(f"http://rebinding.example:{server.port}/", outbound=Outbound(LOCAL, resolve=resolve))
    assert (there.status, asked) == (200, ["rebinding.example"])
    assert server.received[0].headers["host"] == f"rebinding.example:{server.port}"
    asked, resolve = resolving("10.0.0.1", "127.0.0.1")
    with pytest.raises(Fail, match="a private address"):
        sent(f"http://rebinding.example:{server.port}/", outbound=Outbound(LOCAL, resolve=resolve))
    assert len(server.received) == 1


@pytest.mark.parametrize(
    ("found", "allowed", "permitted"),
    [
        (["10.0.0.1", "127.0.0.1"], ["127.0.0.1"], ["127.0.0.1"]),
        (["127.0.0.1", "10.0.0.1"], ["127.0.0.0/8"], ["127.0.0.1"]),
        (["93.184.216.34", "10.0.0.1"], [], ["93.184.216.34"]),
        (["10.0.0.1", "93.184.216.34", "127.0.0.1"], [], ["93.184.216.34"]),
        (["10.0.0.1", "93.184.216.34"], ["both.example"], ["10.0.0.1", "93.184.216.34"]),
        (["10.0.0.1", "93.184.216.34"], ["other.example"], ["93.184.216.34"]),
    ],
)
def test_of_several_addresses_only_those_that_are_allowed_are_tried(
    monkeypatch: pytest.MonkeyPatch, found: list[str], allowed: list[str], permitted: list[str]
) -> None:
    """A name with a permitted and a private address is tried at the permitted one alone, whatever the order; a name that is allowed is tried at all of its addresses."""
    tried: list[str] = []

    def connect(address: tuple[str, int], timeout: float | None = None) -> Line:
        tried.append(address[0])
        raise ConnectionRefusedError("nobody listens")

    monkeypatch.setattr(socket, "create_connection", connect)
    outbound = Outbound(AddressAllowance.of(allowed), resolve=lambda _host, _port: found)
    with pytest.raises(Retry, match="nobody listens"):
        sent("http://both.example/", outbound=outbound)
    assert tried == permitted


def test_a_name_that_nobody_knows_may_be_known_later() -> None:
    """The resolver's failure is not final."""

    def resolve(host: str, _port: int) -> list[str]:
        raise OSError("no such host")

    with pytest.raises(Retry, match=r"the name 'nobody\.example' cannot be resolved"):
        sent("http://nobody.example/", outbound=Outbound(resolve=resolve))
    with pytest.raises(Retry, match="it has no address"):
        sent("http://nobody.example/", outbound=Outbound(resolve=lambda _host, _port: []))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("ftp://example.com/", "https://"),
        ("//example.com/", "https://"),
        ("http:///x", "no host"),
        ("http://ann:pw@example.com/", "as a secret"),
        ("http://example.com/\r\nHost: x", "control character"),
        ("http://example.com\\@127.0.0.1/", "backslash"),
        ("http://example.com/ x", "white space"),
        ("http://example.com:port/", "[Pp]ort"),
        ("http://" + "x" * 9_000, "longer"),
        ("http://[::1/", "IPv6"),
    ],
)
def test_a_url_that_is_none_is_refused(url: str, why: str) -> None:
    """With what is wrong about it."""
    with pytest.raises(ValueError, match=why):
        place_of(url)


# -- who answers


@pytest.fixture(scope="module")
def authority() -> trustme.CA:
    """Who vouches for servers."""
    return trustme.CA()


def _encrypted(authority: trustme.CA, *names: str) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert(*names).configure_cert(context)
    return context


def _trusting(authority: trustme.CA) -> ssl.SSLContext:
    context = ssl.create_default_context()
    authority.configure_trust(context)
    return context


def test_a_certificate_is_that_of_the_name(authority: trustme.CA) -> None:
    """The address is connected to, and the name is verified: one for another name, or of an unknown issuer, is no answer."""
    _, resolve = resolving("127.0.0.1")
    trusting = Outbound(LOCAL, resolve=resolve, tls=_trusting(authority))
    with serving(_encrypted(authority, "erp.example")) as server:
        assert sent(f"https://erp.example:{server.port}/", outbound=trusting).status == 200
        with pytest.raises(Retry, match=r"CertificateError|certificate verify failed"):
            sent(f"https://other.example:{server.port}/", outbound=trusting)
        with pytest.raises(Retry, match="certificate verify failed"):
            sent(f"https://erp.example:{server.port}/", outbound=Outbound(LOCAL, resolve=resolve))
        assert len(server.received) == 1


def test_who_does_not_speak_tls_is_no_answer(server: Server, authority: trustme.CA) -> None:
    """A plain server behind an encrypted address."""
    with pytest.raises(Retry, match="cannot be reached"):
        sent(server.url.replace("http:", "https:"), outbound=Outbound(LOCAL, tls=_trusting(authority)))


# -- what is sent


def test_a_request_says_what_it_must(server: Server) -> None:
    """Host, length, and that nothing is to be packed; what the caller says besides."""
    sent(f"{server.url}/a%20b?c=d#e", method="POST", body=b"{}", headers={"X-Own": "1"})
    (request,) = server.received
    assert (request.method, request.target, request.body) == ("POST", "/a%20b?c=d", b"{}")
    assert request.headers == {
        "host": f"127.0.0.1:{server.port}",
        "accept-encoding": "identity",
        "connection": "close",
        "x-own": "1",
        "content-length": "2",
    }


@pytest.mark.parametrize(
    "headers",
    [
        {"X-Own": "1\r\nX-Other: 2"},
        {"X-Own": "1\nX-Other: 2"},
        {"X-Own\r\nX-Other": "1"},
        {"X-Own": "\x00"},
        {"X-Own": " 1"},
        {"X-Own": "\u00e4"},
        {"X Own": "1"},
        {"": "1"},
        {"host": "other.example"},
        {"Transfer-Encoding": "chunked"},
        {"CONTENT-LENGTH": "0"},
    ],
)
def test_a_header_that_could_be_another_one_is_not_sent(server: Server, headers: dict[str, str]) -> None:
    """Nor one that says how the request is sent."""
    with pytest.raises(Fail, match="header"):
        sent(server.url, headers=headers)
    assert not server.received


def test_a_request_that_is_too_large_is_not_sent(server: Server) -> None:
    """It is counted before anybody is asked."""
    with pytest.raises(Fail, match="has 1001 bytes, and the limit is 1000"):
        sent(server.url, method="POST", body=b"x" * 1001)
    assert not server.received


# -- what comes back


def _dripping(head: bytes) -> Callable[[Line, Received], None]:
    """Begins an answer and goes on with a byte now and then, until nobody listens any more."""

    def drip(line: Line, _request: Received) -> None:
        line.sendall(head)
        while True:
            line.settimeout(0.05)
            try:
                if not line.recv(1):
                    return
            except TimeoutError:
                line.sendall(b" ")

    return drip


def _closing(said: bytes) -> Callable[[Line, Received], None]:
    def close(line: Line, _request: Received) -> None:
        line.sendall(said)
        line.close()

    return close


@pytest.mark.row("EH-13")
@pytest.mark.parametrize(
    "head", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n{"], ids=str
)
def test_a_slow_drip_ends_with_the_whole_time(server: Server, head: bytes) -> None:
    """A byte now and then, of the headers or of the body, keeps nobody longer than all of it may take."""
    server.answers = [_dripping(head)]
    with pytest.raises(Retry, match=r"has not answered in time: .*"):
        sent(server.url, limits=SOON)


CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


@pytest.mark.parametrize(
    "said",
    [
        answer({"a": 1}, headers={"Content-Length": "400"}),
        CHUNKED + b"40\r\n{",
        CHUNKED + b"1\r\n{\r\n",
        CHUNKED + b"zz\r\n",
        b"",
        b"HTTP/1.1 200",
        b"nonsense\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"x" * 70_000,
        b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * 200 + b"\r\n",
        answer(raw=gzip.compress(b"{}" * 100, mtime=0)[:20], headers={"Content-Encoding": "gzip"}),
    ],
    ids=lambda said: repr(said[-30:]),
)
def test_what_breaks_off_or_is_no_http_may_be_better_next_time(server: Server, said: bytes) -> None:
    """A wrong length, a connection that is closed midway, headers without end."""
    server.answers = [_closing(said)]
    with pytest.raises(Retry, match=r"has not answered|has broken off"):
        sent(server.url)


def test_whoever_hangs_up_at_once_may_be_better_next_time(server: Server) -> None:
    """No answer at all is a fault of the line."""
    server.answers = [lambda line, _request: line.close()]
    with pytest.raises(Retry, match="has not answered"):
        sent(server.url)
    with pytest.raises(Retry, match="cannot be reached"):
        sent("http://127.0.0.1:1/")


def _endless(line: Line, _request: Received) -> None:
    line.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
    while True:
        line.sendall(b"[" * 4096)


@pytest.mark.row("EH-13")
@pytest.mark.parametrize(
    "said",
    [
        answer(raw=b"1" * 10_001),
        answer({}, headers={"Content-Length": "99999999999"}),
        _endless,
        answer(raw=gzip.compress(b"0" * 10_000_000, mtime=0), headers={"Content-Encoding": "gzip"}),
        answer(raw=zlib.compress(b"0" * 10_000_000), headers={"Content-Encoding": "deflate"}),
    ],
    ids=["long", "said-long", "endless", "gzip-bomb", "deflate-bomb"],
)
def test_an_answer_is_not_read_further_than_it_may_be(server: Server, said: bytes) -> None:
    """Nor unpacked further."""
    server.answers = [said]
    with pytest.raises(Fail, match="more than 10000 bytes"):
        sent(server.url)


def _packed_and_more(line: Line, _request: Received) -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Encoding: gzip\r\n\r\n"
    line.sendall(head + gzip.compress(b"{}"))
    while True:
        line.sendall(b"[" * 4096)


def test_nothing_is_read_after_the_end_of_a_packed_answer(server: Server) -> None:
    """What nobody unpacks would count towards no limit."""
    server.answers = [_packed_and_more]
    with pytest.raises(Fail, match="goes on after the end"):
        sent(server.url)


CUT = HttpLimits(response_bytes=10_000, request_bytes=1_000, cuts_body=True)
LONG = bytes(range(256)) * 1000


@pytest.mark.row("EO-30")
@pytest.mark.parametrize(
    "said",
    [
        answer(raw=LONG),
        answer(raw=gzip.compress(LONG, mtime=0), headers={"Content-Encoding": "gzip"}),
    ],
    ids=["plain", "packed"],
)
def test_a_body_that_may_be_cut_is_kept_in_part_and_hashed_whole(server: Server, said: bytes) -> None:
    """The answer counts: its beginning is kept, with the size and the hash of the unpacked whole."""
    server.answers = [said]
    there = sent(server.url, limits=CUT)
    assert (there.status, there.body) == (200, LONG[:10_000])
    assert there.cut == Cut(size=len(LONG), sha256=hashlib.sha256(LONG).hexdigest(), is_whole=True)


@pytest.mark.row("EO-30")
@pytest.mark.parametrize(
    "said",
    [
        _endless,
        answer(raw=LONG, headers={"Content-Length": "99999999999"}),
        _packed_and_more,
        answer({}, headers={"Content-Encoding": "gzip"}),
        answer({}, headers={"Content-Encoding": "br"}),
        answer(raw=gzip.compress(b"0" * 80_000_000, mtime=0), headers={"Content-Encoding": "gzip"}),
    ],
    ids=["endless", "said-long", "more-behind", "not-packed", "packed-otherwise", "bomb"],
)
def test_a_successful_answer_counts_whatever_its_body_is(server: Server, said: bytes) -> None:
    """Where the body may be cut, an answer 200 is one; that its hash is not that of the whole is said."""
    server.answers = [said]
    there = sent(server.url, limits=CUT)
    assert (there.status, len(there.body) <= 10_000) == (200, True)
    assert there.cut is not None
    assert there.cut.is_whole is False
    assert there.cut.size < 70_000_000


@pytest.mark.parametrize("status", [503, 404])
def test_a_long_body_does_not_hide_an_error_status(server: Server, status: int) -> None:
    """A status of an error is judged as such, however long or badly packed its body is."""
    server.answers = [answer(status=status, raw=LONG), answer({}, status=status, headers={"Content-Encoding": "br"})]
    for _ in range(2):
        there = sent(server.url)
        assert there.status == status
        with pytest.raises(Retry if status == 503 else Fail, match=f"has answered {status}"):
            judge(there)


def test_a_packed_answer_is_unpacked(server: Server) -> None:
    """Some pack although nobody asked; what is no gzip, or something else, is said to be so."""
    server.answers = [
        answer(raw=gzip.compress(b'{"a":1}', mtime=0), headers={"Content-Encoding": "GZIP"}),
        answer({}, headers={"Content-Encoding": "gzip"}),
        answer({}, headers={"Content-Encoding": "br"}),
    ]
    assert json_of(sent(server.url)) == {"a": 1}
    with pytest.raises(Fail, match="packed, and it is not"):
        sent(server.url)
    with pytest.raises(Fail, match="packed its answer as 'br'"):
        sent(server.url)


@pytest.mark.parametrize(
    ("raw", "media", "why"),
    [
        (b'{"a": ', "application/json", "invalid JSON"),
        (b'{"a": NaN}', "application/json", "invalid JSON"),
        (b'{"a": Infinity}', "application/json", "invalid JSON"),
        (b"\xff\xfe", "application/json", "invalid JSON"),
        (b'"\xed\xa0\x80"', "application/json", "invalid JSON"),
        (b"<html/>", "text/html; charset=utf-8", "'text/html', and not JSON"),
        (b"{}", "", "without a content type, and not JSON"),
        (b"{}", "application/jsonp", "not JSON"),
        (b"[" * 102 + b"]" * 102, "application/json", "deeper than 100 levels"),
        (b"[" * 4_000 + b"]" * 4_000, "application/json", "deeper than 100 levels"),
        (b'{"a":' * 1_500 + b"1" + b"}" * 1_500, "application/json", "deeper than 100 levels"),
    ],
    ids=str,
)
def test_what_is_no_json_is_said_to_be_none(server: Server, raw: bytes, media: str, why: str) -> None:
    """And never taken for something else."""
    server.answers = [answer(raw=raw, headers={"Content-Type": media})]
    with pytest.raises(Fail, match=why):
        json_of(sent(server.url))


def test_json_has_several_types(server: Server) -> None:
    """All that end like it; nothing at all is nothing."""
    server.answers = [
        answer({"a": 1}, headers={"Content-Type": "application/hal+json; charset=utf-8"}),
        answer(raw=b"", status=204),
    ]
    assert json_of(sent(server.url)) == {"a": 1}
    assert json_of(sent(server.url)) is None


# -- what it means


@pytest.mark.row("EO-29")
@pytest.mark.parametrize("status", [408, 425, 429, 500, 502, 503, 504, 599])
def test_what_may_be_taken_later_is_tried_again(server: Server, status: int) -> None:
    """After as long as the server asks for, an hour at most."""
    server.answers = [
        answer({}, status=status, headers={"Retry-After": "7"}),
        answer({}, status=status, headers={"Retry-After": "9" * 40}),
        answer({}, status=status, headers={"Retry-After": "-1"}),
    ]
    for seconds in (7, 3600, None):
        with pytest.raises(Retry, match=f"has answered {status}") as raised:
            judge(sent(server.url))
        assert (raised.value.after and raised.value.after.total_seconds()) == seconds


@pytest.mark.row("EO-29")
@pytest.mark.parametrize("status", [100 + 3, 300, 400, 401, 403, 404, 409, 410, 422, 451])
def test_what_will_never_be_taken_is_final(server: Server, status: int) -> None:
    """A fault of ours stays one."""
    server.answers = [answer({}, status=status)]
    with pytest.raises(Fail, match=f"has answered {status}"):
        judge(sent(server.url))


# -- where it leads on to


def _leading(to: str, *, status: int = 302) -> bytes:
    return answer({}, status=status, headers={"Location": to})


def test_a_redirection_is_followed_only_if_it_may_be(server: Server) -> None:
    """Otherwise it is an answer, and a final one."""
    server.answers = [_leading("/there"), answer({"a": 1})]
    answered = sent(server.url)
    with pytest.raises(Fail, match="302; redirections are not followed"):
        judge(answered)
    server.answers = [_leading("/there"), answer({"a": 1})]
    followed = sent(server.url, limits=HttpLimits(redirects=1))
    assert (json_of(followed), server.received[-1].target) == ({"a": 1}, "/there")


@pytest.mark.row("EO-29")
def test_every_redirection_is_judged_again(server: Server) -> None:
    """One that leads to what may not be reached ends there, and so does a circle."""
    allowed = AddressAllowance.of(["public.example"])
    asked, resolve = resolving("127.0.0.1")
    outbound = Outbound(allowed, resolve=resolve)
    start = f"http://public.example:{server.port}/"
    for target in (f"http://127.0.0.1:{server.port}/", f"http://inner.example:{server.port}/"):
        server.answers = [_leading(target), answer({})]
        with pytest.raises(Fail, match="a loopback address"):
            sent(start, outbound=outbound, limits=HttpLimits(redirects=3))
    assert "inner.example" in asked
    count = len(server.received)
    server.answers = [_leading("/")]
    assert sent(start, outbound=outbound, limits=HttpLimits(redirects=3)).status == 302
    assert len(server.received) == count + 4


def test_the_whole_time_covers_all_redirections(server: Server) -> None:
    """A server that redirects again and again, each time just in time, keeps nobody longer than all of it may take."""

    def redirect(line: Line, _request: Received) -> None:
        server.closing.wait(SOON.total_seconds / 2)
        line.sendall(_leading("/"))

    server.answers = [redirect, redirect, redirect, answer({})]
    with pytest.raises(Retry, match="has not answered in time"):
        sent(server.url, limits=HttpLimits(total_seconds=SOON.total_seconds, redirects=6))


@pytest.mark.parametrize("to", ["file:///etc/passwd", "gopher://127.0.0.1/", "http://a:b@127.0.0.1/"])
def test_a_redirection_to_what_is_no_place_is_refused(server: Server, to: str) -> None:
    """Only the web is followed through."""
    server.answers = [_leading(to), answer({})]
    with pytest.raises(Fail, match="leads on to a place that is none"):
        sent(server.url, limits=HttpLimits(redirects=1))


def test_another_server_sees_no_secrets(server: Server) -> None:
    """What is sent on to another one is without them; the same one gets them again."""
    with serving() as other:
        server.answers = [_leading("/again"), _leading(other.url)]
        given = {"Authorization": "Bearer x", "X-Own": "1", "Accept": "text/plain"}
        sent(server.url, limits=HttpLimits(redirects=2), headers=given)
        for name, value in given.items():
            assert [each.headers.get(name.lower()) for each in server.received] == [value, value]
        (request,) = other.received
        assert {"authorization", "x-own"}.isdisjoint(request.headers)
        assert request.headers["accept"] == "text/plain"


@pytest.mark.parametrize("status", [307, 308])
def test_a_body_is_not_sent_to_another_server(server: Server, status: int) -> None:
    """What was meant for the one may be a secret to the other; a look without a body goes on."""
    with serving() as other:
        server.answers = [_leading(other.url, status=status)]
        with pytest.raises(Fail, match="what was meant for the one is not sent to the other"):
            sent(server.url, method="POST", body=b"{}", limits=HttpLimits(redirects=1))
        assert not other.received
        server.answers = [_leading(other.url, status=status)]
        sent(server.url, limits=HttpLimits(redirects=1))
        assert len(other.received) == 1


def test_a_name_is_resolved_in_time(server: Server) -> None:
    """However long the system asks for it: the call ends when its time is over, and may be tried again."""
    is_over = threading.Event()

    def hanging(_host: str, _port: int) -> list[str]:
        is_over.wait(60)
        return ["127.0.0.1"]

    try:
        with pytest.raises(
            Retry, match=r"slow\.example:\d+ has not answered in time: its name was not resolved within"
        ):
            sent(f"http://slow.example:{server.port}/", outbound=Outbound(LOCAL, resolve=hanging), limits=SOON)
    finally:
        is_over.set()
    assert not server.received


def test_a_post_is_sent_anew_only_if_it_is_asked_for(server: Server) -> None:
    """307 and 308 ask for the same request, 303 for a look; after anything else nobody knows."""
    server.answers = [_leading("/b", status=307), _leading("/c", status=303), answer({})]
    sent(
        f"{server.url}/a",
        method="POST",
        body=b"{}",
        headers={"Content-Type": "application/json"},
        limits=HttpLimits(redirects=2),
    )
    assert [(each.method, each.target, each.body) for each in server.received] == [
        ("POST", "/a", b"{}"),
        ("POST", "/b", b"{}"),
        ("GET", "/c", b""),
    ]
    assert "content-type" not in server.received[-1].headers
    server.answers = [_leading("/b", status=301), answer({})]
    with pytest.raises(Fail, match="answered 301 to a POST"):
        sent(server.url, method="POST", body=b"{}", limits=HttpLimits(redirects=2))


def test_encryption_is_not_given_up_on_the_way(server: Server, authority: trustme.CA) -> None:
    """A redirection from https to http is not followed."""
    _, resolve = resolving("127.0.0.1")
    with serving(_encrypted(authority, "erp.example")) as safe:
        safe.answers = [_leading(server.url)]
        with pytest.raises(Fail, match="without encryption"):
            sent(
                f"https://erp.example:{safe.port}/",
                outbound=Outbound(LOCAL, resolve=resolve, tls=_trusting(authority)),
                limits=HttpLimits(redirects=1),
            )
    assert not server.received
