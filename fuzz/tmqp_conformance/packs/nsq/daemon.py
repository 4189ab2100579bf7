"""NSQ, nsqd by TCP: greeting, commands, publishing, delivery, answers to messages."""

from __future__ import annotations

from typing import Final

from tmqp.testing.conformance import Case, Level, Verdict
from tmqp.testing.conformance.patterns import Matcher, Names, OneOf, Part, Properties
from tmqp.testing.conformance.steps import Answer, Close, End, Fence, Hear
from tmqp_conformance.packs.nsq.words import (
    HEARTBEAT,
    OK,
    OTHER,
    connect,
    consumer,
    error,
    fin,
    identify,
    message,
    mpub,
    pub,
    published,
    sub,
)
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import closes, dial, hear, nothing, pack_case, say, sized
from tmqp_wires.nsq.writing import MAGIC

__all__ = ["CASES"]

_UNKNOWN: Final = b"0123456789abcdef"
#: How long a server may take beyond a time that it was told: the original looks every 5 s.
_LATE_S: Final = 7.0
_MAX_MSG_SIZE: Final = 1_048_576


class _Id(Matcher):
    """A message id (N15)."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        return (
            isinstance(value, bytes) and len(value) == 16 and set(value) <= {*b"0123456789abcdef"}
        )

    def describe(self) -> str:
        return "16 lower-case hexadecimal digits"


class _Recent(Matcher):
    """A time since 2001, in nanoseconds since 1970."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        return isinstance(value, int) and 10**18 < value < 1 << 62

    def describe(self) -> str:
        return "a time in nanoseconds since 1970"


class _Compact(Matcher):
    """JSON without a space behind its colons (N35)."""

    def matches(self, value: object, names: Names, sent: object) -> bool:
        return isinstance(value, bytes) and b'":' in value and b'": ' not in value

    def describe(self) -> str:
        return "JSON without spaces"


def _refused(
    name: str, title: str, why: str, facts: str, code: bytes, *said: object, text: object = None
) -> Case:
    """A case about a command that ends the connection."""
    return pack_case(
        f"server.nsq.{name}",
        title,
        why,
        facts,
        connect("a"),
        say("a", *said),
        closes("a", error(code, text)),
    )


_GREETING: Final = (
    pack_case(
        "server.nsq.magic-wrong",
        "Other first bytes are refused with E_BAD_PROTOCOL",
        "A client of another protocol must learn that it is at the wrong port.",
        "N2",
        dial("a"),
        say("a", b"HELO"),
        closes("a", error(b"E_BAD_PROTOCOL")),
    ),
    pack_case(
        "server.nsq.byte-by-byte",
        "Greeting and commands may come byte by byte",
        "TCP keeps no borders, and a network may cut anywhere.",
        "N1 N6",
        dial("a"),
        say("a", MAGIC, pub(b"one"), chop=1),
        hear("a", OK),
    ),
    pack_case(
        "server.nsq.identify-plain",
        "IDENTIFY without feature negotiation is answered with OK",
        "Old clients read OK and nothing else.",
        "N33",
        connect("a"),
        say("a", identify(client_id="a")),
        hear("a", OK),
    ),
    pack_case(
        "server.nsq.identify-features",
        "IDENTIFY with feature negotiation is answered with the features",
        "Clients decide by this answer how they go on.",
        "N34",
        connect("a"),
        say("a", identify(client_id="a", feature_negotiation=True, msg_timeout=5000)),
        hear(
            "a",
            Expect(
                "response",
                data=Properties(
                    {"msg_timeout": 5000, "tls_v1": False, "snappy": False, "deflate": False}
                ),
            ),
        ),
    ),
    pack_case(
        "server.nsq.identify-compact",
        "The features are JSON without spaces",
        "A client in wide use looks for parts of the text.",
        "N35",
        connect("a"),
        say("a", identify(feature_negotiation=True)),
        hear("a", Expect("response", data=_Compact())),
    ),
    pack_case(
        "server.nsq.identify-two-compressions",
        "snappy and deflate together are refused",
        "A stream has one compression.",
        "N37",
        connect("a"),
        say("a", identify(feature_negotiation=True, snappy=True, deflate=True)),
        hear(
            "a",
            Answer(error(b"E_IDENTIFY_FAILED"), end=End.CLOSED),
            Answer(
                Expect("response", data=Part(b'"snappy":false')),
                verdict=Verdict.INFORMATIONAL,
                message="the server has not both compressions",
                more=True,
            ),
        ),
    ),
    _refused(
        "identify-no-json",
        "IDENTIFY with a body that is not JSON is refused",
        "A server must not guess what a client wants.",
        "N27",
        b"E_BAD_BODY",
        sized(b"IDENTIFY", b"{"),
    ),
    _refused(
        "identify-heartbeat-too-short",
        "A heartbeat interval below a second is refused",
        "Heartbeats must not become a load.",
        "N28",
        b"E_BAD_BODY",
        identify(heartbeat_interval=999),
        text=b"IDENTIFY heartbeat interval (999) is invalid",
    ),
    pack_case(
        "server.nsq.identify-late",
        "IDENTIFY after SUB is refused",
        "What was agreed must not change while messages are in flight.",
        "N24",
        consumer("a"),
        say("a", identify(client_id="a")),
        closes("a", error(b"E_INVALID", b"cannot IDENTIFY in current state")),
    ),
)

