"""Telling lookupds which topics and channels are here."""

from __future__ import annotations

import json
import math
from urllib.parse import quote

import pytest

from tests.tmqp_server.doors.nsq.stage import Peer, Stage
from tmqp.backoff import Backoff
from tmqp_server.doors.nsq_announce.asking import AskDoor
from tmqp_server.doors.nsq_announce.links import Announcer
from tmqp_server.doors.nsq_announce.session import AnnounceDoor
from tmqp_server.engine.commands import Connect, CreateQueue, RemoveChannel
from tmqp_wires.nsq.lookup import Announce, answer

ADDRESS = "127.0.0.1:4160"
HTTP = "nsqlookupd-http"


class Pair:
    """A server, a lookupd, and the connection between them."""

    def __init__(self, *first: str, guarded: bool = False) -> None:
        self._makers = 0
        self.here = Stage(guarded=guarded)
        self.change(*first)
        self.lookupd = Stage()
        self.here.registry.nsq.about = Announce("10.0.0.1", "here", 4150, 4151, "1.3.0")
        self.announcer = Announcer(Backoff(1.0, 15.0, 0.0), lambda: 0.0)
        self.announcer.set([ADDRESS])
        assert self.announcer.due(self.here.now) == [ADDRESS]
        door = AnnounceDoor(self.here.registry.nsq, self.announcer, lambda: "announcer")
        self.here.doors["announce"] = door
        self.dial()
        self.carry()

    def dial(self) -> None:
        """Let there be a connection, on which nothing was carried yet."""
        self.near = self.here.dial("announce", peer=ADDRESS)
        self.far: Peer = self.lookupd.dial("nsqlookupd")

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
    pair = Pair("early", "early:c")
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
    assert Pair("early", "early:c", guarded=True).found() == {"early": ["c"]}


def test_a_ping_keeps_the_producer_in_the_answers() -> None:
    pair = Pair("early", "early:c")
    pair.sleep(400.0)
    assert pair.near.over == ""
    (node,) = json.loads(pair.lookupd.ask(HTTP, "GET", "/nodes").body)["producers"]
    assert node["topics"] == ["early"]


def test_a_server_without_a_topic_stays_connected() -> None:
    pair = Pair()
    pair.sleep(30.0)
    assert pair.near.over == "", "it awaits no answer but those to its pings"
    pair.change("late")
    assert pair.found() == {"late": []}


@pytest.mark.parametrize("told", [0, 1, 2])
def test_a_topic_that_is_made_while_the_connection_is_made_again_is_registered(told: int) -> None:
    pair = Pair()
    pair.far.hang_up()
    pair.near.hang_up()
    pair.dial()
    pair.here.sleep(0.0)
    for near, far in [(pair.near, pair.far), (pair.far, pair.near)][:told]:
        far.say(near.take())
    pair.here.ask("nsqd-http", "POST", "/pub?topic=t", b"one")
    pair.carry()
    assert pair.found() == {"t": []}
    (node,) = json.loads(pair.lookupd.ask(HTTP, "GET", "/lookup?topic=t").body)["producers"]
    assert node["broadcast_address"] == "10.0.0.1"


def test_a_lookupd_that_does_not_answer_is_given_up() -> None:
    pair = Pair("early", "early:c")
    pair.here.sleep(15.1)
    assert pair.near.take() == b"PING\n"
    pair.here.sleep(5.1)
    assert pair.near.over == "the lookupd did not answer for 5 seconds"


def test_what_a_lookupd_must_not_say_ends_the_connection() -> None:
    for said, reason in [
        (answer(b"E_INVALID client must IDENTIFY"), "the lookupd answered E_INVALID client must"),
        (answer(b"OK"), "the lookupd sent an unexpected answer"),
        (b"\xff\xff\xff\xff", "the lookupd sends an answer of -1 bytes"),
    ]:
        pair = Pair("early", "early:c")
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


# -- channels of a new topic (N143) ---------------------------------------------------------------


def asked_about(stage: Stage, topic: bytes) -> Peer:
    """The connection on which a lookupd is asked about a topic."""
    shapes = stage.registry.nsq.shapes
    assert shapes is not None
    stage.doors["ask"] = AskDoor(topic, shapes, stage.new_id)
    peer = stage.dial("ask", peer="lookupd:4161")
    stage.sleep(0.0)
    return peer


