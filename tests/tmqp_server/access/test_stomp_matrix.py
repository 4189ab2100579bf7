"""Every frame of STOMP for every right: what it needs, and nothing else."""

from __future__ import annotations

from itertools import count
from typing import Final

import pytest

from tests.tmqp_server.guarded import GuardedWorld
from tests.tmqp_server.outputs import sent
from tmqp_server.access import rights
from tmqp_server.access.gate import Question, Verdict
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import Role
from tmqp_server.doors.stomp.door import StompDoor
from tmqp_server.doors.stomp.message import StompBodies
from tmqp_wires.stomp import ClientConnection, StompFrame

Needs = tuple[tuple[str, str], ...]
Frames = tuple[tuple[str, dict[str, str]], ...]
_ALL: Final = ("*",)
_R: Final = {"receipt": "r"}
#: Of the client whose rights are tried.
_DURABLE: Final = "durable://me-8/n"
_NEW: Final = {"destination": "/queue/new", "id": "2", **_R}

#: What a client says, whose queue ``q`` and topic ``t`` are there; the rights that it needs.
MATRIX: Final[dict[str, tuple[Frames, Needs]]] = {
    "SEND": ((("SEND", {"destination": "/queue/q", **_R}),), ((rights.PUSH, "q"),)),
    "SEND to a topic": (
        (("SEND", {"destination": "/topic/t", **_R}),),
        ((rights.PUSH, "topic://t"),),
    ),
    "SEND to a new queue": (
        (("SEND", {"destination": "/queue/new", **_R}),),
        ((rights.PUSH, "new"),),
    ),
    "SEND in a transaction": (
        (
            ("BEGIN", {"transaction": "x"}),
            ("SEND", {"destination": "/queue/q", "transaction": "x"}),
            ("COMMIT", {"transaction": "x", **_R}),
        ),
        ((rights.PUSH, "q"),),
    ),
    "SUBSCRIBE": (
        (("SUBSCRIBE", {"destination": "/queue/q", "id": "1", **_R}),),
        ((rights.JOIN, "q"),),
    ),
    "SUBSCRIBE to a new queue": (
        (("SUBSCRIBE", _NEW),),
        (
            (rights.CREATE_QUEUE, "new"),
            (rights.PUSH, "ActiveMQ.DLQ"),
            (rights.JOIN, "new"),
        ),
    ),
    "SEND to several destinations": (
        (("SEND", {"destination": "/queue/q,/topic/t", **_R}),),
        ((rights.PUSH, "q"), (rights.PUSH, "topic://t")),
    ),
    "SUBSCRIBE of a browser": (
        (("SUBSCRIBE", {"destination": "/queue/q", "id": "1", "browser": "true", **_R}),),
        ((rights.BROWSE, "q"),),
    ),
    "SUBSCRIBE of a durable subscription": (
        (
            (
                "SUBSCRIBE",
                {"destination": "/topic/t", "id": "1", "activemq.subscriptionName": "n", **_R},
            ),
        ),
        (
            (rights.SEE_CHANNEL, _DURABLE),
            (rights.CREATE_QUEUE, _DURABLE),
            (rights.PUSH, "ActiveMQ.DLQ"),
            (rights.FEED, "topic://t"),
            (rights.FEED, _DURABLE),
            (rights.JOIN, _DURABLE),
        ),
    ),
    "BEGIN and ABORT": (
        (("BEGIN", {"transaction": "x"}), ("ABORT", {"transaction": "x", **_R})),
        (),
    ),
    "DISCONNECT": ((("DISCONNECT", _R),), ()),
}


