"""A client that goes on posting while its server is killed again and again, and knows what has to be there at last."""

from __future__ import annotations

import http.client
import json
import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

PAUSE = 0.02  # seconds until it tries again
PATIENCE = 120.0  # seconds without a server, or without an answer
LATER = (429, 503)  # answers that ask to come again
Rows = npt.NDArray[np.float64]


@dataclass(eq=False)
class Client:
    """Posts the points of one stream, no two of which are alike.

    together: points of a post. named: whether a post that was not answered is sent again under the name it had, its
    Idempotency-Key; else the server is asked what it has. With two variables some values are missing, and there are
    times.
    """

    key: str
    width: int
    together: int
    named: bool
    port: int
    seed: int
    kept: list[list[float | None]] = field(default_factory=list)
    """Points that the server has said it has, in order."""
    alarms: list[dict[str, Any]] = field(default_factory=list)
    unanswered: int = 0
    found: int = 0
    """Posts that were not answered, and had been kept all the same."""
    wrong: list[str] = field(default_factory=list)

    def run(self, stop: threading.Event) -> None:
        """Until it is told to stop, and the last post is answered."""
        self._connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        nth = 0
        while not stop.is_set() and not self.wrong:
            points = self._points(nth)
            try:
                self._bring(nth, points)
            except Exception as error:  # it would be lost with the thread
                self.wrong.append(f"{self.key}: {type(error).__name__}: {error}")
            nth += 1
        self._connection.close()

    def rows(self) -> Rows:
        """What has to be there."""
        return np.array(self.kept, np.float64).reshape(len(self.kept), self.width)  # None becomes NaN

    @property
    def _every(self) -> int:
        """Rows until the level changes, often enough for alarms."""
        return 700 if self.together > 1 else 150

    def _points(self, nth: int) -> list[list[float | None]]:
        """Levels that change now and then, with outliers and, of two variables, gaps."""
        rng, first = np.random.default_rng((self.seed, nth)), nth * self.together
        rows = first + np.arange(self.together)
        values = rng.normal(size=(self.together, self.width)) + 4.0 * (rows // self._every % 2)[:, None]
        values[rng.random(self.together) < 0.002] += 30.0
        points: list[list[float | None]] = values.tolist()
        for place in np.flatnonzero(rng.random(self.together) < 0.05) if self.width > 1 else ():
            points[place][-1] = None
        return points

    def _bring(self, nth: int, points: list[list[float | None]]) -> None:
        """Posts points until it is known that they are there."""
        headers = {"Content-Type": "application/json"} | ({"Idempotency-Key": f"post-{nth}"} if self.named else {})
        while True:
            told = self._ask("POST", "/points", self._body(points), headers)
            if told is None:
                self.unanswered += 1
                if self.named:
                    continue
                n = self._count()
                if n not in (len(self.kept), len(self.kept) + len(points)):
                    raise RuntimeError(f"{n} points are there, not {len(self.kept)} and not {len(points)} more")
                if n == len(self.kept):
                    continue
                self.found += 1
            elif told[0] in LATER:
                time.sleep(PAUSE)
                continue
            elif told[0] != 200 or told[1]["accepted"] != len(points) or told[1]["first_row"] != len(self.kept):
                raise RuntimeError(f"after {len(self.kept)} points {len(points)} more are answered with {told}")
            else:
                self.alarms += told[1]["alarms"]
            self.kept += points
            return

    def _body(self, points: list[list[float | None]]) -> str:
        first = len(self.kept)
        if self.width == 1:
            told: list[Any] = [value for (value,) in points]
        else:
            told = [{"values": point, "time": first + place} for place, point in enumerate(points)]
        return json.dumps(told[0] if self.together == 1 else told)

    def _count(self) -> int:
        """How many points the server has."""
        while (told := self._ask("GET", "")) is None or told[0] in LATER:
            time.sleep(PAUSE)
        return 0 if told[0] == 404 else int(told[1]["n_points"])

    def _ask(
        self, method: str, what: str, body: str | None = None, headers: dict[str, str] | None = None
    ) -> tuple[int, Any] | None:
        """Status and answer; None if there was none, because the server is gone."""
        self._connect()
        try:
            self._connection.request(method, f"/streams/{self.key}{what}", body, headers or {})
            answer = self._connection.getresponse()
            return answer.status, json.loads(answer.read())
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException):
            self._connection.close()
            return None

    def _connect(self) -> None:
        """Waits for the server, where there is no connection to it."""
        until = time.monotonic() + PATIENCE
        while self._connection.sock is None:
            try:
                self._connection.connect()
            except OSError:
                if time.monotonic() > until:
                    raise
                time.sleep(PAUSE)
