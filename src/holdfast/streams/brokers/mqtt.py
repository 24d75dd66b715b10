"""MQTT: mqtt://[user:password@]host[:1883]/topic/filter[?client_id=NAME], or mqtts:// with &ca=FILE.

In an address a ? in a topic is written %3F; # and + stand for themselves.
"""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from typing import Any
from uuid import uuid4

from holdfast.errors import BadInputError
from holdfast.streams.batch import Batch
from holdfast.streams.brokers.addresses import Address, read_address
from holdfast.streams.brokers.inlet import ANY, MESSAGES, Inlet
from holdfast.streams.brokers.mqtt_connection import PORTS, MqttConnection
from holdfast.streams.brokers.mqtt_session import RECEIVE, Session
from holdfast.streams.brokers.outlet import HURRIED, Unconfirmed, messages_of
from holdfast.streams.columns import Wanted
from holdfast.streams.positions import part_of
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.source import Source
from holdfast.streams.tables import check_what

IN_FLIGHT = 1000  # messages that a sink has not seen confirmed, at most
QUIET = 1.0  # seconds without a message after which all that was there has been read
STALLED = 8  # messages that wait to be committed when nothing more comes: some brokers send no more than a few


class MqttSource:
    """Reads the messages of a topic filter, each at least once: they are acknowledged when they have been committed.

    address: mqtt://host:port or mqtts://…, with a login if need be. topic: may have + and #; as the key it is called
    "topic". client_id: under which the broker keeps the session, by default made of this machine's name and the topic;
    no two may have the same. follow: waits for more; else ends when nothing has come for a second.

    What was sent with QoS 0 is not kept by the broker: it is lost while nobody listens.
    """

    def __init__(
        self,
        address: str | Address,
        topic: str,
        wanted: Wanted = ANY,
        *,
        client_id: str | None = None,
        follow: bool = True,
        batch_size: int = MESSAGES,
    ) -> None:
        if isinstance(address, str):
            address = read_address(f"{address.rstrip('/')}/-", PORTS, "topic", ("ca",))
        self._address, self._topic = address, _topic(topic, wildcards=True)
        self._client_id = client_id or _stable_id(address, topic)
        self._wanted, self._follow, self._batch_size = wanted, follow, batch_size
        self._session: Session | None = None

    def read(self, position: Any) -> Iterator[Batch]:
        """Batches of what the broker has not seen acknowledged. A position is {"messages": …, "columns": …}."""
        self.close()
        given = part_of(position, "messages", int) or 0
        session = self._session = Session(self._address, self._client_id, self._topic, given)
        session.open(False)  # and stays open until `close`: there may be something to commit after the last batch
        inlet = Inlet(self._wanted, position, {"messages": given})
        silent = 0.0
        while self._follow or silent < QUIET:
            taken, waited = session.take(self._batch_size)
            silent = 0.0 if taken else silent + waited
            if taken:
                given = taken[-1].number
            last = not self._follow and silent >= QUIET
            messages = [(one.payload, one.topic) for one in taken]
            batch = inlet.batch(messages, {"messages": given}, session.n_waiting, last=last)
            unconfirmed = session.n_given
            batch.urgent = unconfirmed >= RECEIVE // 2 or (not taken and unconfirmed >= STALLED)
            yield batch

    def committed(self, position: Any) -> None:
        """Acknowledges what came up to there."""
        if self._session is not None and isinstance(position, dict):
            self._session.acknowledge(position.get("messages", 0))

    def close(self) -> None:
        """Ends the connection; the broker keeps what was not acknowledged, and what comes, for a week."""
        if self._session is not None:
            self._session.close()


class MqttSink(Sink):
    """Tells alarms or points to a topic, each at least once: after a crash some are told again.

    MQTT keeps no messages that could be looked at, so that what was told before a crash cannot be found out; those who
    listen can leave out what they have seen by its "id".

    patience: seconds to wait for a broker that has gone away.
    """

    def __init__(
        self, address: str | Address, topic: str, what: str = "alarms", *, patience: float = float("inf")
    ) -> None:
        if isinstance(address, str):
            address = read_address(f"{address.rstrip('/')}/-", PORTS, "topic", ("ca",))
        self._address, self._topic, self._what = address, _topic(topic, wildcards=False), check_what(what)
        self.name = f"{what} to {address}/{topic}"
        self.patience = patience
        self._connection: _Telling | None = None
        self._told = 0

    def rewind(self, mark: Any) -> None:
        """Connects; what was told after the mark cannot be taken back."""
        self._told = 0 if mark is None else int(parts_of(self, mark)["told"])
        self.close()
        self._connection = _Telling(self._address, f"holdfast-{uuid4().hex[:14]}", expiry=300)
        self._connection.open(3)  # a new session at first, and this session ever after

    def write(self, results: Results) -> None:
        """Tells one message an alarm or a point."""
        if self._connection is None:
            self.rewind(None)
        assert self._connection is not None
        for n, _, told, _ in messages_of(results, self._what):
            self._connection.unconfirmed.wait(IN_FLIGHT, self.patience)
            self._connection.unconfirmed.add(1)
            self._connection.client.publish(self._topic, told, qos=1)
            self._told = n + 1

    def flush(self) -> Any:
        """Waits until the broker has confirmed all."""
        if self._connection is not None:
            self._connection.unconfirmed.wait(0, self.patience)
        return mark_of(self, told=self._told)

    def hurry(self) -> None:
        """A broker that has gone away is not waited for much longer."""
        self.patience = min(self.patience, HURRIED)

    def close(self) -> None:
        """Ends the connection; what has not been flushed may be lost."""
        if self._connection is not None:
            self._connection.close()


class _Telling(MqttConnection):
    """The connection of a sink."""

    def __init__(self, address: Address, client_id: str, *, expiry: int) -> None:
        super().__init__(address, client_id, expiry=expiry)
        self.unconfirmed = Unconfirmed(self.label)
        self.client.on_publish = self._confirmed

    def _confirmed(self, client: Any, userdata: Any, mid: int, reason: Any, properties: Any) -> None:
        if reason.is_failure:
            self.fail(f"a message was refused: {str(reason).lower()}")
        self.unconfirmed.add(-1)

    def failed(self) -> None:
        """Tells who waits."""
        assert self.failure is not None
        self.unconfirmed.fail(self.failure)


def source_of(url: str, wanted: Wanted = ANY, follow: bool = True) -> Source:
    """The source that an address names."""
    address = read_address(url, PORTS, "topic", ("client_id", "ca"))
    return MqttSource(address, address.subject, wanted, client_id=address.options.get("client_id"), follow=follow)


def sink_of(url: str, what: str = "alarms") -> Sink:
    """The sink that an address names."""
    address = read_address(url, PORTS, "topic", ("ca",))
    return MqttSink(address, address.subject, what)


def _stable_id(address: Address, topic: str) -> str:
    """The same whenever the same is read on this machine; 23 characters are what every broker takes."""
    name = f"{socket.gethostname()} {address} {topic}"
    return f"holdfast-{hashlib.sha256(name.encode()).hexdigest()[:14]}"


def _topic(topic: str, *, wildcards: bool) -> str:
    levels = topic.split("/")
    wild = any("#" in level or "+" in level for level in levels)
    bad = "#" in "".join(levels[:-1]) or any(len(level) > 1 and ("#" in level or "+" in level) for level in levels)
    if not topic or "\0" in topic or bad or (wild and not wildcards):
        raise BadInputError(f"{topic!r} is not a topic {'to read from' if wildcards else 'that can be told anything'}")
    return topic
