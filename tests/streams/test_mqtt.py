import json
import logging
import sys
import time

import pytest

from helpers.brokers import MOSQUITTO, free_port, gather_batches, get_values, make_results, start_mosquitto
from limpet.exceptions import InvalidInputError, LimpetError, MissingExtraError
from limpet.streams.brokers.mqtt import MqttSink, MqttSource, make_sink, make_source
from limpet.streams.schema import ColumnSpec

mqtt = pytest.importorskip("paho.mqtt.client")
needs_broker = pytest.mark.skipif(MOSQUITTO is None, reason="mosquitto is not installed")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    broker = start_mosquitto(tmp_path_factory.mktemp("mosquitto"))
    yield broker
    broker.kill()


def get_url(server):
    return f"mqtt://127.0.0.1:{server.port}"


def publish(server, *messages, qos=1):
    """Messages are (topic, payload)."""
    client = mqtt.Client(mqtt.CallbackAPIVersion.VERSION2, protocol=mqtt.MQTTv5)
    client.connect("127.0.0.1", server.port)
    client.loop_start()
    for publication in [client.publish(topic, payload, qos=qos) for topic, payload in messages]:
        publication.wait_for_publish(5)
    client.disconnect()
    client.loop_stop()


def make_messages(topic, first, last):
    return [(topic, json.dumps({"time": i, "a": float(i)}).encode()) for i in range(first, last)]


def subscribe(server, topic):
    """Subscribe a source once, so that the broker stores messages for it."""
    source = make_source(f"{get_url(server)}/{topic}")
    next(source.read(None))
    source.close()


@needs_broker
def test_uncommitted_messages_are_read_again(server):
    subscribe(server, "again/x")
    publish(server, *make_messages("again/x", 0, 1000))  # without a Receive Maximum of ours 20 of them would come
    url = f"{get_url(server)}/again/x"
    source = make_source(url)
    batches = gather_batches(source.read(None), 1000)
    assert get_values(batches) == list(range(1000))
    assert batches[-1].names == ("a",)
    source.close()
    source = make_source(url)  # as after a crash
    batches = gather_batches(source.read(None), 1000)
    assert get_values(batches) == list(range(1000))
    middle = next(batch for batch in batches if len(batch))
    source.commit(json.loads(json.dumps(middle.position)))
    time.sleep(0.2)
    source.close()
    source = make_source(url)
    rest = gather_batches(source.read(middle.position), 1000 - len(middle), 1.5)
    assert get_values(rest) == list(range(len(middle), 1000))
    source.commit(rest[-1].position)
    time.sleep(0.2)
    source.close()
    assert get_values(list(make_source(url, follow=False).read(rest[-1].position))) == []


@needs_broker
def test_topics_as_keys_and_malformed_messages(server):
    subscribe(server, "keys/+/#")
    valid = [(f"keys/{name}/t", json.dumps({"a": i}).encode()) for i in range(30) for name in ("p", "q")]
    malformed = [("keys/p", b"{"), ("keys/q", b"\xff"), ("keys/q", b'"text"'), ("keys/p/1/2", b'{"a": "x"}')]
    publish(server, *valid[:30], *malformed, *valid[30:])
    source = make_source(f"{get_url(server)}/keys/+/#", columns=ColumnSpec(key="topic"), follow=False)
    batches = list(source.read(None))
    assert sum(map(len, batches)) == 60
    assert sum(batch.malformed.total for batch in batches) == 4
    assert {key for batch in batches if batch.keys for key in batch.keys.values} == {"keys/p/t", "keys/q/t"}


@needs_broker
def test_resumes_after_the_broker_was_killed(tmp_path, caplog):
    caplog.set_level(logging.INFO, "limpet.streams")
    server = start_mosquitto(tmp_path)
    try:
        source = MqttSource(get_url(server), "kept/x")
        read = source.read(None)
        next(read)
        publish(server, *make_messages("kept/x", 0, 400))
        batches = gather_batches(read, 200)
        now, state_file = time.time(), tmp_path / "mosquitto.db"
        while not state_file.exists() or state_file.stat().st_mtime <= now:  # until the broker has saved its state
            time.sleep(0.05)
        server.kill()
        while "connection lost" not in caplog.text:
            time.sleep(0.01)
        source.commit(batches[-1].position)  # acknowledged after the reconnect
        server.start()
        publish(server, *make_messages("kept/x", 400, 410))  # before the source is back
        batches += gather_batches(read, 410 - sum(map(len, batches)))
        assert get_values(batches) == list(range(410))
        source.commit(batches[-1].position)
        time.sleep(0.2)
        source.close()
        assert get_values(list(MqttSource(get_url(server), "kept/x", follow=False).read(None))) == []
        assert sum("retrying" in record.getMessage() for record in caplog.records) == 1
    finally:
        server.kill()


