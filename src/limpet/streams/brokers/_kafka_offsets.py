"""The partitions of a topic: offsets read, and offsets available."""

from __future__ import annotations

import time
from typing import Any

from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.brokers._decode import log
from limpet.streams.brokers._kafka_client import describe_error, import_confluent_kafka

PARTITION_REFRESH_INTERVAL_S = 30.0  # between checks for new partitions


class PartitionOffsets:
    """Assign all partitions of a topic to a consumer, and track the offsets."""

    def __init__(self, consumer: Any, topic: str, servers: str, timeout_s: float) -> None:
        self._kafka = import_confluent_kafka()
        self._consumer, self._topic, self._servers, self._timeout_s = consumer, topic, servers, timeout_s
        self._next: dict[int, int] = {}
        self._end: dict[int, int] = {}
        self._last_refresh, self._last_warning = time.monotonic(), -PARTITION_REFRESH_INTERVAL_S

    def start(self, offsets: dict[int, int]) -> None:
        """Start at given offsets, in other partitions at the first available one."""
        for number in sorted({*self._list_partition_numbers(), *offsets}):
            self._next[number], self._end[number] = self._find_start_offset(number, offsets.get(number))
        self._consumer.assign(
            [self._kafka.TopicPartition(self._topic, number, offset) for number, offset in self._next.items()]
        )

    def accept(self, message: Any, follow: bool) -> bool:
        """Return whether a message is a record, not an event of a partition."""
        error, number = message.error(), message.partition()
        if error is not None:
            if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                if not follow:
                    self._end[number] = min(self._end[number], self._next[number])
            elif error.fatal() or error.code() == self._kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise LimpetError(f"{self._servers}: {self._topic}: {error.str()}")
            elif time.monotonic() - self._last_warning > PARTITION_REFRESH_INTERVAL_S:  # can be transient
                self._last_warning = time.monotonic()
                log.warning("%s: %s: %s", self._servers, self._topic, error.str())
            return False
        if not follow and message.offset() >= self._end[number]:
            return False
        self._next[number] = message.offset() + 1
        return True

    @property
    def all_read(self) -> bool:
        """Whether everything available at the start has been read."""
        return all(self._next[number] >= end for number, end in self._end.items())

    def to_position(self) -> dict[str, Any]:
        """Return the position."""
        return {"topic": self._topic, "offsets": {str(number): offset for number, offset in self._next.items()}}

    def get_lag(self) -> int | None:
        """Return the number of messages not read yet, as far as the client has it cached."""
        n = 0
        for number, offset in self._next.items():
            known = self._consumer.get_watermark_offsets(
                self._kafka.TopicPartition(self._topic, number), cached=True, timeout=0
            )
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
            self._consumer.incremental_assign([self._kafka.TopicPartition(self._topic, number, 0)])

    def _list_partition_numbers(self) -> list[int]:
        try:
            known = self._consumer.list_topics(self._topic, timeout=self._timeout_s).topics[self._topic]
        except self._kafka.KafkaException as error:
            raise InvalidInputError(f"{self._servers}: cannot connect: {describe_error(error)}.") from error
        if known.error is not None or not known.partitions:
            raise InvalidInputError(f"{self._servers}: topic {self._topic!r} does not exist.")
        return list(known.partitions)

    def _find_start_offset(self, number: int, stored_offset: int | None) -> tuple[int, int]:
        """Return the start offset and the current end of a partition."""
        partition = self._kafka.TopicPartition(self._topic, number)
        try:
            low, high = self._consumer.get_watermark_offsets(partition, timeout=self._timeout_s)
        except self._kafka.KafkaException as error:
            raise InvalidInputError(f"{self._servers}: {self._topic}: {describe_error(error)}") from error
        if stored_offset is not None and stored_offset < low:
            log.warning(
                "%s: partition %d of %s starts at %d: %d messages were deleted before they were read",
                *(self._servers, number, self._topic, low, low - stored_offset),
            )
        if stored_offset is not None and stored_offset > high:
            log.warning(
                "%s: partition %d of %s ends at %d, before %d: it was created again, and is read from the beginning",
                *(self._servers, number, self._topic, high, stored_offset),
            )
        return (stored_offset if stored_offset is not None and low <= stored_offset <= high else low), high