_COMMANDS: Final = (
    _refused(
        "command-lower-case",
        "A command in lower case is refused",
        "The error names the command that the server does not know.",
        "N7",
        b"E_INVALID",
        b"nop\n",
        text=b"invalid command nop",
    ),
    pack_case(
        "server.nsq.command-crlf",
        "A line may end with CR LF; NOP has no answer",
        "Some clients end lines so.",
        "N6 N13",
        connect("a"),
        say("a", b"NOP\r\n", pub()),
        hear("a", OK),
    ),
    pack_case(
        "server.nsq.answers-in-order",
        "Commands in one segment are answered in their order",
        "A producer matches answers by their order.",
        "N12 N55",
        connect("a"),
        say("a", pub(b"1"), pub(b"2"), sub(), b"SUB again c\n"),
        closes("a", OK, OK, OK, error(b"E_INVALID", b"cannot SUB in current state")),
    ),
    pack_case(
        "server.nsq.pub-further-parameters",
        "Parameters behind the topic are ignored",
        "Later clients may say more than this server knows.",
        "N8 N55",
        connect("a"),
        say("a", sized(b"PUB $t#ephemeral more", b"x")),
        hear("a", OK),
    ),
    _refused(
        "pub-bad-topic",
        "PUB to an invalid topic is refused",
        "Topics become names of files and of metrics.",
        "N17 N56",
        b"E_BAD_TOPIC",
        sized(b"PUB a!b", b"x"),
        text=b'PUB topic name "a!b" is not valid',
    ),
    _refused(
        "pub-two-spaces",
        "Two spaces make an empty topic, which is refused",
        "A server must not read a line otherwise than others do.",
        "N6 N56",
        b"E_BAD_TOPIC",
        sized(b"PUB  t", b"x"),
        text=b'PUB topic name "" is not valid',
    ),
    _refused(
        "pub-long-topic",
        "A topic of 65 characters is refused",
        "Names have a limit that clients rely on.",
        "N17 N56",
        b"E_BAD_TOPIC",
        sized(b"PUB " + b"a" * 65, b"x"),
    ),
    _refused(
        "pub-empty",
        "PUB of an empty body is refused",
        "A message has a body.",
        "N56",
        b"E_BAD_MESSAGE",
        sized(b"PUB $t", b""),
        text=b"PUB invalid message body size 0",
    ),
    _refused(
        "pub-too-large",
        "PUB of more than the maximum is refused before the body",
        "What is not allowed must not be buffered.",
        "N19 N56",
        b"E_BAD_MESSAGE",
        sized(b"PUB $t", b"", _MAX_MSG_SIZE + 1),
        text=b"PUB message too big 1048577 > 1048576",
    ),
    _refused(
        "mpub-nothing",
        "MPUB of no messages is refused",
        "An answer to nothing would confirm nothing.",
        "N58",
        b"E_BAD_BODY",
        mpub(),
    ),
    _refused(
        "dpub-too-long",
        "DPUB with a delay above the maximum is refused",
        "A producer must learn that its delay is not kept.",
        "N62",
        b"E_INVALID",
        sized(b"DPUB $t 3600001", b"x"),
        text=b"DPUB timeout 3600001 out of range 0-3600000",
    ),
    _refused(
        "sub-bad-channel",
        "SUB of an invalid channel is refused",
        "Channels become names of files and of metrics.",
        "N17 N75",
        b"E_BAD_CHANNEL",
        b"SUB $t#ephemeral c!\n",
    ),
    pack_case(
        "server.nsq.sub-without-heartbeats",
        "SUB without heartbeats is refused",
        "A dead consumer must be noticed.",
        "N98",
        connect("a"),
        say("a", identify(heartbeat_interval=-1)),
        hear("a", OK),
        say("a", sub()),
        closes("a", error(b"E_INVALID", b"cannot SUB with heartbeats disabled")),
    ),
    pack_case(
        "server.nsq.rdy-too-large",
        "RDY above the maximum is refused",
        "A consumer must not take what it cannot hold.",
        "N77",
        consumer("a"),
        say("a", b"RDY 2501\n"),
        closes("a", error(b"E_INVALID", b"RDY count 2501 out of range 0-2500")),
    ),
    pack_case(
        "server.nsq.fin-short-id",
        "FIN of an id that is too short is refused",
        "Such a client is out of step with the protocol.",
        "N88",
        consumer("a"),
        say("a", b"FIN 0123\n"),
        closes("a", error(b"E_INVALID")),
    ),
)

