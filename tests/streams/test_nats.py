import asyncio
import json
import logging
import sys
import threading
import time

import pytest

from helpers.brokers import free_port, gather_batches, get_values, make_results, nats_server
from limpet.exceptions import CheckpointError, InvalidInputError, LimpetError, MissingExtraError
from limpet.streams.brokers.nats import NatsSink, NatsSource, make_sink, make_source
from limpet.streams.schema import ColumnSpec
from limpet.streams.uri import open_source

nats = pytest.importorskip("nats")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    nats_process = nats_server(tmp_path_factory.mktemp("nats"))
    yield nats_process
    nats_process.kill()


def run_with_jetstream(server, function):
    """Run a function with a separate client."""

    async def run():
        client = await nats.connect(get_url(server))
        try:
            return await function(client.jetstream())
        finally:
            await client.close()

    return asyncio.run(run())


def get_url(server):
    return f"nats://127.0.0.1:{server.port}"


def make_stream(server, name, **settings):
    run_with_jetstream(server, lambda js: js.add_stream(name=name, subjects=[f"{name}.>"], **settings))


def publish(server, *messages):
    """Messages are (subject, payload)."""

    async def run(js):
        for future in [await js.publish_async(subject, payload) for subject, payload in messages]:
            await future

    run_with_jetstream(server, run)


def make_messages(subject, first, last):
    return [(subject, json.dumps({"time": i, "a": float(i)}).encode()) for i in range(first, last)]


def read_stored(server, name):
    """The payloads and ids in a stream."""

    async def run(js):
        n_messages = (await js.stream_info(name)).state.messages
        consumer = await js.pull_subscribe(
            f"{name}.>", stream=name, config=nats.js.api.ConsumerConfig(ack_policy=nats.js.api.AckPolicy.NONE)
        )
        messages = []
        while len(messages) < n_messages:
            messages += await consumer.fetch(1000, timeout=1)
        return [(json.loads(message.data), (message.headers or {}).get("Nats-Msg-Id")) for message in messages]

    return run_with_jetstream(server, run)


def test_reads_once_from_the_beginning_and_from_a_position(server):
    make_stream(server, "once")
    publish(
        server,
        *make_messages("once.x", 0, 500),
        ("once.y", b'{"time": 1, "a": -1}'),
        *make_messages("once.x", 500, 3000),
    )
    url = f"{get_url(server)}/once.x"
    batches = list(make_source(url, follow=False).read(None))
    assert get_values(batches) == list(range(3000))
    assert batches[-1].position["sequence"] == 3001
    assert batches[-1].lag == 0
    assert batches[-1].times is not None
    assert batches[-1].names == ("a",)
    batch = next(batch for batch in batches if len(batch))
    middle = json.loads(json.dumps(batch.position))
    assert get_values(list(make_source(url, follow=False).read(middle))) == list(range(len(batch), 3000))
    assert get_values(list(make_source(url, follow=False).read(batches[-1].position))) == []


def test_source_follows_and_yields_empty_batches(server):
    make_stream(server, "live")
    source = make_source(f"{get_url(server)}/live.x")
    publish(server, *make_messages("live.x", 0, 5))
    batches = source.read(None)
    assert get_values(gather_batches(batches, 5)) == [0, 1, 2, 3, 4]  # the schema is inferred from five, after a second
    begun = time.monotonic()
    assert len(next(batches)) == 0
    assert time.monotonic() - begun < 1
    threading.Timer(0.1, publish, (server, *make_messages("live.x", 5, 6))).start()
    assert get_values(gather_batches(batches, 1)) == [5]
    source.close()


def test_subjects_as_keys_and_malformed_messages(server):
    make_stream(server, "keys")
    valid = [(f"keys.{name}", json.dumps({"a": i}).encode()) for i in range(40) for name in ("p", "q")]
    malformed = [
        ("keys.p", b"{"),
        ("keys.q", b"\xff\xff"),
        ("keys.q", b'"text"'),
        ("keys.p", b'{"a": "x"}'),
        ("keys.p", b""),
    ]
    publish(server, *valid[:40], *malformed, *valid[40:])
    source = NatsSource(get_url(server), "keys.*", ColumnSpec(key="subject"), follow=False, stream="keys")
    batches = list(source.read(None))
    assert sum(map(len, batches)) == 80
    assert sum(batch.malformed.total for batch in batches) == 5
    assert sum(batch.n_records for batch in batches) == 85
    keys = batches[-1].keys
    assert keys is not None
    assert set(keys.values) == {"keys.p", "keys.q"}


