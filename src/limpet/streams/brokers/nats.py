"""NATS JetStream: nats://[user:password@]host[:4222][,host…]/subject[?stream=NAME&creds=FILE]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from limpet._format import redact_url
from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch, check_same_position_field, position_field
from limpet.streams.brokers._decode import ANY_COLUMNS, MAX_BATCH_MESSAGES, MessageDecoder
from limpet.streams.brokers._encode import STOP_TIMEOUT_S, encode_messages
from limpet.streams.brokers._nats_consumer import Consumer
from limpet.streams.brokers._nats_publisher import MAX_IN_FLIGHT_MESSAGES, Publisher
from limpet.streams.brokers.url import format_host_port, parse_broker_url
from limpet.streams.results import BatchResult, check_table
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sources.base import BaseSource

DEFAULT_PORTS = {"nats": 4222}


class NatsSource(BaseSource):
    """The messages of a JetStream stream, each once: the position is a sequence number of the stream.

    A lost connection is retried and resumed: no message is lost or repeated, as long as the stream stores it.

    Parameters
    ----------
    servers : str or sequence of str
        URLs of servers.
    subject : str
        The subject, with wildcards. As a key column its name is "subject".
    spec : ColumnSpec
        Columns requested by the user.
    stream : str, optional
        Name of the stream; by default the one that has the subject.
    follow : bool
        Whether to wait for more messages at the end.
    batch_size : int
        Messages per batch, at most.
    user, password : str, optional
        A login; a user without a password is a token.
    creds : str, optional
        A file of credentials.
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
        user: str | None = None,
        password: str | None = None,
        creds: str | None = None,
    ) -> None:
        self._servers, self._login = servers, _make_login_options(user, password, creds)
        self._subject, self._stream = _check_subject(subject, wildcards=True), stream
        self._spec, self._follow, self._batch_size = spec, follow, batch_size
        self._consumer: Consumer | None = None

    def read(self, position: Any) -> Iterator[Batch]:
        """Yield the batches after a position {"stream": …, "subject": …, "sequence": …, "created": …}."""
        sequence = position_field(position, "sequence", int)
        check_same_position_field(position, "subject", self._subject, "nats subject")
        if self._stream is not None:
            check_same_position_field(position, "stream", self._stream, "nats stream")
        created = None if position is None else position.get("created")
        consumer = self._consumer = Consumer(
            self._servers, self._login, self._subject, self._stream, sequence, created, self._follow
        )
        consumer.open()
        try:
            assert consumer.stream is not None
            check_same_position_field(position, "stream", consumer.stream, "nats stream")
            stream_fields: dict[str, Any] = {"stream": consumer.stream, "subject": self._subject}
            new_position = stream_fields | {"sequence": consumer.start_sequence, "created": consumer.created}
            decoder = MessageDecoder(self._spec, None if position is None else self.schema, new_position)
            lag: int | None = None
            while not consumer.at_end:
                received = consumer.take(self._batch_size)
                if received:
                    new_position = stream_fields | {"sequence": received[-1].sequence, "created": received[-1].created}
                    lag = received[-1].pending
                last = consumer.at_end
                batch = decoder.make_batch(
                    [(message.payload, message.subject) for message in received], new_position, lag, last=last
                )
                self.schema = batch.schema
                yield batch
        finally:
            self.close()

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()