@needs_broker
def test_sinks_are_at_least_once(server):
    subscribe(server, "out/#")
    for table in ("points", "alarms"):
        sink = make_sink(f"{get_url(server)}/out/{table}", table=table)
        sink.truncate_to(None)
        sink.write(make_results(300, alarms=(10, 20)))
        assert sink.flush()["n_sent"] == (300 if table == "points" else 2)
        sink.close()
    source = make_source(f"{get_url(server)}/out/#", columns=ColumnSpec(columns=("a",), time="none"), follow=False)
    batches = list(source.read(None))
    assert get_values(batches) == list(range(300))  # the alarms have no column a
    assert sum(batch.malformed.total for batch in batches) == 2


@needs_broker
def test_duplicate_client_id_is_reported(server, caplog):
    sources = [MqttSource(get_url(server), "a", client_id="same") for _ in range(2)]
    for source in sources:
        next(source.read(None))
    until = time.monotonic() + 5
    while "does another client have the same client id?" not in caplog.text:
        assert time.monotonic() < until
        time.sleep(0.1)
    for source in sources:
        source.close()


@needs_broker
def test_sink_resumes_after_the_broker_was_killed(tmp_path):
    server = start_mosquitto(tmp_path)
    try:
        sink = MqttSink(get_url(server), "out/x", "points")
        sink.truncate_to(None)
        sink.write(make_results(100))
        sink.flush()
        server.kill()
        sink.write(make_results(100, first=100))
        sink.timeout = 0.1
        with pytest.raises(LimpetError, match="has not confirmed 100 messages"):
            sink.flush()
        server.start()
        sink.timeout = 5
        assert sink.flush()["n_sent"] == 200
        sink.close()
    finally:
        server.kill()


@needs_broker
def test_errors_are_immediate(server, tmp_path):
    begun = time.monotonic()
    with pytest.raises(InvalidInputError, match=r"127.0.0.1:\d+: cannot connect: connection refused"):
        next(make_source(f"mqtt://me:secret@127.0.0.1:{free_port()}/a").read(None))
    with pytest.raises(InvalidInputError, match="connection refused"):
        make_sink(f"mqtt://127.0.0.1:{free_port()}/a").truncate_to(None)
    (tmp_path / "users").write_text("")
    closed = start_mosquitto(tmp_path, "allow_anonymous false", f"password_file {tmp_path / 'users'}")
    with pytest.raises(InvalidInputError, match="not authorized") as error:
        next(make_source(f"mqtt://me:secret@127.0.0.1:{closed.port}/a").read(None))
    assert "secret" not in str(error.value)
    closed.kill()
    assert time.monotonic() - begun < 5


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mqtt://host", "must have a topic"),
        ("mqtt://host:x/a", "port"),
        ("mqtt://me:secret@host/a?name=b", "has no option 'name'"),
        ("mqtt://host/a/#/b", "topic: "),
        ("mqtt://host/a+/b", "topic: "),
        ("mqtts://host/a?ca=nowhere.pem", "cannot read the certificates"),
    ],
)
def test_invalid_urls_raise(url, message):
    with pytest.raises(InvalidInputError, match=message) as error:
        next(iter(make_source(url).read(None)))
    assert "secret" not in str(error.value)


def test_sinks_raise_for_wildcards():
    with pytest.raises(InvalidInputError, match="topic: "):
        make_sink("mqtt://host/a/#")


def test_missing_extra_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    for connect in (
        lambda: next(iter(make_source("mqtt://host/a").read(None))),
        lambda: make_sink("mqtt://host/a").truncate_to(None),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'limpet\[mqtt\]'"):
            connect()
