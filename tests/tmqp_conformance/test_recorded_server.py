"""The recorded original, replayed, gets the verdicts that docs/conformance.md says."""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.docs.pages import page, section
from tests.support import load_exchange
from tests.tmqp_conformance.recorded import RecordedServer, counterparts, matches
from tmqp import Frame
from tmqp.constants import PREAMBLE
from tmqp.testing.conformance import Case, Verdict
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.suite import find

pytestmark = pytest.mark.cold

PAGE: Final = page("conformance.md")
#: case, recording, verdict, cases of the page that explain it.
ROWS: Final = re.findall(
    r"^\| `(server\.\S+)` \| `(probe-\d+)` \| ([a-z-]+) \| (.*?) ?\|$",
    section(PAGE, "The recorded original under the suite"),
    re.MULTILINE,
)


def found(name: str) -> Case:
    case = find(name)
    assert case is not None, name
    return case


def test_each_row_has_the_verdict_that_comes_out() -> None:
    assert len(ROWS) >= 15
    for name, recording, verdict, explained in ROWS:
        (first, *_) = matches(found(name), [load_exchange(recording)])
        assert (name, str(first.result.verdict)) == (name, verdict)
        assert bool(explained) is (first.result.verdict is not Verdict.PASS), name
        for anchor in re.findall(r"\(#(c\d+)\)", explained):
            assert f'<a id="{anchor}"></a>' in PAGE


@pytest.mark.long
def test_the_rows_are_all_cases_with_a_recorded_counterpart() -> None:
    computed = [
        (each.case.id, each.exchange.name[:9], str(each.result.verdict))
        for each in counterparts(SERVER_CASES)
    ]
    assert computed == [row[:3] for row in ROWS]


def server(recording: str) -> RecordedServer:
    return RecordedServer(load_exchange(recording))


def say(machine: RecordedServer, *frames: Frame) -> bytes:
    machine.receive(0, b"".join([frame.raw for frame in frames]), 0.0)
    return machine.take(0)


def test_another_request_has_no_counterpart() -> None:
    case = found("server.channel.create")
    machine = server("probe-027")
    machine.open(case, 0.0)
    hello = Frame.build(
        0x10, "", 101, b"CONNECT /\r\nClient-Id: me\r\n", message_id="h", first_acquirer=True
    )
    machine.receive(0, PREAMBLE + hello.raw, 0.0)
    assert b"me" in machine.take(0), "the acceptance has the case's name"
    request = Frame.build(0x10, "mine", 603, message_id="1", pending_response=True)
    answer = say(machine, request)
    assert answer.endswith(b"1me"), "the recorded answer has the case's names"
    # "twice" and "TWICE" are one name: two different ones do not stand for them.
    with pytest.raises(Exception, match="not recorded"):
        say(machine, Frame.build(0x10, "other", 603, message_id="2", pending_response=True))
    assert machine.lost


def test_a_case_that_waits_longer_than_was_recorded_has_no_counterpart() -> None:
    assert [*matches(found("server.keepalive.quiet-second"), [load_exchange("probe-027")])] == []
