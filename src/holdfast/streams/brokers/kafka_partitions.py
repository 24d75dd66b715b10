"""The partitions of a topic: how far each has been read, and how far it goes."""

from __future__ import annotations

import time
from typing import Any

from holdfast.errors import BadInputError, HoldfastError
from holdfast.streams.brokers.inlet import log
from holdfast.streams.brokers.kafka_client import in_words, kafka_library

LOOK = 30.0  # seconds after which it is looked whether there are more partitions


class Partitions:
    """Assigns all partitions of a topic to a consumer, and keeps count of offsets."""

    def __init__(self, consumer: Any, topic: str, servers: str, patience: float) -> None:
        self._kafka = kafka_library()
        self._consumer, self._topic, self._servers, self._patience = consumer, topic, servers, patience
        self._next: dict[int, int] = {}
        self._end: dict[int, int] = {}
        self._looked, self._told = time.monotonic(), -LOOK

    def begin(self, kept: dict[int, int]) -> None:
        """From these offsets on, and from the first there is in all other partitions."""
        for number in sorted({*self._numbers(), *kept}):
            self._next[number], self._end[number] = self._first(number, kept.get(number))
        self._consumer.assign([self._kafka.TopicPartition(self._topic, one, at) for one, at in self._next.items()])

    def accept(self, message: Any, follow: bool) -> bool:
        """Whether this is a message to be read; else it is news about a partition."""
        error, number = message.error(), message.partition()
        if error is not None:
            if error.code() == self._kafka.KafkaError._PARTITION_EOF:
                if not follow:
                    self._end[number] = min(self._end[number], self._next[number])
            elif error.fatal() or error.code() == self._kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED:
                raise HoldfastError(f"{self._servers}: {self._topic}: {error.str()}")
            elif time.monotonic() - self._told > LOOK:  # it may pass
                self._told = time.monotonic()
                log.warning("%s: %s: %s", self._servers, self._topic, error.str())
            return False
        if not follow and message.offset() >= self._end[number]:
            return False
        self._next[number] = message.offset() + 1
        return True

    @property
    def all_read(self) -> bool:
        """Whether all has been read that was there in the beginning."""
        return all(self._next[one] >= end for one, end in self._end.items())

    def place(self) -> dict[str, Any]:
        """As a position has it."""
        return {"topic": self._topic, "offsets": {str(one): at for one, at in self._next.items()}}

    def behind(self) -> int | None:
        """How many messages there are still, as far as the client knows without asking."""
        n = 0
        for number, at in self._next.items():
            known = self._consumer.get_watermark_offsets(
                self._kafka.TopicPartition(self._topic, number), cached=True, timeout=0
            )
            if known is None or known[1] < 0:
                return None
            n += max(0, known[1] - at)
        return n

    def look_for_more(self) -> None:
        """A topic may be given more partitions; they are read from their beginning."""
        if time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        try:
            found = [one for one in self._numbers() if one not in self._next]
        except BadInputError:
            return  # the brokers are away
        for number in found:
            self._next[number], self._end[number] = 0, 0
            self._consumer.incremental_assign([self._kafka.TopicPartition(self._topic, number, 0)])

    def _numbers(self) -> list[int]:
        try:
            known = self._consumer.list_topics(self._topic, timeout=self._patience).topics[self._topic]
        except self._kafka.KafkaException as error:
            raise BadInputError(f"{self._servers}: cannot connect: {in_words(error)}") from error
        if known.error is not None or not known.partitions:
            raise BadInputError(f"{self._servers}: there is no topic {self._topic!r}")
        return list(known.partitions)

    def _first(self, number: int, kept: int | None) -> tuple[int, int]:
        """Where to begin, and where the partition ends now."""
        where = self._kafka.TopicPartition(self._topic, number)
        try:
            low, high = self._consumer.get_watermark_offsets(where, timeout=self._patience)
        except self._kafka.KafkaException as error:
            raise BadInputError(f"{self._servers}: {self._topic}: {in_words(error)}") from error
        if kept is not None and kept < low:
            log.warning(
                "%s: partition %d of %s begins at %d: %d messages were deleted before they could be read",
                *(self._servers, number, self._topic, low, low - kept),
            )
        if kept is not None and kept > high:
            log.warning(
                "%s: partition %d of %s ends at %d, before %d: it was made anew, and is read from its beginning",
                *(self._servers, number, self._topic, high, kept),
            )
        return (kept if kept is not None and low <= kept <= high else low), high
