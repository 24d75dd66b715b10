"""The API against its OpenAPI document: neither valid nor invalid requests make the server fail."""

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
from helpers.monitor import make_levels, serve_app
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
INVALID_HTTP_RESPONSE = b"Invalid HTTP request received."  # never reaches the app
EVENT_STREAM_PATTERN = r"/events$"  # event streams do not end


@pytest.fixture(scope="module")
def operations(tmp_path_factory):
    """All of them, against a server with a few streams and alarms."""
    app = make_app(
        MonitorConfig(str(tmp_path_factory.mktemp("part") / "store.db"), lp.Detector()),
        SecurityConfig(max_requests_per_s=1e9),
    )
    with serve_app(app) as url:
        for key in ("0", "a"):
            httpx.post(f"{url}/streams/{key}/points", json=make_levels()).raise_for_status()
        schema = schemathesis.openapi.from_url(f"{url}/openapi.json").exclude(path_regex=EVENT_STREAM_PATTERN)
        yield [stored.ok() for stored in schema.get_all_operations()]


def find_failures(operation, mode, n, session):
    """Describe the failures with n examples; return "" without any."""

    @settings(max_examples=n)
    @given(operation.as_strategy(mode))
    def call_operation(case):
        response = case.call(session=session, timeout=60)
        if response.content != INVALID_HTTP_RESPONSE:
            case.validate_response(response, checks=CHECKS)

    try:
        call_operation()
    except Unsatisfiable:  # nothing can be wrong with it
        return ""
    except BaseException as error:
        return f"{operation.label}: {error} {getattr(error, 'exceptions', '')}"
    return ""


@pytest.mark.parametrize("mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"])
@pytest.mark.parametrize("n", [12, pytest.param(300, marks=pytest.mark.long)])
def test_every_operation(operations, mode, n):
    assert len(operations) > 15
    with requests.Session() as session:
        failures = [problem for operation in operations if (problem := find_failures(operation, mode, n, session))]
    assert not failures, "\n\n".join(failures)
