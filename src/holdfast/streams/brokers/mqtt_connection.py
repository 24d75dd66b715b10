"""A connection to an MQTT broker, which paho keeps up in a thread of its own."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Literal

from holdfast.errors import BadInputError, HoldfastError
from holdfast.extras import needed_for
from holdfast.streams.brokers.addresses import Address
from holdfast.streams.brokers.inlet import log

if TYPE_CHECKING:
    from paho.mqtt.client import Client

REPLY = 4.0  # seconds in which a broker answers
WEEK = 7 * 24 * 3600  # seconds that a broker keeps a session for whose client is away
SHORT = 5.0  # seconds that a connection lives which is lost at once
TAKEN_OVER = 142  # another client has come with the same name
PORTS = {"mqtt": 1883, "mqtts": 8883}


class MqttConnection:
    """MQTT 5. Those who inherit from this say what is done when it is up, and hang themselves onto the client."""

    def __init__(self, address: Address, client_id: str, *, expiry: int, receive: int | None = None, **settings: Any):
        with needed_for("MQTT", "mqtt"):
            import paho.mqtt.client as mqtt
            from paho.mqtt.enums import CallbackAPIVersion
            from paho.mqtt.packettypes import PacketTypes
            from paho.mqtt.properties import Properties
        self.label = str(address)
        self._address = address
        self.failure: Exception | None = None
        self._settled = threading.Event()
        self._lost = False
        self._since, self._short_lived = 0.0, 0
        self._properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        self._properties.SessionExpiryInterval = expiry
        if receive is not None:
            self._properties.ReceiveMaximum = receive
        self.client: Client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5, **settings
        )
        self.client.connect_timeout = REPLY
        self.client.reconnect_delay_set(1, 5)
        if address.user is not None:
            self.client.username_pw_set(address.user, address.password)
        if address.scheme == "mqtts":
            self._encrypt(address.options.get("ca"))
        self.client.on_connect = self._connected
        self.client.on_disconnect = self._disconnected

    def up(self, session_kept: bool) -> None:
        """Called in the client's thread whenever it is connected."""
        self.is_settled()

    def failed(self) -> None:
        """Called when there is a `failure`."""

    def is_settled(self) -> None:
        """All is set up."""
        if self._lost:
            log.info("%s is back", self.label)
        self._lost, self._since = False, time.monotonic()
        self._settled.set()

    def open(self, clean_start: bool | Literal[3]) -> None:
        """Connects, and raises if that cannot be done."""
        host, port = self._address.hosts[0]
        try:
            self.client.connect(host, port, keepalive=30, clean_start=clean_start, properties=self._properties)
        except (OSError, ValueError) as error:
            reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error) or "no answer"
            raise BadInputError(f"{self.label}: cannot connect: {reason}") from error
        self.client.loop_start()
        if not self._settled.wait(REPLY) and self.failure is None:
            self.fail("no answer")
        if self.failure is not None:
            self.close()
            raise self.failure

    def close(self) -> None:
        """Ends."""
        self.client.disconnect()
        self.client.loop_stop()

    def fail(self, reason: str) -> None:
        """It cannot go on."""
        kind = HoldfastError if self._settled.is_set() else BadInputError
        self.failure = kind(f"{self.label}: {reason}")
        self._settled.set()
        self.failed()

    def _connected(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            if not self._settled.is_set():
                self.fail(str(reason).lower())
            return
        self.up(bool(flags.session_present))

    def _disconnected(self, client: Any, userdata: Any, flags: Any, reason: Any, properties: Any) -> None:
        if reason.value == TAKEN_OVER:
            self.fail("another client has connected with the same client id; give this one an id of its own")
            client.disconnect()
        elif reason.is_failure and self._settled.is_set() and self.failure is None and not self._lost:
            self._lost = True
            self._short_lived = self._short_lived + 1 if time.monotonic() - self._since < SHORT else 0
            log.warning("%s: connection lost; trying again for ever", self.label)
            if self._short_lived == 2:
                log.warning("%s: lost again and again: does another client have the same client id?", self.label)

    def _encrypt(self, ca: str | None) -> None:
        try:
            self.client.tls_set(ca_certs=ca)
        except OSError as error:
            raise BadInputError(f"{self.label}: cannot read the certificates in {ca!r}: {error.strerror}") from error