def test_resumes_after_the_server_was_killed(tmp_path, caplog):
    caplog.set_level(logging.INFO, "limpet.streams")
    server = nats_server(tmp_path)
    try:
        make_stream(server, "kept")
        publish(server, *make_messages("kept.x", 0, 20_000))
        source = NatsSource(get_url(server), "kept.x", batch_size=200)
        batches = source.read(None)
        read = gather_batches(batches, 6_000)
        server.kill()
        time.sleep(0.3)
        server.start()
        read += gather_batches(batches, 20_000 - sum(map(len, read)))
        publish(server, *make_messages("kept.x", 20_000, 20_010))
        read += gather_batches(batches, 10)
        assert get_values(read) == list(range(20_010))
        run_with_jetstream(server, _delete_consumers)
        publish(server, *make_messages("kept.x", 20_010, 20_020))
        assert get_values(gather_batches(batches, 10)) == list(range(20_010, 20_020))
        source.close()
        messages = [record.getMessage() for record in caplog.records]
        assert sum("reconnected" in text for text in messages) == sum("retrying" in text for text in messages) == 2
    finally:
        server.kill()


async def _delete_consumers(js):
    for consumer in await js.consumers_info("kept"):
        await js.delete_consumer("kept", consumer.name)


def test_deleted_messages_are_logged(server, caplog):
    make_stream(server, "short", max_msgs=100)
    publish(server, *make_messages("short.x", 0, 50))
    read = NatsSource(get_url(server), "short.x", follow=False).read
    *_, batch = read(None)
    publish(server, *make_messages("short.x", 50, 250))
    more = list(read(batch.position))
    assert get_values(more) == list(range(150, 250))
    assert "up to 100 messages were deleted" in caplog.text
    run_with_jetstream(server, lambda js: js.delete_stream("short"))
    make_stream(server, "short")
    publish(server, *make_messages("short.x", 0, 7))
    assert get_values(list(read(more[-1].position))) == list(range(7))
    assert "created again" in caplog.text


def test_messages_are_stored_once(server):
    make_stream(server, "out", duplicate_window=0.1)  # so that the server does not deduplicate
    first = make_results(3000, alarms=(10, 20))
    second = make_results(500, first=3000)
    for table, n in (("points", 3000), ("alarms", 2)):
        url = f"{get_url(server)}/out.{table}"
        sink = make_sink(url, table=table)
        sink.truncate_to(None)
        initial_offset = sink.flush()
        assert initial_offset["n_sent"] == 0
        publish(server, (f"out.{table}", b'{"id": "of another client"}'))  # another client publishes to the subject
        sink.write(first)
        offset = sink.flush()
        assert offset["n_sent"] == n
        sink.write(second)
        sink.close()
        publish(server, (f"out.{table}", b'{"id": "of another client"}'))
        time.sleep(0.3)
        for start_offset in (initial_offset, offset):  # as after a crash before the first checkpoint, and after it
            again = make_sink(url, table=table)
            again.truncate_to(json.loads(json.dumps(start_offset)))
            if start_offset is initial_offset:
                again.write(first)
            again.write(second)
            assert again.flush()["n_sent"] == (n + 500 if table == "points" else n)
            again.close()
    messages = read_stored(server, "out")
    assert sorted(int(name.rpartition("-")[2]) for _, name in messages if name and "points" in name) == list(
        range(3500)
    )
    assert [name for _, name in messages if name and "alarms" in name] == ["r-alarms-0", "r-alarms-1"]
    alarm = next(payload for payload, name in messages if name == "r-alarms-1")
    assert alarm["id"] == "r-alarms-1"
    assert alarm["record"] == 20
    assert alarm["variables"] == ["a"]
    point = next(payload for payload, name in messages if name == "r-points-0")
    assert point["score"] is None
    assert point["a"] == 0
    assert point["change"] is False


def test_sink_resumes_after_the_server_was_killed(tmp_path):
    server = nats_server(tmp_path)
    try:
        make_stream(server, "out")
        sink = NatsSink(get_url(server), "out.x", "points")
        sink.truncate_to(None)
        sink.write(make_results(2000))
        server.kill()
        threading.Timer(0.3, server.start).start()
        sink.write(make_results(2000, first=2000))
        offset = sink.flush()
        sink.close()
        assert (offset["n_sent"], offset["sequence"]) == (4000, 4000)
        assert [name for _, name in read_stored(server, "out")] == [f"r-points-{i}" for i in range(4000)]
        server.kill()
        sink = NatsSink(get_url(server), "out.x", "points", timeout=0.5)
        with pytest.raises(InvalidInputError, match="connection refused"):
            sink.truncate_to(offset)
    finally:
        server.kill()


