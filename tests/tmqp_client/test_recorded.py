"""The client against the recorded server side of the original: each question finds its answer.

Every question that the original client was recorded to ask is asked again under its recorded id,
and the original server's bytes are fed in as they came: a program is told what was answered.
"""

from __future__ import annotations

from collections import Counter
from typing import Final

import pytest

from tests.support import load_session
from tmqp import ConnectionInformation, Frame, FrameDecoder
from tmqp.constants import (
    TYPE_ACKNOWLEDGE,
    TYPE_DIRECT_MESSAGE,
    TYPE_EVENT,
    TYPE_QUEUE_MESSAGE,
    TYPE_RESPONSE,
    TYPE_ROUTER,
    TYPE_SERVER,
    HeaderName,
)
from tmqp.testing.vectors import CLIENT_TO_SERVER
from tmqp_client import ClientLimits, NegativeAcknowledge, OperationFailed
from tmqp_client._core.letters import DirectRequest
from tmqp_client._core.machine import ClientMachine
from tmqp_client._core.outcomes import Outcome
from tmqp_client._core.pending import NO_QUEUE, Kind, Pending
from tmqp_client._core.requests import Request

ASKING: Final = (TYPE_SERVER, TYPE_EVENT, TYPE_DIRECT_MESSAGE, TYPE_ROUTER, TYPE_QUEUE_MESSAGE)


class Recorded(Request):
    """A question exactly as it was recorded."""

    def __init__(self, golden: Frame, kind: int) -> None:
        super().__init__(golden.content_type, "ask", golden.target, (), b"", NO_QUEUE, kind)
        self.golden = golden

    def to_frame(self, message_id: str, source: str, answer: bool) -> Frame:
        """The recorded frame."""
        assert message_id == self.golden.message_id
        return self.golden

    def asks(self, client_id: str) -> bool:
        """As our own requests judge whose answer counts."""
        what = (self.kind, self.golden.target, 0, b"", (), False, False)
        if self.golden.type == TYPE_DIRECT_MESSAGE:
            return DirectRequest(*what).asks(client_id)
        return self.golden.type == TYPE_ROUTER


class Replayed:
    """One connection of the recording, with our client's machine at its end."""

    def __init__(self) -> None:
        self.asked: dict[str, Pending] = {}
        self.answers: dict[str, Frame] = {}
        self._id = "first"
        self.machine = ClientMachine(
            ConnectionInformation("recorded"), ClientLimits(), lambda: self._id
        )
        self.machine.start(0.0)
        self._greeted = False
        self._asking = FrameDecoder()
        self._answering = FrameDecoder()

    def sent(self, data: bytes) -> None:
        """The original client sent this."""
        if data.startswith(b"TMQP"):
            return
        for frame in self._asking.feed(data):
            wanted = frame.pending_response or frame.pending_acknowledge
            if not self._greeted or frame.type not in ASKING or not wanted:
                continue
            self._id = frame.message_id
            if frame.type == TYPE_QUEUE_MESSAGE:
                self.asked[self._id] = self.machine.push(
                    *(frame.target, frame.content_type, frame.payload, ()), 1.0, confirm=True
                )
                continue
            kind = Kind.OPERATION
            if frame.type in (TYPE_DIRECT_MESSAGE, TYPE_ROUTER):
                kind = Kind.REQUEST if frame.pending_response else Kind.DIRECT
            self.asked[self._id] = self.machine.request(Recorded(frame, kind), 1.0)

    def answered(self, data: bytes) -> list[Outcome]:
        """The original server sent this."""
        if data.startswith(b"TMQP"):
            return self.machine.receive(data, 1.0)
        self._greeted = True
        for frame in self._answering.feed(data):
            if frame.type in (TYPE_RESPONSE, TYPE_ACKNOWLEDGE):
                self.answers.setdefault(frame.message_id, frame)
        return self.machine.receive(data, 1.0)


@pytest.fixture(scope="module")
def connections() -> list[Replayed]:
    made: dict[int, Replayed] = {}
    for step in load_session("real").steps:
        if step.total_bytes is not None:
            continue  # only its beginning was kept
        there = made.setdefault(step.connection, Replayed())
        if step.direction == CLIENT_TO_SERVER:
            there.sent(step.data)
        else:
            there.answered(step.data)
    return list(made.values())


def said(answer: Frame) -> tuple[str, object]:
    """What an answer says, in the words of our errors."""
    if answer.type == TYPE_ACKNOWLEDGE:
        reason = answer.header(HeaderName.NACK_REASON.value)
        return ("good", 0) if reason is None else ("refused", reason)
    if answer.content_type == 0 or answer.source:
        return ("good", 0)
    return ("failed", answer.content_type)


def told(pending: Pending) -> tuple[str, object]:
    """What a program is told."""
    error = pending.error
    if isinstance(error, NegativeAcknowledge):
        return ("refused", error.reason)
    if isinstance(error, OperationFailed):
        return ("failed", error.code)
    assert error is None, error
    return ("good", 0)


def test_every_answer_settles_its_question_and_says_what_was_answered(
    connections: list[Replayed],
) -> None:
    seen: Counter[str] = Counter()
    for each in connections:
        for message_id, pending in each.asked.items():
            answer = each.answers.get(message_id)
            if answer is None:
                assert not pending.done, pending
                seen["unanswered"] += 1
                continue
            assert pending.done, pending
            assert told(pending) == said(answer), pending
            seen[said(answer)[0]] += 1
    print(dict(seen))
    assert seen["good"] > 80
    assert seen["failed"] > 5
    assert seen["refused"] > 1


def test_nothing_the_original_said_ends_a_connection_or_goes_astray(
    connections: list[Replayed],
) -> None:
    for each in connections:
        machine = each.machine
        assert machine.lost is None or machine.lost.reason in ("refused", "terminated")
        assert machine.lost is None or not machine.lost.rule
        assert machine.counters.unmatched_answers <= len(each.answers)
    assert sum(each.machine.counters.confirmed for each in connections) >= 4
