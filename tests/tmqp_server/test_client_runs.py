"""Runs of what clients say to each other: the same bytes and books as those of single messages."""

from __future__ import annotations

from typing import Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.tmqp_server.line_door import LineDoor
from tests.tmqp_server.outputs import faults, questions, sent, touched
from tests.tmqp_server.push_stage import PRODUCER, Stage
from tmqp import ConnectionInformation, Frame, FrameDecoder, Limits, MessageType
from tmqp_server.access.gate import Verdict
from tmqp_server.access.rights import DIRECT
from tmqp_server.doors.native.door import NativeDoor, NativeSession
from tmqp_server.engine.broker import Broker
from tmqp_server.engine.commands import (
    BY_ID,
    Connect,
    PassAnswer,
    PassAnswerRun,
    SendDirect,
    SendDirectRun,
)
from tmqp_server.engine.effects import Forward, ForwardRun
from tmqp_server.engine.limits import EngineLimits
from tmqp_server.engine.options import ASKS_ACKNOWLEDGE, ASKS_RESPONSE
from tmqp_server.hub.hub import Hub

#: Whom a message can be for: three clients, one of them the sender, nobody, and several.
TARGETS: Final = ("client2", "client1", "client3", "nobody", "@type:t", "@name:n", "@name:one")
#: How messages ask: for nothing, a response, an acknowledge, both, the first of several, at once.
FLAGS: Final[tuple[dict[str, bool], ...]] = (
    {},
    {"pending_response": True},
    {"pending_acknowledge": True},
    {"pending_response": True, "pending_acknowledge": True},
    {"pending_response": True, "first_acquirer": True},
    {"high_priority": True},
)
ASKS: Final = len(FLAGS) - 1
#: How they are answered: with responses, acknowledges, refusals, and acknowledges without a mark.
WAYS: Final = 3
ROOM: Final = EngineLimits()


def id_of(number: int, kind: int) -> str:
    """Ids of one length or of several, that come again, or are no ASCII at the beginning."""
    if kind == 1:
        return f"m{number % 7}"
    if kind == 2:
        return f"m{number:0{number % 5}}"
    if kind == 3 and number % 9 == 0:
        return f"é{number}"
    return f"m{number:06}"


def asked(
    first: int, count: int, target: int, flags: int, kind: int, sender: int = PRODUCER
) -> bytes:
    """Direct messages in a row."""
    frames: list[bytes] = []
    for number in range(first, first + count):
        frame = Frame.build(
            int(MessageType.DIRECT_MESSAGE),
            TARGETS[(target + number) % 3 if kind == 4 else target],
            number % 3,
            b"x" * (number % 3 * 60),
            message_id=id_of(number, kind),
            source="" if kind == 5 else "client9" if kind == 6 else f"client{sender}",
            headers=[("Trace", str(number))] if kind == 7 else (),
            ttl=1 if kind == 8 else 16,
            **FLAGS[flags],
        )
        frames.append(frame.raw)
    return b"".join(frames)


def told(number: int, last: int, way: int, kind: int, asker: int = PRODUCER) -> bytes:
    """Answers to all that was asked lately, in a row."""
    frames: list[bytes] = []
    for each in range(max(0, last - 60), last):
        if kind == 4 and each % 4 == 0:
            continue
        frame = Frame.build(
            int(MessageType.RESPONSE if way == 0 else MessageType.ACKNOWLEDGE),
            f"client{asker}",
            each % 2 if way == 0 else 0,
            b"y" * (each % 3 * 60) if way == 0 else b"",
            message_id=id_of(each, kind),
            source=f"client{number}",
            high_priority=0 < way < WAYS,
            headers=[("Nack-Reason", "no")] if way == 2 and each % 5 else (),
        )
        frames.append(frame.raw)
    return b"".join(frames)


class Talk(Stage):
    """A hub with five clients: of one type, two of them of one name."""

    def __init__(self, *, runs: bool, limits: EngineLimits, portion: int) -> None:
        super().__init__(0, runs=runs, limits=limits, portion=portion)
        for number, name in ((6, "n"), (7, "n"), (8, "one")):
            self.hub.open(number, self.door, 0.0)
            who = ConnectionInformation(f"client{number}", name, "t").encode()
            self.say(number, b"TMQP/2.0" + Frame.build(MessageType.SERVER, "", 101, who).raw)
            session = self.hub._sessions[number]
            assert isinstance(session, NativeSession)
            session._connection.makes_runs = runs
            if not runs:
                session._runs.singly_for = 1 << 30

    def books(self) -> list[object]:
        core = self.broker._core
        open_ones: list[object] = []
        for number, session in core.sessions.items():
            if session.asked is not None:
                assert session.asked.memory() == sum(
                    each.memory for each in session.asked._by_id.values()
                )
                for name, each in session.asked._by_id.items():
                    mays = [each.may(other) for other in range(1, 9)]
                    open_ones.append((number, name, mays, each.until, each.memory, each.elsewhere))
        counted = core.counters.directs_skipped, core.counters.answers_dropped
        blocked = [(each.blocked, each.answer_bytes) for each in core.sessions.values()]
        return [
            *super().books(),
            core.state_bytes,
            core.limits_reached,
            open_ones,
            counted,
            blocked,
        ]


