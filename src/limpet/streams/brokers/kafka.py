"""Kafka: kafka://[user:password@]host[:9092][,host…]/topic[?group=NAME&…].

All other options, such as security.protocol, are those of librdkafka. A user and a password mean SASL over TLS.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Any

from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.batch import Batch, check_same_position_field, position_field
from limpet.streams.brokers.base import POLL_TIMEOUT_S, BrokerSink, BrokerSource, Message, log
from limpet.streams.brokers.url import format_host_port, parse_broker_url
from limpet.streams.results import BatchResult
from limpet.streams.schema import ANY_COLUMNS, ColumnSpec
from limpet.streams.sinks.base import make_offset

DEFAULT_PORTS = {"kafka": 9092}
REPLY_TIMEOUT_S = 5.0
PARTITION_REFRESH_INTERVAL_S = 30.0  # between checks for new partitions
RESERVED_OPTIONS = ("bootstrap.servers", "enable.auto.commit", "enable.partition.eof", "enable.idempotence")


class KafkaSource(BrokerSource):
    """Partitions of a topic, each message once; the position has their offsets.

    Messages of a partition are read in order; the order between partitions differs between runs. `options` are those of
    librdkafka. Offsets are committed to `group` to monitor the lag only. A source that does not follow ends where the
    topic ended when it started.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        group: str | None = None,
        follow: bool = True,
        options: dict[str, str] | None = None,
    ) -> None:
        super().__init__(spec, follow)
        self._servers, self._topic, self._group = servers, topic, group
        self._options = check_options(options)

    def read(self, position: Any = None) -> Iterator[Batch]:
        """Yield the batches after a position {"topic": …, "offsets": {"0": …}}."""
        kafka = import_confluent_kafka()
        offsets = position_field(position, "offsets", dict)
        check_same_position_field(position, "topic", self._topic, "kafka topic")
        self.close()
        monitor = _ErrorMonitor(self._servers)
        settings = {
            "group.id": self._group or "limpet",
            "fetch.wait.max.ms": 100,
            "queued.max.messages.kbytes": 65_536,
            "auto.offset.reset": "earliest",
            **self._options,
            "enable.auto.commit": False,
            "enable.partition.eof": not self._follow,
        }
        consumer = self._connection = make_client(kafka.Consumer, self._servers, settings, monitor)
        partitions = _PartitionOffsets(consumer, self._topic, self._servers)
        partitions.start({int(number): int(offset) for number, offset in (offsets or {}).items()})
        self._start_decoding(position is not None, partitions.to_position())
        last = False
        while not last:
            polled = []
            if self._follow or not partitions.is_complete:
                first = consumer.poll(POLL_TIMEOUT_S)
                if first is not None:  # with those that have arrived, rather than wait for a full batch
                    polled = [first, *consumer.consume(self._batch_size - 1, 0)]
            if monitor.failure is not None:
                raise monitor.failure
            records = [message for message in polled if partitions.accept(message, self._follow)]
            messages = [Message(record.offset(), self._topic, record.value() or b"") for record in records]
            if messages:
                monitor.on_message()
            last = not self._follow and partitions.is_complete
            yield self._make_batch(messages, partitions.to_position(), partitions.get_lag(), last=last)
            if self._follow:
                partitions.refresh()

    def commit(self, position: Any) -> None:
        """Commit the offsets to the consumer group, if one was given."""
        offsets = position_field(position, "offsets", dict)
        if self._group is None or self._connection is None or not offsets:
            return
        kafka = import_confluent_kafka()
        group_offsets = [kafka.TopicPartition(self._topic, int(number), offset) for number, offset in offsets.items()]
        try:
            self._connection.commit(offsets=group_offsets, asynchronous=True)
        except kafka.KafkaException as error:
            log.info("%s: offsets were not committed: %s", self._servers, describe_error(error))

    def close(self) -> None:
        """Close the connection, which cannot be used again."""
        super().close()
        self._connection = None


