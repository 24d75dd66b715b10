"""A connection to an MQTT broker, which paho keeps up in a thread of its own."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Literal

from holdfast.errors import HoldfastError, InvalidInputError
from holdfast.extras import optional_import
from holdfast.streams.brokers.addresses import BrokerURL
from holdfast.streams.brokers.inlet import log

if TYPE_CHECKING:
    from paho.mqtt.client import Client

REPLY_TIMEOUT_S = 4.0  # seconds in which a broker answers
SESSION_EXPIRY_S = 7 * 24 * 3600  # seconds that a broker keeps a session for whose client is away
SHORT_LIVED_THRESHOLD_S = 5.0  # seconds that a connection lives which is lost at once
SESSION_TAKEN_OVER_CODE = 142  # another client has come with the same name
DEFAULT_PORTS = {"mqtt": 1883, "mqtts": 8883}


class MqttConnection:
    """MQTT 5. Those who inherit from this say what is done when it is up, and hang themselves onto the client."""

    def __init__(
        self, address: BrokerURL, client_id: str, *, expiry: int, receive_maximum: int | None = None, **settings: Any
    ):
        with optional_import("MQTT", "mqtt"):
            import paho.mqtt.client as mqtt
            from paho.mqtt.enums import CallbackAPIVersion
            from paho.mqtt.packettypes import PacketTypes
            from paho.mqtt.properties import Properties
        self.label = str(address)
        self._address = address
        self.failure: Exception | None = None
        self._ready = threading.Event()
        self._lost = False
        self._since, self._short_lived = 0.0, 0
        self._properties = Properties(PacketTypes.CONNECT)  # type: ignore[no-untyped-call]
        self._properties.SessionExpiryInterval = expiry
        if receive_maximum is not None:
            self._properties.ReceiveMaximum = receive_maximum
        self.client: Client = mqtt.Client(
            CallbackAPIVersion.VERSION2, client_id=client_id, protocol=mqtt.MQTTv5, **settings
        )
        self.client.connect_timeout = REPLY_TIMEOUT_S
        self.client.reconnect_delay_set(1, 5)
        if address.user is not None:
            self.client.username_pw_set(address.user, address.password)
        if address.scheme == "mqtts":
            self._enable_tls(address.options.get("ca"))
        self.client.on_connect = self._on_connect
        self.client.on_disconnect = self._on_disconnect

    def on_connected(self, session_present: bool) -> None:
        """Called in the client's thread whenever it is connected."""
        self.mark_ready()

    def on_failure(self) -> None:
        """Called when there is a `failure`."""

    def mark_ready(self) -> None:
        """All is set up."""
        if self._lost:
            log.info("%s is back", self.label)
        self._lost, self._since = False, time.monotonic()
        self._ready.set()

    def open(self, clean_start: bool | Literal[3]) -> None:
        """Connects, and raises if that cannot be done."""
        host, port = self._address.hosts[0]
        try:
            self.client.connect(host, port, keepalive=30, clean_start=clean_start, properties=self._properties)
        except (OSError, ValueError) as error:
            reason = "connection refused" if isinstance(error, ConnectionRefusedError) else str(error) or "no answer"
            raise InvalidInputError(f"{self.label}: cannot connect: {reason}") from error
        self.client.loop_start()
        if not self._ready.wait(REPLY_TIMEOUT_S) and self.failure is None:
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
        kind = HoldfastError if self._ready.is_set() else InvalidInputError
        self.failure = kind(f"{self.label}: {reason}")
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
            self.fail("another client has connected with the same client id; give this one an id of its own")
            client.disconnect()
        elif reason.is_failure and self._ready.is_set() and self.failure is None and not self._lost:
            self._lost = True
            self._short_lived = self._short_lived + 1 if time.monotonic() - self._since < SHORT_LIVED_THRESHOLD_S else 0
            log.warning("%s: connection lost; trying again for ever", self.label)
            if self._short_lived == 2:
                log.warning("%s: lost again and again: does another client have the same client id?", self.label)

    def _enable_tls(self, ca: str | None) -> None:
        try:
            self.client.tls_set(ca_certs=ca)
        except OSError as error:
            raise InvalidInputError(
                f"{self.label}: cannot read the certificates in {ca!r}: {error.strerror}"
            ) from error
