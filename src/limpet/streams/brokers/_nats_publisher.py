"""Publish messages to a JetStream stream, each stored once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limpet.streams.brokers._nats_connection import REPLY_TIMEOUT_S, ConnectionLost, NatsConnection
from limpet.streams.brokers.base import PendingPublishes

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext


MAX_IN_FLIGHT_MESSAGES = 2048  # unconfirmed; a stream accepts up to 10,000
CONFIRMATION_TIMEOUT_S = 10.0  # after which the session is started again
MESSAGE_ID_HEADER = "Nats-Msg-Id"


class Publisher(NatsConnection):
    """Publish messages in order, each with an id.

    Before the first message of a run, and after each lost connection, it reads which messages the stream has already:
    the server detects duplicates within two minutes only, and an outage can be longer.

    `sequence` is the sequence number after which the stream can have messages of this run; None: this run has not
    published yet. Other clients may publish to the same subject.
    """

    def __init__(self, servers: str | Sequence[str], login: dict[str, Any], subject: str, sequence: int | None) -> None:
        super().__init__(servers, login, subject, "sink")
        self.sequence = sequence
        self.unconfirmed = PendingPublishes(self.label)
        self._prefix: str | None = None  # of the ids of this run
        self._queue: deque[tuple[int, bytes]] = deque()  # not yet published
        self._sent: dict[int, bytes] = {}  # published, and not confirmed
        self._stored_sequences: dict[int, int] = {}  # of messages in the stream that were not enqueued again yet
        self._max_sequence = sequence or 0
        self._last_number = -1  # enqueued
        self._wake = asyncio.Event()
        self._last_confirmation = 0.0

    def enqueue(self, prefix: str, messages: list[tuple[int, bytes]]) -> None:
        """Enqueue messages; their ids are the prefix and their numbers."""
        self.unconfirmed.add(len(messages))
        self._thread.loop.call_soon_threadsafe(self._enqueue, prefix, messages)

    def on_failure(self) -> None:
        """Raise the failure where confirmations are waited for."""
        self.unconfirmed.fail(self.failure)

    def _enqueue(self, prefix: str, messages: list[tuple[int, bytes]]) -> None:
        self._prefix = prefix
        self._queue.extend(messages)
        self._last_number = messages[-1][0]
        self._wake.set()

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
        """Publish messages until the connection is lost."""
        assert self.broken is not None
        info = await self.find_stream(jetstream, None, f"no stream accepts the subject {self.subject!r}")
        stream, last = str(info.config.name), info.state.last_seq
        if self.sequence is None:
            self.sequence = self._max_sequence = last
        elif last < self.sequence:  # the stream was created again
            self.sequence = self._max_sequence = 0
        self._queue.extendleft(reversed(self._sent.items()))
        self._sent.clear()
        inbox = client.new_inbox()
        await client.subscribe(f"{inbox}.*", cb=self._on_confirmation, pending_msgs_limit=0, pending_bytes_limit=0)
        self.mark_up()
        is_checked = False
        while True:
            if self._queue and not is_checked:
                stored = await self._find_stored_numbers(client, jetstream, stream)
                pending_numbers = {n for n, _ in self._queue}  # others are confirmed, and not enqueued again
                self._stored_sequences = {
                    n: sequence for n, sequence in stored.items() if n in pending_numbers or n > self._last_number
                }
                is_checked = True
            while self._queue and len(self._sent) < MAX_IN_FLIGHT_MESSAGES and not self.broken.done():
                n, payload = self._queue.popleft()
                if n in self._stored_sequences:
                    self._mark_stored(self._stored_sequences.pop(n))
                    continue
                if not self._sent:
                    self._last_confirmation = time.monotonic()
                self._sent[n] = payload
                await client.publish(
                    self.subject, payload, reply=f"{inbox}.{n}", headers={MESSAGE_ID_HEADER: f"{self._prefix}{n}"}
                )
            self._wake.clear()
            waiting = asyncio.ensure_future(self._wake.wait())
            waits: list[asyncio.Future[Any]] = [self.broken, waiting]
            await asyncio.wait(waits, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self.broken.done():
                self.broken.result()
            if self._sent and time.monotonic() - self._last_confirmation > CONFIRMATION_TIMEOUT_S:
                raise ConnectionLost("messages are not confirmed")

    async def _on_confirmation(self, message: Msg) -> None:
        if message.headers and message.headers.get("Status") == "503":
            return self.mark_lost(f"no stream accepts the subject {self.subject!r}")
        reply = json.loads(message.data)
        if "error" in reply:
            words = f"a message was rejected: {reply['error'].get('description')}"
            is_transient = reply["error"].get("code", 500) >= 500
            return self.mark_lost(words) if is_transient else self.mark_failed(words)
        self._last_confirmation = time.monotonic()
        if self._sent.pop(int(message.subject.rpartition(".")[2]), None) is not None:
            self._mark_stored(reply["seq"])
            if len(self._sent) == MAX_IN_FLIGHT_MESSAGES // 2:
                self._wake.set()
        return None

    def _mark_stored(self, sequence: int) -> None:
        self._max_sequence = max(self._max_sequence, sequence)
        if not self._sent and not self._stored_sequences:
            self.sequence = self._max_sequence  # later messages are stored after it
        self.unconfirmed.add(-1)

    async def _find_stored_numbers(self, client: Client, jetstream: JetStreamContext, stream: str) -> dict[int, int]:
        """Return the sequence numbers of the messages of this run in the stream after `sequence`, by number."""
        assert self.sequence is not None
        consumer = await self.add_consumer(jetstream, stream, self.sequence, headers_only=True, inactive_threshold=30.0)
        inbox, stored = client.new_inbox(), {}
        messages = await client.subscribe(inbox, pending_msgs_limit=0, pending_bytes_limit=0)
        n_remaining = consumer.num_pending or 0
        while n_remaining > 0:
            batch = min(n_remaining, 1000)
            request = {"batch": batch, "expires": int(REPLY_TIMEOUT_S * 1e9)}
            await client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}", json.dumps(request).encode(), reply=inbox
            )
            for _ in range(batch):
                message = await messages.next_msg(REPLY_TIMEOUT_S)
                if message.headers and "Status" in message.headers:
                    raise ConnectionLost("the stream cannot be read")
                n = self._parse_number((message.headers or {}).get(MESSAGE_ID_HEADER))
                if n is not None:
                    stored[n] = message.metadata.sequence.stream
            n_remaining -= batch
        await messages.unsubscribe()
        await jetstream.delete_consumer(stream, consumer.name)
        return stored

    def _parse_number(self, name: str | None) -> int | None:
        """Return the number of a message of this run, None for other messages."""
        if name is None or self._prefix is None or not name.startswith(self._prefix):
            return None
        rest = name.removeprefix(self._prefix)
        return int(rest) if rest.isdigit() else None