class NatsSink(BaseSink):
    """Alarms or points as messages of a JetStream stream, exactly once.

    Each message has the id {run}-{table}-{number}. After a crash, messages that the stream has already are not sent
    again; the offset has the number of messages sent, and the sequence number after which to search for more.

    Parameters
    ----------
    servers : str or sequence of str
        URLs of servers.
    subject : str
        The subject.
    table : {"alarms", "points"}
        What is sent.
    user, password : str, optional
        A login; a user without a password is a token.
    creds : str, optional
        A file of credentials.
    timeout : float
        Seconds to wait for a lost server.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str,
        table: str = "alarms",
        *,
        user: str | None = None,
        password: str | None = None,
        creds: str | None = None,
        timeout: float = float("inf"),
    ) -> None:
        self._servers, self._login = servers, _make_login_options(user, password, creds)
        self._subject, self._table = _check_subject(subject, wildcards=False), check_table(table)
        self.timeout = timeout
        hosts = [servers] if isinstance(servers, str) else servers
        self.name = f"{table} to {', '.join(map(redact_url, hosts))}, subject {subject}"
        self._publisher: Publisher | None = None
        self._sequence: int | None = None
        self._n_sent = 0

    def truncate_to(self, offset: Any) -> None:
        """Connect; messages after the offset that the stream has already are not sent again."""
        known: dict[str, Any] = {"n_sent": 0, "sequence": None} if offset is None else check_offset(self, offset)
        self.close()
        self._n_sent, self._sequence = known["n_sent"], known["sequence"]
        self._publisher = Publisher(self._servers, self._login, self._subject, self._sequence)
        self._publisher.open()

    def write(self, results: BatchResult) -> None:
        """Send one message per alarm or point."""
        if self._publisher is None:
            self.truncate_to(None)
        assert self._publisher is not None
        prefix = f"{results.run_id}-{self._table}-"
        messages = [(n, payload) for n, _, payload, _ in encode_messages(results, self._table) if n >= self._n_sent]
        for first in range(0, len(messages), MAX_IN_FLIGHT_MESSAGES):
            self._publisher.unconfirmed.wait(MAX_IN_FLIGHT_MESSAGES, self.timeout)
            self._publisher.enqueue(prefix, messages[first : first + MAX_IN_FLIGHT_MESSAGES])
        if messages:
            self._n_sent = messages[-1][0] + 1

    def flush(self) -> Any:
        """Wait until the stream has stored all messages."""
        if self._publisher is not None:
            self._publisher.unconfirmed.wait(0, self.timeout)
            self._sequence = self._publisher.sequence
        return make_offset(self, n_sent=self._n_sent, sequence=self._sequence)

    def stop_waiting(self) -> None:
        """Wait for a lost server for a few more seconds at most."""
        self.timeout = min(self.timeout, STOP_TIMEOUT_S)

    def close(self) -> None:
        """Close the connection; messages not flushed can be lost."""
        if self._publisher is not None:
            self._publisher.close()


def make_source(url: str, *, columns: ColumnSpec = ANY_COLUMNS, follow: bool = True) -> BaseSource:
    """Open the source at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "subject", ("stream", "creds"))
    return NatsSource(
        [f"nats://{format_host_port(*host)}" for host in address.hosts],
        address.subject,
        columns,
        stream=address.options.get("stream"),
        follow=follow,
        user=address.user,
        password=address.password,
        creds=address.options.get("creds"),
    )


def make_sink(url: str, *, table: str = "alarms") -> BaseSink:
    """Open the sink at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "subject", ("creds",))
    return NatsSink(
        [f"nats://{format_host_port(*host)}" for host in address.hosts],
        address.subject,
        table,
        user=address.user,
        password=address.password,
        creds=address.options.get("creds"),
    )


def _make_login_options(user: str | None, password: str | None, creds: str | None) -> dict[str, Any]:
    if user is not None and password is None:
        return {"token": user}
    login: dict[str, Any] = {} if user is None else {"user": user, "password": password}
    return login if creds is None else login | {"user_credentials": creds}


def _check_subject(subject: str, *, wildcards: bool) -> str:
    """Return the subject, or raise: it consists of words separated by dots."""
    words = subject.split(".")
    has_wildcards = any(word in ("*", ">") for word in words)
    is_invalid = not all(words) or any(c.isspace() for c in subject) or ">" in words[:-1]
    if is_invalid or (has_wildcards and not wildcards):
        raise InvalidInputError(
            f"subject: must be words separated by dots{'' if wildcards else ', without wildcards'}, got {subject!r}."
        )
    return subject
