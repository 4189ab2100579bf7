"""Damaged traffic of the packs' protocols, against our doors and broken servers in memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import pytest

from tests.tmqp_conformance.pack_machines import MACHINES
from tmqp.testing import Seeded, damage
from tmqp.testing.conformance import Patience
from tmqp.testing.conformance.patterns import Names
from tmqp_conformance.fuzzing.mutate import MUTATIONS
from tmqp_conformance.fuzzing.packs import PackSubject
from tmqp_conformance.fuzzing.wire import WireFuzzer, shrink
from tmqp_conformance.grammar import Piece, Tally
from tmqp_conformance.packs import PACKS
from tmqp_conformance.packs.grammar import ID_MARK
from tmqp_conformance.packs.memory import PackMachine, PackMemoryStage
from tmqp_conformance.packs.openwire import words as openwire
from tmqp_conformance.packs.stomp.words import CONNECT, frame, send
from tmqp_conformance.packs.zmtp_words import greeting, old_greeting
from tmqp_conformance.zoo.broken_openwire import BROKEN_OPENWIRE
from tmqp_conformance.zoo.broken_stomp import BROKEN_STOMP
from tmqp_conformance.zoo.goms import BROKEN_GOMS
from tmqp_conformance.zoo.nsq import BROKEN_NSQ, SmallNsq
from tmqp_conformance.zoo.small import SmallMachine
from tmqp_conformance.zoo.smq import BROKEN_SMQ, SmallSmq
from tmqp_conformance.zoo.throttr import BROKEN_THROTTR
from tmqp_conformance.zoo.zmtp import BROKEN_ZMTP
from tmqp_wires.zmtp.frames import command_frame, message_frames, metadata_bytes

BROKEN: Final[Mapping[str, Mapping[str, tuple[str, Callable[[], PackMachine]]]]] = {
    "nsq": BROKEN_NSQ,
    "smq": BROKEN_SMQ,
    "zmtp": BROKEN_ZMTP,
    "goms": BROKEN_GOMS,
    "throttr": BROKEN_THROTTR,
    "stomp": BROKEN_STOMP,
    "openwire": BROKEN_OPENWIRE,
}
#: What is so rare that few conversations may lack it.
RARE: Final = {
    *("name=64", "name=ephemeral", "number=over", "size=negative", "size=0", "size=over"),
    *("body=long", "length=wrong", "queue=long", "words=more", "count=negative", "count=over"),
    *("id=another", "topics=none", "topics=no list", "data=long", "data=empty", "dialect=both"),
}


class Revived(PackMemoryStage):
    """A stage on which a server that has crashed is started again."""

    def restart(self) -> None:
        assert isinstance(self.machine, SmallMachine)
        assert self.machine.crashed
        self.machine.crashed = False


def fuzzer(
    name: str, stage: PackMemoryStage, places: tuple[str, ...] = (), seed: int = 7
) -> WireFuzzer:
    subject = PackSubject(PACKS[name], places or tuple(PACKS[name].ears))
    return WireFuzzer(stage, subject, seed, Patience(quiet_s=0.01))


@pytest.mark.parametrize("name", PACKS)
def test_our_doors_live_and_stay_right(name: str) -> None:
    tried = fuzzer(name, PackMemoryStage(MACHINES[name]()))
    assert [*tried.run(lambda: tried.played < 300)] == []
    assert tried.played == 300
    coverage = tried.coverage
    assert set(coverage.mutations) == set(MUTATIONS)
    assert len(coverage.signatures) >= 8
    for place, grammar in tried.subject.grammars.items():
        tally = coverage.at(place)
        assert set(tally.states) <= {*grammar.states, "closed"}
        assert set(tally.kinds) <= {*grammar.kinds}
        assert set(tally.fields) <= {*grammar.fields}
        assert {*grammar.fields} - {*tally.fields} <= RARE, place
        assert {*grammar.states} - {*tally.states} <= {"closing", "body"}, place
        assert tally.kinds.total() > 20


@pytest.mark.parametrize(
    ("name", "animal", "kind"),
    [
        ("nsq", "never-closes", "open"),
        ("nsq", "little-endian", "undecodable"),
        ("smq", "closes-on-unknown", "closed"),
        ("smq", "crashes-on-unknown", "crash"),
        ("zmtp", "crashes-on-metadata", "crash"),
        ("zmtp", "takes-early-messages", "open"),
        ("zmtp", "checks-padding", "closed"),
        ("goms", "ignores-close", "open"),
        ("goms", "refuses-all", ""),
        ("goms", "crashes-on-nonsense", "crash"),
        ("throttr", "stays-on-unknown", "open"),
        ("throttr", "newer-pushes", "undecodable"),
        ("throttr", "crashes-on-unknown", "crash"),
        ("stomp", "stays-after-errors", "open"),
        ("stomp", "silent-errors", "closed"),
        ("stomp", "writes-no-escapes", "undecodable"),
        ("stomp", "bare-errors", ""),
        ("stomp", "crashes-on-unknown", "crash"),
        ("openwire", "any-magic", "open"),
        ("openwire", "ignores-unknown", "open"),
        ("openwire", "stays-after-errors", "open"),
        ("openwire", "cuts-at-nul", ""),
        ("openwire", "crashes-on-unknown", "crash"),
    ],
)
def test_a_planted_fault_is_found_and_made_small(name: str, animal: str, kind: str) -> None:
    stage = Revived(BROKEN[name][animal][1]())
    tried = fuzzer(name, stage, ("",))
    finding = next(tried.run(lambda: tried.played < 600), None)
    if not kind:
        assert finding is None, "what is not about robustness is for cases"
        return
    assert finding is not None
    assert finding.kind == kind
    smaller = shrink(tried, finding)
    again = tried.play(smaller.conversation)
    assert again is not None
    assert again.kind == kind
    # The greeting of ZMTP alone has 64 bytes, and a READY 30; CONNECT has 60.  What a client of
    # OpenWire says before anything else has 101, and no part of a command can be left out.
    most = {"zmtp": 160, "stomp": 160, "openwire": 300}.get(name, 100)
    assert sum(len(piece.data) for piece in smaller.conversation) < most
    assert not tried.gone


class Silent(SmallSmq):
    """It says nothing from the first empty message on."""

    def __init__(self) -> None:
        super().__init__()
        self.hangs = False

    def publish(self, session: object, queue: bytes, body: bytes) -> None:
        self.hangs = self.hangs or not body

    def take(self, number: int) -> bytes:
        return b"" if self.hangs else super().take(number)


def test_a_server_that_hangs_is_found() -> None:
    tried = fuzzer("smq", PackMemoryStage(Silent()))
    finding = next(tried.run(lambda: tried.played < 600))
    assert finding.kind == "crash", "nobody else is answered either"


def test_a_crash_ends_the_run_where_nobody_restarts() -> None:
    machine = BROKEN_SMQ["crashes-on-unknown"][1]()
    tried = fuzzer("smq", PackMemoryStage(machine))
    assert next(tried.run(lambda: tried.played < 600)).kind == "crash"
    assert tried.gone


def test_a_crash_before_a_later_line_is_opened_is_a_finding() -> None:
    """The server was called unreachable, and what it died of was not told."""
    tried = fuzzer("smq", Revived(BROKEN_SMQ["crashes-on-unknown"][1]()))
    finding = tried.play((Piece(0, b"X:\n"), Piece(1, b"S::\n")))
    assert finding is not None
    assert finding.kind == "crash"


def test_an_answer_has_the_id_of_the_message_that_came() -> None:
    server = SmallNsq()
    tried = fuzzer("nsq", PackMemoryStage(server), ("",))
    said = b"  V2SUB t c\nRDY 1\nPUB t\n\x00\x00\x00\x01x"
    assert tried.play((Piece(0, said), Piece(0, b"FIN " + ID_MARK + b"\n"))) is None
    assert server.topics == {b"t": {b"c": []}}, "it is finished"


@pytest.mark.parametrize("name", PACKS)
def test_a_grammar_cuts_what_it_is_given_and_loses_nothing(name: str) -> None:
    draw = Seeded(3)
    subject = PackSubject(PACKS[name], tuple(PACKS[name].ears))
    for conversation in subject.seeds:
        for piece in conversation:
            grammar = subject.grammars[piece.place]
            plain = piece.data + grammar.plain(draw) + grammar.odd(draw)
            for data in (piece.data, plain, damage(draw, plain)):
                begin, messages, rest = grammar.split(data)
                assert begin + b"".join(messages) + rest == data
                for message in messages:
                    assert isinstance(grammar.changed(draw, message), bytes)


HOST: Final = b"Host: localhost\r\n"


@pytest.mark.parametrize(
    ("said", "is_open", "is_doubtful"),
    [
        (b"GET /ping HTTP/1.1\r\n" + HOST + b"\r\n", True, False),
        (b"GET /stats?format=json&topic=%20 HTTP/1.1\r\n" + HOST + b"\r\n", True, False),
        (b"POST /pub?topic=t HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\n\r\nx", True, False),
        (b"POST /pub?topic=t HTTP/1.1\r\n" + HOST + b"Content-Length: 2\r\n\r\nx", False, False),
        (b"GET /ping HTTP/1.1\r\n", False, False),
        (b"GET /ping HTTP/1.0\r\n" + HOST + b"\r\n", False, True),
        (b"GET /ping HTTP/1.1\r\nHost: /x\r\n\r\n", False, True),
        (b"GET /nope HTTP/1.1\r\n" + HOST + b"\r\n", False, True),
        (b"GET /ping?%ff HTTP/1.1\r\n" + HOST + b"\r\n", False, True),
        (b"GET /ping?% HTTP/1.1\r\n" + HOST + b"\r\n", False, True),
        (b"GET /ping HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", False, True),
        (b"GET /ping HTTP/1.1\r\n" + HOST + HOST + b"\r\n", False, True),
        (b"GET /ping HTTP/1.1\r\n" + HOST + b"Content-Length: 1\r\n\r\nx", False, True),
        (b"POST /pub HTTP/1.1\r\n" + HOST + b"Content-Length: -1\r\n\r\n", False, True),
    ],
)
def test_only_requests_without_doubt_are_judged(
    said: bytes, is_open: bool, is_doubtful: bool
) -> None:
    oracle = PACKS["nsq"].grammars["http"].oracle(Tally())
    oracle.read(said)
    assert (oracle.open, oracle.doubtful) == (is_open, is_doubtful)
    assert not oracle.must_close


@pytest.mark.parametrize(
    ("said", "rule"),
    [
        (b"  V3", "E_BAD_PROTOCOL"),
        (b"  V2PUB a!b\n", "E_BAD_TOPIC"),
        (b"  V2PUB t\n\xff\xff\xff\xff", "E_BAD_MESSAGE"),
        (b"  V2RDY 2501\n", "E_INVALID"),
        (b"  V2" + b"x" * 20_000, ""),
        (b'  V2IDENTIFY\n\x00\x00\x00\x32{"snappy": true, "feature_negotiation": true     }', ""),
    ],
)
def test_the_oracle_of_nsq_knows_what_ends_a_connection(said: bytes, rule: str) -> None:
    oracle = PACKS["nsq"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert oracle.rule == rule
    assert oracle.must_close is bool(rule)
    assert not oracle.open


def test_what_a_second_identify_keeps_is_not_judged() -> None:
    """The original keeps that there are no heartbeats, and refuses the SUB behind it."""
    oracle = PACKS["nsq"].grammars[""].oracle(Tally())
    first = b'IDENTIFY\n\x00\x00\x00\x19{"heartbeat_interval":-1}'
    oracle.read(b"  V2" + first)
    assert oracle.open
    oracle.read(b"IDENTIFY\n\x00\x00\x00\x02{}SUB t c\n")
    assert (oracle.open, oracle.doubtful) == (False, True)
    oracle.read(b"PUB a!b\n")
    assert not oracle.must_close, "it may have ended before"


@pytest.mark.parametrize(
    ("said", "rule", "is_open"),
    [
        (CONNECT, "", True),
        (CONNECT[:-1], "", False),
        (CONNECT + send(b"x"), "", True),
        (send(b"x"), "connect-first", False),
        (frame(b"CONNECT", b"accept-version:9"), "version", False),
        (CONNECT + frame(b"PUBLISH"), "unknown-command", False),
        (CONNECT + send(b"x", rb"a:\t"), "escape", False),
        (CONNECT + send(b"four", b"content-length:2"), "length", False),
    ],
)
def test_the_oracle_of_stomp_knows_what_ends_a_connection(
    said: bytes, rule: str, is_open: bool
) -> None:
    oracle = PACKS["stomp"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert (oracle.rule, oracle.must_close, oracle.open) == (rule, bool(rule), is_open)
    assert not oracle.doubtful


@pytest.mark.parametrize(
    "said",
    [
        frame(b"CONNECT", b"accept-version:1.2", b"heart-beat:1,0"),
        CONNECT + frame(b"DISCONNECT"),
        CONNECT + CONNECT,
        CONNECT + send(b"x", b"no colon"),
        CONNECT + send(b"x", b"a:\xff"),
        CONNECT + send(b"x" * 9_000),
    ],
)
def test_what_servers_of_stomp_may_take_or_refuse_is_not_judged(said: bytes) -> None:
    oracle = PACKS["stomp"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert (oracle.doubtful, oracle.open, oracle.must_close) == (True, False, False)


OPENED: Final = PACKS["openwire"].grammars[""].greeting
NAMES: Final = Names("z")


@pytest.mark.parametrize(
    ("said", "rule", "is_open"),
    [
        (OPENED, "", True),
        (OPENED[:-1], "", False),
        (OPENED + openwire.send(b"x", 3).encode(NAMES, ""), "", True),
        (OPENED + openwire.Sized(b"\x63\0\0\0\1\0").encode(NAMES, ""), "type", False),
        (openwire.hello().encode(NAMES, ""), "", False),
        (openwire.hello(magic=b"inActive").encode(NAMES, ""), "magic", False),
    ],
)
def test_the_oracle_of_openwire_knows_what_ends_a_connection(
    said: bytes, rule: str, is_open: bool
) -> None:
    oracle = PACKS["openwire"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert (oracle.rule, oracle.must_close, oracle.open) == (rule, bool(rule), is_open)
    assert not oracle.doubtful


@pytest.mark.parametrize(
    "said",
    [
        OPENED + OPENED,
        OPENED + openwire.SHUTDOWN.encode(NAMES, ""),
        OPENED + openwire.Sized(b"", -1).encode(NAMES, ""),
        OPENED + openwire.Sized(b"\x18", 10_000).encode(NAMES, "") + b"x" * 9_000,
        openwire.hello(1).encode(NAMES, ""),
        openwire.hello(9).encode(NAMES, ""),
        openwire.hello(options=True).encode(NAMES, ""),
        openwire.session("a").encode(NAMES, ""),
    ],
)
def test_what_servers_of_openwire_may_take_or_refuse_is_not_judged(said: bytes) -> None:
    oracle = PACKS["openwire"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert (oracle.doubtful, oracle.open, oracle.must_close) == (True, False, False)


GREETED: Final = greeting() + command_frame(b"READY", metadata_bytes([("Socket-Type", b"PUSH")]))


@pytest.mark.parametrize(
    ("said", "rule", "is_open"),
    [
        (GREETED, "", True),
        (GREETED + message_frames([b"x"]), "", True),
        (GREETED[:-1], "", False),
        (GREETED + b"\x00\x02x", "", False),
        (old_greeting(8) + message_frames([b"x"]), "", False),
        (greeting(mechanism=b"CURVE"), "mechanism", False),
        (greeting() + message_frames([b"x"]), "message-before-ready", False),
        (greeting() + command_frame(b"PING", b"\0\0"), "ready-first", False),
        (greeting() + command_frame(b"READY", b"\x0bSocket"), "metadata", False),
        (
            greeting() + command_frame(b"READY", metadata_bytes([("Socket-Type", b"X")])),
            "socket-type",
            False,
        ),
    ],
)
def test_the_oracle_of_zmtp_knows_what_ends_a_connection(
    said: bytes, rule: str, is_open: bool
) -> None:
    oracle = PACKS["zmtp"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert (oracle.rule, oracle.must_close, oracle.open) == (rule, bool(rule), is_open)
    assert not oracle.doubtful


@pytest.mark.parametrize(
    "said",
    [
        b"\x01\x00",
        greeting() + command_frame(b"READY", metadata_bytes([("Socket-Type", b"PAIR")])),
        GREETED + b"\x08\x01x",
        GREETED + b"\x06" + (1 << 31).to_bytes(8, "big"),
        GREETED + command_frame(b"PING", b"\x00\x01"),
        GREETED + command_frame(b"ERROR", b"\x00"),
        old_greeting(77),
    ],
)
def test_what_servers_of_zmtp_may_take_or_refuse_is_not_judged(said: bytes) -> None:
    oracle = PACKS["zmtp"].grammars[""].oracle(Tally())
    oracle.read(said)
    assert (oracle.doubtful, oracle.open, oracle.must_close) == (True, False, False)


def test_a_line_that_another_one_ends_is_no_finding() -> None:
    """N71: who deletes a channel ends its consumers."""
    tried = fuzzer("nsq", PackMemoryStage(MACHINES["nsq"]()))
    gone = b"POST /channel/delete?topic=t&channel=c HTTP/1.1\r\nHost: a\r\n\r\n"
    lines = (Piece(0, b"  V2SUB t c\n"), Piece(1, gone, "http"))
    assert tried.play(lines) is None
