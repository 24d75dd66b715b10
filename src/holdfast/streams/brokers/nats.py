"""NATS JetStream: nats://[user:password@]host[:4222][,host…]/subject[?stream=NAME&creds=FILE]."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from holdfast.errors import BadInputError
from holdfast.streams.batch import Batch
from holdfast.streams.brokers.addresses import joined, read_address, without_password
from holdfast.streams.brokers.inlet import ANY, MESSAGES, Inlet
from holdfast.streams.brokers.nats_publish import IN_FLIGHT, Publish
from holdfast.streams.brokers.nats_pull import Pull
from holdfast.streams.brokers.outlet import HURRIED, messages_of
from holdfast.streams.columns import Wanted
from holdfast.streams.positions import part_of, require_same_part
from holdfast.streams.results import Results
from holdfast.streams.sink import Sink, mark_of, parts_of
from holdfast.streams.source import Source
from holdfast.streams.tables import check_what

PORTS = {"nats": 4222}


class NatsSource:
    """Reads the messages of a JetStream stream, each once: where it is is a sequence of the stream, not of a consumer.

    servers: one address or several. subject: may have wildcards; as the key it is called "subject". stream: its name;
    by default the one that has the subject. follow: waits for more; else what is there is read. batch_size: messages
    that one batch is made of at most. user, password, creds: a login, or the file of one.

    A server that goes away is waited for; nothing is lost or read twice, as long as the stream keeps it.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str,
        wanted: Wanted = ANY,
        *,
        stream: str | None = None,
        follow: bool = True,
        batch_size: int = MESSAGES,
        user: str | None = None,
        password: str | None = None,
        creds: str | None = None,
    ) -> None:
        self._servers, self._login = servers, _login(user, password, creds)
        self._subject, self._stream = _subject(subject, wildcards=True), stream
        self._wanted, self._follow, self._batch_size = wanted, follow, batch_size
        self._pull: Pull | None = None

    def read(self, position: Any) -> Iterator[Batch]:
        """Batches after a position {"stream": …, "subject": …, "sequence": …, "created": …, "columns": …}."""
        sequence = part_of(position, "sequence", int)
        require_same_part(position, "subject", self._subject, "nats subject")
        if self._stream is not None:
            require_same_part(position, "stream", self._stream, "nats stream")
        created = None if position is None else position.get("created")
        pull = self._pull = Pull(
            self._servers, self._login, self._subject, self._stream, sequence, created, self._follow
        )
        pull.open()
        try:
            assert pull.stream is not None
            require_same_part(position, "stream", pull.stream, "nats stream")
            whose: dict[str, Any] = {"stream": pull.stream, "subject": self._subject}
            place = whose | {"sequence": pull.first, "created": pull.created}
            inlet = Inlet(self._wanted, position, place)
            behind: int | None = None
            while not pull.at_end:
                taken = pull.take(self._batch_size)
                if taken:
                    place = whose | {"sequence": taken[-1].sequence, "created": taken[-1].created}
                    behind = taken[-1].pending
                last = pull.at_end
                yield inlet.batch([(one.payload, one.subject) for one in taken], place, behind, last=last)
        finally:
            self.close()

    def close(self) -> None:
        """Ends the connection."""
        if self._pull is not None:
            self._pull.close()


class NatsSink(Sink):
    """Tells alarms or points to a subject of a JetStream stream, each once.

    Each message has the id {run}-{what}-{number}. What is told again after a crash is left out if it is in the stream
    already; the mark says how many were told, and from which sequence on to look for more.

    patience: seconds to wait for a server that has gone away.
    """

    def __init__(
        self,
        servers: str | Sequence[str],
        subject: str,
        what: str = "alarms",
        *,
        user: str | None = None,
        password: str | None = None,
        creds: str | None = None,
        patience: float = float("inf"),
    ) -> None:
        self._servers, self._login = servers, _login(user, password, creds)
        self._subject, self._what = _subject(subject, wildcards=False), check_what(what)
        self.patience = patience
        hosts = [servers] if isinstance(servers, str) else servers
        self.name = f"{what} to {', '.join(map(without_password, hosts))}, subject {subject}"
        self._publish: Publish | None = None
        self._sequence: int | None = None
        self._told = 0

    def rewind(self, mark: Any) -> None:
        """Connects; what is told again after the mark will be told once."""
        known: dict[str, Any] = {"told": 0, "sequence": None} if mark is None else parts_of(self, mark)
        self.close()
        self._told, self._sequence = known["told"], known["sequence"]
        self._publish = Publish(self._servers, self._login, self._subject, self._sequence)
        self._publish.open()

    def write(self, results: Results) -> None:
        """Tells one message an alarm or a point."""
        if self._publish is None:
            self.rewind(None)
        assert self._publish is not None
        prefix = f"{results.run}-{self._what}-"
        messages = [(n, told) for n, _, told, _ in messages_of(results, self._what) if n >= self._told]
        for first in range(0, len(messages), IN_FLIGHT):
            self._publish.unconfirmed.wait(IN_FLIGHT, self.patience)
            self._publish.put(prefix, messages[first : first + IN_FLIGHT])
        if messages:
            self._told = messages[-1][0] + 1

    def flush(self) -> Any:
        """Waits until all is in the stream."""
        if self._publish is not None:
            self._publish.unconfirmed.wait(0, self.patience)
            self._sequence = self._publish.sequence
        return mark_of(self, told=self._told, sequence=self._sequence)

    def hurry(self) -> None:
        """A broker that has gone away is not waited for much longer."""
        self.patience = min(self.patience, HURRIED)

    def close(self) -> None:
        """Ends the connection; what has not been flushed may be lost."""
        if self._publish is not None:
            self._publish.close()


def source_of(url: str, wanted: Wanted = ANY, follow: bool = True) -> Source:
    """The source that an address names."""
    address = read_address(url, PORTS, "subject", ("stream", "creds"))
    return NatsSource(
        [f"nats://{joined(*host)}" for host in address.hosts],
        address.subject,
        wanted,
        stream=address.options.get("stream"),
        follow=follow,
        user=address.user,
        password=address.password,
        creds=address.options.get("creds"),
    )


def sink_of(url: str, what: str = "alarms") -> Sink:
    """The sink that an address names."""
    address = read_address(url, PORTS, "subject", ("creds",))
    return NatsSink(
        [f"nats://{joined(*host)}" for host in address.hosts],
        address.subject,
        what,
        user=address.user,
        password=address.password,
        creds=address.options.get("creds"),
    )


def _login(user: str | None, password: str | None, creds: str | None) -> dict[str, Any]:
    if user is not None and password is None:
        return {"token": user}
    login: dict[str, Any] = {} if user is None else {"user": user, "password": password}
    return login if creds is None else login | {"user_credentials": creds}


def _subject(subject: str, *, wildcards: bool) -> str:
    """A subject of NATS: words with points between them."""
    words = subject.split(".")
    wild = any(word in ("*", ">") for word in words)
    bad = not all(words) or any(c.isspace() for c in subject) or ">" in words[:-1]
    if bad or (wild and not wildcards):
        raise BadInputError(
            f"{subject!r} is not a subject that messages can be {'read from' if wildcards else 'told to'}"
        )
    return subject
