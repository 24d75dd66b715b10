"""Tests with the mock brokers of librdkafka, which implement a part of Kafka."""

import json
import sys
import time

import pytest

from helpers.brokers import free_port, gather_batches, get_values, make_results
from limpet.exceptions import CheckpointError, InvalidInputError, LimpetError, MissingExtraError
from limpet.streams.brokers.kafka import KafkaSink, KafkaSource, make_sink, make_source
from limpet.streams.schema import ColumnSpec

kafka = pytest.importorskip("confluent_kafka")


@pytest.fixture(scope="module")
def cluster():
    """Servers of the mock brokers, which live in a producer."""
    home = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 2, "log_level": 0})
    brokers = home.list_topics(timeout=5).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del home


def publish(cluster, topic, messages):
    producer = kafka.Producer({"bootstrap.servers": cluster, "linger.ms": 1})
    for partition, payload in messages:
        producer.produce(topic, payload, partition=partition)
    assert producer.flush(5) == 0


def make_messages(first, last, partitions=1):
    return [(i % partitions, json.dumps({"time": i, "a": float(i)}).encode()) for i in range(first, last)]


def test_reads_once_from_the_beginning_and_from_a_position(cluster):
    publish(cluster, "once", make_messages(0, 3000, 4))
    url = f"kafka://{cluster}/once"
    batches = list(make_source(url, columns=ColumnSpec(time="none"), follow=False).read(None))
    assert sorted(get_values(batches)) == list(range(3000))
    assert batches[-1].position["offsets"] == {str(i): 750 for i in range(4)}
    assert batches[-1].lag == 0
    first = next(batch for batch in batches if len(batch))
    middle = json.loads(json.dumps(first.position))
    rest = list(make_source(url, follow=False).read(middle))
    assert sorted(get_values([first]) + get_values(rest)) == list(range(3000))
    assert get_values(list(make_source(url, follow=False).read(batches[-1].position))) == []


def test_source_follows_and_yields_empty_batches(cluster):
    publish(cluster, "live", make_messages(0, 5))
    source = make_source(f"kafka://{cluster}/live?group=seen")
    read = source.read(None)
    batches = gather_batches(read, 5)
    assert get_values(batches) == [0, 1, 2, 3, 4]
    begun = time.monotonic()
    assert len(next(read)) == 0
    assert time.monotonic() - begun < 1
    publish(cluster, "live", make_messages(5, 6))
    batches = gather_batches(read, 1)
    assert get_values(batches) == [5]
    source.commit(json.loads(json.dumps(batches[-1].position)))
    next(read)
    monitor = kafka.Consumer({"bootstrap.servers": cluster, "group.id": "seen"})
    until = time.monotonic() + 5
    while monitor.committed([kafka.TopicPartition("live", 0)], timeout=2)[0].offset != 6:
        assert time.monotonic() < until
        next(read)
    monitor.close()
    source.close()


def test_malformed_messages(cluster):
    valid = [(0, json.dumps({"a": i}).encode()) for i in range(60)]
    malformed = [(0, payload) for payload in (b"{", b"\xff", b'"text"', b'{"a": "x"}', b"")]
    publish(cluster, "mixed", valid[:30] + malformed + valid[30:])
    batches = list(make_source(f"kafka://{cluster}/mixed", follow=False).read(None))
    assert get_values(batches) == list(range(60))
    assert sum(batch.malformed.total for batch in batches) == 5


def test_sinks_are_at_least_once(cluster):
    for table, n in (("points", 300), ("alarms", 2)):
        sink = make_sink(f"kafka://{cluster}/out-{table}?linger.ms=1", table=table)
        sink.truncate_to(None)
        sink.write(make_results(300, alarms=(10, 20)))
        assert sink.flush()["n_sent"] == n
        sink.close()
    source = KafkaSource(cluster, "out-points", ColumnSpec(columns=("a",), key="id", time="none"), follow=False)
    batches = list(source.read(None))
    assert sorted(get_values(batches)) == list(range(300))
    alarms = list(make_source(f"kafka://{cluster}/out-alarms", columns=ColumnSpec(key="id"), follow=False).read(None))
    assert {key for batch in alarms if batch.keys for key in batch.keys.values} == {"r-alarms-0", "r-alarms-1"}


def test_undelivered_messages_raise():
    home = kafka.Producer({"bootstrap.servers": "none", "test.mock.num.brokers": 1, "log_level": 0})
    (broker,) = home.list_topics(timeout=5).brokers.values()
    sink = KafkaSink(f"{broker.host}:{broker.port}", "out", "points", options={"message.timeout.ms": "500"})
    sink.truncate_to(None)
    del home  # and the broker with it
    sink.write(make_results(10))
    with pytest.raises(LimpetError, match="not delivered"):
        sink.flush()


def test_errors_are_immediate(cluster, monkeypatch):
    monkeypatch.setattr("limpet.streams.brokers.kafka.REPLY_TIMEOUT_S", 1.0)
    with pytest.raises(InvalidInputError, match=r"127.0.0.1:\d+: cannot connect: no response"):
        next(make_source(f"kafka://127.0.0.1:{free_port()}/a").read(None))
    with pytest.raises(InvalidInputError, match=r"127.0.0.1:\d+: cannot connect: no response"):
        make_sink(f"kafka://127.0.0.1:{free_port()}/a").truncate_to(None)
    with pytest.raises(InvalidInputError, match="No such configuration property"):
        next(make_source(f"kafka://{cluster}/a?grupp=b").read(None))
    with pytest.raises(InvalidInputError, match="position: "):
        next(make_source(f"kafka://{cluster}/a").read({"sequence": 3}))
    with pytest.raises(CheckpointError, match="kafka topic: the checkpoint has 'a', got 'b'"):
        next(make_source(f"kafka://{cluster}/b").read({"topic": "a", "offsets": {"0": 3}}))
    with pytest.raises(CheckpointError, match=r"checkpoint: .*/a, got points to"):
        make_sink(f"kafka://{cluster}/b", table="points").truncate_to(
            make_sink(f"kafka://{cluster}/a", table="points").flush()
        )


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("kafka://host", "must have a topic"),
        ("kafka://host:x/a", "port"),
        ("kafka://me:secret@host/a b", "topic: "),
        ("kafka://host/a?enable.auto.commit=true", "has no option 'enable.auto.commit'"),
    ],
)
def test_invalid_urls_raise(url, message):
    with pytest.raises(InvalidInputError, match=message) as error:
        make_source(url)
    assert "secret" not in str(error.value)


def test_missing_extra_raises(monkeypatch):
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    for connect in (
        lambda: next(iter(make_source("kafka://host/a").read(None))),
        lambda: make_sink("kafka://host/a").truncate_to(None),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'limpet\[kafka\]'"):
            connect()
