"""Create Kafka clients with options of the user, and describe their errors."""

from __future__ import annotations

from typing import Any

from limpet._optional import optional_import
from limpet.exceptions import InvalidInputError, LimpetError
from limpet.streams.brokers._decode import log

RESERVED_OPTIONS = ("bootstrap.servers", "enable.auto.commit", "enable.partition.eof", "enable.idempotence")


def import_confluent_kafka() -> Any:
    """Import the client library, which is an extra."""
    with optional_import("Kafka", "kafka"):
        import confluent_kafka
    return confluent_kafka


def check_options(options: dict[str, str]) -> dict[str, str]:
    """Raise for options that limpet sets."""
    for name in RESERVED_OPTIONS:
        if name in options:
            raise InvalidInputError(f"url: kafka:// has no option {name!r}. limpet sets it.")
    return options


def make_client(kind: Any, settings: dict[str, Any]) -> Any:
    """Create a consumer or a producer; errors are logged by limpet, not by the client."""
    try:
        return kind({"log_level": 0, **settings})
    except import_confluent_kafka().KafkaException as error:
        raise InvalidInputError(f"kafka://{settings['bootstrap.servers']}: {describe_error(error)}") from error


def describe_error(error: Any) -> str:
    """Describe an error without codes."""
    inner = error.args[0] if getattr(error, "args", None) else error
    words = inner.str() if hasattr(inner, "str") else str(inner)
    return "no response" if "timed out" in words.lower() or "transport failure" in words.lower() else words


class ErrorMonitor:
    """Callback for errors: logs a lost connection once; the client reconnects."""

    def __init__(self, servers: str) -> None:
        self._servers, self._lost = servers, False
        self.failure: Exception | None = None

    def __call__(self, error: Any) -> None:
        """Handle an error of the client."""
        kafka = import_confluent_kafka()
        if error.fatal():
            self.failure = LimpetError(f"{self._servers}: {error.str()}")
        elif error.code() == kafka.KafkaError._ALL_BROKERS_DOWN and not self._lost:
            self._lost = True
            log.warning("%s: connection lost; retrying", self._servers)

    def on_message(self) -> None:
        """Note that the connection works."""
        if self._lost:
            self._lost = False
            log.info("%s: reconnected", self._servers)

    def raise_if_fatal(self) -> None:
        """Raise a fatal error."""
        if self.failure is not None:
            raise self.failure
