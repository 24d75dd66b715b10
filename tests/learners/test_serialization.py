"""Bytes and files: errors, and a crash that leaves the old file or the new one."""

import json
import os
import struct

import numpy as np
import pytest

import limpet as lp
from limpet.core import PolynomialDecay
from limpet.exceptions import CheckpointError
from limpet.learners import serialization
from limpet.models import ConjugatePrior, GaussianMixture


def make_learner():
    model = lp.SRA(2, rho=0.01, penalty=ConjugatePrior(weight=0.1, center=(1.0, 2.0)))
    model.process(np.random.default_rng(0).normal(size=(100, 2)))
    return model


def test_corrupted_bytes_raise():
    data = make_learner().to_bytes()
    for index in range(0, len(data), 7):
        corrupted = bytearray(data)
        corrupted[index] ^= 0x10
        with pytest.raises(CheckpointError):
            lp.from_bytes(bytes(corrupted))
    for length in (0, 5, 20, len(data) // 2, len(data) - 1):
        with pytest.raises(CheckpointError):
            lp.from_bytes(data[:length])


def test_errors_name_the_cause():
    with pytest.raises(CheckpointError, match=r"^data: must start with"):
        lp.from_bytes(b"PK something else altogether")
    data = make_learner().to_bytes()
    newer = data[:8] + struct.pack("<I", 99) + data[12:]
    with pytest.raises(CheckpointError, match=r"^data: must have format 1, got 99"):
        lp.from_bytes(newer)
    header, state = serialization.unpack(data)
    with pytest.raises(CheckpointError, match=r"^learner: 'Forest'"):
        lp.from_bytes(serialization.pack({**header, "learner": "Forest"}, state))
    with pytest.raises(CheckpointError, match=r"^state:"):
        lp.from_bytes(serialization.pack(header, state[:-1]))
    unknown_model = {"model": "Unheard", "settings": {}}
    settings = {**header["settings"], "model": unknown_model, "n_components": 1, "penalty": None}
    with pytest.raises(CheckpointError, match=r"^model: 'Unheard'"):
        lp.from_bytes(serialization.pack({**header, "settings": settings}, state))
    general = lp.StochasticApproximation(GaussianMixture(), PolynomialDecay()).to_bytes()
    header, state = serialization.unpack(general)
    header["settings"]["step_size"]["step_size"] = "Leap"
    with pytest.raises(CheckpointError, match="'Leap'"):
        lp.from_bytes(serialization.pack(header, state))


def test_the_header_is_plain_json_and_nothing_is_unpickled():
    header, state = serialization.unpack(make_learner().to_bytes())
    assert json.loads(json.dumps(header)) == header
    assert header["learner"] == "SRA"
    assert state.dtype == np.float64


def test_a_crash_while_saving_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "model.limpet"
    first = make_learner()
    first.save(path)
    before = path.read_bytes()
    second = make_learner()
    second.process(np.ones((50, 2)))

    def crash(*_):
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", crash)
    with pytest.raises(OSError, match="disk is full"):
        second.save(path)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.limpet"]


def test_existing_file_is_replaced(tmp_path):
    model = make_learner()
    model.save(tmp_path / "m")
    model.process(np.ones((5, 2)))
    model.save(tmp_path / "m")
    assert lp.load(tmp_path / "m").n_seen == 105


def test_learner_without_points_is_serialized():
    again = lp.from_bytes(lp.SRA(3, gamma=float("inf")).to_bytes())
    assert repr(again) == "SRA(n_components=3, gamma=inf)"
    assert again.n_seen == 0
