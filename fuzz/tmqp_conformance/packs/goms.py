"""The pack of goMS: JSON objects over TCP, in the dialects ``type`` and ``messagetype``.

The cases ask for what both programs and the document promise; where they differ, for what the
published clients understand.
"""

from __future__ import annotations

import json
from typing import Final

from tmqp.testing.conformance import Case, Level, Verdict
from tmqp.testing.conformance.patterns import Matcher, Names
from tmqp.testing.conformance.steps import Answer, End, Fence, Hear
from tmqp_conformance.packs.ears import ObjectEar
from tmqp_conformance.packs.goms_grammar import GomsGrammar
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import dial, hear, nothing, pack_case, say

__all__ = ["PACK", "TOPICS"]

#: Topics that the server must know.
A: Final = "conformance-a"
B: Final = "conformance-b"
TOPICS: Final = (A, B)
OLD: Final = "type"
NEW: Final = "messagetype"

_FACTS: Final = {
    "G1": "A message is a JSON object on a line; the server writes compact JSON on a line.",
    "G2": "register has no answer where the topics are known.",
    "G3": "Unknown topics are error 001001, which names them; known ones beside are registered.",
    "G4": "send goes to every client registered to a named topic, once for each topic.",
    "G5": "A sender need not be registered.",
    "G6": "logout leaves the named topics, without an answer; unknown ones are ignored.",
    "G7": "close ends the connection.",
    "G8": "A line that is no message is ignored, and the connection stays.",
    "G9": "The key type has the kind; later clients use messagetype.",
    "G10": "A delivery to a client that says messagetype names its topic.",
    "G11": "An error has error-code with type, and errorcode with messagetype.",
    "G12": "There is no empty line: a published client stops listening at one.",
    "G13": "Several messages may come in one segment, and one in several.",
    "G14": "The document writes a message over several lines.",
    "G15": "logout without topics leaves all of them (document).",
    "G16": "Topics are small letters; capitals become small (document).",
}


class _Json(Matcher):
    """A JSON object that is exactly this one."""

    def __init__(self, **properties: object) -> None:
        self.properties = properties

    def matches(self, value: object, names: Names, sent: object) -> bool:
        return isinstance(value, bytes) and bool(json.loads(value) == self.properties)

    def describe(self) -> str:
        return f"exactly {json.dumps(self.properties)}"


def _said(
    kind: str, topics: tuple[str, ...] = (), data: str | None = None, key: str = OLD
) -> bytes:
    value: dict[str, object] = {key: kind}
    if topics:
        value["topics"] = topics
    if data is not None:
        value["data"] = data
    return json.dumps(value, separators=(",", ":")).encode() + b"\n"


def _got(data: str, topic: str = A, key: str = OLD) -> Expect:
    if key == OLD:
        return Expect("object", json=_Json(type="message", data=data))
    return Expect("object", json=_Json(messagetype="message", topics=[topic], data=data))


def _error(names: str, key: str = OLD) -> Expect:
    code = {"error-code": "001001"} if key == OLD else {"errorcode": "001001"}
    return Expect("object", json=_Json(**{key: "error", "error": names, **code}))


def _case(
    name: str, title: str, why: str, facts: str, *script: object, level: Level = Level.MUST
) -> Case:
    return pack_case(f"server.goms.{name}", title, why, facts, *script, level=level)


def _registered(line: str, *topics: str, key: str = OLD) -> list[object]:
    """A client that is registered: its answer to an unknown topic shows that it is."""
    return [
        dial(line),
        say(line, _said("register", topics, key=key), _said("register", ("nope",), key=key)),
        hear(line, _error("nope", key)),
    ]


