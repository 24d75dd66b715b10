"""Log lines on standard error, for people or for machines."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from typing import Any

from holdfast.errors import HoldfastWarning


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
    log = logging.getLogger("holdfast")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    default_showwarning = warnings.showwarning

    def show_warning(message: Any, category: type[Warning], *args: Any, **kwargs: Any) -> None:
        if issubclass(category, HoldfastWarning):
            log.warning(str(message))
        else:
            default_showwarning(message, category, *args, **kwargs)

    warnings.showwarning = show_warning
