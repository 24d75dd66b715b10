"""Log on standard error as text or JSON, and stop gracefully on signals."""

from __future__ import annotations

import json
import logging
import signal
import sys
import threading
import time
import warnings
from typing import Any

from limpet.exceptions import LimpetWarning


class JsonFormatter(logging.Formatter):
    """Format a record as one JSON object: time, level, message, and extra fields."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line of a record."""
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {"time": f"{timestamp}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        return json.dumps(entry | {"message": record.getMessage()} | getattr(record, "fields", {}), default=str)


def configure_logging(log_format: str) -> None:
    """Write the log, and warnings of limpet, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    text_formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(JsonFormatter() if log_format == "json" else text_formatter)
    log = logging.getLogger("limpet")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    default_showwarning = warnings.showwarning

    def show_warning(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if issubclass(category, LimpetWarning):
            log.warning(str(message))
        else:
            default_showwarning(message, category, *args, **kwargs)

    warnings.showwarning = show_warning


def stop_on_signals(stop: threading.Event) -> None:
    """Set `stop` at the first SIGTERM or Ctrl-C; exit at once at the second."""

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
