"""Whatever fits the description, and whatever does not: never an error of the server."""

import os

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from playhead.views.web.api.api_app import app
from playhead.views.web.api.operations import OPERATIONS

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
THOROUGHLY = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture
def schema(store, refund, forge):
    forge("running", pid=os.getpid())
    made = schemathesis.openapi.from_asgi("/api/openapi.json", app(store, hosts=["testserver"]))
    # What is too long to be looked at is refused for that.
    rejection = made.config.checks.negative_data_rejection
    rejection.expected_statuses = [*rejection.expected_statuses, "413"]
    return made


@pytest.mark.parametrize(
    "described", [one for one in OPERATIONS if one.id != "live"], ids=lambda one: one.id
)
def test_no_request_makes_the_server_fail(schema, refund, described):
    operation = schema[described.path][described.method]
    asked = [operation.as_strategy(generation_mode=mode) for mode in GenerationMode]

    @given(st.one_of(asked), st.sampled_from([refund.path.name, "running", None]))
    @THOROUGHLY
    def ask(case, run):
        # A made-up id finds nothing: mostly one that is there.
        if run is not None and "id" in (case.path_parameters or {}):
            case.path_parameters["id"] = run
        case.call_and_validate(checks=CHECKS)

    ask()
