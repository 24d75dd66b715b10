"""Kafka: kafka://[user:password@]host[:9092][,host…]/topic[?group=NAME&security.protocol=…].

All other options of the address are librdkafka's own, by their names there. A user and a password mean SASL over TLS.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from holdfast.errors import BadInputError, HoldfastError
from holdfast.streams.batch import Batch
from holdfast.streams.brokers.addresses import joined, read_address
from holdfast.streams.brokers.inlet import ANY, MESSAGES, TICK, Inlet, log
from holdfast.streams.brokers.kafka_client import Watch, in_words, kafka_library, made, require_allowed
from holdfast.streams.brokers.kafka_partitions import Partitions
from holdfast.streams.brokers.outlet import HURRIED, messages_of
from holdfast.streams.columns import Wanted
from holdfast.streams.positions import part_of, require_same_part
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.source import Source
from holdfast.streams.tables import check_what

PORTS = {"kafka": 9092}
REPLY = 5.0  # seconds in which a broker answers


class KafkaSource:
    """Reads all partitions of a topic, each message once: where it is is an offset in each partition, and kept by us.

    servers: "host:port,host:port". group: to which offsets are committed, for those who watch how far behind it is;
    it takes no part in the work. follow: waits for more; else what is there is read. options: of librdkafka.

    Within a partition the order is that of the messages; between partitions it is left open, and another one each time.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        wanted: Wanted = ANY,
        *,
        group: str | None = None,
        follow: bool = True,
        batch_size: int = MESSAGES,
        options: dict[str, str] | None = None,
    ) -> None:
        self._servers, self._topic, self._group = servers, topic, group
        self._wanted, self._follow, self._batch_size = wanted, follow, batch_size
        self._options = require_allowed(options or {})
        self._consumer: Any = None

    def read(self, position: Any) -> Iterator[Batch]:
        """Batches after a position {"topic": …, "offsets": {"0": …}, "columns": …}."""
        kafka = kafka_library()
        kept = part_of(position, "offsets", dict)
        require_same_part(position, "topic", self._topic, "kafka topic")
        self.close()
        watch = Watch(self._servers)
        consumer = self._consumer = made(
            kafka.Consumer,
            {
                "group.id": self._group or "holdfast",
                "fetch.wait.max.ms": 100,
                "queued.max.messages.kbytes": 65_536,
                "auto.offset.reset": "earliest",
                **self._options,
                "bootstrap.servers": self._servers,
                "enable.auto.commit": False,
                "enable.partition.eof": not self._follow,
                "error_cb": watch,
            },
        )
        partitions = Partitions(consumer, self._topic, self._servers, REPLY)
        partitions.begin({} if kept is None else {int(number): int(at) for number, at in kept.items()})
        inlet = Inlet(self._wanted, position, partitions.place())
        while True:
            messages = [] if not self._follow and partitions.all_read else self._some(consumer)
            watch.raise_if_fatal()
            taken = [one for one in messages if partitions.accept(one, self._follow)]
            if taken:
                watch.works()
            last = not self._follow and partitions.all_read
            payloads = [(one.value() or b"", self._topic) for one in taken]
            yield inlet.batch(payloads, partitions.place(), partitions.behind(), last=last)
            if last:
                return
            if self._follow:
                partitions.look_for_more()

    def _some(self, consumer: Any) -> list[Any]:
        """Waits for one message, and takes what else is there: to wait for a full batch would take too long."""
        first = consumer.poll(TICK)
        return [] if first is None else [first, *consumer.consume(self._batch_size - 1, 0)]

    def committed(self, position: Any) -> None:
        """Tells the group, if there is one, how far it has come."""
        offsets = part_of(position, "offsets", dict)
        if self._group is None or self._consumer is None or not offsets:
            return
        kafka = kafka_library()
        try:
            self._consumer.commit(
                offsets=[kafka.TopicPartition(self._topic, int(one), at) for one, at in offsets.items()],
                asynchronous=True,
            )
        except kafka.KafkaException as error:
            log.info("%s: offsets were not committed: %s", self._servers, in_words(error))

    def close(self) -> None:
        """Ends the connection."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None


class KafkaSink(Sink):
    """Tells alarms or points to a topic, each at least once: after a crash some are told again.

    Within a run the producer is idempotent: what it sends again itself is stored once. For exactly once over a crash,
    what was told and the checkpoint would have to be committed in one transaction, and the checkpoint is not in Kafka.
    Those who read can leave out what they have seen by its "id". The key of a stream is the key of its messages.

    patience: seconds to wait for brokers that have gone away; a message that was not taken within the
    `message.timeout.ms` of librdkafka, five minutes, is an error in any case.
    """

    def __init__(
        self,
        servers: str,
        topic: str,
        what: str = "alarms",
        *,
        options: dict[str, str] | None = None,
        patience: float = float("inf"),
    ) -> None:
        self._servers, self._topic, self._what = servers, topic, check_what(what)
        self.name = f"{what} to kafka://{servers}/{topic}"
        self._options, self.patience = require_allowed(options or {}), patience
        self._producer: Any = None
        self._failure: Exception | None = None
        self._told = 0

    def rewind(self, mark: Any) -> None:
        """Connects; what was told after the mark cannot be taken back."""
        self._told = 0 if mark is None else int(parts_of(self, mark)["told"])
        kafka = kafka_library()
        self._producer = made(
            kafka.Producer,
            {
                "linger.ms": 5,
                **self._options,
                "bootstrap.servers": self._servers,
                "enable.idempotence": True,
                "error_cb": Watch(self._servers),
            },
        )
        try:
            self._producer.list_topics(timeout=REPLY)
        except kafka.KafkaException as error:
            raise BadInputError(f"{self._servers}: cannot connect: {in_words(error)}") from error

    def write(self, results: Results) -> None:
        """Tells one message an alarm or a point."""
        if self._producer is None:
            self.rewind(None)
        for n, _, message, key in messages_of(results, self._what):
            while True:
                try:
                    self._producer.produce(self._topic, message, key, on_delivery=self._delivered)
                    break
                except BufferError:  # too many are on their way
                    self._producer.poll(0.1)
                    self._raise_failure()
            self._told = n + 1
        self._producer.poll(0)
        self._raise_failure()

    def flush(self) -> Any:
        """Waits until the brokers have all."""
        waited = 0.0
        while self._producer is not None and self._producer.flush(0.1) > 0:
            self._raise_failure()
            waited += 0.1
            if waited > self.patience:
                left = len(self._producer)
                raise HoldfastError(f"{self._servers} has not confirmed {left} messages within {self.patience:g} s")
        self._raise_failure()
        return mark_of(self, told=self._told)

    def hurry(self) -> None:
        """A broker that has gone away is not waited for much longer."""
        self.patience = min(self.patience, HURRIED)

    def close(self) -> None:
        """Ends; what has not been flushed may be lost."""
        self._producer = None

    def _delivered(self, error: Any, message: Any) -> None:
        if error is not None and self._failure is None:
            self._failure = HoldfastError(f"{self._servers}: a message was not delivered: {error.str()}")

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure


def source_of(url: str, wanted: Wanted = ANY, follow: bool = True) -> Source:
    """The source that an address names."""
    servers, topic, options = _read(url)
    group = options.pop("group", None)
    return KafkaSource(servers, topic, wanted, group=group, follow=follow, options=options)


def sink_of(url: str, what: str = "alarms") -> Sink:
    """The sink that an address names."""
    servers, topic, options = _read(url)
    return KafkaSink(servers, topic, what, options=options)


def _read(url: str) -> tuple[str, str, dict[str, str]]:
    address = read_address(url, PORTS, "topic", None)
    login = {}
    if address.user is not None:
        login = {"security.protocol": "SASL_SSL", "sasl.mechanism": "PLAIN", "sasl.username": address.user}
        login["sasl.password"] = address.password or ""
    if not all(c.isalnum() or c in "._-" for c in address.subject):
        raise BadInputError(f"{address.subject!r} is not a topic: letters, digits, '.', '_' and '-' make one")
    return ",".join(joined(*host) for host in address.hosts), address.subject, login | address.options
