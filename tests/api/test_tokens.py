"""Tokens and the directory: rights from both, keys by address, and rotation."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from msgspec.structs import replace

from api import tokens
from api.tokens import token
from api.world import ACME, GENEROUS, World
from standfast.http.auth import key_sets as keysets
from standfast.http.wire import issuer_client as fetching


@pytest.fixture
def believing(world: World, tmp_path: Path) -> Iterator[World]:
    """A server that believes the issuer and asks the directory."""
    issuer = tokens.issuer(tmp_path)
    made = World(world.engine, replace(GENEROUS, issuers=(issuer,), uses_directory=True, open_metrics=True))
    yield made
    made.close()


@pytest.mark.row("C-44", "EO-40")
def test_rights_come_from_claims_roles_and_the_directory(believing: World) -> None:
    """The capabilities of a token, of its roles, of the directory's roles and of everybody count together; a deactivated person has none."""
    people = believing.engine.as_tenant(ACME).directory
    people.put("dora")
    people.grant("dora", "operator")
    me = believing.bearer(token(sub="dora", scope="orders:approve", roles=["viewer"])).get("/api/v1/me").json()
    assert me["roles"] == ["operator", "viewer"]
    assert {"orders:approve", "execution:*", "definition:read", "task:use"} <= set(me["capabilities"])
    assert believing.bearer(token(sub="unknown")).get("/api/v1/executions").status_code == 403
    assert believing.bearer(token(sub="system", scope="*")).get("/api/v1/me").status_code == 401
    people.deactivate("dora")
    assert believing.bearer(token(sub="dora")).get("/api/v1/me").status_code == 401
    bound = believing.bearer(token(partition="north", scope=["execution:read"])).get("/api/v1/me").json()
    assert (bound["tenant"], bound["partition"]) == (ACME, "north")


def test_metrics_are_open_where_the_options_say_so(believing: World) -> None:
    """Who serves them to a closed network leaves the credential out, and the document says so."""
    assert believing.bearer().get("/metrics").status_code == 200
    assert believing.bearer().get("/openapi.json").json()["paths"]["/metrics"]["get"]["security"] == []


class Keys(BaseHTTPRequestHandler):
    """Gives the keys of an issuer, and counts how often."""

    answers: list[tuple[int, str]]
    asked = 0

    def do_GET(self) -> None:
        """Answer with what is next, and with the last one ever after; without a status, in its own words."""
        type(self).asked += 1
        status, body = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if not status:
            self.wfile.write(body.encode())
            return
        self.send_response(status)
        if status == 302:
            self.send_header("location", body)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name of what it replaces
        """Say nothing."""


@pytest.fixture
def key_server() -> Iterator[tuple[type[Keys], str]]:
    """An address that gives keys."""
    handler = type("OwnKeys", (Keys,), {"answers": [], "asked": 0})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield handler, f"http://127.0.0.1:{server.server_port}/jwks"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.row("EO-40")
def test_keys_come_by_address_and_are_kept(
    world: World, tmp_path: Path, key_server: tuple[type[Keys], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are fetched once for many tokens; a key that is not among them is looked for again, but not for every token that names one."""
    handler, address = key_server
    old = json.dumps({"keys": [tokens.public(tokens.other_key(), "old", "RS256")]})
    handler.answers = [(200, old), (200, tokens.key_file(tmp_path).read_text())]
    issuer = replace(tokens.issuer(tmp_path), jwks=address)
    server = World(world.engine, replace(GENEROUS, issuers=(issuer,)))
    monkeypatch.setattr(keysets, "_AGAIN_SECONDS", 3600.0)
    assert server.bearer(token(key=tokens.other_key(), headers={"kid": "old"})).get("/api/v1/me").status_code == 200
    assert [server.bearer(token()).get("/api/v1/me").status_code for _ in range(3)] == [401, 401, 401]
    assert handler.asked == 1
    monkeypatch.setattr(keysets, "_AGAIN_SECONDS", 0.0)  # The time has passed, and the issuer has rotated its keys.
    assert [server.bearer(token()).get("/api/v1/me").status_code for _ in range(3)] == [200, 200, 200]
    assert handler.asked == 2
    server.close()


@pytest.mark.parametrize(
    "answer",
    [
        (302, "file:///etc/passwd"),
        (200, "no JSON"),
        (200, '{"keys": 1}'),
        (200, " " * 300_000),
        (500, ""),
        (0, "nonsense\r\n"),
        (0, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnonsense\r\n"),
    ],
    ids=["elsewhere", "no JSON", "no keys", "too much", "a failure", "no HTTP", "torn"],
)
def test_an_address_that_gives_no_keys_opens_nothing(
    world: World, tmp_path: Path, key_server: tuple[type[Keys], str], answer: tuple[int, str]
) -> None:
    """A redirection is not followed; what is no set of keys, or too much, is none."""
    handler, address = key_server
    handler.answers = [answer]
    server = World(world.engine, replace(GENEROUS, issuers=(replace(tokens.issuer(tmp_path), jwks=address),)))
    assert server.bearer(token()).get("/api/v1/me").status_code == 401
    assert handler.asked == 1
    server.close()


@pytest.mark.parametrize(
    "head", ["", "HTTP/1.1 200 OK\r\nx: ", "HTTP/1.1 200 OK\r\ncontent-length: 40\r\n\r\n"], ids=str
)
def test_who_sends_a_byte_at_a_time_is_not_waited_for(monkeypatch: pytest.MonkeyPatch, head: str) -> None:
    """All of an answer has so much time, however often something of it comes."""
    monkeypatch.setattr(fetching, "_PATIENCE_SECONDS", 0.3)
    rest = (
        "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n"
        if not head
        else "y\r\ncontent-length: 0\r\n\r\n"
        if "x:" in head
        else "[" * 40
    )

    def drip(line: socket.socket) -> None:
        with line, suppress(OSError):
            line.recv(65_536)
            line.sendall(head.encode())
            for each in rest:
                line.settimeout(0.05)
                with suppress(TimeoutError):
                    if not line.recv(1):
                        return
                line.sendall(each.encode())

    with socket.create_server(("127.0.0.1", 0)) as listening:
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/jwks"
        thread = threading.Thread(target=lambda: drip(listening.accept()[0]))
        thread.start()
        with pytest.raises(OSError, match=r"it took longer than 0.3 s|timed out"):
            fetching.fetch(address)
        thread.join(60)


def test_known_keys_hold_while_their_issuer_is_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes first waits for the keys, and so does who comes meanwhile; once they are known nobody waits for an issuer that says nothing."""
    gate, asked = threading.Event(), list[int]()
    keys = keysets.KeySet(str(tokens.key_file(tmp_path)))

    def slow() -> bytes:
        asked.append(1)
        assert gate.wait(60)
        return tokens.key_file(tmp_path).read_bytes()

    monkeypatch.setattr(keys, "_fetched", slow)

    async def scenario() -> None:
        both = asyncio.gather(keys.find("one"), keys.find("one"))
        await asyncio.sleep(0)
        gate.set()
        assert [each is not None for each in await both] == [True, True]
        gate.clear()
        monkeypatch.setattr(keysets, "_FRESH_SECONDS", 0.0)
        monkeypatch.setattr(keysets, "_AGAIN_SECONDS", 0.0)
        async with asyncio.timeout(30):
            assert await keys.find("one") is not None
            assert await keys.find("one") is not None
        unknown = asyncio.ensure_future(keys.find("none"))
        await asyncio.sleep(0)
        assert not unknown.done()
        gate.set()
        assert await unknown is None

    asyncio.run(scenario())
    assert len(asked) == 2
