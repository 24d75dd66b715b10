"""What goes over the wire, for the documentation of the API and its checks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

Time = Annotated[float | str, Field(description="A number, or a text in ISO 8601.", examples=["2026-01-02T03:04:05Z"])]
Number = Annotated[float, Field(ge=-1e150, le=1e150)]


class StrictModel(BaseModel):
    """Nothing but what is named here."""

    model_config = ConfigDict(extra="forbid")


class AlarmPatch(StrictModel):
    """What is to be changed of an alarm; what is left out stays."""

    acknowledged: bool | None = None
    note: Annotated[str | None, Field(max_length=2000)] = None


class AlarmSelector(StrictModel):
    """The open alarms of one stream, or of all."""

    stream: str | None = None


class Login(StrictModel):
    """The token that the server was started with."""

    token: Annotated[str, Field(max_length=1000)]


class Alarm(BaseModel):
    """Something has happened."""

    id: int
    stream: str
    kind: Literal["change", "anomaly"]
    row: int = Field(description="Where it was noticed; rows count from the first point of the stream.")
    onset: int = Field(description="Where it began, as far as can be told.")
    size: float | None = Field(description="In standard deviations of before, or new spread over old; null: unknown.")
    direction: Literal["up", "down", "wider", "narrower"]
    variables: list[str] = Field(description="Those that carry it, the one that carries most first.")
    p_value: float | None
    time: str | float
    message: str
    raised_at: float = Field(description="Seconds since 1970.")
    acknowledged_at: float | None
    note: str


class LastAlarm(BaseModel):
    """The newest alarm of a stream, in short."""

    id: int
    kind: Literal["change", "anomaly"]
    row: int
    time: str | float
    message: str


class Summary(BaseModel):
    """A stream at a glance."""

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
    last_alarm: LastAlarm | None = Field(description="The newest that is open; if none is, the newest of all.")
    spark: list[float | None]
    spark_rejected: list[int]


class Streams(BaseModel):
    """Some of the streams."""

    total: int = Field(description="How many match.")
    n_streams: int
    n_alarming: int
    open_alarms: int
    n_points: int
    seq: int
    streams: list[Summary]


class Details(Summary):
    """A stream with what has been learnt of it."""

    estimate: dict[str, Any] | None
    summary: str | None
    calibration: dict[str, float | None] | None


class Points(BaseModel):
    """Points of a stream: a list for each thing, in order of rows."""

    rows: list[int]
    times: list[str | float]
    values: list[list[float | None]] = Field(description="One list for each variable.")
    estimate: list[list[float | None]]
    score: list[float | None]
    change_score: list[float | None]
    p_value: list[float | None]
    dropped: list[int]
    anomaly: list[int]
    change: list[int]


class History(BaseModel):
    """The past of a stream in buckets of rows; one of a single point has low = high = its value."""

    first_row: int
    n_rows: int
    condensed: bool
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


class Skipped(BaseModel):
    """Points that were not learnt: older than the last one of their stream, or equal to it."""

    late: int
    repeated: int


class Accepted(BaseModel):
    """What became of posted points: those accepted are in the store."""

    stream: str
    accepted: int
    first_row: int | None
    last_row: int | None
    skipped: Skipped
    alarms: list[Alarm]


class Alarms(BaseModel):
    """Some of the alarms, the newest first."""

    total: int
    alarms: list[Alarm]


class ErrorDetail(BaseModel):
    """What is wrong."""

    code: str
    message: str
    details: Any = None


class Error(BaseModel):
    """Every error looks like this."""

    error: ErrorDetail


class Point(StrictModel):
    """A point with its value, and when it was."""

    value: Number
    time: Time | None = None


class MultiValuePoint(StrictModel):
    """A point of several variables, by their order or by their names; null is a missing value."""

    values: Annotated[list[Number | None], Field(min_length=1, max_length=32)] | dict[str, Number | None]
    time: Time | None = None


PointInput = Number | Point | MultiValuePoint


class Posted(StrictModel):
    """Several points."""

    points: Annotated[list[PointInput], Field(min_length=1)]


Body = (
    PointInput
    | Annotated[list[PointInput | Annotated[list[Number | None], Field(min_length=1)]], Field(min_length=1)]
    | Posted
)
"""Of POST /streams/{key}/points."""


class StreamPoint(StrictModel):
    """A point of one of many streams."""

    stream: Annotated[str, Field(min_length=1, max_length=200)]
    value: Number | None = None
    values: list[Number | None] | dict[str, Number | None] | None = None
    time: Time | None = None


StreamPointList = Annotated[list[StreamPoint], Field(min_length=1)]
"""Of POST /points."""