def answered(body: bytes, status: bytes = b"200 OK") -> bytes:
    return b"HTTP/1.0 %b\r\nContent-Type: application/json\r\n\r\n%b" % (status, body)


def depths(stage: Stage, topic: str) -> dict[str, int]:
    """The channels of a topic, and how many messages each has."""
    body = stage.ask("nsqd-http", "GET", f"/stats?format=json&topic={topic}").body
    (found,) = json.loads(body)["topics"]
    return {each["channel_name"]: each["depth"] for each in found["channels"]}


def test_every_channel_that_a_lookupd_names_gets_the_first_messages() -> None:
    stage = Stage(guarded=False)
    stage.ask("nsqd-http", "POST", "/mpub?topic=t", b"one\ntwo")
    peer = asked_about(stage, b"t")
    assert peer.take().startswith(b"GET /channels?topic=t HTTP/1.0\r\nHost: lookupd:4161\r\n")
    peer.say(answered(b'{"channels":["archive","e#ephemeral","a$","metrics","archive",7]}'))
    peer.hang_up()
    assert depths(stage, "t") == {"archive": 2, "metrics": 2}
    stage.ask("nsqd-http", "POST", "/pub?topic=t", b"three")
    assert depths(stage, "t") == {"archive": 3, "metrics": 3}


def test_a_topic_that_somebody_has_paused_stays_paused() -> None:
    stage = Stage()
    stage.ask("nsqd-http", "POST", "/pub?topic=t", b"one")
    stage.ask("nsqd-http", "POST", "/topic/pause?topic=t")
    asked_about(stage, b"t").say(answered(b'{"channels":["archive"]}')).hang_up()
    assert depths(stage, "t") == {"archive": 0}


@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"garbage",
        answered(b"{"),
        answered(b"[]"),
        answered(b'{"channels":null}'),
        answered(b'{"channels":["a"]}', b"500 no"),
        answered(b" " * 1_048_577),
    ],
)
def test_what_is_no_answer_makes_no_channel(said: bytes) -> None:
    stage = Stage()
    stage.ask("nsqd-http", "POST", "/topic/create?topic=t")
    peer = asked_about(stage, b"t").say(said)
    peer.hang_up()
    assert depths(stage, "t") == {}


def test_a_topic_that_is_gone_is_not_made_again() -> None:
    stage = Stage()
    asked_about(stage, b"t").say(answered(b'{"channels":["archive"]}')).hang_up()
    body = stage.ask("nsqd-http", "GET", "/stats?format=json&topic=t").body
    assert json.loads(body)["topics"] is None


def test_a_lookupd_that_does_not_answer_a_question_is_given_up() -> None:
    stage = Stage()
    peer = asked_about(stage, b"t")
    stage.sleep(5.1)
    assert peer.over == "the lookupd did not answer in time"


def test_each_lookupd_is_asked_about_a_new_topic_and_not_about_old_ones() -> None:
    pair = Pair("early", "early:c")
    assert pair.announcer.questions == []
    pair.change("\x01t", "\x01t:c", "no name")
    assert pair.announcer.questions == [("127.0.0.1:4161", b"t")]


def test_lookupds_are_told_the_ports_that_are_reached_from_elsewhere() -> None:
    tables: dict[str, dict[str, object]] = {
        "nsq": {"broadcast_tcp_port": 14_150},
        "nsqd-http": {"broadcast_http_port": 14_151, "broadcast_address": "10.0.0.9"},
    }
    here = Stage(tables)
    told = here.registry.nsq.announced
    assert (told.broadcast_address, told.tcp_port, told.http_port) == ("10.0.0.9", 14_150, 14_151)
    info = json.loads(here.ask("nsqd-http", "GET", "/info").body)
    assert (info["tcp_port"], info["http_port"]) != (14_150, 14_151), "what is listened on"
    with pytest.raises(ValueError, match="broadcast_tcp_port must be 0 to 65535, got 70000"):
        Stage({"nsq": {"broadcast_tcp_port": 70_000}})
