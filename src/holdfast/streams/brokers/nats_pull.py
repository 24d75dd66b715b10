"""The messages of a JetStream stream from a sequence on, asked for ahead of time."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from holdfast.streams.brokers.arrivals import Arrivals
from holdfast.streams.brokers.inlet import log
from holdfast.streams.brokers.nats_connection import Again, Connection, Lost

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext
    from nats.js.api import StreamInfo

AHEAD = 4096  # messages that are asked for ahead of time, at most
AHEAD_BYTES = 16 << 20  # bytes that one request may bring, and that wait before less is asked for
HEARTBEAT, SILENCE = 2.0, 5.0  # seconds between signs of life, and seconds without any after which a consumer is lost
EXPIRES = 30.0  # seconds that a request for messages holds
SECOND = 1_000_000_000  # in the nanoseconds of JetStream
GONE = ("Consumer Deleted", "Leadership Change", "Server Shutdown", "Consumer is push based")


class Message(NamedTuple):
    """A message. sequence: its number in the stream, which was made at `created`; pending: how many more there are."""

    sequence: int
    subject: str
    payload: bytes
    pending: int
    created: str


class Pull(Connection):
    """An ephemeral consumer without acknowledgements, made anew after the last message whenever it is lost.

    sequence: of the last message that has been read; None: from the first there is. What arrives waits in a queue: no
    more is asked for than there is room.
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
        super().__init__(servers, login, "source")
        self.subject, self.stream, self.follow = subject, stream, follow
        self.sequence, self.created = sequence, created
        self.first: int | None = None  # the sequence after which it began
        self._waiting: Arrivals[Message] = Arrivals()
        self._end: int | None = None
        self._all_here = False
        self._asked = 0
        self._heard = 0.0
        self._client: Client | None = None

    def take(self, most: int) -> list[Message]:
        """What has arrived, or, if nothing does for a while, nothing."""
        taken = self._waiting.take(most)
        if not taken and self.failure is not None:
            raise self.failure
        if taken and self._asked + len(self._waiting) <= AHEAD // 2:
            self._thread.start(self._ask())
        return taken

    @property
    def at_end(self) -> bool:
        """Whether all has been taken that was there when it began."""
        return self._all_here and not self._waiting

    def failed(self) -> None:
        """Wakes who waits."""
        self._waiting.wake()

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
        """Makes a consumer and takes its messages, until it is lost."""
        assert self.broken is not None
        info = await self._stream(jetstream)
        self._find_place(info)
        assert self.sequence is not None
        self.first = self.sequence if self.first is None else self.first
        if not self.follow and self._end is None:
            self._end = info.state.last_seq
        stream = self.stream
        assert stream is not None
        consumer = await jetstream.add_consumer(stream, self._config())
        if self._end is not None and (not consumer.num_pending or self.sequence >= self._end):
            self._finish()
        inbox = client.new_inbox()
        expected = 1

        async def arrived(message: Msg) -> None:
            nonlocal expected
            self._heard = time.monotonic()
            if message.headers and "Status" in message.headers:
                self._answered(message.headers["Status"], message.headers)
                return
            tokens = message.reply.split(".")
            at = 5 if len(tokens) == 9 else 7  # with a domain there are two more
            sequence, count, pending = int(tokens[at]), int(tokens[at + 1]), int(tokens[at + 3])
            if count != expected:
                self.is_lost(f"message {expected} of the consumer is missing")
                return
            expected += 1
            self._asked -= 1
            self._accept(Message(sequence, message.subject, message.data, pending, self.created or ""))

        await client.subscribe(inbox, cb=arrived, pending_msgs_limit=0, pending_bytes_limit=0)
        self._client, self._inbox, self._asked = client, inbox, 0
        self._next = f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}"
        self._most_bytes = max(AHEAD_BYTES, 2 * client.max_payload)
        try:
            await self._ask()
            self.is_up()
            while not self._all_here:
                await asyncio.wait([self.broken], timeout=1.0)
                if self.broken.done():
                    self.broken.result()
                silent = time.monotonic() - self._heard
                if self._asked and silent > SILENCE:
                    raise Lost("nothing heard of the consumer")
                if self._end is not None and silent > 1.5 and not self._waiting:
                    raise Again  # the last messages may have been deleted: looks again
            await jetstream.delete_consumer(stream, consumer.name)
        finally:
            self._client = None

    async def _stream(self, jetstream: JetStreamContext) -> StreamInfo:
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        try:
            if self.stream is None:
                self.stream = await jetstream.find_stream_name_by_subject(self.subject)
            return await jetstream.stream_info(self.stream)
        except NotFoundError as error:
            missing = f"that has the subject {self.subject!r}" if self.stream is None else repr(self.stream)
            raise Lost(f"there is no stream {missing}") from error
        except ServiceUnavailableError as error:
            raise Lost("JetStream is not switched on, or not ready") from error

    def _find_place(self, info: StreamInfo) -> None:
        """Where to go on, which is elsewhere if the stream is another one, or has lost something."""
        first, last = max(info.state.first_seq, 1), info.state.last_seq
        created = info.created.isoformat() if info.created else ""
        known = self.sequence
        if known is None:
            self.sequence = first - 1
        elif self.created and created != self.created:
            log.warning("%s: stream %s was made anew: read from its beginning", self.label, self.stream)
            self.sequence = first - 1
        elif last < known:
            log.warning("%s: stream %s ends at %d, before %d: goes on there", self.label, self.stream, last, known)
            self.sequence = last
        elif first > known + 1:
            log.warning(
                "%s: stream %s begins at %d: up to %d messages were deleted before they could be read",
                *(self.label, self.stream, first, first - known - 1),
            )
            self.sequence = first - 1
        self.created = created

    def _config(self) -> Any:
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        assert self.sequence is not None
        return ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.sequence + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=self.subject,
            mem_storage=True,
            inactive_threshold=60.0,
        )

    def _accept(self, message: Message) -> None:
        if self._end is not None and message.sequence > self._end:
            self._finish()
            return
        self.sequence = message.sequence
        self._waiting.put(message)
        if self._end is not None and (message.pending == 0 or message.sequence == self._end):
            self._finish()

    def _finish(self) -> None:
        self._all_here = True
        self._waiting.wake()
        if self.broken is not None and not self.broken.done():
            self.broken.set_result(None)

    def _answered(self, status: str, headers: dict[str, str]) -> None:
        """Something other than a message: a sign of life, or the end of a request."""
        words = headers.get("Description", "")
        left = headers.get("Nats-Pending-Messages")
        if status != "100" and (left is None or words in GONE):
            self.is_lost(words.lower() or f"the consumer is gone, status {status}")
        elif left is not None and status != "100":
            self._asked = max(0, self._asked - int(left))
            self._thread.start(self._ask())

    async def _ask(self) -> None:
        """Asks for as much as there is room for."""
        room = AHEAD - self._asked - len(self._waiting)
        if self._client is None or room < AHEAD // 2 or self._waiting.n_bytes > AHEAD_BYTES:
            return
        self._asked += room
        self._heard = time.monotonic()
        request = {
            "batch": room,
            "max_bytes": self._most_bytes,
            "expires": int(EXPIRES * SECOND),
            "idle_heartbeat": int(HEARTBEAT * SECOND),
        }
        try:
            await self._client.publish(self._next, json.dumps(request).encode(), reply=self._inbox)
        except Exception as error:
            self.is_lost(str(error))
