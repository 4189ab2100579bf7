"""The pack of Simple MQ: the line protocol of the Simple Message Queue Server.

The cases ask for what its users rely on.  Where the original loses or mixes up messages, which no
server should copy, a case says so in its reason.
"""

from __future__ import annotations

import json
from typing import Final

from tmqp.testing.conformance import Case, Level
from tmqp.testing.conformance.patterns import Matcher, Names
from tmqp.testing.conformance.steps import Close, Step
from tmqp_conformance.packs.ears import LineEar
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.smq_grammar import SmqGrammar
from tmqp_conformance.packs.units import Expect
from tmqp_conformance.packs.words import dial, hear, nothing, pack_case, say

__all__ = ["PACK"]

_FACTS: Final = {
    "S1": "M:queue:body stores a message; the body is everything behind the second colon.",
    "S2": "A line ends with a newline; M and what consumes have no answer.",
    "S3": "C:queue makes the connection a consumer; what waits is sent at once.",
    "S4": "A delivery is the body and a newline, without the queue's name.",
    "S5": "D:queue:n says that the n oldest messages are done.",
    "S6": "S, S: and S:: are answered with a JSON object: queue to messages waiting and not done.",
    "S7": "An unknown letter is answered with UNKNOWN_TYPE.",
    "S8": "A line that means nothing is ignored.",
    "S9": "The consumers of a queue take turns.",
    "S10": "Messages wait while a queue has no consumer, in their order.",
    "S11": "A queue stays in the statistics, with 0, when it is empty.",
    "S12": "A connection may consume several queues, and produce.",
}


class _Count(Matcher):
    """Statistics in which a queue has so many messages; None if it must not be there."""

    def __init__(self, queue: str, count: int | None) -> None:
        self.queue = queue
        self.count = count

    def matches(self, value: object, names: Names, sent: object) -> bool:
        try:
            found = json.loads(value) if isinstance(value, bytes) else None
        except ValueError:
            return False
        return isinstance(found, dict) and found.get(names.text(self.queue)) == self.count

    def describe(self) -> str:
        return f"JSON: an object with {self.queue}: {self.count}"


def _line(text: object) -> Expect:
    return Expect("line", text=text)


def _counted(line: str, count: int, question: bytes = b"S::\n") -> list[Step]:
    return [say(line, question), hear(line, _line(_Count("$q", count)))]


def _case(
    name: str, title: str, why: str, facts: str, *script: object, level: Level = Level.MUST
) -> Case:
    return pack_case(f"server.smq.{name}", title, why, facts, *script, level=level)


