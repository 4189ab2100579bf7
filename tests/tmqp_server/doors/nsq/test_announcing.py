"""Telling lookupds which topics and channels are here."""

from __future__ import annotations

import json
import math
from urllib.parse import quote

from tests.tmqp_server.doors.nsq.stage import Peer, Stage
from tmqp.backoff import Backoff
from tmqp_server.doors.nsq_announce.links import Announcer
from tmqp_server.doors.nsq_announce.session import AnnounceDoor
from tmqp_server.engine.commands import Connect, CreateQueue, RemoveChannel
from tmqp_wires.nsq.lookup import Announce, answer

ADDRESS = "127.0.0.1:4160"
HTTP = "nsqlookupd-http"


class Pair:
    """A server, a lookupd, and the connection between them."""

    def __init__(self, *, guarded: bool = False) -> None:
        self._makers = 0
        self.here = Stage(guarded=guarded)
        self.change("early", "early:c")
        self.lookupd = Stage()
        self.here.registry.nsq.about = Announce("10.0.0.1", "here", 4150, 4151, "1.3.0")
        self.announcer = Announcer(Backoff(1.0, 15.0, 0.0), lambda: 0.0)
        self.announcer.set([ADDRESS])
        assert self.announcer.due(self.here.now) == [ADDRESS]
        door = AnnounceDoor(self.here.registry.nsq, self.announcer, lambda: "announcer")
        self.here.doors["announce"] = door
        self.near = self.here.dial("announce", peer=ADDRESS)
        self.far: Peer = self.lookupd.dial("nsqlookupd")
        self.carry()

    def carry(self) -> None:
        """Let both hear what the other has said."""
        self.here.sleep(0.0)
        while True:
            said = self.near.take()
            self.far.say(said)
            told = self.far.take()
            self.near.say(told)
            if not said and not told:
                return

    def sleep(self, seconds: float) -> None:
        """Let time pass on both sides."""
        for _ in range(int(seconds)):
            for stage in (self.here, self.lookupd):
                stage.sleep(1.0)
            self.carry()

    def change(self, *channels: str) -> None:
        """Another client makes channels, or removes those that begin with ``-``."""
        hub, now = self.here.hub, self.here.now
        self._makers += 1
        number = 900 + self._makers
        hub.perform(Connect(number, None, f"maker-{number}"), now)
        for channel in channels:
            if channel.startswith("-"):
                hub.perform(RemoveChannel(number, None, channel[1:]), now)
            else:
                hub.perform(CreateQueue(number, None, channel, 0), now)
        self.here.settle()
        if self._makers > 1:
            self.carry()

    def found(self) -> dict[str, list[str]]:
        """What the lookupd says is there."""
        return {topic: self._listed("channels", topic) for topic in self._listed("topics")}

    def _listed(self, what: str, topic: str = "") -> list[str]:
        got = self.lookupd.ask(HTTP, "GET", f"/{what}?topic={quote(topic)}")
        found: list[str] = json.loads(got.body)[what]
        return found


def test_what_is_here_and_what_comes_is_registered_and_what_goes_is_not() -> None:
    pair = Pair()
    assert pair.found() == {"early": ["c"]}
    (node,) = json.loads(pair.lookupd.ask(HTTP, "GET", "/nodes").body)["producers"]
    assert (node["broadcast_address"], node["tcp_port"], node["topics"]) == (
        "10.0.0.1",
        4150,
        ["early"],
    )
    pair.change("\x01Late", "\x01Late:c", "no name of NSQ", "\x01Late:two words", "gone#ephemeral")
    assert pair.found() == {"Late": ["c"], "early": ["c"], "gone#ephemeral": []}
    pair.change("-gone#ephemeral", "-\x01Late:c")
    assert pair.found() == {"Late": ["c"], "early": ["c"]}
    (node,) = json.loads(pair.lookupd.ask(HTTP, "GET", "/nodes").body)["producers"]
    assert node["topics"] == ["Late", "early"]
    assert pair.near.over == ""


def test_nobody_is_asked_about_the_servers_own_connection() -> None:
    assert Pair(guarded=True).found() == {"early": ["c"]}


def test_a_ping_keeps_the_producer_in_the_answers() -> None:
    pair = Pair()
    pair.sleep(400.0)
    assert pair.near.over == ""
    (node,) = json.loads(pair.lookupd.ask(HTTP, "GET", "/nodes").body)["producers"]
    assert node["topics"] == ["early"]


def test_a_lookupd_that_does_not_answer_is_given_up() -> None:
    pair = Pair()
    pair.here.sleep(15.1)
    assert pair.near.take() == b"PING\n"
    pair.here.sleep(5.1)
    assert pair.near.over == "the lookupd did not answer for 5 seconds"


def test_what_a_lookupd_must_not_say_ends_the_connection() -> None:
    for said, reason in [
        (answer(b"E_INVALID client must IDENTIFY"), "the lookupd says E_INVALID client must"),
        (answer(b"OK"), "the lookupd answers what nobody has asked"),
        (b"\xff\xff\xff\xff", "the lookupd sends an answer of -1 bytes"),
    ]:
        pair = Pair()
        pair.near.say(said)
        assert pair.near.over.startswith(reason)


def test_a_failed_connection_is_made_again_later_and_later() -> None:
    announcer = Announcer(Backoff(1.0, 4.0, 0.0), lambda: 0.0)
    announcer.set(["a", "b"])
    assert announcer.due(10.0) == ["a", "b"]
    assert announcer.next_due() == math.inf
    waits = []
    now = 10.0
    for _ in range(4):
        announcer.ended("a", now)
        waits.append(announcer.next_due() - now)
        now = announcer.next_due()
        assert announcer.due(now) == ["a"]
    assert waits == [1.0, 2.0, 4.0, 4.0]
    announcer.accepted("a")
    announcer.ended("a", now)
    assert announcer.next_due() == now + 1.0


def test_addresses_change_while_connections_are_there() -> None:
    announcer = Announcer(Backoff(1.0, 4.0, 0.0), lambda: 0.0)
    announcer.set(["a", "b"])
    announcer.due(0.0)
    announcer.set(["b", "c"])
    assert announcer.removed == ["a"]
    assert announcer.due(0.0) == ["c"]
    announcer.set(["a", "b"])
    assert announcer.removed == ["c"], "the connection to a is kept"
    assert announcer.due(0.0) == []
    announcer.ended("c", 0.0)
    assert announcer.due(100.0) == []
