"""Which addresses may be reached."""

from __future__ import annotations

import ipaddress

import pytest

from standfast import ConfigurationError, Engine, Settings
from standfast.outbound.addresses import AddressAllowance, address_of, why_forbidden

FORBIDDEN = {
    "127.0.0.1": "a loopback",
    "127.255.0.9": "a loopback",
    "::1": "a loopback",
    "10.1.2.3": "a private",
    "172.16.0.1": "a private",
    "172.31.255.255": "a private",
    "192.168.0.1": "a private",
    "fd00::1": "a private",
    "fec0::1": "a reserved",
    "4000::1": "a reserved",
    "169.254.169.254": "a link-local",
    "fe80::1": "a link-local",
    "fe80::1%eth0": "a link-local",
    "224.0.0.1": "a multicast",
    "ff02::1": "a multicast",
    "0.0.0.0": "the unspecified",
    "::": "the unspecified",
    "0.1.2.3": "a private",
    "100.64.0.1": "a shared (carrier-grade NAT)",
    "100.127.255.255": "a shared (carrier-grade NAT)",
    "192.0.2.1": "a private",
    "198.18.0.1": "a private",
    "240.0.0.1": "a private",
    "255.255.255.255": "a private",
    "192.88.99.1": "a relay",
    # What clouds tell their machines, secrets included, and nobody else.
    "192.0.0.192": "a private",
    "168.63.129.16": "a cloud's own",
    "fd00:ec2::254": "a private",
    "100.100.100.200": "a shared (carrier-grade NAT)",
    "3fff::1": "a private",
    "2001:db8::1": "a private",
    "2001:0:1234::1": "a tunnelled",
    "64:ff9b:1::1": "a translated",
    "::7f00:1": "a reserved",
    # The same in other clothes: IPv4-mapped, 6to4, NAT64.
    "::ffff:127.0.0.1": "a loopback",
    "::ffff:10.0.0.1": "a private",
    "::ffff:169.254.169.254": "a link-local",
    "::ffff:100.64.0.1": "a shared (carrier-grade NAT)",
    "2002:7f00:1::": "a loopback",
    "2002:c0a8:1::1": "a private",
    "64:ff9b::7f00:1": "a loopback",
    "64:ff9b::a9fe:a9fe": "a link-local",
    "::ffff:168.63.129.16": "a cloud's own",
    "64:ff9b::c000:c0": "a private",
    "2a00:1450::5efe:a00:1": "a tunnelled",
    "2a00:1450::200:5efe:a9fe:a9fe": "a tunnelled",
    "fd00::5efe:808:808": "a private",
}
PUBLIC = [
    "1.1.1.1",
    "93.184.216.34",
    "172.32.0.1",
    "100.128.0.1",
    "2606:4700::1111",
    "::ffff:1.1.1.1",
    "2a00:1450::5efe:808:808",
]


@pytest.mark.parametrize(("address", "why"), FORBIDDEN.items())
def test_what_is_not_public_is_forbidden(address: str, why: str) -> None:
    """Whatever form it has."""
    assert why_forbidden(address_of(address)) == why


@pytest.mark.parametrize("address", PUBLIC)
def test_what_is_public_is_not(address: str) -> None:
    """The public network is what calls are for."""
    assert not why_forbidden(address_of(address))


def test_an_allowance_is_of_names_and_of_networks() -> None:
    """A name stands for itself, or with a star for all below; a network for its addresses, in whatever form."""
    allowed = AddressAllowance.of(["ERP.internal", "*.svc.local", "10.0.0.0/8", "fd00::/8", "192.168.1.7"])
    assert [
        name for name in ("erp.internal", "ERP.INTERNAL.", "a.svc.local", "a.b.svc.local") if allowed.covers_name(name)
    ] == [
        "erp.internal",
        "ERP.INTERNAL.",
        "a.svc.local",
        "a.b.svc.local",
    ]
    for name in ("x.erp.internal", "svc.local", "evilsvc.local", "erp.internal.evil.com", ""):
        assert not allowed.covers_name(name)
    for address in ("10.9.9.9", "fd12::1", "192.168.1.7", "::ffff:10.1.1.1", "64:ff9b::a00:1"):
        assert allowed.covers(ipaddress.ip_address(address))
    for address in ("11.0.0.1", "192.168.1.8", "::1", "127.0.0.1"):
        assert not allowed.covers(ipaddress.ip_address(address))


@pytest.mark.parametrize("entry", ["", "http://x", "10.0.0.1/8", "a b", "*", "a.*.b", "x" * 300, "10.0.0.0/99"])
def test_an_allowance_that_is_none_is_refused_when_the_engine_opens(entry: str) -> None:
    """A misspelt entry would allow nothing, and nobody would notice."""
    with pytest.raises(ConfigurationError, match="outbound_allow"):
        Engine("sqlite://", settings=Settings(outbound_allow=(entry,)))


def test_a_list_of_the_settings_is_a_tuple() -> None:
    """One text would be taken for its letters."""
    with pytest.raises(ConfigurationError, match="outbound_allow must be a tuple"):
        Settings(outbound_allow="localhost")  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="invokers must be a tuple"):
        Settings(invokers=[1])  # type: ignore[arg-type]