_DELIVERY: Final = (
    pack_case(
        "server.nsq.nothing-before-rdy",
        "Nothing is delivered before RDY",
        "A consumer says when it can work.",
        "N76",
        consumer("a"),
        connect("p"),
        published("p", b"x"),
        nothing("a"),
    ),
    pack_case(
        "server.nsq.message-form",
        "A message has a time, one attempt and an id of hexadecimal digits",
        "Clients use the id in commands and in their logs.",
        "N14 N15 N16",
        consumer("a", 1),
        connect("p"),
        published("p", b"x"),
        hear("a", Expect("message", body=b"x", attempts=1, id=_Id(), timestamp_ns=_Recent())),
    ),
    pack_case(
        "server.nsq.window",
        "RDY is a window: FIN makes room for the next message",
        "Flow control depends on it.",
        "N78 N85",
        consumer("a", 1),
        connect("p"),
        published("p", b"1", b"2"),
        hear("a", message(b"1")),
        nothing("a"),
        say("a", fin()),
        hear("a", message(b"2")),
    ),
    pack_case(
        "server.nsq.mpub-all",
        "MPUB publishes all of its messages with one answer",
        "Batches make publishing fast.",
        "N57",
        consumer("a", 5),
        connect("p"),
        say("p", mpub(b"1", b"2", b"3")),
        hear("p", OK),
        hear("a", message(b"1"), message(b"2"), message(b"3")),
        nothing("p"),
    ),
    pack_case(
        "server.nsq.binary-body",
        "A body is any bytes",
        "Bodies are the programs' own.",
        "N14 N55",
        consumer("a", 1),
        connect("p"),
        published("p", bytes(range(36)) + bytes(range(37, 256))),
        hear("a", message(bytes(range(36)) + bytes(range(37, 256)))),
    ),
    pack_case(
        "server.nsq.copies",
        "Each channel gets a copy, with the same id",
        "Channels are independent groups of consumers.",
        "N15 N67",
        consumer("a", 1),
        consumer("b", 1, OTHER),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        hear("b", Expect("message", body=b"x", attempts=1, id=b"$m")),
    ),
    pack_case(
        "server.nsq.shared",
        "The consumers of one channel share its messages",
        "Work is distributed this way.",
        "N79",
        consumer("a", 1),
        consumer("b", 1),
        connect("p"),
        published("p", b"1", b"2"),
        hear("a", Expect("message", body=OneOf(b"1", b"2"), attempts=1)),
        hear("b", Expect("message", body=OneOf(b"1", b"2"), attempts=1)),
    ),
    pack_case(
        "server.nsq.backlog",
        "A topic without channels keeps messages for the first one",
        "Nothing is lost when a producer starts first.",
        "N67",
        connect("p"),
        published("p", b"early"),
        consumer("a", 1),
        hear("a", message(b"early")),
        consumer("b", 1, OTHER),
        nothing("b"),
    ),
    pack_case(
        "server.nsq.fin-once",
        "FIN has no answer, and a second one is an error that ends nothing",
        "A consumer that answered too late must be able to go on.",
        "N13 N86",
        consumer("a", 1),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        say("a", fin(), fin()),
        hear("a", error(b"E_FIN_FAILED", Part(b"$m failed"))),
        published("p", b"y"),
        hear("a", message(b"y")),
    ),
    pack_case(
        "server.nsq.unknown-in-flight",
        "REQ and TOUCH of an unknown message are errors that end nothing",
        "A message may have timed out meanwhile.",
        "N86",
        consumer("a"),
        say("a", b"REQ %s 0\nTOUCH %s\n" % (_UNKNOWN, _UNKNOWN)),
        hear("a", error(b"E_REQ_FAILED"), error(b"E_TOUCH_FAILED")),
        nothing("a"),
    ),
    pack_case(
        "server.nsq.answer-by-another",
        "A connection cannot finish the message of another",
        "One consumer must not settle what another works on.",
        "N87",
        consumer("a", 1),
        consumer("b"),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        say("b", fin()),
        hear("b", error(b"E_FIN_FAILED")),
        say("a", fin()),
        nothing("a"),
    ),
    pack_case(
        "server.nsq.requeue",
        "REQ 0 brings the message again, with one more attempt",
        "A consumer counts attempts to give up.",
        "N16 N85",
        consumer("a", 1),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        say("a", b"REQ $m 0\n"),
        hear("a", Expect("message", body=b"x", attempts=2, id=b"$m")),
    ),
    pack_case(
        "server.nsq.requeue-later",
        "REQ with a delay brings the message again after it",
        "A consumer that cannot work now does not want it at once.",
        "N85",
        consumer("a", 1),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        say("a", b"REQ $m 400\n"),
        nothing("a"),
        hear("a", message(b"x", 2), within=_LATE_S),
    ),
    pack_case(
        "server.nsq.deferred",
        "DPUB delivers after its delay",
        "A delay is a promise to the producer.",
        "N62",
        consumer("a", 1),
        connect("p"),
        say("p", sized(b"DPUB $t#ephemeral 400", b"x")),
        hear("p", OK),
        nothing("a"),
        hear("a", message(b"x"), within=_LATE_S),
    ),
    pack_case(
        "server.nsq.timeout",
        "A message that is not answered in time comes again",
        "The consumer may have lost it.",
        "N16 N93",
        consumer("a", 1, msg_timeout=1000),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        hear("a", message(b"x", 2), within=_LATE_S),
    ),
    pack_case(
        "server.nsq.leaves-while-ready",
        "What a consumer leaves unanswered is delivered again",
        "A crashed consumer must lose nothing.",
        "N93",
        consumer("b"),
        consumer("a", 1, msg_timeout=1000),
        connect("p"),
        published("p", b"x"),
        hear("a", message(b"x")),
        Close("a"),
        say("b", b"RDY 1\n"),
        hear("b", message(b"x", 2), within=_LATE_S),
    ),
    pack_case(
        "server.nsq.close-wait",
        "CLS is answered, stops messages, and leaves FIN to work",
        "A consumer ends its work before it leaves.",
        "N90",
        consumer("a", 5),
        connect("p"),
        published("p", b"1"),
        hear("a", message(b"1")),
        say("a", b"CLS\n"),
        hear("a", Expect("response", data=b"CLOSE_WAIT")),
        published("p", b"2"),
        say("a", fin()),
        nothing("a"),
    ),
    pack_case(
        "server.nsq.heartbeats",
        "Heartbeats come every interval, and two unanswered end the connection",
        "Both sides must notice that the other has disconnected.",
        "N96 N97",
        connect("a"),
        say("a", identify(heartbeat_interval=1000)),
        hear("a", OK),
        Hear(
            "a",
            Answer(HEARTBEAT, end=End.CLOSED),
            Answer(HEARTBEAT, HEARTBEAT, end=End.CLOSED),
            fence=Fence.END,
        ),
    ),
    pack_case(
        "server.nsq.heartbeat-answered",
        "A client that answers heartbeats stays connected",
        "A producer may have nothing to say for long.",
        "N96 N97",
        connect("a"),
        say("a", identify(heartbeat_interval=1000)),
        hear("a", OK),
        hear("a", HEARTBEAT),
        say("a", b"NOP\n"),
        hear("a", HEARTBEAT),
        say("a", b"NOP\n"),
        hear("a", HEARTBEAT),
        say("a", pub()),
        hear("a", OK),
        level=Level.MUST,
    ),
)

#: Every server of NSQ that lives passes this.
CASES: Final[tuple[Case, ...]] = (*_GREETING, *_COMMANDS, *_DELIVERY)
