"""Addresses of brokers: scheme://[user:password@]host[:port][,host…]/subject[?option=value&…]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from holdfast.errors import BadInputError
from holdfast.streams.columns import listed


@dataclass(frozen=True)
class Address:
    """An address that has been read. Its text has no password in it, and may be shown."""

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    subject: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict, repr=False)  # may hold passwords as well

    def __str__(self) -> str:
        return f"{self.scheme}://{','.join(joined(*one) for one in self.hosts)}"


def read_address(url: str, ports: Mapping[str, int], what: str, options: Collection[str] | None) -> Address:
    """Reads an address. ports: of the schemes that are known; what: the last part is called; None: any option goes.

    It is not read by `urlsplit`, to which the # of MQTT is the beginning of something else.

    >>> read_address("mqtt://me:s%40crt@broker/plant/+/#", {"mqtt": 1883}, "topic", ())
    Address(scheme='mqtt', hosts=(('broker', 1883),), subject='plant/+/#', user='me')
    """
    scheme, found, rest = url.partition("://")
    form = f"{next(iter(ports))}://host[:{next(iter(ports.values()))}]/{what}"
    if not found or scheme.lower() not in ports:
        raise BadInputError(f"expected an address like {form}, got {without_password(url)!r}")
    scheme = scheme.lower()
    rest, _, query = rest.partition("?")
    authority, _, subject = rest.partition("/")
    login, _, places = authority.rpartition("@")
    user, has_password, password = login.partition(":")
    hosts = tuple(_host_of(place, ports[scheme], url) for place in places.split(","))
    subject = unquote(subject)
    if not subject:
        raise BadInputError(f"{without_password(url)!r} names no {what}; expected an address like {form}")
    pairs = parse_qsl(query, keep_blank_values=True)
    unknown = [] if options is None else [name for name, _ in pairs if name not in options]
    if unknown:
        raise BadInputError(
            f"{scheme}:// takes no option {', '.join(map(repr, unknown))}; it takes {listed(sorted(options or ()))}"
        )
    return Address(
        scheme,
        hosts,
        subject,
        unquote(user) if login else None,
        unquote(password) if has_password else None,
        dict(pairs),
    )


def without_password(url: str) -> str:
    """An address as it may be shown.

    >>> without_password("nats://me:secret@host/a?sasl.password=secret")
    'nats://host/a'
    """
    scheme, found, rest = url.partition("?")[0].rpartition("://")
    authority, slash, path = rest.partition("/")
    return scheme + found + authority.rpartition("@")[2] + slash + path


def joined(host: str, port: int) -> str:
    """host:port, and [host]:port where the host has colons of its own."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _host_of(place: str, port: int, url: str) -> tuple[str, int]:
    if place.startswith("["):
        host, closed, told = place[1:].partition("]")
        bad = not closed or (told and not told.startswith(":"))
        told = told[1:]
    else:
        host, _, told = place.partition(":")
        bad = False
    if bad or not host or " " in host:
        raise BadInputError(f"{without_password(url)!r} names no host")
    if not told:
        return host, port
    if not (told.isascii() and told.isdigit() and 0 < int(told) < 65536):
        raise BadInputError(f"a port is a number from 1 to 65535, got {told!r} in {without_password(url)!r}")
    return host, int(told)
