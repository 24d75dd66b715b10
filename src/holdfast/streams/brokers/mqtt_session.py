"""The messages of an MQTT session, which are acknowledged late."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.streams.brokers.addresses import Address
from holdfast.streams.brokers.arrivals import Arrivals
from holdfast.streams.brokers.inlet import log
from holdfast.streams.brokers.mqtt_connection import WEEK, MqttConnection

if TYPE_CHECKING:
    from paho.mqtt.client import MQTTMessage

RECEIVE = 65_535  # messages that the broker may send before one is acknowledged: the most that MQTT has
MOST_BYTES = 64 << 20  # of messages that wait


class Message(NamedTuple):
    """A message. number: how many have come, it included."""

    number: int
    topic: str
    payload: bytes


@dataclass
class Unacknowledged:
    """What the broker knows as `mid`, on the connection that has this number. done: it only has to be acknowledged."""

    mid: int
    connection: int
    content: int
    done: bool = False


class Session(MqttConnection):
    """Messages of a topic filter with QoS 1.

    When a connection breaks, the broker sends again what was not acknowledged, by the numbers it had: what has come
    before is known by these, and is not given twice as long as this session lives. Only what was acknowledged just
    then, and never heard of by the broker, is: it may use such a number for another message, and none is to be lost.
    """

    def __init__(self, address: Address, client_id: str, topic: str, number: int) -> None:
        super().__init__(address, client_id, expiry=WEEK, receive=RECEIVE, manual_ack=True)
        self._topic, self._number = topic, number
        self._waiting: Arrivals[Message] = Arrivals()
        self._lock = threading.Lock()
        self._held: dict[int, Unacknowledged] = {}  # by the number of the message
        self._by_mid: dict[int, int] = {}
        self._connection = 0
        self._dropped = 0
        self._told_dropped = 0.0
        self._closing = False
        self.client.on_message = self._arrived
        self.client.on_subscribe = self._subscribed

    def take(self, most: int) -> tuple[list[Message], float]:
        """What has come, and how long that took."""
        begun = time.monotonic()
        taken = self._waiting.take(most)
        if not taken and self.failure is not None:
            raise self.failure
        return taken, time.monotonic() - begun

    @property
    def n_waiting(self) -> int:
        """How many have come and have not been taken."""
        return len(self._waiting)

    @property
    def n_given(self) -> int:
        """How many have been taken and are not acknowledged."""
        return len(self._held) - len(self._waiting)

    def acknowledge(self, number: int) -> None:
        """All up to this one."""
        with self._lock:
            for one in list(takewhile(lambda known: known <= number, self._held)):
                held = self._held[one]
                held.done = True
                if held.connection == self._connection and self.client.is_connected():
                    self.client.ack(held.mid, 1)
                    self._forget(one)

    def close(self) -> None:
        """Ends."""
        self._closing = True
        super().close()

    def up(self, session_kept: bool) -> None:
        """Subscribes; the broker's answer is waited for."""
        from paho.mqtt.subscribeoptions import SubscribeOptions

        with self._lock:
            self._connection += 1
            if not session_kept:  # it will send nothing again
                self._held.clear()
                self._by_mid.clear()
        only_new = SubscribeOptions.RETAIN_SEND_IF_NEW_SUB
        self.client.subscribe(self._topic, options=SubscribeOptions(qos=1, retainHandling=only_new))

    def failed(self) -> None:
        """Wakes who waits."""
        self._waiting.wake()

    def _subscribed(self, client: Any, userdata: Any, mid: int, reasons: Any, properties: Any) -> None:
        if any(reason.is_failure for reason in reasons):
            self.fail(f"cannot subscribe to {self._topic!r}: {str(reasons[0]).lower()}")
        else:
            self.is_settled()

    def _arrived(self, client: Any, userdata: Any, message: MQTTMessage) -> None:
        payload = bytes(message.payload)
        if message.qos == 0:
            if len(self._waiting) >= RECEIVE or self._waiting.n_bytes > MOST_BYTES:
                self._drop()
                return
        else:
            with self._lock:
                if message.dup and self._has_come(message, payload):
                    return
                self._held[self._number + 1] = Unacknowledged(
                    message.mid, self._connection, hash((message.topic, payload))
                )
                self._by_mid[message.mid] = self._number + 1
            while self._waiting.n_bytes > MOST_BYTES and not self._closing:
                time.sleep(0.005)  # nothing is read meanwhile, and the broker has to wait
        self._number += 1
        self._waiting.put(Message(self._number, message.topic, payload))

    def _has_come(self, message: MQTTMessage, payload: bytes) -> bool:
        """Whether this is a message of an earlier connection that is sent again."""
        number = self._by_mid.get(message.mid)
        held = None if number is None else self._held.get(number)
        if number is None or held is None or held.connection == self._connection:
            return False
        if held.content != hash((message.topic, payload)):
            return False
        held.connection = self._connection
        if held.done:
            self.client.ack(held.mid, 1)
            self._forget(number)
        return True

    def _forget(self, number: int) -> None:
        held = self._held.pop(number)
        if self._by_mid.get(held.mid) == number:
            del self._by_mid[held.mid]

    def _drop(self) -> None:
        self._dropped += 1
        if time.monotonic() - self._told_dropped > 10:
            self._told_dropped = time.monotonic()
            log.warning("%s: %d messages of QoS 0 dropped: they come too fast", self.label, self._dropped)
