"""The client of Kafka: made with options of the user's, and its errors in words."""

from __future__ import annotations

from typing import Any

from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.brokers._decode import log

RESERVED_OPTIONS = ("bootstrap.servers", "enable.auto.commit", "enable.partition.eof", "enable.idempotence")


def import_confluent_kafka() -> Any:
    """The package, if it is there."""
    with optional_import("Kafka", "kafka"):
        import confluent_kafka
    return confluent_kafka


def check_options(options: dict[str, str]) -> dict[str, str]:
    """Options that are not decided here."""
    for name in RESERVED_OPTIONS:
        if name in options:
            raise InvalidInputError(f"kafka:// takes no option {name!r}: it is decided by the address and by limpet")
    return options


def make_client(kind: Any, settings: dict[str, Any]) -> Any:
    """A consumer or a producer, which is silent: what is to be told is told here."""
    try:
        return kind({"log_level": 0, **settings})
    except import_confluent_kafka().KafkaException as error:
        raise InvalidInputError(f"kafka://{settings['bootstrap.servers']}: {describe_error(error)}") from error


def describe_error(error: Any) -> str:
    """Why, without the codes."""
    inner = error.args[0] if getattr(error, "args", None) else error
    words = inner.str() if hasattr(inner, "str") else str(inner)
    return "no answer" if "timed out" in words.lower() or "transport failure" in words.lower() else words


class ErrorMonitor:
    """Hears of errors: brokers that are gone are waited for by the client, and told once."""

    def __init__(self, servers: str) -> None:
        self._servers, self._lost = servers, False
        self.failure: Exception | None = None

    def __call__(self, error: Any) -> None:
        """An error that the client has noticed."""
        kafka = import_confluent_kafka()
        if error.fatal():
            self.failure = LimpetError(f"{self._servers}: {error.str()}")
        elif error.code() == kafka.KafkaError._ALL_BROKERS_DOWN and not self._lost:
            self._lost = True
            log.warning("%s: connection lost; trying again for ever", self._servers)

    def on_message(self) -> None:
        """Something has come."""
        if self._lost:
            self._lost = False
            log.info("%s is back", self._servers)

    def raise_if_fatal(self) -> None:
        """If it cannot go on."""
        if self.failure is not None:
            raise self.failure