class KafkaSink(BrokerSink):
    """Alarms or points as messages of a topic, at least once: a crash repeats some.

    Within a run the producer is idempotent. Exactly-once across a crash would need a transaction over messages and
    checkpoint, and the checkpoint is not in Kafka. Readers can drop duplicates by "id". The key of a message is the key
    of its stream. A message not accepted within `message.timeout.ms` of librdkafka (5 min) is an error.
    """

    def __init__(
        self, servers: str, topic: str, table: str = "alarms", *, options: dict[str, str] | None = None
    ) -> None:
        super().__init__(f"{table} to kafka://{servers}/{topic}", table)
        self._servers, self._topic, self._options = servers, topic, check_options(options)
        self._failure: Exception | None = None

    def _connect(self, offset: dict[str, Any]) -> Any:
        kafka = import_confluent_kafka()
        settings = {"linger.ms": 5, **self._options, "enable.idempotence": True}
        producer = make_client(kafka.Producer, self._servers, settings, _ErrorMonitor(self._servers))
        list_topics(producer, self._servers)
        return producer

    def _send(self, results: BatchResult) -> None:
        for n, payload, key in self._encode(results):
            while True:
                try:
                    self._connection.produce(self._topic, payload, key, on_delivery=self._on_delivery)
                    break
                except BufferError:  # the queue of the client is full
                    self._connection.poll(0.1)
                    self._raise_failure()
            self._n_sent = n + 1
        self._connection.poll(0)
        self._raise_failure()

    def flush(self) -> Any:
        """Wait until the brokers have confirmed all messages."""
        waited = 0.0
        while self._connection is not None and self._connection.flush(0.1) > 0:
            self._raise_failure()
            waited += 0.1
            if waited > self.timeout:
                n = len(self._connection)
                raise LimpetError(f"{self._servers} has not confirmed {n} messages within {self.timeout:g} s.")
        self._raise_failure()
        return make_offset(self, n_sent=self._n_sent)

    def close(self) -> None:
        """Close the connection; messages not flushed can be lost."""
        self._connection = None

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = LimpetError(f"{self._servers}: a message was not delivered: {error.str()}.")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def make_source(url: str, *, columns: ColumnSpec = ANY_COLUMNS, follow: bool = True) -> KafkaSource:
    """Open the source at a URL."""
    servers, topic, options = _parse_url(url)
    group = options.pop("group", None)
    return KafkaSource(servers, topic, columns, group=group, follow=follow, options=options)


def make_sink(url: str, *, table: str = "alarms") -> KafkaSink:
    """Open the sink at a URL."""
    servers, topic, options = _parse_url(url)
    return KafkaSink(servers, topic, table, options=options)


