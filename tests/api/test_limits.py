"""Limits and options by themselves: buckets that fill up again, depth that is counted right, options that make sense, labels that are bounded."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from standfast import ConfigurationError
from standfast.calls.catalog.rate_limits import Rate
from standfast.engine.common.telemetry import EffectEnded
from standfast.http import HttpOptions, InboundHook, Issuer, LoginProvider
from standfast.http.wire.body import check_depth
from standfast.http.wire.metrics import Gauges
from standfast.http.wire.options import checked_options
from standfast.http.wire.problems import EdgeError
from standfast.http.wire.webhooks import Hook
from standfast.kernel.ids import InstanceId


def test_a_bucket_fills_up_again() -> None:
    """So many at once, then one for each time that passes; each client has its own, and none grows above its size."""
    now = [0.0]
    rate = Rate(2.0, 3, clock=lambda: now[0])
    assert [rate.take("a") for _ in range(4)] == [0.0, 0.0, 0.0, 0.5]
    assert rate.take("b") == 0.0
    now[0] = 0.5
    assert (rate.take("a"), rate.take("a")) == (0.0, 0.5)
    now[0] = 1000.0
    assert [rate.take("a") for _ in range(4)].count(0.0) == 3


def test_clients_are_forgotten_in_the_end() -> None:
    """However many come, the memory of them is bounded."""
    rate = Rate(1.0, 1)
    for number in range(10_100):
        rate.take(str(number))
    assert len(rate._buckets) == 10_000


@pytest.mark.parametrize(
    ("body", "is_fine"),
    [
        (b"[" * 5 + b"]" * 5, True),
        (b"[" * 6 + b"]" * 6, False),
        (b'{"a":' * 6, False),
        (b"[[]," * 2 + b"[[],[],[],[],[],[]" + b"]" * 3, True),
        (b'["[[[[[[[[", "\\"[[[[[["]', True),
        (b'["[[[[[[[[', True),
        (b"[[[[[[" , False),
    ],
)  # fmt: skip
def test_depth_is_counted_outside_of_texts(body: bytes, *, is_fine: bool) -> None:
    """What is nested counts, what stands side by side or in a text does not."""
    if is_fine:
        check_depth(body, 5)
    else:
        with pytest.raises(EdgeError, match="deeper than 5"):
            check_depth(body, 5)


ISSUER = Issuer(issuer="i", audience="a", jwks="keys.json")


@pytest.mark.parametrize(
    "more",
    [
        {"max_body_bytes": 0},
        {"requests_per_second": 0},
        {"burst": 0},
        {"issuers": (msgspec.structs.replace(ISSUER, algorithms=("HS256",)),)},
        {"issuers": (msgspec.structs.replace(ISSUER, algorithms=("none",)),)},
        {"issuers": (msgspec.structs.replace(ISSUER, algorithms=()),)},
        {"issuers": (msgspec.structs.replace(ISSUER, audience=""),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="http://keys.test/jwks"),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="ftp://keys.test/jwks"),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="http://localhost.evil.test/jwks"),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="http://127.0.0.1:80@evil.test/jwks"),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="http://localhost:x@evil.test/jwks"),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="https://"),)},
        {"issuers": (msgspec.structs.replace(ISSUER, jwks="https://[evil/jwks"),)},
        {"issuers": (ISSUER, msgspec.structs.replace(ISSUER, audience="b"))},
        {"refusals_per_second": 0},
        {"refusals_burst": 0},
        {"waits_per_credential": 0},
        {"hooks": (InboundHook(name="..", secrets=("x",), event="e"),)},
        {"hooks": (InboundHook(name="a/b", secrets=("x",), event="e"),)},
        {"logins": (LoginProvider(name="..", issuer=ISSUER),)},
        {"logins": (LoginProvider(name="a\nb", issuer=ISSUER),)},
        {"hooks": (InboundHook(name="a", secrets=("x",), event="e"), InboundHook(name="a", secrets=("x",), event="e"))},
    ],
)
def test_options_that_would_open_the_door_are_refused(more: dict[str, Any]) -> None:
    """What would let anybody in, or nobody, is a ConfigurationError before a request comes."""
    with pytest.raises(ConfigurationError):
        checked_options(HttpOptions(**more))


@pytest.mark.parametrize("secrets", [(), ("",), ("secret",), ("whsec_",), ("whsec_c2hvcnQ=",), ("whsec_%%%",)])
def test_a_hook_needs_a_secret_that_is_one(secrets: tuple[str, ...]) -> None:
    """A secret that is missing, short or no base64 is refused when the server is made."""
    with pytest.raises(ConfigurationError):
        Hook(InboundHook(name="a", secrets=secrets, event="e"))


def test_labels_are_bounded() -> None:
    """Whatever handlers and methods are called, the number of lines has an end, and no name breaks a line."""
    gauges, quick = Gauges(), timedelta(seconds=0.02)
    for number in range(500):
        name = f'handler "{number}"\n'
        told = EffectEnded(
            definition="d", tenant="t", instance=InstanceId(UUID(int=0)), number=1, handler=name, work=name, attempt=1, waited=quick, took=quick,
            error="", trace="",
        )  # fmt: skip
        gauges.heard(told)
        gauges.answered(f"M{number}", "/x", 200, 0.01)
    lines = gauges.text([("standfast_x", "X.", (), 1.0)]).splitlines()
    assert len(lines) < 6000
    assert sum('handler="other"' in line for line in lines) > 0
    assert 'standfast_http_requests_total{method="other",route="/x",status="2xx"} 500' in lines
    assert "standfast_x 1" in lines
