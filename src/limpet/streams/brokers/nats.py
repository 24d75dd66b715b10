"""NATS: nats://[user:password@]host[:4222][,…]/subject[?stream=NAME&creds=FILE]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from limpet._format import redact_url
from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch, check_same_position_field, position_field
from limpet.streams.brokers._nats_sessions import MAX_IN_FLIGHT_MESSAGES, Consumer, Publisher
from limpet.streams.brokers.base import MAX_BATCH_MESSAGES, BrokerSink, BrokerSource
from limpet.streams.brokers.url import BrokerURL, format_host_port, parse_broker_url
from limpet.streams.results import BatchResult
from limpet.streams.schema import ANY_COLUMNS, ColumnSpec

DEFAULT_PORTS = {"nats": 4222}


class NatsSource(BrokerSource):
    """Messages of a JetStream stream, each once; the position has a sequence number.

    A lost connection is retried and resumed: no message is lost or repeated, as long as the stream stores it. The
    subject can have wildcards; `stream` is by default the one that has the subject. A source that does not follow ends
    where the stream ended when it started.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str,
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        stream: str | None = None,
        follow: bool = True,
        batch_size: int = MAX_BATCH_MESSAGES,
        login: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(spec, follow, batch_size)
        self._servers, self._login = servers, login or {}
        self._subject, self._stream = _check_subject(subject, wildcards=True), stream

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield batches after a position (fields stream, subject, sequence, created)."""
        sequence = position_field(position, "sequence", int)
        check_same_position_field(position, "subject", self._subject, "nats subject")
        if self._stream is not None:
            check_same_position_field(position, "stream", self._stream, "nats stream")
        created = None if position is None else position.get("created")
        address = (self._servers, self._login, self._subject, self._stream)
        consumer = self._connection = Consumer(*address, sequence, created, self._follow)
        consumer.open()
        try:
            assert consumer.stream is not None
            check_same_position_field(position, "stream", consumer.stream, "nats stream")
            stream_fields: dict[str, Any] = {"stream": consumer.stream, "subject": self._subject}
            new_position = stream_fields | {"sequence": consumer.start_sequence, "created": consumer.created}
            self._start_decoding(position is not None, new_position)
            lag: int | None = None
            while not consumer.at_end:
                received = consumer.take(self._batch_size)
                if received:
                    new_position = stream_fields | {"sequence": received[-1].number, "created": received[-1].created}
                    lag = received[-1].pending
                yield self._make_batch(received, new_position, lag, last=consumer.at_end)
        finally:
            self.close()


class NatsSink(BrokerSink):
    """Alarms or points as messages of a JetStream stream, exactly once.

    Each message has the id {run}-{table}-{number}. After a crash, messages that the stream has already are not sent
    again; the offset has the number of messages sent, and the sequence number after which to search for more.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str,
        table: str = "alarms",
        *,
        login: dict[str, Any] | None = None,
        timeout: float = float("inf"),
    ) -> None:
        hosts = [servers] if isinstance(servers, str) else servers
        super().__init__(f"{table} to {', '.join(map(redact_url, hosts))}, subject {subject}", table, timeout)
        self._servers, self._login = servers, login or {}
        self._subject = _check_subject(subject, wildcards=False)
        self._sequence: int | None = None

    def _connect(self, offset: dict[str, Any]) -> Publisher:
        self._sequence = offset.get("sequence")
        publisher = Publisher(self._servers, self._login, self._subject, self._sequence)
        publisher.open()
        return publisher

    def _send(self, results: BatchResult) -> None:
        prefix = f"{results.run_id}-{self._table}-"
        messages = [(n, payload) for n, payload, _ in self._encode(results) if n >= self._n_sent]
        for first in range(0, len(messages), MAX_IN_FLIGHT_MESSAGES):
            self._connection.unconfirmed.wait(MAX_IN_FLIGHT_MESSAGES, self.timeout)
            self._connection.enqueue(prefix, messages[first : first + MAX_IN_FLIGHT_MESSAGES])
        if messages:
            self._n_sent = messages[-1][0] + 1

    def flush(self) -> Any:
        """Wait until the stream has stored all messages."""
        offset = super().flush()
        if self._connection is not None:
            self._sequence = self._connection.sequence
        return offset | {"sequence": self._sequence}


def make_source(url: str, *, columns: ColumnSpec = ANY_COLUMNS, follow: bool = True) -> NatsSource:
    """Open the source at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "subject", ("stream", "creds"))
    stream, servers = address.options.get("stream"), _server_urls(address)
    return NatsSource(servers, address.subject, columns, stream=stream, follow=follow, login=_login_options(address))


def make_sink(url: str, *, table: str = "alarms") -> NatsSink:
    """Open the sink at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "subject", ("creds",))
    return NatsSink(_server_urls(address), address.subject, table, login=_login_options(address))


def _server_urls(address: BrokerURL) -> list[str]:
    return [f"nats://{format_host_port(*host)}" for host in address.hosts]


def _login_options(address: BrokerURL) -> dict[str, Any]:
    """Return the options of the client library; a user without a password is a token."""
    if address.user is not None and address.password is None:
        return {"token": address.user}
    login: dict[str, Any] = {} if address.user is None else {"user": address.user, "password": address.password}
    if "creds" in address.options:
        login["user_credentials"] = address.options["creds"]
    return login


def _check_subject(subject: str, *, wildcards: bool) -> str:
    """Return the subject, or raise: it consists of words separated by dots."""
    words = subject.split(".")
    is_invalid = not all(words) or any(c.isspace() for c in subject) or ">" in words[:-1]
    if is_invalid or (not wildcards and {"*", ">"} & set(words)):
        note = "" if wildcards else ", without wildcards"
        raise InvalidInputError(f"subject: must be words separated by dots{note}, got {subject!r}.")
    return subject
