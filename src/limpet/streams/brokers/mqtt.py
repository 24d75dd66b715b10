"""MQTT: mqtt://[user:password@]host[:1883]/topic/filter[?client_id=NAME], or mqtts:// with &ca=FILE.

In the URL, a ? in a topic is written as %3F; # and + are written as they are.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from limpet.exceptions import InvalidInputError
from limpet.streams.batch import Batch, position_field
from limpet.streams.brokers._decode import ANY_COLUMNS, MAX_BATCH_MESSAGES, MessageDecoder
from limpet.streams.brokers._encode import STOP_TIMEOUT_S, PendingPublishes, encode_messages
from limpet.streams.brokers._mqtt_client import DEFAULT_PORTS, RECEIVE_MAXIMUM_MESSAGES, MqttConnection, MqttSession
from limpet.streams.brokers.url import BrokerURL, parse_broker_url
from limpet.streams.results import BatchResult, check_table
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sources.base import BaseSource

MAX_IN_FLIGHT_MESSAGES = 1000  # unconfirmed messages of a sink
QUIET_PERIOD_S = 1.0  # without a message, after which a source that does not follow ends
STALL_THRESHOLD_MESSAGES = 8  # unacknowledged messages after which some brokers stop sending


class MqttSource(BaseSource):
    """The messages of a topic filter, each at least once: they are acknowledged when they are committed.

    The broker does not store messages of QoS 0: they are lost while the source is not connected.

    Parameters
    ----------
    address : str or BrokerURL
        mqtt://host:port or mqtts://host:port, with a login if the broker needs one.
    topic : str
        The topic filter, with + and # as wildcards. As a key column its name is "topic".
    spec : ColumnSpec
        Columns requested by the user.
    client_id : str, optional
        Identifies the session, and must be unique; by default derived from the name of the machine and the topic.
    follow : bool
        Whether to wait for more messages; else the source ends after one second without a message.
    batch_size : int
        Messages per batch, at most.
    """

    def __init__(
        self,
        address: str | BrokerURL,
        topic: str,
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        client_id: str | None = None,
        follow: bool = True,
        batch_size: int = MAX_BATCH_MESSAGES,
    ) -> None:
        if isinstance(address, str):
            address = parse_broker_url(f"{address.rstrip('/')}/-", DEFAULT_PORTS, "topic", ("ca",))
        self._address, self._topic = address, _check_topic(topic, wildcards=True)
        self._client_id = client_id or _make_client_id(address, topic)
        self._spec, self._follow, self._batch_size = spec, follow, batch_size
        self._session: MqttSession | None = None

    def read(self, position: Any) -> Iterator[Batch]:
        """Yield batches of the unacknowledged messages; a position is {"messages": …}."""
        self.close()
        last_number = position_field(position, "messages", int) or 0
        session = self._session = MqttSession(self._address, self._client_id, self._topic, last_number)
        session.open(False)  # open until `close`, to commit the last batch
        decoder = MessageDecoder(self._spec, None if position is None else self.schema, {"messages": last_number})
        silent_s = 0.0
        while self._follow or silent_s < QUIET_PERIOD_S:
            received, waited_s = session.take(self._batch_size)
            silent_s = 0.0 if received else silent_s + waited_s
            if received:
                last_number = received[-1].number
            last = not self._follow and silent_s >= QUIET_PERIOD_S
            messages = [(message.payload, message.topic) for message in received]
            batch = decoder.make_batch(messages, {"messages": last_number}, session.n_waiting, last=last)
            self.schema = batch.schema
            n_unacknowledged = session.n_unacknowledged
            batch.urgent = n_unacknowledged >= RECEIVE_MAXIMUM_MESSAGES // 2 or (
                not received and n_unacknowledged >= STALL_THRESHOLD_MESSAGES
            )
            yield batch

    def commit(self, position: Any) -> None:
        """Acknowledge the messages up to a position."""
        if self._session is not None and isinstance(position, dict):
            self._session.acknowledge(position.get("messages", 0))

    def close(self) -> None:
        """Close the connection; the broker stores unacknowledged and new messages for a week."""
        if self._session is not None:
            self._session.close()


class MqttSink(BaseSink):
    """Alarms or points as messages of a topic, at least once: after a crash some are sent again.

    MQTT has no way to read what was sent before a crash. Subscribers can drop duplicates by "id".

    Parameters
    ----------
    address : str or BrokerURL
        mqtt://host:port or mqtts://host:port, with a login if the broker needs one.
    topic : str
        The topic.
    table : {"alarms", "points"}
        What is sent.
    timeout : float
        Seconds to wait for a lost broker.
    """

    def __init__(
        self, address: str | BrokerURL, topic: str, table: str = "alarms", *, timeout: float = float("inf")
    ) -> None:
        if isinstance(address, str):
            address = parse_broker_url(f"{address.rstrip('/')}/-", DEFAULT_PORTS, "topic", ("ca",))
        self._address, self._topic, self._table = address, _check_topic(topic, wildcards=False), check_table(table)
        self.name = f"{table} to {address}/{topic}"
        self.timeout = timeout
        self._connection: _PublishConnection | None = None
        self._n_sent = 0

    def truncate_to(self, offset: Any) -> None:
        """Connect; messages sent after the offset cannot be removed."""
        self._n_sent = 0 if offset is None else int(check_offset(self, offset)["n_sent"])
        self.close()
        self._connection = _PublishConnection(self._address, f"limpet-{uuid4().hex[:14]}", expiry=300)
        self._connection.open(3)  # a new session first, the same one after reconnecting

    def write(self, results: BatchResult) -> None:
        """Send one message per alarm or point."""
        if self._connection is None:
            self.truncate_to(None)
        assert self._connection is not None
        for n, _, payload, _ in encode_messages(results, self._table):
            self._connection.unconfirmed.wait(MAX_IN_FLIGHT_MESSAGES, self.timeout)
            self._connection.unconfirmed.add(1)
            self._connection.client.publish(self._topic, payload, qos=1)
            self._n_sent = n + 1

    def flush(self) -> Any:
        """Wait until the broker has confirmed all messages."""
        if self._connection is not None:
            self._connection.unconfirmed.wait(0, self.timeout)
        return make_offset(self, n_sent=self._n_sent)

    def stop_waiting(self) -> None:
        """Wait for a lost broker for a few more seconds at most."""
        self.timeout = min(self.timeout, STOP_TIMEOUT_S)

    def close(self) -> None:
        """Close the connection; messages not flushed can be lost."""
        if self._connection is not None:
            self._connection.close()


class _PublishConnection(MqttConnection):
    """The connection of a sink."""

    def __init__(self, address: BrokerURL, client_id: str, *, expiry: int) -> None:
        super().__init__(address, client_id, expiry=expiry)
        self.unconfirmed = PendingPublishes(self.label)
        self.client.on_publish = self._on_publish

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.fail(f"a message was rejected: {str(reason).lower()}")
        self.unconfirmed.add(-1)

    def on_failure(self) -> None:
        """Raise the failure where confirmations are waited for."""
        assert self.failure is not None
        self.unconfirmed.fail(self.failure)


def make_source(url: str, *, columns: ColumnSpec = ANY_COLUMNS, follow: bool = True) -> BaseSource:
    """Open the source at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "topic", ("client_id", "ca"))
    return MqttSource(address, address.subject, columns, client_id=address.options.get("client_id"), follow=follow)


def make_sink(url: str, *, table: str = "alarms") -> BaseSink:
    """Open the sink at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "topic", ("ca",))
    return MqttSink(address, address.subject, table)


def _make_client_id(address: BrokerURL, topic: str) -> str:
    """Return an id that depends on machine, broker and topic; all brokers accept 23 characters."""
    name = f"{socket.gethostname()} {address} {topic}"
    return f"limpet-{hashlib.sha256(name.encode()).hexdigest()[:14]}"


def _check_topic(topic: str, *, wildcards: bool) -> str:
    levels = topic.split("/")
    has_wildcards = any("#" in level or "+" in level for level in levels)
    is_invalid = "#" in "".join(levels[:-1]) or any(
        len(level) > 1 and ("#" in level or "+" in level) for level in levels
    )
    if not topic or "\0" in topic or is_invalid or (has_wildcards and not wildcards):
        raise InvalidInputError(
            f"topic: must be a {'topic filter' if wildcards else 'topic without wildcards'}, got {topic!r}."
        )
    return topic
