"""MQTT: mqtt://[user:password@]host[:1883]/topic/filter[?client_id=NAME].

mqtts:// is TLS, with &ca=FILE. In the URL, a ? in a topic is written as %3F; # and + are written as they are.
"""

from __future__ import annotations

import hashlib
import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Literal
from uuid import uuid4

from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.batch import Batch, position_field
from limpet.streams.brokers.base import BrokerSink, BrokerSource, Message, MessageQueue, PendingPublishes, log
from limpet.streams.brokers.url import BrokerURL, parse_broker_url
from limpet.streams.results import BatchResult
from limpet.streams.schema import ANY_COLUMNS, ColumnSpec

if TYPE_CHECKING:
    from paho.mqtt.client import Client, MQTTMessage


DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}
REPLY_TIMEOUT_S = 4.0
SESSION_EXPIRY_S = 7 * 24 * 3600  # that the broker stores the session of a source that is not connected
SINK_SESSION_EXPIRY_S = 300  # the same of a sink
SHORT_LIVED_THRESHOLD_S = 5.0  # that a short-lived connection lasts at most
SESSION_TAKEN_OVER_CODE = 142  # another client has connected with the same id
RECEIVE_MAXIMUM_MESSAGES = 65_535  # unacknowledged; the maximum of MQTT
MAX_QUEUED_BYTES = 64 << 20
MAX_IN_FLIGHT_MESSAGES = 1000  # unconfirmed messages of a sink
QUIET_PERIOD_S = 1.0  # without a message, after which a source that does not follow ends
STALL_THRESHOLD_MESSAGES = 8  # unacknowledged messages after which some brokers stop sending


