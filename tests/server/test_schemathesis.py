"""The API against its part documentation: nothing that fits it, or does not, makes the server fail."""

import httpx
import pytest
import requests
import schemathesis
from hypothesis import given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi import checks

import limpet as lp
from helpers.monitor import levels, served
from limpet.server.app import make_app
from limpet.server.monitor import MonitorConfig
from limpet.server.security import SecurityConfig

CHECKS = [
    not_a_server_error,
    checks.status_code_conformance,
    checks.content_type_conformance,
    checks.response_schema_conformance,
    checks.negative_data_rejection,
]
NOT_HTTP = b"Invalid HTTP request received."  # what never gets to the app
ENDLESS = r"/events$"  # event streams do not end


@pytest.fixture(scope="module")
def operations(tmp_path_factory):
    """All of them, against a server with a few streams and alarms."""
    app = make_app(
        MonitorConfig(str(tmp_path_factory.mktemp("part") / "store.db"), lp.Detector()),
        SecurityConfig(max_requests_per_s=1e9),
    )
    with served(app) as url:
        for key in ("0", "a"):
            httpx.post(f"{url}/streams/{key}/points", json=levels()).raise_for_status()
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex=ENDLESS)
        yield [stored.ok() for stored in schema.get_all_operations()]


def try_out(operation, mode, n, session):
    """What goes wrong with so many examples, in words."""

    @settings(max_examples=n)
    @given(operation.as_strategy(mode))
    def call(case):
        response = case.call(session=session, timeout=60)
        if response.content != NOT_HTTP:
            case.validate_response(response, checks=CHECKS)

    try:
        call()
    except Unsatisfiable:  # nothing can be wrong with it
        return ""
    except BaseException as error:
        return f"{operation.label}: {error} {getattr(error, 'exceptions', '')}"
    return ""


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["what fits", "what does not"])
@pytest.mark.parametrize("n", [12, pytest.param(300, marks=pytest.mark.long)])
def test_every_operation(operations, mode, n):
    assert len(operations) > 15
    with requests.Session() as session:
        stored = [problem for operation in operations if (problem := try_out(operation, mode, n, session))]
    assert not stored, "\n\n".join(stored)
