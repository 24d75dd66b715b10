"""Log lines on standard error, for people or for machines."""

from __future__ import annotations

import json
import logging
import sys
import time
import warnings
from typing import Any

from holdfast.errors import HoldfastWarning


class AsJson(logging.Formatter):
    """An object a line: time, level, message, and the fields that the line was logged with."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(record.created))
        told = {"time": f"{moment}.{int(record.msecs):03d}Z", "level": record.levelname.lower()}
        return json.dumps(told | {"message": record.getMessage()} | getattr(record, "fields", {}), default=str)


def set_up_logs(form: str) -> None:
    """From now on what is logged goes to standard error, warnings of ours as well."""
    handler = logging.StreamHandler(sys.stderr)
    plain = logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%Y-%m-%d %H:%M:%S")
    handler.setFormatter(AsJson() if form == "json" else plain)
    log = logging.getLogger("holdfast")
    log.handlers[:] = [handler]
    log.setLevel(logging.INFO)
    log.propagate = False
    usual = warnings.showwarning

    def show(message: Any, category: type[Warning], *rest: Any, **more: Any) -> None:
        if issubclass(category, HoldfastWarning):
            log.warning(str(message))
        else:
            usual(message, category, *rest, **more)

    warnings.showwarning = show
