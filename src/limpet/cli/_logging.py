"""Ending in order."""

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

# Log lines on standard error, for people or for machines.


class JsonFormatter(logging.Formatter):
    """An object a line: time, level, message, and the fields that the line was logged with."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        timestamp = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        entry = {"time": f"{timestamp}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        return json.dumps(entry | {"message": record.getMessage()} | getattr(record, "fields", {}), default=str)


def configure_logging(form: str) -> None:
    """From now on what is logged goes to standard error, warnings of ours as well."""
    handler = logging.StreamHandler(sys.stderr)
    text_formatter = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(JsonFormatter() if form == "json" else text_formatter)
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
    """SIGTERM and Ctrl-C end it in order; who is in a hurry says it twice."""

    def on_signal(number: int, frame: object) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, on_signal)
