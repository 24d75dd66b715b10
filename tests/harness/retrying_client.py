"""A client that posts and retries while its server is killed repeatedly, and knows what must be stored."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

RETRY_INTERVAL_S = 0.02
TIMEOUT_S = 120.0  # without a server, or without a response
RETRY_STATUSES = (429, 503)
Rows = npt.NDArray[np.float64]


@dataclass(eq=False)
class Client:
    """Posts distinct points of one stream.

    Parameters
    ----------
    key, width : str, int
        The stream and its number of variables. Points of two variables have missing values and times.
    together : int
        Points per request.
    named : bool
        Whether a request without a response is retried with its Idempotency-Key; else the client first requests the
        number of stored points.
    port, seed : int
        Port of the server, seed of the points.
    """

    key: str
    width: int
    together: int
    named: bool
    port: int
    seed: int
    kept: list[list[float | None]] = field(default_factory=list)
    """Points that the server has acknowledged, in order."""
    alarms: list[dict[str, Any]] = field(default_factory=list)
    unanswered: int = 0
    n_recovered: int = 0
    """Requests without a response whose points were stored."""
    wrong: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Post until `stop` is set and the last request has a response."""
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=TIMEOUT_S)
        nth = 0
        while not stop.is_set() and not self.wrong:
            points = self._points(nth)
            try:
                self._post_until_stored(nth, points)
            except Exception as error:  # of a thread: reported at the end
                self.wrong.append(f"{self.key}: {type(error).__name__}: {error}")
            nth += 1
        self._connection.close()

    def rows(self) -> Rows:
        """Return the points that must be stored."""
        return np.array(self.kept, np.float64).reshape(len(self.kept), self.width)  # None becomes NaN

    @property
    def _shift_interval(self) -> int:
        """Rows between changes of the level."""
        return 700 if self.together > 1 else 150

    def _points(self, nth: int) -> list[list[float | None]]:
        """Make points with level shifts, outliers and, of two variables, missing values."""
        rng, first = np.random.default_rng((self.seed, nth)), nth * self.together
        rows = first + np.arange(self.together)
        values = rng.normal(size=(self.together, self.width)) + 4.0 * (rows // self._shift_interval % 2)[:, None]
        values[rng.random(self.together) < 0.002] += 30.0
        points: list[list[float | None]] = values.tolist()
        for row in np.flatnonzero(rng.random(self.together) < 0.05) if self.width > 1 else ():
            points[row][-1] = None
        return points

    def _post_until_stored(self, nth: int, points: list[list[float | None]]) -> None:
        """Post points until they are known to be stored."""
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": f"post-{nth}"} if self.named else {})
        while True:
            response = self._request("POST", "/points", self._body(points), headers)
            if response is None:
                self.unanswered += 1
                if self.named:
                    continue
                n = self._count()
                if n not in (len(self.kept), len(self.kept) + len(points)):
                    raise RuntimeError(f"expected {len(self.kept)} stored points, or {len(points)} more, got {n}")
                if n == len(self.kept):
                    continue
                self.n_recovered += 1
            elif response[0] in RETRY_STATUSES:
                time.sleep(RETRY_INTERVAL_S)
                continue
            elif (
                response[0] != 200
                or response[1]["accepted"] != len(points)
                or response[1]["first_row"] != len(self.kept)
            ):
                raise RuntimeError(f"unexpected response to {len(points)} points after {len(self.kept)}: {response}")
            else:
                self.alarms += response[1]["alarms"]
            self.kept += points
            return

    def _body(self, points: list[list[float | None]]) -> str:
        first = len(self.kept)
        if self.width == 1:
            content: list[Any] = [value for (value,) in points]
        else:
            content = [{"values": point, "time": first + index} for index, point in enumerate(points)]
        return json.dumps(content[0] if self.together == 1 else content)

    def _count(self) -> int:
        """Return the number of stored points."""
        while (response := self._request("GET", "")) is None or response[0] in RETRY_STATUSES:
            time.sleep(RETRY_INTERVAL_S)
        return 0 if response[0] == 404 else int(response[1]["n_points"])

    def _request(
        self, method: str, path: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any] | None:
        """Return status and body, None if the connection was lost."""
        self._connect()
        try:
            self._connection.request(method, f"/streams/{self.key}{path}", body, headers or {})
            response = self._connection.getresponse()
            return response.status, json.loads(response.read())
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None

    def _connect(self) -> None:
        """Connect, with retries while the server restarts."""
        until = time.monotonic() + TIMEOUT_S
        while self._connection.sock is None:
            try:
                self._connection.connect()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(RETRY_INTERVAL_S)