class Guarded:
    """A server that asks about everything, and a client that is let in."""

    def __init__(self) -> None:
        self.world = GuardedWorld()
        self.world.door.letters.add(StompBodies())
        numbers = count(1)
        self.door = StompDoor(
            lambda: f"{next(numbers):012x}".ljust(32, "0"), letters=self.world.door.letters
        )
        for name, frames in (
            (7, (("SEND", {"destination": "/queue/q"}), ("SEND", {"destination": "/topic/t"}))),
            (8, ()),
        ):
            self.number = name
            self.client = ClientConnection()
            self.world.hub.open(name, self.door, self.world.now)
            self.client.send_connect([("client-id", f"me-{name}")])
            self.tell(*frames)
        self.world.asked.clear()

    def tell(self, *frames: tuple[str, dict[str, str]]) -> list[StompFrame]:
        """Send frames, and read."""
        for command, headers in frames:
            self.client.send(command, list(headers.items()))
        more = self.world.hub.receive(self.number, self.client.data_to_send(), self.world.now)
        self.world.settle()
        while more and not self.world.hub.is_waiting(self.number):
            more = self.world.hub.go_on(self.number, self.world.now)
            self.world.settle()
        events = self.client.receive(sent(self.world.hub, self.number), self.world.now)
        return [each for each in events if isinstance(each, StompFrame)]


def role_of(*needs: tuple[str, str]) -> list[Role]:
    return [
        Role("r", frozenset({right}), (subject,), (), _ALL, _ALL, _ALL) for right, subject in needs
    ]


def told(frames: Frames, roles: list[Role]) -> list[StompFrame]:
    """What a client is told that has these roles."""
    guarded = Guarded()

    def policy(question: Question) -> Verdict:
        asked = (question.right, question.about, question.queue_id)
        return Verdict(any(role.allows(*asked) for role in roles))

    guarded.world.policy = policy
    return guarded.tell(*frames)


def is_done(frames: list[StompFrame]) -> bool:
    return [each.get("receipt-id") for each in frames if each.command == "RECEIPT"] == ["r"]


@pytest.mark.parametrize("what", MATRIX)
def test_a_frame_needs_its_rights_and_no_other(what: str) -> None:
    frames, needs = MATRIX[what]
    assert is_done(told(frames, role_of(*needs)))
    for missing in needs:
        others = [
            Role("r", frozenset(set(RIGHTS) - {missing[0]}), _ALL, (), _ALL, _ALL, _ALL, _ALL),
            *role_of(*[each for each in needs if each != missing]),
        ]
        (error,) = told(frames, others)
        assert error.command == "ERROR", missing
        assert error.get("receipt-id") == "r"
    elsewhere = [(right, f"{subject}-2") for right, subject in needs]
    if needs:
        (error,) = told(frames, role_of(*elsewhere))
        assert error.command == "ERROR", "the rights are about names"


def test_who_consumes_needs_no_right_for_what_it_has() -> None:
    guarded = Guarded()
    subscribed = {"destination": "/queue/q", "id": "1", "ack": "client-individual"}
    guarded.tell(("SUBSCRIBE", subscribed), ("SEND", {"destination": "/queue/q"}))
    guarded.world.asked.clear()
    guarded.world.policy = lambda _: Verdict(False)
    guarded.tell(("ACK", {"id": "1-1"}), ("NACK", {"id": "1-2"}))
    (receipt,) = [
        each
        for each in guarded.tell(("UNSUBSCRIBE", {"id": "1", **_R}))
        if each.command != "MESSAGE"
    ]
    assert receipt.command == "RECEIPT"
    assert guarded.world.asked == []


def test_wildcards_need_to_see_channels_and_join_what_may_be_joined() -> None:
    frames: Frames = (("SUBSCRIBE", {"destination": "/topic/*", "id": "1", **_R}),)
    everything = Role("r", frozenset({rights.SEE_CHANNEL, rights.JOIN}), _ALL)
    assert is_done(told(frames, [everything]))
    (error,) = told(frames, [Role("r", frozenset(set(RIGHTS) - {rights.SEE_CHANNEL}), _ALL)])
    assert error.command == "ERROR"
    guarded = Guarded()
    guarded.world.policy = lambda asked: Verdict(asked.right != rights.JOIN)
    assert is_done(guarded.tell(*frames))
    assert guarded.tell(("SEND", {"destination": "/topic/t"})) == [], "it may join nothing"