acts = st.one_of(
    st.tuples(
        st.just("ask"), st.integers(1, 50), st.integers(0, len(TARGETS) - 1), st.integers(0, ASKS),
        st.integers(0, 8),
    ),
    st.tuples(st.just("ask"), st.integers(1, 50), st.just(0), st.integers(0, 3), st.integers(0, 2)),
    st.tuples(
        st.just("tell"), st.sampled_from((2, 2, 2, 3, 1, 6)), st.integers(0, WAYS),
        st.integers(0, 4), st.just(0),
    ),
    st.tuples(
        st.sampled_from(("block", "unblock", "wait", "go")), st.sampled_from((1, 2, 6, 7)),
        st.just(0), st.just(0), st.just(0),
    ),
)  # fmt: skip


def converse(stage: Talk, script: list[tuple[str, int, int, int, int]]) -> None:
    first, now = 0, 1.0
    for what, number, second, third, kind in script:
        now += 1.0
        stage.bring()
        if what == "ask":
            stage.say(PRODUCER, asked(first, number, second, third, kind), now)
            first += number
        elif what == "tell":
            stage.say(number, told(number, first, second, third), now)
        elif what == "block":
            stage.hub.block(number, now)
        elif what == "unblock":
            stage.hub.unblock(number, now)
        elif what == "wait":
            now += 50.0
        elif number > PRODUCER:
            stage.hub.forget(number, now)
        stage.listen()


@settings(max_examples=200)
@given(
    st.lists(acts, min_size=1, max_size=10),
    st.sampled_from([0, 600, 1 << 20]),
    st.sampled_from([1_000, 20]),
    st.sampled_from([1 << 30, 1 << 30, 20_000]),
    st.sampled_from([1 << 20, 150]),
    st.sampled_from([1 << 20, 2_000]),
)
def test_runs_leave_what_single_messages_would(
    script: list[tuple[str, int, int, int, int]],
    portion: int,
    most_questions: int,
    spare_bytes: int,
    largest: int,
    most_blocked: int,
) -> None:
    limits = EngineLimits(
        max_questions_per_session=most_questions,
        max_message_bytes=largest,
        max_answer_bytes_while_blocked=most_blocked,
    )
    single, together = [Talk(runs=runs, limits=limits, portion=portion) for runs in (False, True)]
    for stage in (single, together):
        core = stage.broker._core
        core.limit_memory(core.total_bytes + spare_bytes)
        converse(stage, script)
    assert together.heard == single.heard
    assert together.books() == single.books()
    assert faults(together.hub) == faults(single.hub) == {}


def frames_in(data: bytes) -> list[Frame]:
    return FrameDecoder().feed(data)


def commands_of(stage: Talk, number: int, data: bytes) -> list[object]:
    return list(stage.hub._sessions[number].receive(data, 1.0))


@pytest.mark.parametrize("kind", [0, 7])
@pytest.mark.parametrize("flags", range(len(FLAGS)))
def test_requests_in_a_row_are_taken_in_one_go(flags: int, kind: int) -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    (run,) = commands_of(stage, PRODUCER, asked(0, 50, 0, flags, kind))
    assert isinstance(run, SendDirectRun)
    at, effects = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert (at, [type(each) for each in effects]) == (1, [ForwardRun])
    assert stage.broker.take_work() == 51


@pytest.mark.parametrize(("flags", "way"), [(1, 0), (2, 1)])
def test_answers_in_a_row_are_taken_in_one_go(flags: int, way: int) -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    stage.say(PRODUCER, asked(0, 50, 0, flags, 0), 1.0)
    stage.heard.clear()
    (run,) = commands_of(stage, 2, told(2, 50, way, 0))
    assert isinstance(run, PassAnswerRun)
    _, effects = stage.broker.steps([run], 0, 1.0, 1 << 20)
    assert [type(each) for each in effects] == [ForwardRun]
    assert stage.broker._core.sessions[PRODUCER].asked is not None
    assert len(stage.broker._core.sessions[PRODUCER].asked) == 0


