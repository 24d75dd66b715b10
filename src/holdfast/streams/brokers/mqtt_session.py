"""The messages of an MQTT session, which are acknowledged late."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.streams.brokers.addresses import BrokerURL
from holdfast.streams.brokers.arrivals import MessageQueue
from holdfast.streams.brokers.inlet import log
from holdfast.streams.brokers.mqtt_connection import SESSION_EXPIRY_S, MqttConnection

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

RECEIVE_MAXIMUM_MESSAGES = (
    65_535  # messages that the broker may send before one is acknowledged: the most that MQTT has
)
MAX_QUEUED_BYTES = 64 << 20  # of messages that wait


class Message(NamedTuple):
    """A message. number: how many have come, it included."""

    number: int
    topic: str
    payload: bytes


@dataclass
class PendingAck:
    """What the broker knows as `mid`, on the connection that has this number. done: it only has to be acknowledged."""

    mid: int
    connection: int
    content_hash: int
    done: bool = False


class MqttSession(MqttConnection):
    """Messages of a topic filter with QoS 1.

    When a connection breaks, the broker sends again what was not acknowledged, by the numbers it had: what has come
    before is known by these, and is not given twice as long as this session lives. Only what was acknowledged just
    then, and never heard of by the broker, is: it may use such a number for another message, and none is to be lost.
    """

    def __init__(self, address: BrokerURL, client_id: str, topic: str, number: int) -> None:
        super().__init__(
            address, client_id, expiry=SESSION_EXPIRY_S, receive_maximum=RECEIVE_MAXIMUM_MESSAGES, manual_ack=True
        )
        self._topic, self._number = topic, number
        self._queue: MessageQueue[Message] = MessageQueue()
        self._lock = threading.Lock()
        self._pending: dict[int, PendingAck] = {}  # by the number of the message
        self._number_by_mid: dict[int, int] = {}
        self._connection = 0
        self._n_discarded = 0
        self._last_discard_warning = 0.0
        self._closing = False
        self.client.on_message = self._on_message
        self.client.on_subscribe = self._on_subscribe

    def take(self, max_messages: int) -> tuple[list[Message], float]:
        """What has come, and how long that took."""
        started = time.monotonic()
        messages = self._queue.take(max_messages)
        if not messages and self.failure is not None:
            raise self.failure
        return messages, time.monotonic() - started

    @property
    def n_waiting(self) -> int:
        """How many have come and have not been taken."""
        return len(self._queue)

    @property
    def n_unacknowledged(self) -> int:
        """How many have been taken and are not acknowledged."""
        return len(self._pending) - len(self._queue)

    def acknowledge(self, number: int) -> None:
        """All up to this one."""
        with self._lock:
            for pending_number in list(takewhile(lambda known: known <= number, self._pending)):
                pending = self._pending[pending_number]
                pending.done = True
                if pending.connection == self._connection and self.client.is_connected():
                    self.client.ack(pending.mid, 1)
                    self._remove(pending_number)

    def close(self) -> None:
        """Ends."""
        self._closing = True
        super().close()

    def on_connected(self, session_present: bool) -> None:
        """Subscribes; the broker's answer is waited for."""
        from paho.mqtt.subscribeoptions import SubscribeOptions

        with self._lock:
            self._connection += 1
            if not session_present:  # it will send nothing again
                self._pending.clear()
                self._number_by_mid.clear()
        only_new = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        self.client.subscribe(self._topic, options=SubscribeOptions(qos=1, retainHandling=only_new))

    def on_failure(self) -> None:
        """Wakes who waits."""
        self._queue.wake()

    def _on_subscribe(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self.fail(f"cannot subscribe to {self._topic!r}: {str(reasons[0]).lower()}")
        else:
            self.mark_ready()

    def _on_message(self, client: Any, userdata: Any, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        if message.qos == 0:
            if len(self._queue) >= RECEIVE_MAXIMUM_MESSAGES or self._queue.n_bytes > MAX_QUEUED_BYTES:
                self._discard()
                return
        else:
            with self._lock:
                if message.dup and self._is_redelivery(message, payload):
                    return
                self._pending[self._number + 1] = PendingAck(
                    message.mid, self._connection, hash((message.topic, payload))
                )
                self._number_by_mid[message.mid] = self._number + 1
            while self._queue.n_bytes > MAX_QUEUED_BYTES and not self._closing:
                time.sleep(0.005)  # nothing is read meanwhile, and the broker has to wait
        self._number += 1
        self._queue.put(Message(self._number, message.topic, payload))

    def _is_redelivery(self, message: MQTTMessage, payload: bytes) -> bool:
        """Whether this is a message of an earlier connection that is sent again."""
        number = self._number_by_mid.get(message.mid)
        pending = None if number is None else self._pending.get(number)
        if number is None or pending is None or pending.connection == self._connection:
            return False
        if pending.content_hash != hash((message.topic, payload)):
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

    def _discard(self) -> None:
        self._n_discarded += 1
        if time.monotonic() - self._last_discard_warning > 10:
            self._last_discard_warning = time.monotonic()
            log.warning("%s: %d messages of QoS 0 dropped: they come too fast", self.label, self._n_discarded)
