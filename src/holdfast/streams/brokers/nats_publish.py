"""Messages to a JetStream stream, each stored once."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from holdfast.streams.brokers.nats_connection import REPLY, Connection, Lost
from holdfast.streams.brokers.outlet import Unconfirmed

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.aio.msg import Msg
    from nats.js import JetStreamContext

IN_FLIGHT = 2048  # messages that may be on their way; a stream takes in no more than 10,000 at a time
SILENCE = 10.0  # seconds without a confirmation after which all is looked at again
ID = "Nats-Msg-Id"


class Publish(Connection):
    """Publishes in order, with an id each.

    Before the first message of a run, and whenever a connection was lost, it looks up which messages are in the stream
    already: the server's own window for duplicates is two minutes long, and an outage may be longer.

    sequence: in the stream, after which messages that are not known to be there may be; None: this run has told nothing
    yet, so that it is the last there is. Others may tell the same subject meanwhile.
    """

    def __init__(self, servers: str | Sequence[str], login: dict[str, Any], subject: str, sequence: int | None) -> None:
        super().__init__(servers, login, "sink")
        self.subject, self.sequence = subject, sequence
        self.unconfirmed = Unconfirmed(self.label)
        self._prefix: str | None = None  # of the ids of this run
        self._queue: deque[tuple[int, bytes]] = deque()  # not yet published
        self._sent: dict[int, bytes] = {}  # published, and not confirmed
        self._already: dict[int, int] = {}  # in the stream, and not told again yet: where they are
        self._highest = sequence or 0
        self._last = -1  # number that was put
        self._wake = asyncio.Event()
        self._heard = 0.0

    def put(self, prefix: str, messages: list[tuple[int, bytes]]) -> None:
        """Takes some more. prefix: of their ids, which end in their numbers."""
        self.unconfirmed.add(len(messages))
        self._thread.loop.call_soon_threadsafe(self._put, prefix, messages)

    def failed(self) -> None:
        """Tells who waits."""
        assert self.failure is not None
        self.unconfirmed.fail(self.failure)

    def _put(self, prefix: str, messages: list[tuple[int, bytes]]) -> None:
        self._prefix = prefix
        self._queue.extend(messages)
        self._last = messages[-1][0]
        self._wake.set()

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
        """Publishes what there is, and what comes, until the connection is lost."""
        assert self.broken is not None
        stream = await self._stream(jetstream)
        last = (await jetstream.stream_info(stream)).state.last_seq
        if self.sequence is None:
            self.sequence = self._highest = last
        elif last < self.sequence:  # the stream was made anew
            self.sequence = self._highest = 0
        again = list(self._sent.items())
        self._queue.extendleft(reversed(again))
        self._sent.clear()
        inbox = client.new_inbox()
        await client.subscribe(f"{inbox}.*", cb=self._confirmed, pending_msgs_limit=0, pending_bytes_limit=0)
        self.is_up()
        looked = False
        while True:
            if self._queue and not looked:
                found = await self._ids_stored(client, jetstream, stream)
                open_ones = {
                    n for n, _ in self._queue
                }  # of those so far; all others are confirmed, and do not come again
                self._already = {n: at for n, at in found.items() if n in open_ones or n > self._last}
                looked = True
            while self._queue and len(self._sent) < IN_FLIGHT and not self.broken.done():
                n, payload = self._queue.popleft()
                if n in self._already:
                    self._stored(self._already.pop(n))
                    continue
                if not self._sent:
                    self._heard = time.monotonic()
                self._sent[n] = payload
                await client.publish(self.subject, payload, reply=f"{inbox}.{n}", headers={ID: f"{self._prefix}{n}"})
            self._wake.clear()
            waiting = asyncio.ensure_future(self._wake.wait())
            either: list[asyncio.Future[Any]] = [self.broken, waiting]
            await asyncio.wait(either, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            if self.broken.done():
                self.broken.result()
            if self._sent and time.monotonic() - self._heard > SILENCE:
                raise Lost("messages are not confirmed")

    async def _confirmed(self, message: Msg) -> None:
        if message.headers and message.headers.get("Status") == "503":
            return self.is_lost(f"no stream takes the subject {self.subject!r}")
        reply = json.loads(message.data)
        if "error" in reply:
            words = f"a message was refused: {reply['error'].get('description')}"
            passing = reply["error"].get("code", 500) >= 500
            return self.is_lost(words) if passing else self.is_wrong(words)
        self._heard = time.monotonic()
        if self._sent.pop(int(message.subject.rpartition(".")[2]), None) is not None:
            self._stored(reply["seq"])
            if len(self._sent) == IN_FLIGHT // 2:
                self._wake.set()
        return None

    def _stored(self, sequence: int) -> None:
        self._highest = max(self._highest, sequence)
        if not self._sent and not self._already:
            self.sequence = self._highest  # all up to here is known: what comes is stored after it
        self.unconfirmed.add(-1)

    async def _stream(self, jetstream: JetStreamContext) -> str:
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        try:
            return await jetstream.find_stream_name_by_subject(self.subject)
        except NotFoundError as error:
            raise Lost(f"no stream takes the subject {self.subject!r}") from error
        except ServiceUnavailableError as error:
            raise Lost("JetStream is not switched on, or not ready") from error

    async def _ids_stored(self, client: Client, jetstream: JetStreamContext, stream: str) -> dict[int, int]:
        """The numbers of this run's messages that are in the stream after `sequence`, with where they are."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        assert self.sequence is not None
        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=self.sequence + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=self.subject,
            headers_only=True,
            mem_storage=True,
            inactive_threshold=30.0,
        )
        consumer = await jetstream.add_consumer(stream, config)
        inbox, found = client.new_inbox(), {}
        messages = await client.subscribe(inbox, pending_msgs_limit=0, pending_bytes_limit=0)
        left = consumer.num_pending or 0
        while left > 0:
            batch = min(left, 1000)
            request = {"batch": batch, "expires": int(REPLY * 1e9)}
            await client.publish(
                f"$JS.API.CONSUMER.MSG.NEXT.{stream}.{consumer.name}", json.dumps(request).encode(), reply=inbox
            )
            for _ in range(batch):
                message = await messages.next_msg(REPLY)
                if message.headers and "Status" in message.headers:
                    raise Lost("the stream cannot be read")
                n = self._number((message.headers or {}).get(ID))
                if n is not None:
                    found[n] = message.metadata.sequence.stream
            left -= batch
        await messages.unsubscribe()
        await jetstream.delete_consumer(stream, consumer.name)
        return found

    def _number(self, name: str | None) -> int | None:
        """Of a message of this run."""
        if name is None or self._prefix is None or not name.startswith(self._prefix):
            return None
        rest = name.removeprefix(self._prefix)
        return int(rest) if rest.isdigit() else None