class MqttSource(BrokerSource):
    """Messages of a topic filter (wildcards), at least once; a commit acknowledges.

    The broker does not store messages of QoS 0: they are lost while the source is not connected. `address` is a URL
    without a topic. `client_id` identifies the session, and must be unique; by default it is derived from the name of
    the machine and the topic. A source that does not follow ends after one second without a message.
    """

    def __init__(
        self,
        address: str | BrokerURL,
        topic: str,
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        client_id: str | None = None,
        follow: bool = True,
    ) -> None:
        super().__init__(spec, follow)
        self._address, self._topic = _parse_address(address), _check_topic(topic, wildcards=True)
        name = f"{socket.gethostname()} {self._address} {topic}"  # all brokers accept ids of 23 characters
        self._client_id = client_id or f"limpet-{hashlib.sha256(name.encode()).hexdigest()[:14]}"

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield batches of the unacknowledged messages; a position is {"messages": …}."""
        self.close()
        last_number = position_field(position, "messages", int) or 0
        session = self._connection = _MqttSession(self._address, self._client_id, self._topic, last_number)
        session.open(False)  # open until `close`, to commit the last batch
        self._start_decoding(position is not None, {"messages": last_number})
        silent_s = 0.0
        while self._follow or silent_s < QUIET_PERIOD_S:
            started = time.monotonic()
            received = session.take(self._batch_size)
            silent_s = 0.0 if received else silent_s + time.monotonic() - started
            if received:
                last_number = received[-1].number
            last = not self._follow and silent_s >= QUIET_PERIOD_S
            batch = self._make_batch(received, {"messages": last_number}, len(session.queue), last=last)
            n_unacknowledged = session.n_unacknowledged
            is_stalled = not received and n_unacknowledged >= STALL_THRESHOLD_MESSAGES
            batch.urgent = is_stalled or n_unacknowledged >= RECEIVE_MAXIMUM_MESSAGES // 2
            yield batch

    def commit(self, position: Any) -> None:
        """Acknowledge messages up to a position; the broker stores later ones for a week."""
        if self._connection is not None and isinstance(position, dict):
            self._connection.acknowledge(position.get("messages", 0))


class MqttSink(BrokerSink):
    """Alarms or points as messages of a topic, at least once: a crash repeats some.

    MQTT has no way to read what was sent before a crash. Subscribers can drop duplicates by "id".
    """

    def __init__(self, address: str | BrokerURL, topic: str, table: str = "alarms") -> None:
        self._address, self._topic = _parse_address(address), _check_topic(topic, wildcards=False)
        super().__init__(f"{table} to {self._address}/{topic}", table)

    def _connect(self, offset: dict[str, Any]) -> _MqttPublisher:
        publisher = _MqttPublisher(self._address)
        publisher.open(3)  # a new session first, the same one after reconnecting
        return publisher

    def _send(self, results: BatchResult) -> None:
        publisher = self._connection
        for n, payload, _ in self._encode(results):
            publisher.unconfirmed.wait(MAX_IN_FLIGHT_MESSAGES, self.timeout)
            publisher.unconfirmed.add(1)
            publisher.client.publish(self._topic, payload, qos=1)
            self._n_sent = n + 1


class _MqttConnection:
    """Connection by paho's thread; the session outlasts a disconnect by `expiry_s`."""

    def __init__(self, address: BrokerURL, client_id: str, expiry_s: int):
        with optional_import("MQTT", "mqtt"):
            import paho.mqtt.client as mqtt
            from paho.mqtt.enums import CallbackAPIVersion
            from paho.mqtt.packettypes import PacketTypes
            from paho.mqtt.properties import Properties
        self.label = str(address)
        self._address = address
        self.failure: Exception | None = None
        self._ready = threading.Event()
        self._lost, self._since, self._n_short_lived = False, 0.0, 0
        self._properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        self._properties.SessionExpiryInterval = expiry_s
        self.client: Client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5)
        self.client.connect_timeout = REPLY_TIMEOUT_S
        self.client.reconnect_delay_set(1, 5)
        if address.user is not None:
            self.client.username_pw_set(address.user, address.password)
        if address.scheme == "mqtts":
            ca = address.options.get("ca")
            try:
                self.client.tls_set(ca_certs=ca)
            except OSError as error:
                message = f"{self.label}: cannot read the certificates in {ca!r}: {error.strerror}."
                raise InvalidInputError(message) from error
        self.client.on_connect, self.client.on_disconnect = self._on_connect, self._on_disconnect

    def on_connected(self, session_present: bool) -> None:
        """Called in the thread of the client after each connect."""
        self.mark_ready()

    def on_failure(self) -> None:
        """Called after `failure` was set."""

    def mark_ready(self) -> None:
        if self._lost:
            log.info("%s: reconnected", self.label)
        self._lost, self._since = False, time.monotonic()
        self._ready.set()

    def open(self, clean_start: bool | Literal[3]) -> None:
        """Connect, or raise."""
        host, port = self._address.hosts[0]
        try:
            self.client.connect(host, port, keepalive=30, clean_start=clean_start, properties=self._properties)
        except (OSError, ValueError) as error:
            reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error) or "no response"
            raise InvalidInputError(f"{self.label}: cannot connect: {reason}.") from error
        self.client.loop_start()
        if not self._ready.wait(REPLY_TIMEOUT_S) and self.failure is None:
            self.fail("no response")
        if self.failure is not None:
            self.close()
            raise self.failure

    def close(self) -> None:
        self.client.disconnect()
        self.client.loop_stop()

    def fail(self, reason: str) -> None:
        """Set the failure and wake those who wait."""
        kind = LimpetError if self._ready.is_set() else InvalidInputError
        self.failure = kind(f"{self.label}: {reason}.")
        self._ready.set()
        self.on_failure()

    def _on_connect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            if not self._ready.is_set():
                self.fail(str(reason).lower())
            return
        self.on_connected(bool(flags.session_present))

    def _on_disconnect(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.value == SESSION_TAKEN_OVER_CODE:
            self.fail("another client has connected with the same client id. Use a unique client_id")
            client.disconnect()
        elif reason.is_failure and self._ready.is_set() and self.failure is None and not self._lost:
            self._lost = True
            is_short_lived = time.monotonic() - self._since < SHORT_LIVED_THRESHOLD_S
            self._n_short_lived = self._n_short_lived + 1 if is_short_lived else 0
            log.warning("%s: connection lost; retrying", self.label)
            if self._n_short_lived == 2:
                log.warning("%s: lost repeatedly: does another client have the same client id?", self.label)


class _MqttPublisher(_MqttConnection):
    """The connection of a sink."""

    def __init__(self, address: BrokerURL) -> None:
        super().__init__(address, f"limpet-{uuid4().hex[:14]}", SINK_SESSION_EXPIRY_S)
        self.unconfirmed = PendingPublishes(self.label)
        self.client.on_publish = self._on_publish

    def _on_publish(self, client: Any, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.fail(f"a message was refused: {str(reason).lower()}")
        self.unconfirmed.add(-1)

    def on_failure(self) -> None:
        self.unconfirmed.fail(self.failure)


@dataclass
class _PendingAck:
    """Unacknowledged message: broker id, connection number, whether committed."""

    mid: int
    connection: int
    content_hash: int
    done: bool = False


class _MqttSession(_MqttConnection):
    """Messages of a topic filter with QoS 1.

    After a lost connection the broker sends unacknowledged messages again, with their ids, by which they are recognized
    and not returned twice. Exceptions are messages whose acknowledgement was lost with the connection: the broker can
    reuse their ids for other messages, and none must be lost.
    """

    def __init__(self, address: BrokerURL, client_id: str, topic: str, number: int) -> None:
        super().__init__(address, client_id, SESSION_EXPIRY_S)
        self._properties.ReceiveMaximum = RECEIVE_MAXIMUM_MESSAGES
        self.client.manual_ack_set(True)
        self._topic, self._number = topic, number
        self.queue, self._closing = MessageQueue(), False
        self._lock = threading.Lock()  # of the two tables below
        self._pending: dict[int, _PendingAck] = {}  # by number of the message
        self._number_by_mid: dict[int, int] = {}
        self._connection = 0
        self._n_discarded, self._last_discard_warning = 0, 0.0
        self.client.on_message, self.client.on_subscribe = self._on_message, self._on_subscribe

    def take(self, max_messages: int) -> list[Message]:
        """Return messages; wait for a moment if none has arrived."""
        messages = self.queue.take(max_messages)
        if not messages and self.failure is not None:
            raise self.failure
        return messages

    @property
    def n_unacknowledged(self) -> int:
        """Messages returned and not acknowledged."""
        return len(self._pending) - len(self.queue)

    def acknowledge(self, number: int) -> None:
        """Acknowledge the messages up to a number."""
        with self._lock:
            for pending_number in list(takewhile(lambda known: known <= number, self._pending)):
                pending = self._pending[pending_number]
                pending.done = True
                if pending.connection == self._connection and self.client.is_connected():
                    self.client.ack(pending.mid, 1)
                    self._remove(pending_number)

    def close(self) -> None:
        self._closing = True
        super().close()

    def on_connected(self, session_present: bool) -> None:
        """Subscribe; the connection is ready after the response of the broker."""
        from paho.mqtt.subscribeoptions import SubscribeOptions

        with self._lock:
            self._connection += 1
            if not session_present:  # nothing is sent again
                self._pending.clear()
                self._number_by_mid.clear()
        only_new = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        self.client.subscribe(self._topic, options=SubscribeOptions(qos=1, retainHandling=only_new))

    def on_failure(self) -> None:
        self.queue.wake()

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self.fail(f"cannot subscribe to {self._topic!r}: {str(reasons[0]).lower()}")
        else:
            self.mark_ready()

    def _on_message(self, client: Any, userdata: Any, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        if message.qos == 0:
            if len(self.queue) >= RECEIVE_MAXIMUM_MESSAGES or self.queue.n_bytes > MAX_QUEUED_BYTES:
                self._n_discarded += 1
                if time.monotonic() - self._last_discard_warning > 10:
                    self._last_discard_warning = time.monotonic()
                    message_format = "%s: %d messages of QoS 0 were discarded: the queue is full"
                    log.warning(message_format, self.label, self._n_discarded)
                return
        else:
            content_hash = hash((message.topic, payload))
            with self._lock:
                if message.dup and self._is_redelivery(message.mid, content_hash):
                    return
                self._pending[self._number + 1] = _PendingAck(message.mid, self._connection, content_hash)
                self._number_by_mid[message.mid] = self._number + 1
            while self.queue.n_bytes > MAX_QUEUED_BYTES and not self._closing:
                time.sleep(0.005)  # blocks the client, and thereby the broker
        self._number += 1
        self.queue.put(Message(self._number, message.topic, payload))

    def _is_redelivery(self, mid: int, content_hash: int) -> bool:
        """Return whether an earlier connection received it; acknowledge it if committed."""
        number = self._number_by_mid.get(mid, 0)  # numbers start at 1
        pending = self._pending.get(number)
        if pending is None or pending.connection == self._connection or pending.content_hash != content_hash:
            return False
        pending.connection = self._connection
        if pending.done:
            self.client.ack(pending.mid, 1)
            self._remove(number)
        return True

    def _remove(self, number: int) -> None:
        pending = self._pending.pop(number)
        if self._number_by_mid.get(pending.mid) == number:
            del self._number_by_mid[pending.mid]


def make_source(url: str, *, columns: ColumnSpec = ANY_COLUMNS, follow: bool = True) -> MqttSource:
    """Open the source at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "topic", ("client_id", "ca"))
    return MqttSource(address, address.subject, columns, client_id=address.options.get("client_id"), follow=follow)


def make_sink(url: str, *, table: str = "alarms") -> MqttSink:
    """Open the sink at a URL."""
    address = parse_broker_url(url, DEFAULT_PORTS, "topic", ("ca",))
    return MqttSink(address, address.subject, table)


def _parse_address(address: str | BrokerURL) -> BrokerURL:
    if isinstance(address, BrokerURL):
        return address
    return parse_broker_url(f"{address.rstrip('/')}/-", DEFAULT_PORTS, "topic", ("ca",))


def _check_topic(topic: str, *, wildcards: bool) -> str:
    levels = topic.split("/")
    with_wildcard = [level for level in levels if "#" in level or "+" in level]
    is_invalid = "#" in levels[:-1] or any(len(level) > 1 for level in with_wildcard)
    if not topic or "\0" in topic or is_invalid or (with_wildcard and not wildcards):
        constraint = "topic filter" if wildcards else "topic without wildcards"
        raise InvalidInputError(f"topic: must be a {constraint}, got {topic!r}.")
    return topic