def test_answers_that_nobody_waits_for_are_left_out_of_a_run() -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    stage.say(PRODUCER, asked(0, 3, 0, 1, 0) + asked(4, 3, 0, 1, 0), 1.0)
    stage.heard.clear()
    stage.say(2, told(2, 9, 0, 0), 2.0)
    found = [each.message_id for each in frames_in(stage.heard[PRODUCER])]
    assert found == [f"m{number:06}" for number in (0, 1, 2, 4, 5, 6)]
    assert stage.broker.statistics().answers_dropped == 3


def test_one_piece_reaches_all_of_a_type() -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    (run,) = commands_of(stage, PRODUCER, asked(0, 50, 4, 0, 0))
    _, (effect,) = stage.broker.steps([run], 0, 1.0, 1 << 20)  # type: ignore[list-item]
    assert isinstance(effect, ForwardRun)
    assert effect.sessions == [6, 7, 8]


def test_a_step_takes_a_run_that_must_be_divided_to_its_end() -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    (run,) = commands_of(stage, PRODUCER, asked(0, 50, 4, 1, 0))
    assert isinstance(run, SendDirectRun)
    effects = stage.broker.step(run, 1.0)
    assert [type(each) for each in effects] == [Forward] * 50
    assert run.is_over()


def test_a_run_of_nobody_is_counted_message_by_message() -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    (run,) = commands_of(stage, PRODUCER, asked(0, 50, 0, 1, 0))
    assert isinstance(run, SendDirectRun)
    run.session = 99
    before = stage.broker.statistics().stray_commands
    assert stage.broker.step(run, 1.0) == []
    assert stage.broker.statistics().stray_commands == before + 50


class HearingDoor(LineDoor):
    """One whose clients hear what others say."""

    def __init__(self) -> None:
        super().__init__()
        self.forwarded: list[str] = []

    def encode_forward(self, effect: Forward) -> bytes:
        assert isinstance(effect.wire, Frame)
        self.forwarded.append(f"{effect.wire.message_id} of {effect.door}")
        return b"heard\n"


def test_a_door_of_another_kind_gets_each_message() -> None:
    hub = Hub(Broker(), 1 << 20)
    native = NativeDoor(lambda: "id", Limits())
    hub.open(1, native, 0.0)
    who = ConnectionInformation("client1").encode()
    hub.receive(1, b"TMQP/2.0" + Frame.build(MessageType.SERVER, "", 101, who).raw, 0.0)
    door = HearingDoor()
    hub.open(2, door, 0.0)
    hub.receive(2, b"connect client2\n", 0.0)
    touched(hub)
    sent(hub, 2)
    hub.receive(1, asked(0, 3, 0, 0, 0), 1.0)
    assert len(sent(hub, 2)) == 3 * len("heard\n")
    assert door.forwarded == [f"m{number:06} of tmqp" for number in range(3)]


def test_whether_a_run_is_allowed_is_asked_once_and_then_known() -> None:
    hub = Hub(Broker(), 1 << 20, guarded=True)
    door = NativeDoor(lambda: "id", Limits())
    for number in (1, 2):
        hub.open(number, door, 0.0)
        who = ConnectionInformation(f"client{number}").encode()
        hub.receive(number, b"TMQP/2.0" + Frame.build(MessageType.SERVER, "", 101, who).raw, 0.0)
        (question,) = questions(hub)
        command = question.command
        assert isinstance(command, Connect)
        hub.decide(number, question.ticket, Verdict(True, connect=command), 0.0)
    touched(hub)
    sent(hub, 2)
    assert hub.receive(1, asked(0, 9, 0, 0, 0), 1.0)
    (question,) = questions(hub)
    assert question.need[:2] == (DIRECT, "client2")
    assert isinstance(question.command, SendDirect)
    hub.decide(1, question.ticket, Verdict(True, keep_s=10.0), 1.0)
    assert not hub.go_on(1, 1.0)
    assert not hub.receive(1, asked(9, 9, 0, 0, 0), 2.0)
    assert questions(hub) == []
    assert len(frames_in(sent(hub, 2))) == 18


def test_a_run_prints_what_it_is() -> None:
    stage = Talk(runs=True, limits=ROOM, portion=1 << 20)
    (run,) = commands_of(stage, PRODUCER, asked(0, 2, 0, 3, 0))
    assert isinstance(run, SendDirectRun)
    assert (run.by, run.who, run.count) == (BY_ID, "client2", 2)
    assert run.asks == ASKS_ACKNOWLEDGE | ASKS_RESPONSE
    assert "FrameRun of 2" in repr(run)
    singles = run.singles()
    assert [type(each) for each in singles] == [SendDirect, SendDirect]
    (answers,) = commands_of(stage, 2, told(2, 2, 0, 0))
    assert isinstance(answers, PassAnswerRun)
    assert [type(each) for each in answers.singles()] == [PassAnswer, PassAnswer]