_CASES: Final[tuple[Case, ...]] = (
    _case(
        "stored-then-consumed",
        "A message waits for its consumer",
        "A producer need not know whether there are consumers.",
        "S1 S3 S4 S10",
        dial("p"),
        say("p", b'M:$q:{"id":1}\n'),
        _counted("p", 1),
        dial("c"),
        say("c", b"C:$q:\n"),
        hear("c", _line(b'{"id":1}')),
    ),
    _case(
        "consumed-at-once",
        "A message goes to a waiting consumer at once",
        "A consumer does not poll.",
        "S3 S4",
        dial("c"),
        say("c", b"C:$q:\n"),
        nothing("c"),
        dial("p"),
        say("p", b"M:$q:x\n"),
        hear("c", _line(b"x")),
    ),
    _case(
        "without-trailing-colon",
        "C:queue without a second colon consumes, too",
        "The document writes it so.",
        "S3",
        dial("c"),
        say("c", b"C:$q\n"),
        dial("p"),
        say("p", b"M:$q:x\n"),
        hear("c", _line(b"x")),
    ),
    _case(
        "body-with-colons",
        "A body may contain colons and need not be JSON",
        "Only the first two colons are the protocol's.",
        "S1",
        dial("c"),
        say("c", b"C:$q:\nM:$q:a:b::c\n"),
        hear("c", _line(b"a:b::c")),
    ),
    _case(
        "empty-body",
        "A message may be empty",
        "A signal needs no content.",
        "S1 S4",
        dial("c"),
        say("c", b"C:$q:\nM:$q:\n"),
        hear("c", _line(b"")),
    ),
    _case(
        "several-lines",
        "All lines of one segment are carried out, in order",
        "TCP keeps no borders; a server that reads segments loses messages.",
        "S2 S10",
        dial("c"),
        say("c", b"C:$q:\nM:$q:1\nM:$q:2\nM:$q:3\n"),
        hear("c", _line(b"1"), _line(b"2"), _line(b"3")),
    ),
    _case(
        "byte-by-byte",
        "A line may come byte by byte",
        "TCP keeps no borders; a server that reads segments mixes messages up.",
        "S2",
        dial("c"),
        say("c", b"C:$q:\n"),
        dial("p"),
        say("p", b"M:$q:in pieces\n", chop=1),
        hear("c", _line(b"in pieces")),
    ),
    _case(
        "statistics-of-three-forms",
        "S, S: and S:: are answered with the statistics",
        "Document and client write it in different ways.",
        "S6",
        dial("p"),
        say("p", b"M:$q:x\n"),
        _counted("p", 1, b"S\n"),
        _counted("p", 1, b"S:\n"),
        _counted("p", 1, b"S::\n"),
    ),
    _case(
        "done",
        "D takes messages out of the statistics",
        "Operators see how much work is left.",
        "S5 S6 S11",
        dial("c"),
        say("c", b"M:$q:1\nM:$q:2\nM:$q:3\nC:$q:\n"),
        hear("c", _line(b"1"), _line(b"2"), _line(b"3")),
        dial("p"),
        _counted("p", 3),
        say("c", b"D:$q:2\n"),
        nothing("c"),
        _counted("p", 1),
        say("c", b"D:$q:1\n"),
        nothing("c"),
        _counted("p", 0),
    ),
    _case(
        "unknown-letter",
        "An unknown letter is answered with UNKNOWN_TYPE and hurts nothing",
        "A later client must learn what this server does not know.",
        "S7",
        dial("p"),
        say("p", b"X:$q:1\nM:$q:1\n"),
        hear("p", _line(b"UNKNOWN_TYPE")),
        _counted("p", 1),
    ),
    _case(
        "line-without-meaning",
        "A line without a colon and an empty line are ignored",
        "One line must not take others with it.",
        "S8",
        dial("p"),
        say("p", b"hello\n\nM:$q:1\n"),
        _counted("p", 1),
    ),
    _case(
        "turns",
        "Two consumers take turns",
        "Work is distributed this way.",
        "S9",
        dial("a"),
        say("a", b"C:$q:\n"),
        nothing("a"),
        dial("b"),
        say("b", b"C:$q:\n"),
        nothing("b"),
        dial("p"),
        say("p", b"M:$q:x\nM:$q:x\n"),
        hear("a", _line(b"x")),
        hear("b", _line(b"x")),
    ),
    _case(
        "several-queues",
        "A connection may consume several queues, and produce",
        "A program needs one connection.",
        "S12",
        dial("c"),
        say("c", b"C:$q:\nC:$r:\nM:$q:1\n"),
        hear("c", _line(b"1")),
        say("c", b"M:$r:2\n"),
        hear("c", _line(b"2")),
    ),
    _case(
        "queues-apart",
        "A consumer gets nothing of another queue",
        "Queues are what keeps work apart.",
        "S3",
        dial("c"),
        say("c", b"C:$q:\n"),
        dial("p"),
        say("p", b"M:$r:1\n"),
        nothing("c"),
    ),
    _case(
        "large-body",
        "A body of 100,000 bytes passes unchanged",
        "A line has no length that the document names.",
        "S1 S4",
        dial("c"),
        say("c", b"C:$q:\n"),
        dial("p"),
        say("p", b"M:$q:" + b"0123456789" * 10_000 + b"\n"),
        hear("c", _line(b"0123456789" * 10_000)),
    ),
    _case(
        "unfinished-come-again",
        "What a consumer leaves unfinished goes to the next one",
        "The original loses it; a crash must lose nothing.",
        "S5 S10",
        dial("a"),
        say("a", b"M:$q:1\nC:$q:\n"),
        hear("a", _line(b"1")),
        Close("a"),
        dial("b"),
        say("b", b"C:$q:\n"),
        hear("b", _line(b"1")),
        level=Level.SHOULD,
    ),
)

PACK: Final = Pack(
    name="smq",
    title="Simple MQ",
    page="docs/doors/smq.md",
    ears={"": LineEar},
    grammars={"": SmqGrammar()},
    facts=_FACTS,
    cases=_CASES,
    probe=_case(
        "probe",
        "Answers a new client",
        "A server that does not answer a new client has crashed.",
        "S6",
        dial("probe"),
        say("probe", b"S::\n"),
        hear("probe", Expect("line")),
    ),
)
