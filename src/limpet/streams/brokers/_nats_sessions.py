"""Read JetStream after a sequence number, and publish to it, each message once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from limpet.streams.brokers._nats_connection import REPLY_TIMEOUT_S, ConnectionLost, NatsConnection, RetryLater
from limpet.streams.brokers.base import Message, MessageQueue, PendingPublishes, log

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
MAX_IN_FLIGHT_MESSAGES = 2048  # unconfirmed; a stream accepts up to 10,000
CONFIRMATION_TIMEOUT_S = 10.0  # after which the session is started again
MESSAGE_ID_HEADER = "Nats-Msg-Id"


class Consumer(NatsConnection):
    """An ephemeral consumer without acknowledgements, recreated whenever it is lost.

    Messages are queued, and requested only as the queue has capacity. `sequence` is that of the last message read,
    None before the first one; a recreated consumer starts after it.
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
            self.submit(self._request_messages())
        return messages

    @property
    def at_end(self) -> bool:
        """Whether everything available at the start has been returned."""
        return self._is_complete and not self._queue

    def on_failure(self) -> None:
        self._queue.wake()

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
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
        """Return the sequence to resume after, also in a replaced or truncated stream."""
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
        reason = headers.get("Description", "")
        n_remaining = headers.get("Nats-Pending-Messages")
        if status != "100" and (n_remaining is None or reason in CONSUMER_LOST_REASONS):
            self.mark_lost(reason.lower() or f"the consumer is gone, status {status}")
        elif n_remaining is not None and status != "100":
            self._n_requested = max(0, self._n_requested - int(n_remaining))
            self.submit(self._request_messages())

    async def _request_messages(self) -> None:
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


class Publisher(NatsConnection):
    """Publish messages with ids, in order, to a subject open to other clients.

    Before the first message of a run, and after each lost connection, it reads which messages the stream has already,
    after `sequence` (None: this run has not published yet): the server detects duplicates within two minutes only, and
    an outage can be longer.
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
        self.loop.call_soon_threadsafe(self._enqueue, prefix, messages)

    def on_failure(self) -> None:
        self.unconfirmed.fail(self.failure)

    def _enqueue(self, prefix: str, messages: list[tuple[int, bytes]]) -> None:
        self._prefix = prefix
        self._queue.extend(messages)
        self._last_number = messages[-1][0]
        self._wake.set()

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
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
                headers = {MESSAGE_ID_HEADER: f"{self._prefix}{n}"}
                await client.publish(self.subject, payload, reply=f"{inbox}.{n}", headers=headers)
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
            self.mark_lost(f"no stream accepts the subject {self.subject!r}")
            return
        reply = json.loads(message.data)
        if "error" in reply:
            is_transient = reply["error"].get("code", 500) >= 500
            mark = self.mark_lost if is_transient else self.mark_failed
            mark(f"a message was refused: {reply['error'].get('description')}")
            return
        self._last_confirmation = time.monotonic()
        if self._sent.pop(int(message.subject.rpartition(".")[2]), None) is not None:
            self._mark_stored(reply["seq"])
            if len(self._sent) == MAX_IN_FLIGHT_MESSAGES // 2:
                self._wake.set()

    def _mark_stored(self, sequence: int) -> None:
        self._max_sequence = max(self._max_sequence, sequence)
        if not self._sent and not self._stored_sequences:
            self.sequence = self._max_sequence  # later messages are stored after it
        self.unconfirmed.add(-1)

    async def _find_stored_numbers(self, client: Client, jetstream: JetStreamContext, stream: str) -> dict[int, int]:
        """Return sequence numbers of this run's messages after `sequence`, by number."""
        assert self.sequence is not None
        consumer = await self.add_consumer(jetstream, stream, self.sequence, headers_only=True, inactive_threshold=30.0)
        inbox, stored = client.new_inbox(), {}
        messages = await client.subscribe(inbox, pending_msgs_limit=0, pending_bytes_limit=0)
        request_subject = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}"
        n_remaining = consumer.num_pending or 0
        while n_remaining > 0:
            batch = min(n_remaining, 1000)
            request = {"batch": batch, "expires": int(REPLY_TIMEOUT_S * NS_PER_SECOND)}
            await client.publish(request_subject, json.dumps(request).encode(), reply=inbox)
            for _ in range(batch):
                message = await messages.next_msg(REPLY_TIMEOUT_S)
                if message.headers and "Status" in message.headers:
                    raise ConnectionLost("the stream cannot be read")
                prefix, _, number = (message.headers or {}).get(MESSAGE_ID_HEADER, "").rpartition("-")
                if f"{prefix}-" == self._prefix and number.isdigit():  # of this run
                    stored[int(number)] = message.metadata.sequence.stream
            n_remaining -= batch
        await messages.unsubscribe()
        await jetstream.delete_consumer(stream, consumer.name)
        return stored