def test_errors_are_immediate(server, tmp_path):
    begun = time.monotonic()
    make_stream(server, "some")
    with pytest.raises(InvalidInputError, match=r"127.0.0.1:\d+: cannot connect: connection refused"):
        next(make_source(f"nats://me:secret@127.0.0.1:{free_port()}/a").read(None))
    with pytest.raises(InvalidInputError, match=r"no stream with the subject 'nothing'"):
        next(make_source(f"{get_url(server)}/nothing").read(None))
    with pytest.raises(InvalidInputError, match=r"no stream 'other'"):
        next(make_source(f"{get_url(server)}/some.x?stream=other").read(None))
    with pytest.raises(InvalidInputError, match=r"no stream accepts the subject 'nothing'"):
        make_sink(f"{get_url(server)}/nothing").truncate_to(None)
    with pytest.raises(InvalidInputError, match="position: "):
        next(make_source(f"{get_url(server)}/some.x").read({"offsets": {}}))
    known = {"stream": "some", "subject": "some.x", "sequence": 3, "created": None}
    with pytest.raises(CheckpointError, match=r"nats subject: the checkpoint has 'some\.x', got 'some\.y'"):
        next(make_source(f"{get_url(server)}/some.y").read(known))
    with pytest.raises(CheckpointError, match="nats stream: the checkpoint has 'some', got 'other'"):
        next(make_source(f"{get_url(server)}/some.x?stream=other").read(known))
    with pytest.raises(CheckpointError, match="nats stream: the checkpoint has 'another', got 'some'"):
        next(make_source(f"{get_url(server)}/some.x").read(known | {"stream": "another"}))
    with pytest.raises(CheckpointError, match=r"checkpoint: .* subject a, got points to"):
        make_sink("nats://host/b", table="points").truncate_to(
            make_sink("nats://me:secret@host/a", table="points").flush()
        )
    assert "secret" not in str(make_sink("nats://me:secret@host/a", table="points").flush())
    with pytest.raises(InvalidInputError, match="unknown scheme tls://"):
        open_source("tls://host/a")
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("nats://host", "must have a subject"),
        ("nats://host/", "must have a subject"),
        ("nats://host:x/a", "port"),
        ("nats://host:99999/a", "port"),
        ("nats:///a", "must have a host"),
        ("nats://me:secret@host/a?streem=b", "has no option 'streem'"),
        ("nats://me:secret@host/a..b", "subject: "),
        ("http://me:secret@host/a", "url: must be like nats://"),
    ],
)
def test_invalid_urls_raise(url, message):
    with pytest.raises(InvalidInputError, match=message) as error:
        make_source(url)
    assert "secret" not in str(error.value)


def test_sinks_raise_for_wildcards():
    with pytest.raises(InvalidInputError, match="subject: "):
        make_sink("nats://host/a.*")
    with pytest.raises(InvalidInputError, match="'points' or 'alarms'"):
        make_sink("nats://host/a", table="everything")


def test_users_and_passwords(tmp_path):
    server = nats_server(tmp_path, "--user", "me", "--pass", "s@crt")
    try:
        with pytest.raises(InvalidInputError, match=r"(?i)authorization violation") as error:
            next(make_source(f"nats://me:wrong@127.0.0.1:{server.port}/a").read(None))
        assert "wrong" not in str(error.value)
        with pytest.raises(InvalidInputError, match="no stream"):
            next(make_source(f"nats://me:s%40crt@127.0.0.1:{server.port}/a").read(None))
    finally:
        server.kill()


def test_timeout_of_a_sink_raises(tmp_path):
    server = nats_server(tmp_path)
    make_stream(server, "out")
    sink = NatsSink(get_url(server), "out.x", "points", timeout=0.3)
    sink.truncate_to(None)
    server.kill()
    sink.write(make_results(10))
    with pytest.raises(LimpetError, match="has not confirmed 10 messages"):
        sink.flush()
    sink.close()


def test_missing_extra_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "nats", None)
    for connect in (
        lambda: next(iter(make_source("nats://host/a").read(None))),
        lambda: make_sink("nats://host/a").truncate_to(None),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'limpet\[nats\]'"):
            connect()
