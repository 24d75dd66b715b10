"""Read the messages of a JetStream stream after a sequence number, with prefetching."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limpet.streams.brokers._nats_connection import ConnectionLost, NatsConnection, RetryLater
from limpet.streams.brokers.base import Message, MessageQueue, log

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo


PREFETCH_MESSAGES = 4096
PREFETCH_BYTES = 16 << 20  # of one request, and of the queue
HEARTBEAT_INTERVAL_S, HEARTBEAT_TIMEOUT_S = 2.0, 5.0
REQUEST_TIMEOUT_S = 30.0
NS_PER_SECOND = 1_000_000_000
CONSUMER_LOST_REASONS = ("Consumer Deleted", "Leadership Change", "Server Shutdown", "Consumer is push based")


class Consumer(NatsConnection):
    """An ephemeral consumer without acknowledgements, created again after the last message whenever it is lost.

    Messages are queued, and requested only as the queue has capacity. `sequence` is that of the last message read,
    None before the first one.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        login: dict[str, Any],
        subject: str,
        stream: str | None,
        sequence: int | None,
        created: str | None,
        follow: bool,
    ) -> None:
        super().__init__(servers, login, subject, "source")
        self.stream, self.follow = stream, follow
        self.sequence, self.created = sequence, created
        self.start_sequence: int | None = None  # before the first message
        self._queue = MessageQueue()
        self._end_sequence: int | None = None
        self._is_complete = False
        self._n_requested = 0
        self._last_message_time = 0.0
        self._client: Client | None = None

    def take(self, max_messages: int) -> list[Message]:
        """Return messages that have arrived; wait for a moment if none have."""
        messages = self._queue.take(max_messages)
        if not messages and self.failure is not None:
            raise self.failure
        if messages and self._n_requested + len(self._queue) <= PREFETCH_MESSAGES // 2:
            self._thread.submit(self._request_messages())
        return messages

    @property
    def at_end(self) -> bool:
        """Whether everything available at the start has been returned."""
        return self._is_complete and not self._queue

    def on_failure(self) -> None:
        """Wake the waiting reader."""
        self._queue.wake()

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
        """Create a consumer and queue its messages, until it is lost."""
        assert self.broken is not None
        missing = f"stream with the subject {self.subject!r}" if self.stream is None else f"stream {self.stream!r}"
        info = await self.find_stream(jetstream, self.stream, f"no {missing}")
        stream = self.stream = str(info.config.name)
        sequence = self._find_start_sequence(info)
        self.start_sequence = sequence if self.start_sequence is None else self.start_sequence
        if not self.follow and self._end_sequence is None:
            self._end_sequence = info.state.last_seq
        consumer = await self.add_consumer(jetstream, stream, sequence, inactive_threshold=60.0)
        if self._end_sequence is not None and (not consumer.num_pending or sequence >= self._end_sequence):
            self._finish()
        inbox = client.new_inbox()
        expected = 1

        async def on_message(message: Msg) -> None:
            nonlocal expected
            self._last_message_time = time.monotonic()
            if message.headers and "Status" in message.headers:
                self._handle_status(message.headers["Status"], message.headers)
                return
            tokens = message.reply.split(".")
            first = 5 if len(tokens) == 9 else 7  # a domain adds two tokens
            sequence, count, pending = int(tokens[first]), int(tokens[first + 1]), int(tokens[first + 3])
            if count != expected:
                self.mark_lost(f"message {expected} of the consumer is missing")
                return
            expected += 1
            self._n_requested -= 1
            self._accept(Message(sequence, message.subject, message.data, pending, self.created or ""))

        await client.subscribe(inbox, cb=on_message, pending_msgs_limit=0, pending_bytes_limit=0)
        self._client, self._inbox, self._n_requested = client, inbox, 0
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}"
        self._max_request_bytes = max(PREFETCH_BYTES, 2 * client.max_payload)
        try:
            await self._request_messages()
            self.mark_up()
            while not self._is_complete:
                await asyncio.wait([self.broken], timeout=1.0)
                if self.broken.done():
                    self.broken.result()
                silent_s = time.monotonic() - self._last_message_time
                if self._n_requested and silent_s > HEARTBEAT_TIMEOUT_S:
                    raise ConnectionLost("no heartbeat of the consumer")
                if self._end_sequence is not None and silent_s > 1.5 and not self._queue:
                    raise RetryLater  # the last messages can have been deleted
            await jetstream.delete_consumer(stream, consumer.name)
        finally:
            self._client = None

    def _find_start_sequence(self, info: StreamInfo) -> int:
        """Return the last sequence number read, or that to resume after if the stream was replaced or truncated."""
        first, last = max(info.state.first_seq, 1), info.state.last_seq
        created = info.created.isoformat() if info.created else ""
        known = self.sequence
        if known is None:
            sequence = first - 1
        elif self.created and created != self.created:
            log.warning("%s: stream %s was created again: reading it from the beginning", self.label, self.stream)
            sequence = first - 1
        elif last < known:
            log.warning("%s: stream %s ends at %d, before %d: resuming there", self.label, self.stream, last, known)
            sequence = last
        elif first > known + 1:
            log.warning(
                "%s: stream %s starts at %d: up to %d messages were deleted before they were read",
                *(self.label, self.stream, first, first - known - 1),
            )
            sequence = first - 1
        else:
            sequence = known
        self.sequence, self.created = sequence, created
        return sequence

    def _accept(self, message: Message) -> None:
        if self._end_sequence is not None and message.number > self._end_sequence:
            self._finish()
            return
        self.sequence = message.number
        self._queue.put(message)
        if self._end_sequence is not None and (message.pending == 0 or message.number == self._end_sequence):
            self._finish()

    def _finish(self) -> None:
        self._is_complete = True
        self._queue.wake()
        if self.broken is not None and not self.broken.done():
            self.broken.set_result(None)

    def _handle_status(self, status: str, headers: dict[str, str]) -> None:
        """Handle a heartbeat or the end of a request."""
        words = headers.get("Description", "")
        n_remaining = headers.get("Nats-Pending-Messages")
        if status != "100" and (n_remaining is None or words in CONSUMER_LOST_REASONS):
            self.mark_lost(words.lower() or f"the consumer is gone, status {status}")
        elif n_remaining is not None and status != "100":
            self._n_requested = max(0, self._n_requested - int(n_remaining))
            self._thread.submit(self._request_messages())

    async def _request_messages(self) -> None:
        """Request as many messages as the queue has capacity for."""
        capacity = PREFETCH_MESSAGES - self._n_requested - len(self._queue)
        if self._client is None or capacity < PREFETCH_MESSAGES // 2 or self._queue.n_bytes > PREFETCH_BYTES:
            return
        self._n_requested += capacity
        self._last_message_time = time.monotonic()
        request = {
            "batch": capacity,
            "max_bytes": self._max_request_bytes,
            "expires": int(REQUEST_TIMEOUT_S * NS_PER_SECOND),
            "idle_heartbeat": int(HEARTBEAT_INTERVAL_S * NS_PER_SECOND),
        }
        try:
            await self._client.publish(self._next, json.dumps(request).encode(), reply=self._inbox)
        except Exception as error:
            self.mark_lost(str(error))
