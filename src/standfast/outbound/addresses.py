"""Checks which addresses may be reached: public ones, and those that the operator allows.

Authors of definitions, and URLs in data, must not be able to probe the engine's own network. An address is therefore
checked after its name was resolved, and exactly that address is connected to.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, Self

import msgspec

from standfast.errors import ConfigurationError

Ip = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

_NAME: Final = re.compile(r"(\*\.)?[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?(\.[a-z0-9_]([a-z0-9_-]*[a-z0-9_])?)*")
_LONGEST_NAME: Final = 253
_ANY: Final = "*."

_NAT64: Final = IPv6Network("64:ff9b::/96")
_COMPATIBLE: Final = IPv6Network("::/96")
_ISATAP: Final = frozenset({0x0000_5EFE, 0x0200_5EFE})
"""Prefix of the IPv4 address to which a tunnel inside of one network leads (RFC 5214)."""
_UNICAST: Final = IPv6Network("2000::/3")
"""All of IPv6 that was ever assigned."""
_OTHERS: Final = (
    (IPv4Network("100.64.0.0/10"), "a shared (carrier-grade NAT)"),
    (IPv4Network("192.88.99.0/24"), "a relay"),
    (IPv4Network("192.0.0.0/24"), "a private"),
    (
        IPv4Network("168.63.129.16/32"),
        "a cloud's own",
    ),  # The metadata address of Azure: every machine there reaches it, and no other machine does.
    (IPv6Network("64:ff9b:1::/48"), "a translated"),
    (IPv6Network("2001::/32"), "a tunnelled"),
    (IPv6Network("3fff::/20"), "a private"),
    (_COMPATIBLE, "a reserved"),
)
"""Networks that the library of some versions of Python takes for public."""


class AddressAllowance(msgspec.Struct, frozen=True):
    """The non-public addresses that are allowed."""

    names: frozenset[str] = frozenset()
    """Hosts by name, whatever their address; a leading `*.` stands for all subdomains."""
    networks: tuple[Network, ...] = ()

    @classmethod
    def of(cls, entries: Iterable[str]) -> Self:
        """Parse the entries of an allowance; ConfigurationError for one that is neither a name nor a network."""
        names: set[str] = set()
        networks: list[Network] = []
        for entry in entries:
            try:
                networks.append(ip_network(entry))
            except ValueError:
                names.add(_name(entry))
        return cls(frozenset(names), tuple(networks))

    def __or__(self, other: AddressAllowance) -> AddressAllowance:
        return AddressAllowance(self.names | other.names, (*self.networks, *other.networks))

    def covers_name(self, host: str) -> bool:
        """Return whether a host is allowed by its name."""
        name = host.lower().rstrip(".")
        parents = (f"{_ANY}{name[place + 1 :]}" for place, each in enumerate(name) if each == ".")
        return name in self.names or any(parent in self.names for parent in parents)

    def covers(self, address: Ip) -> bool:
        """Return whether an address is allowed, directly or as the IPv4 address that it embeds."""
        return any(
            each in network for each in _meant(address) for network in self.networks if network.version == each.version
        )


NOTHING_BESIDES: Final = AddressAllowance()
"""Only the public network."""


def why_forbidden(address: Ip) -> str:
    """Return why an address is forbidden by default, such as `a private`; empty for a public one."""
    return _why(_meant(address)[-1]) or _why_tunnelled(address)


def address_of(text: str) -> Ip:
    """Parse an address of the resolver, without the name of an interface."""
    return ip_address(text.partition("%")[0])


def _name(entry: object) -> str:
    name = entry.lower() if isinstance(entry, str) else ""
    if len(name) > _LONGEST_NAME or not _NAME.fullmatch(name):
        told = f"outbound_allow holds {entry!r}, which is neither a host name nor a network"
        raise ConfigurationError(f"{told}; give entries such as erp.internal, *.svc.local, 10.1.2.3 or 10.0.0.0/8")
    return name


def _meant(address: Ip) -> tuple[Ip, ...]:
    """Return an address, and the IPv4 address that it embeds, if any."""
    if isinstance(address, IPv4Address):
        return (address,)
    inner = address.ipv4_mapped or address.sixtofour
    if inner is None and address in _NAT64:
        inner = IPv4Address(int(address) & 0xFFFFFFFF)
    return (address,) if inner is None else (address, inner)


def _why_tunnelled(address: Ip) -> str:
    if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
        return "a tunnelled" if _why(IPv4Address(int(address) & 0xFFFFFFFF)) else ""
    return ""


def _why(address: Ip) -> str:
    kinds = (
        (address.is_unspecified, "the unspecified"),
        (address.is_loopback, "a loopback"),
        (address.is_link_local, "a link-local"),
        (address.is_multicast, "a multicast"),
    )
    found = next((told for is_so, told in kinds if is_so), "")
    found = found or next(
        (told for network, told in _OTHERS if network.version == address.version and address in network), ""
    )
    if found:
        return found
    if address.version == _UNICAST.version and not address.is_private and address not in _UNICAST:
        return "a reserved"
    return "" if address.is_global and not address.is_reserved else "a private"
