"""The player: whatever a server does otherwise than recorded is told, and it always comes to an
end."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tmqp.constants import PING_BYTES, PONG_BYTES, MessageType
from tmqp.frames import Frame
from tmqp.hello import ConnectionInformation
from tmqp.testing import CLIENT_TO_SERVER, SERVER_TO_CLIENT, Exchange, Player, Step
from tmqp.testing.replay import Outcome

PREAMBLE = b"TMQP/2.0"
HELLO = Frame.build(MessageType.SERVER, "", 101, ConnectionInformation("me").encode())
ACCEPTED = Frame.build(MessageType.SERVER, "me", 202, message_id="a" * 32, first_acquirer=True)
PING = PING_BYTES
PONG = PONG_BYTES
ASK = Frame.build(MessageType.SERVER, "c", 601, message_id="ask", pending_response=True)
ANSWER = Frame.build(MessageType.RESPONSE, "me", 0, message_id="ask")
TERMINATE = Frame.build(MessageType.TERMINATE)


class Script:
    """A link to a server that says fixed things.

    :param says: what it says to each thing it is sent, in order; a list is sent in pieces.
    :param closes: it closes when it has said so many things.
    """

    def __init__(
        self, says: Iterable[bytes | list[bytes]], *, closes: int = 1_000, pongs: bool = True
    ) -> None:
        self.heard: list[bytes] = []
        self.ended = False
        self._says = [item if isinstance(item, list) else [item] for item in says]
        self._out: list[bytes] = []
        self._closes = closes
        self._pongs = pongs

    @property
    def closed(self) -> bool:
        return not self._out and len(self.heard) >= self._closes

    def send(self, data: bytes) -> None:
        if data == PING and self._pongs:
            self._out.append(PONG)
            return
        if data != PING and len(self.heard) < len(self._says):
            self._out += self._says[len(self.heard)]
        self.heard.append(data)

    def receive(self) -> bytes:
        return self._out.pop(0) if self._out else b""

    def close(self) -> None:
        self.ended = True


def said(*parts: bytes | Frame, connection: int = 1, note: str = "") -> Step:
    return Step(CLIENT_TO_SERVER, connection, _joined(parts), note)


def answered(*parts: bytes | Frame, connection: int = 1, note: str = "") -> Step:
    return Step(SERVER_TO_CLIENT, connection, _joined(parts), note)


def _joined(parts: Iterable[bytes | Frame]) -> bytes:
    return b"".join([part if isinstance(part, bytes) else part.raw for part in parts])


HANDSHAKE = [said(PREAMBLE, HELLO), answered(PREAMBLE, ACCEPTED)]
GREETING = PREAMBLE + ACCEPTED.raw


def play(steps: Iterable[Step], *links: Script) -> Outcome:
    """Play one exchange; each link is for the connection of its number."""
    player = Player(lambda number: links[number - 1])
    outcome = player.play(Exchange("exchange", steps))
    player.close()
    return outcome


def test_answers_as_recorded_match() -> None:
    link = Script([GREETING, ANSWER.raw])
    outcome = play([*HANDSHAKE, said(ASK), answered(ANSWER)], link)
    assert outcome.matched
    assert outcome.compared == 3
    assert link.heard == [PREAMBLE + HELLO.raw, ASK.raw]
    assert repr(outcome) == "<Outcome exchange compared=3 []>"


def test_it_does_not_matter_how_answers_are_cut() -> None:
    data = GREETING
    link = Script([[data[n : n + 1] for n in range(len(data))], [ANSWER.raw[:5], ANSWER.raw[5:]]])
    assert play([*HANDSHAKE, said(ASK), answered(ANSWER)], link).matched


WRONG: dict[str, tuple[list[bytes | list[bytes]], str]] = {
    "no preamble": ([ACCEPTED.raw], "connection 1: preamble b"),
    "another preamble": ([b"TMQ/1.01" + ACCEPTED.raw, ANSWER.raw], "preamble b'TMQ/1.01'"),
    "half a preamble": ([b"TMQ"], "preamble b'TMQ'"),
    "silence": ([], "preamble b''"),
    "missing acceptance": ([PREAMBLE], "connection 1: missing <Frame SERVER"),
    "missing answer": ([GREETING], "connection 1: missing <Frame RESPONSE"),
    "another code": ([GREETING, ANSWER.replace(content_type=404).raw], "content_type: expected 0"),
    "another id": ([GREETING, ANSWER.replace(message_id="x").raw], "message_id: expected 'ask'"),
    "another flag": (
        [GREETING, bytes((ANSWER.raw[0] | 0x80,)) + ANSWER.raw[1:]],
        "first_acquirer: expected False, got True",
    ),
    "an extra answer": ([GREETING, ANSWER.raw * 2], "not recorded: <Frame RESPONSE"),
    "an extra message": ([GREETING + TERMINATE.raw, ANSWER.raw], "expected 20, got 8"),
    "an extra pong": ([GREETING, ANSWER.raw + PING], "not recorded: <Frame PING"),
    "garbage": (
        [GREETING, b"\xff" * 8 + (1 << 60).to_bytes(8, "little")],
        "the server broke the protocol: payload of",
    ),
    "garbage behind the answer": (
        [GREETING, ANSWER.raw + b"\xff" * 8 + (1 << 60).to_bytes(8, "little")],
        "the server broke the protocol: payload of",
    ),
    "half a message": ([GREETING, ANSWER.raw[:-3]], "not recorded: 10 bytes of no whole message"),
    "half a message behind the answer": (
        [GREETING, ANSWER.raw + ANSWER.raw[:5]],
        "not recorded: 5 bytes of no whole message",
    ),
}


@pytest.mark.parametrize("name", WRONG)
@pytest.mark.parametrize("pongs", [True, False])
def test_each_difference_is_told(name: str, pongs: bool) -> None:
    says, sentence = WRONG[name]
    outcome = play([*HANDSHAKE, said(ASK), answered(ANSWER)], Script(says, pongs=pongs))
    assert not outcome.matched
    if not pongs or "half a message" not in name:  # a pong completes half a message
        assert any(sentence in each for each in outcome.differences), outcome.differences


def test_a_broken_stream_is_told_once() -> None:
    link = Script([GREETING, ANSWER.raw + b"\x10\x10\x01\0\0\0\0\0\xff"])
    player = Player(lambda _number: link)
    first = player.play(Exchange("one", [*HANDSHAKE, said(ASK), answered(ANSWER)]))
    second = player.play(Exchange("two", [said(ASK)]))
    assert len(first.differences) == 1
    assert second.differences == []


def test_what_comes_later_belongs_to_the_next_exchange() -> None:
    link = Script([GREETING, ANSWER.raw])
    player = Player(lambda _number: link)
    assert player.play(Exchange("one", HANDSHAKE)).matched
    assert player.play(Exchange("two", [said(ASK), answered(ANSWER)])).matched
    player.close()
    assert link.ended


def test_ids_the_server_makes_stand_for_the_recorded_ones() -> None:
    recorded_id, live_id = "0" * 31 + "1", "f" * 32
    accepted = ACCEPTED.replace(target=recorded_id)
    live = ACCEPTED.replace(target=live_id, message_id="b" * 32)
    ask = ASK.replace(source=recorded_id)
    answer = ANSWER.replace(target=recorded_id)
    link = Script([PREAMBLE + live.raw, ANSWER.replace(target=live_id).raw])
    steps = [said(PREAMBLE, HELLO), answered(PREAMBLE, accepted), said(ask), answered(answer)]
    assert play(steps, link).matched
    assert link.heard[1] == ASK.replace(source=live_id).raw


# --- Closing and silence -------------------------------------------------------------------------

CLOSED = "closed by the server after 1 s"
SILENT = "(nothing for 2.0 s)"


def test_a_close_that_was_recorded_must_come() -> None:
    steps = [*HANDSHAKE, said(ASK), answered(note=CLOSED)]
    assert play(steps, Script([GREETING], closes=2)).matched
    outcome = play(steps, Script([GREETING]))
    assert outcome.differences == ["connection 1: the recorded server closed it"]


def test_what_is_said_before_the_close_is_told() -> None:
    outcome = play(
        [*HANDSHAKE, said(ASK), answered(note=CLOSED)], Script([GREETING, ANSWER.raw], closes=2)
    )
    assert len(outcome.differences) == 1
    assert "not recorded: <Frame RESPONSE" in outcome.differences[0]


def test_a_close_nobody_recorded_shows_in_what_is_missing() -> None:
    steps = [*HANDSHAKE, said(ASK), answered(ANSWER)]
    outcome = play(steps, Script([GREETING], closes=1))
    assert "missing <Frame RESPONSE" in outcome.differences[0]


def test_silence_that_was_recorded_must_be_kept() -> None:
    steps = [*HANDSHAKE, said(ASK), answered(note=SILENT)]
    assert play(steps, Script([GREETING])).matched
    outcome = play(steps, Script([GREETING, ANSWER.raw]))
    assert len(outcome.differences) == 1
    assert "the recorded server said nothing, not <Frame RESPONSE" in outcome.differences[0]
    steps = [said(PREAMBLE), answered(note=SILENT)]
    outcome = play(steps, Script([PREAMBLE]))
    assert "said nothing, not preamble b'TMQP/2.0'" in outcome.differences[0]


def test_the_client_may_close_and_come_again() -> None:
    first, second = Script([GREETING]), Script([GREETING])
    links = iter([first, second])
    player = Player(lambda _number: next(links))
    closing = Step(CLIENT_TO_SERVER, 1, b"", "closed by the client")
    steps = [closing, *HANDSHAKE, closing, *HANDSHAKE]
    assert player.play(Exchange("again", steps)).matched
    assert first.ended
    assert not second.ended
    player.close()
    assert second.ended


def test_a_connection_that_was_never_opened_is_told() -> None:
    outcome = play([answered(ANSWER, connection=3), answered(note=CLOSED, connection=3)])
    assert outcome.differences == ["connection 3 was never opened"]


def test_connections_are_told_apart() -> None:
    steps = [
        *HANDSHAKE,
        said(PREAMBLE, HELLO, connection=2),
        answered(PREAMBLE, ACCEPTED.replace(message_id="c" * 32), connection=2),
        said(ASK),
        answered(ANSWER, connection=2),
    ]
    one = Script([GREETING])
    two = Script([PREAMBLE + ACCEPTED.replace(message_id="d" * 32).raw])
    outcome = play(steps, one, two)
    assert len(outcome.differences) == 1
    assert outcome.differences[0].startswith("connection 2: missing")


# --- Odd recordings and endless servers ----------------------------------------------------------


def test_what_the_client_sent_in_parts_is_sent_in_parts() -> None:
    link = Script([b"", PREAMBLE + ACCEPTED.raw])
    half = Step(CLIENT_TO_SERVER, 1, PREAMBLE[:3])
    play([half, said(PREAMBLE[3:])], link)
    assert link.heard[:2] == [PREAMBLE[:3], PREAMBLE[3:]]


def test_a_long_answer_that_was_not_recorded_whole_must_come() -> None:
    cut = Step(SERVER_TO_CLIENT, 1, ANSWER.raw[:12], "", 5_000)
    assert play([*HANDSHAKE, said(ASK), cut], Script([GREETING, ANSWER.raw])).matched
    outcome = play([*HANDSHAKE, said(ASK), cut], Script([GREETING]))
    assert outcome.differences == ["connection 1: a long message is missing"]


def test_a_long_message_of_the_client_that_was_not_recorded_cannot_be_played() -> None:
    cut = Step(CLIENT_TO_SERVER, 1, ASK.raw[:9], "", 5_000)
    with pytest.raises(ValueError, match="only a part"):
        play([*HANDSHAKE, cut], Script([GREETING]))


def test_the_clock_is_set_before_each_step() -> None:
    told: list[float] = []
    link = Script([GREETING])
    player = Player(lambda _number: link, told.append)
    steps = [
        Step(CLIENT_TO_SERVER, 1, PREAMBLE + HELLO.raw, at_s=0.5),
        Step(SERVER_TO_CLIENT, 1, GREETING, at_s=1.5),
        Step(CLIENT_TO_SERVER, 1, ASK.raw),
    ]
    player.play(Exchange("timed", steps))
    assert told == [0.5, 1.5]


class Endless(Script):
    """Sends something for ever, whatever it is asked."""

    def __init__(self, what: Callable[[int], bytes]) -> None:
        super().__init__([GREETING], pongs=False)
        self._what = what
        self._reads = 0

    def receive(self) -> bytes:
        data = super().receive()
        if data:
            return data
        self._reads += 1
        return self._what(self._reads)


ENDLESS: dict[str, Callable[[int], bytes]] = {
    "messages": lambda _n: TERMINATE.raw,
    "garbage": lambda n: b"\xff" * n,
    "single bytes": lambda n: ANSWER.raw[n % 8 : n % 8 + 1],
}


@pytest.mark.parametrize("what", ENDLESS)
@pytest.mark.parametrize("ending", [[], [answered(note=CLOSED)], [answered(note=SILENT)]])
def test_a_server_that_never_stops_is_not_waited_for(what: str, ending: list[Step]) -> None:
    player = Player(lambda _number: Endless(ENDLESS[what]))
    outcome = player.play(Exchange("endless", [*HANDSHAKE, said(ASK), *ending]))
    assert not outcome.matched
    assert len(outcome.differences) <= 2_001