_CASES: Final[tuple[Case, ...]] = (
    _case(
        "register-silent",
        "A registration to known topics has no answer",
        "Clients do not read one, and would take it for a message.",
        "G2",
        dial("a"),
        say("a", _said("register", (A,))),
        nothing("a"),
    ),
    _case(
        "register-unknown",
        "An unknown topic is error 001001 and is named",
        "A client learns what it will not receive.",
        "G3 G11",
        dial("a"),
        say("a", _said("register", ("nope",))),
        hear("a", _error("nope")),
    ),
    _case(
        "register-some-unknown",
        "Known topics beside unknown ones are registered",
        "One misspelt topic must not silence the others.",
        "G3",
        dial("a"),
        say("a", _said("register", (A, "nope", "nix"))),
        hear("a", _error("nope,nix")),
        dial("b"),
        say("b", _said("send", (A,), "x", NEW)),
        hear("a", _got("x")),
    ),
    _case(
        "send",
        "A message goes to every registered client",
        "This is what the service is for.",
        "G1 G4",
        _registered("a", A),
        _registered("b", A),
        dial("p"),
        say("p", _said("send", (A,), "x", NEW)),
        hear("a", _got("x")),
        hear("b", _got("x")),
        nothing("p"),
    ),
    _case(
        "send-unregistered-newer",
        "A sender that says messagetype need not be registered",
        "A producer is not interested in its topic.",
        "G5 G9",
        _registered("a", A),
        dial("p"),
        say("p", _said("send", (A,), "x", NEW)),
        hear("a", _got("x")),
    ),
    _case(
        "two-topics",
        "A receiver on two of the topics gets two messages",
        "Each topic is a delivery of its own.",
        "G4",
        _registered("a", A, B),
        dial("p"),
        say("p", _said("register", (A,), key=NEW), _said("send", (A, B), "x", NEW)),
        hear("a", _got("x"), _got("x")),
    ),
    _case(
        "newer-delivery",
        "A delivery to a client that says messagetype names its topic",
        "The published clients choose their handler by it.",
        "G9 G10",
        _registered("a", A, key=NEW),
        dial("p"),
        say("p", _said("send", (A,), "x", NEW)),
        hear("a", _got("x", key=NEW)),
    ),
    _case(
        "newer-error",
        "An error to a client that says messagetype has errorcode",
        "The published clients read this key.",
        "G11",
        dial("a"),
        say("a", _said("register", ("nope",), key=NEW)),
        hear("a", _error("nope", NEW)),
    ),
    _case(
        "no-empty-line",
        "No empty line comes, not even behind an error",
        "A published client stops listening at one.",
        "G12",
        dial("a"),
        say("a", _said("register", ("nope",), key=NEW)),
        Hear(
            "a",
            Answer(_error("nope", NEW)),
            Answer(
                _error("nope", NEW),
                Expect("blank"),
                verdict=Verdict.NON_STRICT,
                message="an empty line follows, at which a published client stops listening",
            ),
            fence=Fence.QUIET,
        ),
        level=Level.SHOULD,
    ),
    _case(
        "logout",
        "logout leaves the named topics and no others",
        "A client changes what it is interested in.",
        "G6",
        _registered("a", A, B),
        say("a", _said("logout", (A, "nope"))),
        nothing("a"),
        dial("p"),
        say("p", _said("send", (A, B), "x", NEW)),
        hear("a", _got("x")),
        nothing("a"),
    ),
    _case(
        "logout-of-all",
        "logout without topics leaves all of them",
        "The document says so; both programs do nothing.",
        "G15",
        _registered("a", A, B),
        say("a", _said("logout")),
        nothing("a"),
        dial("p"),
        say("p", _said("send", (A, B), "x", NEW)),
        nothing("a"),
        level=Level.SHOULD,
    ),
    _case(
        "close",
        "close ends the connection",
        "A client waits for the end.",
        "G7",
        _registered("a", A),
        say("a", _said("close")),
        Hear("a", Answer(end=End.CLOSED), fence=Fence.END),
    ),
    _case(
        "no-message",
        "A line that is no message is ignored",
        "A client of a later version must not lose its connection.",
        "G8",
        dial("a"),
        say("a", b"hello\n", _said("what", (A,)), _said("register", ("nope",))),
        hear("a", _error("nope")),
    ),
    _case(
        "one-segment",
        "All messages of one segment are carried out, in order",
        "TCP keeps no borders; the older program loses all but the first.",
        "G13",
        _registered("a", A),
        dial("p"),
        say("p", *[_said("send", (A,), str(number), NEW) for number in range(3)]),
        hear("a", _got("0"), _got("1"), _got("2")),
    ),
    _case(
        "byte-by-byte",
        "A message may come byte by byte",
        "TCP keeps no borders.",
        "G13",
        _registered("a", A),
        dial("p"),
        say("p", _said("send", (A,), "in pieces", NEW), chop=1),
        hear("a", _got("in pieces")),
    ),
    _case(
        "several-lines",
        "A message over several lines is understood",
        "The document shows it so; both programs ignore it.",
        "G14",
        dial("a"),
        say("a", b'{\n "type": "register",\n "topics": [\n  "nope"\n ]\n}\n'),
        hear("a", _error("nope")),
        level=Level.SHOULD,
    ),
    _case(
        "capitals",
        "Capital letters of a topic become small ones",
        "The document says so; both programs compare exactly.",
        "G16",
        _registered("a", A.upper()),
        dial("p"),
        say("p", _said("send", (A,), "x", NEW)),
        hear("a", _got("x")),
        level=Level.SHOULD,
    ),
    _case(
        "text-unchanged",
        "Text of any language passes unchanged",
        "Data is what programs make of it.",
        "G1 G4",
        _registered("a", A),
        dial("p"),
        say("p", _said("send", (A,), 'Grüße, "世界" \\ <&>', NEW)),
        hear("a", _got('Grüße, "世界" \\ <&>')),
    ),
)

PACK: Final = Pack(
    name="goms",
    title="goMS",
    page="docs/doors/goms.md",
    ears={"": ObjectEar},
    grammars={"": GomsGrammar()},
    facts=_FACTS,
    cases=_CASES,
    probe=_case(
        "probe",
        "Answers a new client",
        "A server that does not answer a new client has crashed.",
        "G3",
        dial("probe"),
        say("probe", _said("register", ("nope",))),
        hear("probe", Expect("object")),
    ),
    setting=f"The server must know the topics {A} and {B}.",
)
