"""A connection to a NATS server that is replaced whenever it is lost."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Coroutine, Sequence
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from limpet._format import redact_url
from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.brokers.base import log

if TYPE_CHECKING:
    from nats.aio.client import Client
    from nats.js import JetStreamContext
    from nats.js.api import ConsumerInfo, StreamInfo


MIN_RECONNECT_DELAY_S, MAX_RECONNECT_DELAY_S = 0.2, 5.0
REPLY_TIMEOUT_S, CLOSE_TIMEOUT_S = 3.0, 5.0


class ConnectionLost(Exception):
    """The connection cannot be used any more, for the given reason."""


class RetryLater(Exception):
    """A new session is needed, without an error."""


async def _cancel_all() -> None:
    others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    for task in others:
        task.cancel()
    await asyncio.gather(*others, return_exceptions=True)


class NatsConnection:
    """Connection that runs `session` in an event-loop thread, again after reconnects.

    The reconnect of the client library is not used: requests are lost with the connection, so that a consumer has to be
    created again in any case, and one code path is easier to get right than two.
    """

    def __init__(self, servers: str | Sequence[str], login: dict[str, Any], subject: str, purpose: str) -> None:
        with optional_import("NATS", "nats"):
            import nats
        self._nats = nats
        self.servers = [servers] if isinstance(servers, str) else list(servers)
        self.label = ", ".join(redact_url(server) for server in self.servers)
        self.subject, self._login, self._purpose = subject, login, purpose
        self.failure: Exception | None = None
        self._ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self.loop.run_forever, name=f"limpet {purpose}", daemon=True)
        self._thread.start()
        self._last_error: Exception | None = None
        self._lost, self._reconnect_delay_s = False, MIN_RECONNECT_DELAY_S
        self.broken: asyncio.Future[None] | None = None

    async def session(self, client: Client, jetstream: JetStreamContext) -> None:
        """Work while connected; return when done."""
        raise NotImplementedError

    def on_failure(self) -> None:
        """Called after `failure` was set."""

    def open(self) -> None:
        """Connect and wait until the first session is set up, or raise."""
        self.submit(self._run_sessions())
        self._ready.wait(4 * REPLY_TIMEOUT_S)
        if self.failure is not None:
            self.close()
            raise self.failure
        if not self._ready.is_set():
            self.close()
            raise InvalidInputError(f"{self.label}: no response within {4 * REPLY_TIMEOUT_S:g} s.")

    def submit(self, task: Coroutine[Any, Any, Any]) -> Future[Any]:
        return asyncio.run_coroutine_threadsafe(task, self.loop)

    def close(self) -> None:
        """Cancel running coroutines, disconnect and end the thread."""
        if self.loop.is_closed():
            return
        with contextlib.suppress(TimeoutError):
            self.submit(_cancel_all()).result(CLOSE_TIMEOUT_S)
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(CLOSE_TIMEOUT_S)
        if not self._thread.is_alive():
            self.loop.close()

    def mark_up(self) -> None:
        if self._lost:
            log.info("%s: reconnected", self.label)
        self._lost, self._reconnect_delay_s = False, MIN_RECONNECT_DELAY_S
        self._ready.set()

    def mark_lost(self, reason: str) -> None:
        """End the session, and start another."""
        self._end_session(ConnectionLost(reason))

    def mark_failed(self, reason: str) -> None:
        """End the session permanently."""
        self._end_session(InvalidInputError(f"{self.label}: {reason}."))

    def _end_session(self, error: Exception) -> None:
        if self.broken is not None and not self.broken.done():
            self.broken.set_exception(error)

    async def find_stream(self, jetstream: JetStreamContext, name: str | None, missing: str) -> StreamInfo:
        """Return a stream by its name, or else by the subject."""
        from nats.js.errors import NotFoundError, ServiceUnavailableError

        try:
            return await jetstream.stream_info(name or await jetstream.find_stream_name_by_subject(self.subject))
        except NotFoundError as error:
            raise ConnectionLost(missing) from error
        except ServiceUnavailableError as error:
            raise ConnectionLost("JetStream is not enabled, or not ready") from error

    async def add_consumer(
        self, jetstream: JetStreamContext, stream: str, sequence: int, **settings: Any
    ) -> ConsumerInfo:
        """Create an ephemeral consumer of the messages after a sequence number."""
        from nats.js.api import AckPolicy, ConsumerConfig, DeliverPolicy

        config = ConsumerConfig(
            deliver_policy=DeliverPolicy.BY_START_SEQUENCE,
            opt_start_seq=sequence + 1,
            ack_policy=AckPolicy.NONE,
            filter_subject=self.subject,
            mem_storage=True,
            **settings,
        )
        return await jetstream.add_consumer(stream, config)

    async def _run_sessions(self) -> None:
        while True:
            try:
                await self._run_session()
                return
            except RetryLater:
                continue
            except Exception as error:
                is_known = isinstance(error, LimpetError)
                if is_known or not self._ready.is_set():
                    self.failure = error if is_known else InvalidInputError(f"{self.label}: {_describe_error(error)}.")
                    self._ready.set()
                    self.on_failure()
                    return
                if not self._lost:
                    log.warning("%s: %s; retrying", self.label, _describe_error(error))
                self._lost = True
            await asyncio.sleep(self._reconnect_delay_s)
            self._reconnect_delay_s = min(2 * self._reconnect_delay_s, MAX_RECONNECT_DELAY_S)

    async def _run_session(self) -> None:
        broken = self.broken = asyncio.get_running_loop().create_future()
        client = await self._connect()
        try:
            await self.session(client, client.jetstream(timeout=REPLY_TIMEOUT_S))
        finally:
            self.broken = None
            if broken.done() and not broken.cancelled():
                broken.exception()  # retrieved, so that asyncio does not log it
            with contextlib.suppress(Exception, asyncio.CancelledError):
                await asyncio.wait_for(client.close(), 1.0)

    async def _connect(self) -> Client:
        """Connect to the first server that accepts."""
        reason: Exception | None = None
        for server in self.servers:
            try:
                return await asyncio.wait_for(
                    self._nats.connect(
                        server if "://" in server else f"nats://{server}",
                        name=f"limpet {self._purpose}",
                        allow_reconnect=False,
                        max_reconnect_attempts=1,
                        reconnect_time_wait=0,
                        connect_timeout=2,
                        ping_interval=5,
                        error_cb=self._on_error,
                        closed_cb=self._on_closed,
                        **self._login,
                    ),
                    REPLY_TIMEOUT_S,
                )
            except (OSError, TimeoutError, ValueError, self._nats.errors.Error) as error:
                reason = self._last_error if isinstance(error, self._nats.errors.NoServersError) else error
        raise ConnectionLost(f"cannot connect: {_describe_error(reason)}") from reason

    async def _on_error(self, error: Exception) -> None:
        """Keep the error for the end of the session, instead of printing it."""
        self._last_error = error

    async def _on_closed(self) -> None:
        self.mark_lost("connection lost")


def _describe_error(error: BaseException | None) -> str:
    text = str(error).strip()
    if isinstance(error, ConnectionRefusedError) or "Connect call failed" in text:
        return "connection refused"
    if isinstance(error, TimeoutError) or "timeout" in type(error).__name__.lower():
        return "no response"
    return text.removeprefix("nats: ") or type(error).__name__
