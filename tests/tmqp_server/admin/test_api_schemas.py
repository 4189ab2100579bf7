"""Requests made from the API's own description: whatever they ask, no answer is a fault of ours."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.tmqp_server.admin.api_stage import ApiStage
from tests.tmqp_server.doors.http.stage import Answer
from tmqp_server.admin.api.openapi import description_of
from tmqp_server.admin.api.operations import OPERATIONS

schemathesis = pytest.importorskip("schemathesis")
jsonschema_rs = pytest.importorskip("jsonschema_rs")
requests = pytest.importorskip("requests")

pytestmark = pytest.mark.long

#: Streams do not end, and what logs out or cuts the client off ends the others' connection.
LEFT_OUT: Final = {"followEvents", "followNumbers"}
DESCRIPTION: Final = json.loads(json.dumps(description_of(OPERATIONS, "1")))
SCHEMA: Final = schemathesis.openapi.from_dict(DESCRIPTION)
NAMES: Final = [each.name for each in OPERATIONS if each.name not in LEFT_OUT]
CASES: Final = 6


@functools.cache
def _judge(text: str) -> Any:
    return jsonschema_rs.validator_for(json.loads(text))


def judge_of(schema: dict[str, Any]) -> Any:
    """Judges answers by a schema of the description."""
    return _judge(json.dumps({**schema, "components": DESCRIPTION["components"]}))


class Server:
    """One server for all requests; who is cut off comes again."""

    def __init__(self) -> None:
        self.stage = ApiStage()
        self.stage.prepare()
        self.caller = self.stage.caller()
        #: Answers by the first digit of their status.
        self.statuses: Counter[int] = Counter()

    def ask(self, case: Any) -> Answer:
        """Send a request as the description allows it, or not."""
        sent = case.as_transport_kwargs(base_url="http://127.0.0.1")
        prepared = requests.Request(**sent).prepare()
        body = prepared.body or b""
        data = body.encode() if isinstance(body, str) else body
        fields = {
            key: value
            for key, value in prepared.headers.items()
            if key.lower() not in ("content-length", "host", "cookie", "connection")
            and all(" " <= each <= "~" for each in value)
        }
        target = prepared.path_url
        if self.caller.number in self.stage.closed:
            self.caller = self.stage.caller()
        method = str(prepared.method)
        self.caller.send(method, target, data or None, **fields)
        answer = self.caller.take()
        if answer.headers.get("Connection") == "close":
            self.caller = self.stage.caller()
        return answer


@pytest.fixture(scope="module")
def server() -> Server:
    return Server()


@pytest.mark.parametrize("name", NAMES)
def test_no_request_is_answered_with_a_fault(server: Server, name: str) -> None:
    """Whether it is as described or not; and what is answered is what the description says."""
    operation = SCHEMA.find_operation_by_id(name)
    modes = schemathesis.GenerationMode
    cases = st.one_of(
        operation.as_strategy(generation_mode=modes.POSITIVE),
        operation.as_strategy(generation_mode=modes.NEGATIVE),
    )

    @settings(
        max_examples=CASES,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(cases)
    def ask(case: Any) -> None:
        answer = server.ask(case)
        told = DESCRIPTION["paths"][operation.path][operation.method]["responses"]
        assert answer.status < 500 or (str(answer.status) in told and answer.status in (501, 503))
        server.statuses[answer.status // 100] += 1
        if answer.status < 300:
            content = told[str(answer.status)].get("content", {})
            assert ("application/json" in content) == bool(answer.body)
            if answer.body:
                judge_of(content["application/json"]["schema"]).validate(answer.json)

    ask()


def test_most_of_them_were_understood(server: Server) -> None:
    """If the description were of something else, all answers would be 4xx."""
    asked = server.statuses.total()
    if asked < len(NAMES):
        pytest.skip("few requests were made in this process")
    # One process of several may have had few of the operations that need nothing to be there.
    assert server.statuses[2] > asked / 20
    assert server.statuses[4] > asked / 20
