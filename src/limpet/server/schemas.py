"""Models of requests and responses, for the OpenAPI document and its tests.

Bodies of points are parsed by `limpet.server.routes.points`, which is faster; their models are documentation only.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from limpet.core.algorithm import MAX_ABS_VALUE

MAX_VARIABLES = 32
MAX_KEY_CHARS = MAX_IDEMPOTENCY_KEY_CHARS = 200

Time = Annotated[float | str, Field(description="A number, or an ISO 8601 string.", examples=["2026-01-02T03:04:05Z"])]
Number = Annotated[float, Field(ge=-MAX_ABS_VALUE, le=MAX_ABS_VALUE)]


class StrictModel(BaseModel):
    """A schema without further fields."""

    model_config = ConfigDict(extra="forbid")


class AlarmPatch(StrictModel):
    """Changes of an alarm; a field that is left out stays unchanged."""

    acknowledged: bool | None = None
    note: Annotated[str | None, Field(max_length=2000)] = None


class AlarmSelector(StrictModel):
    """The open alarms of one stream, or of all."""

    stream: str | None = None


class Login(StrictModel):
    """The token of the server."""

    token: Annotated[str, Field(max_length=1000)]


class AlarmSummary(BaseModel):
    """The main fields of an alarm."""

    id: int
    kind: Literal["change", "anomaly"]
    row: int = Field(description="The row at which it was detected, counted from the first point of the stream.")
    time: str | float
    message: str


class Alarm(AlarmSummary):
    """A change or an anomaly of a stream."""

    key: str = Field(description="The key of the stream.")
    onset: int = Field(description="The estimated row at which it began.")
    size: float | None = Field(
        description="Distance in standard deviations, or ratio of the new spread to the old one; null: unknown."
    )
    direction: Literal["up", "down", "wider", "narrower"]
    variables: list[str] = Field(description="The variables that contribute most, the largest first.")
    p_value: float | None
    raised_at: float = Field(description="Seconds since 1970.")
    acknowledged_at: float | None
    note: str


class StreamSummary(BaseModel):
    """A stream in the list."""

    key: str
    variables: list[str]
    n_points: int
    n_rejected: int
    n_alarms: int
    open_alarms: int
    state: Literal["learning", "quiet", "alarming"]
    last_time: str | float | None
    last_seen: float | None
    last: list[float | None]
    p_value: float | None
    last_alarm: AlarmSummary | None = Field(description="The newest open alarm; without one, the newest of all.")
    sparkline: list[float | None]
    sparkline_rejected: list[int]


class StreamPage(BaseModel):
    """A page of the list of streams, with totals."""

    total: int = Field(description="The number of matching streams.")
    n_streams: int
    n_alarming: int
    open_alarms: int
    n_points: int
    seq: int
    streams: list[StreamSummary]


class StreamDetails(StreamSummary):
    """A stream with the state of its learner."""

    estimate: dict[str, Any] | None
    summary: str | None
    fitted_params: dict[str, float | None] | None


class PointColumns(BaseModel):
    """Points of a stream as lists by column, in order of rows."""

    rows: list[int]
    times: list[str | float]
    values: list[list[float | None]] = Field(description="One list per variable.")
    estimate: list[list[float | None]]
    score: list[float | None]
    p_value: list[float | None]
    change_score: list[float | None]
    rejected: list[int]
    anomaly: list[int]
    change: list[int]


class History(BaseModel):
    """History of a stream in buckets of rows; a single point has low = high = value."""

    first_row: int
    n_rows: int
    is_downsampled: bool
    rows: list[int]
    counts: list[int]
    times: list[str | float]
    low: list[list[float | None]]
    high: list[list[float | None]]
    estimate: list[list[float | None]]
    score: list[float | None]
    p_value: list[float | None]
    n_rejected: list[int]
    anomaly: list[int]
    change: list[int]


class SkippedCounts(BaseModel):
    """Counts of skipped points: older than the latest of their stream, or equal."""

    late: int
    duplicate: int


class IngestResult(BaseModel):
    """The result for posted points of one stream; accepted points are stored."""

    stream: str
    accepted: int
    first_row: int | None
    last_row: int | None
    skipped: SkippedCounts
    alarms: list[Alarm]


class AlarmPage(BaseModel):
    """A page of the list of alarms, the newest first."""

    total: int
    alarms: list[Alarm]


class ErrorDetail(BaseModel):
    """Code and message of an error."""

    code: str
    message: str


class ErrorResponse(BaseModel):
    """The body of every error."""

    error: ErrorDetail


def document_errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the documentation of the errors of an endpoint."""
    return {status: {"model": ErrorResponse} for status in statuses}


class Point(StrictModel):
    """A point of one variable."""

    value: Number
    time: Time | None = None


class MultiValuePoint(StrictModel):
    """A point of several variables, by position or by name; null is a missing value."""

    values: Annotated[list[Number | None], Field(min_length=1, max_length=MAX_VARIABLES)] | dict[str, Number | None]
    time: Time | None = None


PointInput = Number | Point | MultiValuePoint


class PointList(StrictModel):
    """An object with a list of points."""

    points: Annotated[list[PointInput], Field(min_length=1)]


PointBody = (
    PointInput
    | Annotated[list[PointInput | Annotated[list[Number | None], Field(min_length=1)]], Field(min_length=1)]
    | PointList
)
"""The body of POST /streams/{key}/points."""


class StreamPoint(StrictModel):
    """A point that names its stream."""

    stream: Annotated[str, Field(min_length=1, max_length=MAX_KEY_CHARS)]
    value: Number | None = None
    values: list[Number | None] | dict[str, Number | None] | None = None
    time: Time | None = None


StreamPointList = Annotated[list[StreamPoint], Field(min_length=1)]
"""The body of POST /points."""