def _parse_url(url: str) -> tuple[str, str, dict[str, str]]:
    address = parse_broker_url(url, DEFAULT_PORTS, "topic", None)
    login = {}
    if address.user is not None:
        login = {"sasl.username": address.user, "sasl.password": address.password or ""}
        login |= {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN"}
    if not all(c.isalnum() or c in "._-" for c in address.subject):
        raise InvalidInputError(f"topic: must consist of letters, digits, '.', '_' and '-', got {address.subject!r}.")
    return ",".join(format_host_port(*host) for host in address.hosts), address.subject, login | address.options


class _PartitionOffsets:
    """Assign all partitions of a topic to a consumer, and track the offsets."""

    def __init__(self, consumer: Any, topic: str, servers: str) -> None:
        self._kafka = import_confluent_kafka()
        self._partition = partial(self._kafka.TopicPartition, topic)
        self._consumer, self._topic, self._servers = consumer, topic, servers
        self._next: dict[int, int] = {}
        self._end: dict[int, int] = {}
        self._last_refresh, self._last_warning = time.monotonic(), -PARTITION_REFRESH_INTERVAL_S

    def start(self, offsets: dict[int, int]) -> None:
        """Start at given offsets, in other partitions at the first available one."""
        for number in sorted({*self._list_partition_numbers(), *offsets}):
            self._next[number], self._end[number] = self._find_start_offset(number, offsets.get(number))
        self._consumer.assign([self._partition(number, offset) for number, offset in self._next.items()])

    def accept(self, message: Any, follow: bool) -> bool:
        """Return whether a message is a record, not an event of a partition."""
        error, number = message.error(), message.partition()
        if error is not None:
            if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                if not follow:
                    self._end[number] = min(self._end[number], self._next[number])
            elif error.fatal() or error.code() == self._kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise LimpetError(f"{self._servers}: {self._topic}: {error.str()}.")
            elif time.monotonic() - self._last_warning > PARTITION_REFRESH_INTERVAL_S:  # can be transient
                self._last_warning = time.monotonic()
                log.warning("%s: %s: %s", self._servers, self._topic, error.str())
            return False
        if not follow and message.offset() >= self._end[number]:
            return False
        self._next[number] = message.offset() + 1
        return True

    @property
    def is_complete(self) -> bool:
        """Whether everything available at the start has been read."""
        return all(self._next[number] >= end for number, end in self._end.items())

    def to_position(self) -> dict[str, Any]:
        return {"topic": self._topic, "offsets": {str(number): offset for number, offset in self._next.items()}}

    def get_lag(self) -> int | None:
        """Return the number of messages not read yet, as far as the client has it cached."""
        n = 0
        for number, offset in self._next.items():
            known = self._consumer.get_watermark_offsets(self._partition(number), cached=True, timeout=0)
            if known is None or known[1] < 0:
                return None
            n += max(0, known[1] - offset)
        return n

    def refresh(self) -> None:
        """Add new partitions of the topic, from their beginning."""
        if time.monotonic() - self._last_refresh < PARTITION_REFRESH_INTERVAL_S:
            return
        self._last_refresh = time.monotonic()
        try:
            new_numbers = [number for number in self._list_partition_numbers() if number not in self._next]
        except InvalidInputError:
            return  # the connection is lost
        for number in new_numbers:
            self._next[number], self._end[number] = 0, 0
            self._consumer.incremental_assign([self._partition(number, 0)])

    def _list_partition_numbers(self) -> list[int]:
        known = list_topics(self._consumer, self._servers, self._topic)[self._topic]
        if known.error is not None or not known.partitions:
            raise InvalidInputError(f"{self._servers}: topic {self._topic!r} does not exist.")
        return list(known.partitions)

    def _find_start_offset(self, number: int, stored_offset: int | None) -> tuple[int, int]:
        """Return the start offset and the current end of a partition."""
        try:
            low, high = self._consumer.get_watermark_offsets(self._partition(number), timeout=REPLY_TIMEOUT_S)
        except self._kafka.KafkaException as error:
            raise InvalidInputError(f"{self._servers}: {self._topic}: {describe_error(error)}.") from error
        if stored_offset is None or low <= stored_offset <= high:
            return low if stored_offset is None else stored_offset, high
        label = f"{self._servers}: partition {number} of {self._topic}"
        if stored_offset < low:
            message = "%s starts at %d: %d messages were deleted before they were read"
            log.warning(message, label, low, low - stored_offset)
        else:
            message = "%s ends at %d, before %d: it was created again, and is read from the beginning"
            log.warning(message, label, high, stored_offset)
        return low, high


def import_confluent_kafka() -> Any:
    """Import the client library, which is an extra."""
    with optional_import("Kafka", "kafka"):
        import confluent_kafka
    return confluent_kafka


def check_options(options: dict[str, str] | None) -> dict[str, str]:
    """Return the options; raise for those that limpet sets."""
    for name in RESERVED_OPTIONS:
        if options and name in options:
            raise InvalidInputError(f"url: kafka:// has no option {name!r}. limpet sets it.")
    return options or {}


def make_client(kind: Any, servers: str, settings: dict[str, Any], monitor: _ErrorMonitor) -> Any:
    """Create a consumer or producer; limpet, not the client, logs its errors."""
    try:
        return kind({"log_level": 0, **settings, "bootstrap.servers": servers, "error_cb": monitor})
    except import_confluent_kafka().KafkaException as error:
        raise InvalidInputError(f"kafka://{servers}: {describe_error(error)}.") from error


def list_topics(client: Any, servers: str, *topic: str) -> Any:
    """Return the topics by name; raise without a connection."""
    try:
        return client.list_topics(*topic, timeout=REPLY_TIMEOUT_S).topics
    except import_confluent_kafka().KafkaException as error:
        raise InvalidInputError(f"{servers}: cannot connect: {describe_error(error)}.") from error


def describe_error(error: Any) -> str:
    """Describe an error without codes."""
    inner = error.args[0] if getattr(error, "args", None) else error
    text = inner.str() if hasattr(inner, "str") else str(inner)
    return "no response" if "timed out" in text.lower() or "transport failure" in text.lower() else text


class _ErrorMonitor:
    """Callback for errors: logs a lost connection once; the client reconnects."""

    def __init__(self, servers: str) -> None:
        self._servers, self._lost = servers, False
        self.failure: Exception | None = None

    def __call__(self, error: Any) -> None:
        kafka = import_confluent_kafka()
        if error.fatal():
            self.failure = LimpetError(f"{self._servers}: {error.str()}.")
        elif error.code() == kafka.KafkaError._ALL_BROKERS_DOWN and not self._lost:
            self._lost = True
            log.warning("%s: connection lost; retrying", self._servers)

    def on_message(self) -> None:
        if self._lost:
            self._lost = False
            log.info("%s: reconnected", self._servers)
