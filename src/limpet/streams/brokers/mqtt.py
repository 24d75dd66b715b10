"""MQTT: mqtt://[user:password@]host[:1883]/topic/filter[?client_id=NAME], or mqtts:// with &ca=FILE.

In an address a ? in a topic is written %3F; # and + stand for themselves.
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

MAX_IN_FLIGHT_MESSAGES = 1000  # messages that a sink has not seen confirmed, at most
QUIET_PERIOD_S = 1.0  # seconds without a message after which all that was there has been read
STALL_THRESHOLD_MESSAGES = (
    8  # messages that wait to be committed when nothing more comes: some brokers send no more than a few
)


class MqttSource(BaseSource):
    """Reads the messages of a topic filter, each at least once: they are acknowledged when they have been committed.

    address: mqtt://host:port or mqtts://…, with a login if need be. topic: may have + and #; as the key it is called
    "topic". client_id: under which the broker keeps the session, by default made of this machine's name and the topic;
    no two may have the same. follow: waits for more; else ends when nothing has come for a second.

    What was sent with QoS 0 is not kept by the broker: it is lost while nobody listens.
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
        session.open(False)  # and stays open until `close`: there may be something to commit after the last batch
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
        """Acknowledges what came up to there."""
        if self._session is not None and isinstance(position, dict):
            self._session.acknowledge(position.get("messages", 0))

    def close(self) -> None:
        """Ends the connection; the broker keeps what was not acknowledged, and what comes, for a week."""
        if self._session is not None:
            self._session.close()


class MqttSink(BaseSink):
    """Tells alarms or points to a topic, each at least once: after a crash some are told again.

    MQTT keeps no messages that could be looked at, so that what was told before a crash cannot be found out; those who
    listen can leave out what they have seen by its "id".

    timeout: seconds to wait for a broker that has gone away.
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
        """Connects; what was told after the mark cannot be taken back."""
        self._n_sent = 0 if offset is None else int(check_offset(self, offset)["told"])
        self.close()
        self._connection = _PublishConnection(self._address, f"limpet-{uuid4().hex[:14]}", expiry=300)
        self._connection.open(3)  # a new session at first, and this session ever after

    def write(self, results: BatchResult) -> None:
        """Tells one message an alarm or a point."""
        if self._connection is None:
            self.truncate_to(None)
        assert self._connection is not None
        for n, _, payload, _ in encode_messages(results, self._table):
            self._connection.unconfirmed.wait(MAX_IN_FLIGHT_MESSAGES, self.timeout)
            self._connection.unconfirmed.add(1)
            self._connection.client.publish(self._topic, payload, qos=1)
            self._n_sent = n + 1

    def flush(self) -> Any:
        """Waits until the broker has confirmed all."""
        if self._connection is not None:
            self._connection.unconfirmed.wait(0, self.timeout)
        return make_offset(self, told=self._n_sent)

    def stop_waiting(self) -> None:
        """A broker that has gone away is not waited for much longer."""
        self.timeout = min(self.timeout, STOP_TIMEOUT_S)

    def close(self) -> None:
        """Ends the connection; what has not been flushed may be lost."""
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
            self.fail(f"a message was refused: {str(reason).lower()}")
        self.unconfirmed.add(-1)

    def on_failure(self) -> None:
        """Tells who waits."""
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
    """The same whenever the same is read on this machine; 23 characters are what every broker takes."""
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
            f"{topic!r} is not a topic {'to read from' if wildcards else 'that can be told anything'}"
        )
    return topic
