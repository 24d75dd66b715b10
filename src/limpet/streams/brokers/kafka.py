"""Kafka: kafka://[user:password@]host[:9092][,host…]/topic[?group=NAME&security.protocol=…].

All other options are those of librdkafka. A user and a password mean SASL over TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.batch import Batch, check_same_position_field, position_field
from limpet.streams.brokers._decode import ANY_COLUMNS, MAX_BATCH_MESSAGES, POLL_TIMEOUT_S, MessageDecoder, log
from limpet.streams.brokers._encode import STOP_TIMEOUT_S, encode_messages
from limpet.streams.brokers._kafka_client import (
    ErrorMonitor,
    check_options,
    describe_error,
    import_confluent_kafka,
    make_client,
)
from limpet.streams.brokers._kafka_offsets import PartitionOffsets
from limpet.streams.brokers.url import format_host_port, parse_broker_url
from limpet.streams.results import BatchResult, check_table
from limpet.streams.schema import ColumnSpec
from limpet.streams.sinks.base import BaseSink, check_offset, make_offset
from limpet.streams.sources.base import BaseSource

DEFAULT_PORTS = {"kafka": 9092}
REPLY_TIMEOUT_S = 5.0


class KafkaSource(BaseSource):
    """All partitions of a topic, each message once: the position has the offset of each partition.

    Messages of a partition are read in order. The order between partitions is undefined, and differs between runs.

    Parameters
    ----------
    servers : str
        "host:port,host:port".
    topic : str
        The topic.
    spec : ColumnSpec
        Columns requested by the user.
    group : str, optional
        Consumer group to which offsets are committed, for monitoring of the lag; not used for reading.
    follow : bool
        Whether to wait for more messages at the end.
    batch_size : int
        Messages per batch, at most.
    options : dict, optional
        Options of librdkafka.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        spec: ColumnSpec = ANY_COLUMNS,
        *,
        group: str | None = None,
        follow: bool = True,
        batch_size: int = MAX_BATCH_MESSAGES,
        options: dict[str, str] | None = None,
    ) -> None:
        self._servers, self._topic, self._group = servers, topic, group
        self._spec, self._follow, self._batch_size = spec, follow, batch_size
        self._options = check_options(options or {})
        self._consumer: Any = None

    def read(self, position: Any) -> Iterator[Batch]:
        """Yield the batches after a position {"topic": …, "offsets": {"0": …}}."""
        kafka = import_confluent_kafka()
        offsets = position_field(position, "offsets", dict)
        check_same_position_field(position, "topic", self._topic, "kafka topic")
        self.close()
        monitor = ErrorMonitor(self._servers)
        consumer = self._consumer = make_client(
            kafka.Consumer,
            {
                "group.id": self._group or "limpet",
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 65_536,
                "auto.offset.reset": "earliest",
                **self._options,
                "bootstrap.servers": self._servers,
                "enable.auto.commit": False,
                "enable.partition.eof": not self._follow,
                "error_cb": monitor,
            },
        )
        partitions = PartitionOffsets(consumer, self._topic, self._servers, REPLY_TIMEOUT_S)
        partitions.start({} if offsets is None else {int(number): int(offset) for number, offset in offsets.items()})
        decoder = MessageDecoder(self._spec, None if position is None else self.schema, partitions.to_position())
        while True:
            messages = [] if not self._follow and partitions.all_read else self._poll_messages(consumer)
            monitor.raise_if_fatal()
            accepted = [message for message in messages if partitions.accept(message, self._follow)]
            if accepted:
                monitor.on_message()
            last = not self._follow and partitions.all_read
            payloads = [(message.value() or b"", self._topic) for message in accepted]
            batch = decoder.make_batch(payloads, partitions.to_position(), partitions.get_lag(), last=last)
            self.schema = batch.schema
            yield batch
            if last:
                return
            if self._follow:
                partitions.refresh()

    def _poll_messages(self, consumer: Any) -> list[Any]:
        """Wait for one message, and return it with those that have arrived, rather than wait for a full batch."""
        first = consumer.poll(POLL_TIMEOUT_S)
        return [] if first is None else [first, *consumer.consume(self._batch_size - 1, 0)]

    def commit(self, position: Any) -> None:
        """Commit the offsets to the consumer group, if one was given."""
        offsets = position_field(position, "offsets", dict)
        if self._group is None or self._consumer is None or not offsets:
            return
        kafka = import_confluent_kafka()
        try:
            self._consumer.commit(
                offsets=[
                    kafka.TopicPartition(self._topic, int(partition), offset) for partition, offset in offsets.items()
                ],
                asynchronous=True,
            )
        except kafka.KafkaException as error:
            log.info("%s: offsets were not committed: %s", self._servers, describe_error(error))

    def close(self) -> None:
        """Close the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class KafkaSink(BaseSink):
    """Alarms or points as messages of a topic, at least once: after a crash some are sent again.

    Within a run the producer is idempotent. Exactly-once across a crash would need a transaction over messages and
    checkpoint, and the checkpoint is not in Kafka. Readers can drop duplicates by "id". The key of a message is the key
    of its stream.

    Parameters
    ----------
    servers : str
        "host:port,host:port".
    topic : str
        The topic.
    table : {"alarms", "points"}
        What is sent.
    options : dict, optional
        Options of librdkafka.
    timeout : float
        Seconds to wait for lost brokers. A message not accepted within `message.timeout.ms` of librdkafka (5 min) is
        an error in any case.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        table: str = "alarms",
        *,
        options: dict[str, str] | None = None,
        timeout: float = float("inf"),
    ) -> None:
        self._servers, self._topic, self._table = servers, topic, check_table(table)
        self.name = f"{table} to kafka://{servers}/{topic}"
        self._options, self.timeout = check_options(options or {}), timeout
        self._producer: Any = None
        self._failure: Exception | None = None
        self._n_sent = 0

    def truncate_to(self, offset: Any) -> None:
        """Connect; messages sent after the offset cannot be removed."""
        self._n_sent = 0 if offset is None else int(check_offset(self, offset)["n_sent"])
        kafka = import_confluent_kafka()
        self._producer = make_client(
            kafka.Producer,
            {
                "linger.ms": 5,
                **self._options,
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "error_cb": ErrorMonitor(self._servers),
            },
        )
        try:
            self._producer.list_topics(timeout=REPLY_TIMEOUT_S)
        except kafka.KafkaException as error:
            raise InvalidInputError(f"{self._servers}: cannot connect: {describe_error(error)}.") from error

    def write(self, results: BatchResult) -> None:
        """Send one message per alarm or point."""
        if self._producer is None:
            self.truncate_to(None)
        for n, _, message, key in encode_messages(results, self._table):
            while True:
                try:
                    self._producer.produce(self._topic, message, key, on_delivery=self._on_delivery)
                    break
                except BufferError:  # the queue of the client is full
                    self._producer.poll(0.1)
                    self._raise_failure()
            self._n_sent = n + 1
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> Any:
        """Wait until the brokers have confirmed all messages."""
        waited = 0.0
        while self._producer is not None and self._producer.flush(0.1) > 0:
            self._raise_failure()
            waited += 0.1
            if waited > self.timeout:
                n_unconfirmed = len(self._producer)
                raise LimpetError(
                    f"{self._servers} has not confirmed {n_unconfirmed} messages within {self.timeout:g} s."
                )
        self._raise_failure()
        return make_offset(self, n_sent=self._n_sent)

    def stop_waiting(self) -> None:
        """Wait for a lost broker for a few more seconds at most."""
        self.timeout = min(self.timeout, STOP_TIMEOUT_S)

    def close(self) -> None:
        """Close the connection; messages not flushed can be lost."""
        self._producer = None

    def _on_delivery(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = LimpetError(f"{self._servers}: a message was not delivered: {error.str()}")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def make_source(url: str, *, columns: ColumnSpec = ANY_COLUMNS, follow: bool = True) -> BaseSource:
    """Open the source at a URL."""
    servers, topic, options = _parse_url(url)
    group = options.pop("group", None)
    return KafkaSource(servers, topic, columns, group=group, follow=follow, options=options)


def make_sink(url: str, *, table: str = "alarms") -> BaseSink:
    """Open the sink at a URL."""
    servers, topic, options = _parse_url(url)
    return KafkaSink(servers, topic, table, options=options)


def _parse_url(url: str) -> tuple[str, str, dict[str, str]]:
    address = parse_broker_url(url, DEFAULT_PORTS, "topic", None)
    login = {}
    if address.user is not None:
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": address.user}
        login["sasl.password"] = address.password or ""
    if not all(c.isalnum() or c in "._-" for c in address.subject):
        raise InvalidInputError(f"topic: must consist of letters, digits, '.', '_' and '-', got {address.subject!r}.")
    return ",".join(format_host_port(*host) for host in address.hosts), address.subject, login | address.options
