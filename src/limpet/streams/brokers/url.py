"""Broker URLs: scheme://[user:password@]host[:port][,…]/subject[?option=value&…]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qsl, unquote

from limpet._format import join_names, redact_url
from limpet.exceptions import InvalidInputError


@dataclass(frozen=True)
class BrokerURL:
    """A parsed URL of a broker; `str` of it has no password."""

    scheme: str
    hosts: tuple[tuple[str, int], ...]
    subject: str
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    options: dict[str, str] = field(default_factory=dict, repr=False)  # can hold passwords, too

    def __str__(self) -> str:
        return f"{self.scheme}://{','.join(format_host_port(*host) for host in self.hosts)}"


def parse_broker_url(
    url: str, ports: Mapping[str, int], subject_label: str, options: Collection[str] | None
) -> BrokerURL:
    """Parse a URL, with default ports, a label for its subject, options (None: any).

    `urlsplit` would take the # of MQTT as a fragment.

    >>> parse_broker_url("mqtt://me:s%40crt@broker/plant/+/#", {"mqtt": 1883}, "topic", ())
    BrokerURL(scheme='mqtt', hosts=(('broker', 1883),), subject='plant/+/#', user='me')
    """
    scheme, separator, rest = url.partition("://")
    example = f"{next(iter(ports))}://host[:{next(iter(ports.values()))}]/{subject_label}"
    if not separator or scheme.lower() not in ports:
        raise InvalidInputError(f"url: must be like {example}, got {redact_url(url)!r}.")
    scheme = scheme.lower()
    rest, _, query = rest.partition("?")
    authority, _, subject = rest.partition("/")
    login, _, host_list = authority.rpartition("@")
    user, has_password, password = login.partition(":")
    hosts = tuple(_parse_host(host, ports[scheme], url) for host in host_list.split(","))
    subject = unquote(subject)
    if not subject:
        raise InvalidInputError(f"url: must have a {subject_label}, like {example}, got {redact_url(url)!r}.")
    pairs = parse_qsl(query, keep_blank_values=True)
    unknown = [] if options is None else [name for name, _ in pairs if name not in options]
    if unknown:
        raise InvalidInputError(
            f"url: {scheme}:// has no option {join_names(map(repr, unknown))}. "
            f"Options are {join_names(sorted(options or ()))}."
        )
    credentials = unquote(user) if login else None, unquote(password) if has_password else None
    return BrokerURL(scheme, hosts, subject, *credentials, dict(pairs))


def format_host_port(host: str, port: int) -> str:
    """Return host:port, or [host]:port for IPv6."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _parse_host(text: str, default_port: int, url: str) -> tuple[str, int]:
    if text.startswith("["):
        host, bracket, port_text = text[1:].partition("]")
        is_invalid = not bracket or (port_text and not port_text.startswith(":"))
        port_text = port_text[1:]
    else:
        host, _, port_text = text.partition(":")
        is_invalid = False
    if is_invalid or not host or " " in host:
        raise InvalidInputError(f"url: must have a host, got {redact_url(url)!r}.")
    if not port_text:
        return host, default_port
    if not (port_text.isascii() and port_text.isdigit() and 0 < int(port_text) < 65536):
        raise InvalidInputError(f"url: the port must be from 1 to 65535, got {port_text!r} in {redact_url(url)!r}.")
    return host, int(port_text)
