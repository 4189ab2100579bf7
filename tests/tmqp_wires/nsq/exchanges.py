"""The exchanges that were recorded with the original: what was sent, and what it answered.

The answers stand in ``tests/data/nsq/tcp.txt``; what was sent is said here, under the same name.
"""

from __future__ import annotations

import ast
import json
from typing import Any, Final, NamedTuple

from tests.project import ROOT
from tmqp_wires.nsq.writing import MAGIC

__all__ = ["EXCHANGES", "Exchange", "body", "identify", "many"]

_RECORDED: Final = ROOT / "tests" / "data" / "nsq" / "tcp.txt"


class Exchange(NamedTuple):
    """A name, the bytes sent, the frames received, and whether the server then closed."""

    name: str
    sent: bytes
    frames: list[tuple[int, bytes]]
    closes: bool


def body(data: bytes) -> bytes:
    """A size and data."""
    return len(data).to_bytes(4, "big", signed=True) + data


def size(number: int) -> bytes:
    return number.to_bytes(4, "big", signed=True)


def identify(**fields: Any) -> bytes:
    return b"IDENTIFY\n" + body(json.dumps(fields).encode())


def asked(**fields: Any) -> bytes:
    return identify(feature_negotiation=True, **fields)


def many(*bodies: bytes) -> bytes:
    """The contents of an MPUB, with their size."""
    return body(size(len(bodies)) + b"".join([body(each) for each in bodies]))


_ID: Final = b"0123456789abcdef"
_SUB: Final = b"SUB p_t3 c\n"

_SENT: Final[dict[str, bytes]] = {
    "IDENTIFY no negotiation": identify(client_id="x"),
    "IDENTIFY negotiation": asked(),
    "IDENTIFY negotiation, snappy+deflate": asked(snappy=True, deflate=True),
    "IDENTIFY tls_v1 asked, no cert": asked(tls_v1=True),
    "IDENTIFY deflate_level 9": asked(deflate=True, deflate_level=9),
    **{
        f"IDENTIFY {key}={value}": asked(**{key: value})
        for key, value in [
            ("heartbeat_interval", 999),
            ("heartbeat_interval", 60001),
            ("heartbeat_interval", -2),
            ("heartbeat_interval", -1),
            ("output_buffer_size", 63),
            ("output_buffer_size", 65537),
            ("output_buffer_size", -1),
            ("output_buffer_timeout", 24),
            ("output_buffer_timeout", 30001),
            ("output_buffer_timeout", -1),
            ("sample_rate", 100),
            ("sample_rate", -1),
            ("sample_rate", 99),
            ("msg_timeout", 999),
            ("msg_timeout", 900001),
            ("msg_timeout", 1000),
        ]
    },
    "IDENTIFY wrong json type": identify(feature_negotiation="yes"),
    "IDENTIFY bad json": b"IDENTIFY\n" + body(b"{"),
    "IDENTIFY size 0": b"IDENTIFY\n" + size(0),
    "IDENTIFY size -1": b"IDENTIFY\n" + size(-1),
    "IDENTIFY size 5242881": b"IDENTIFY\n" + size(5_242_881),
    "IDENTIFY twice": identify(feature_negotiation=False) * 2,
    "IDENTIFY after SUB": b"SUB p_t c\n" + identify(),
    "AUTH when disabled": b"AUTH\n" + body(b"x"),
    "AUTH with param": b"AUTH x\n" + body(b"x"),
    "NOP": b"NOP\n",
    "NOP \\r\\n": b"NOP\r\n",
    "empty line": b"\n",
    "lower case": b"nop\n",
    "unknown": b"FOO bar\n",
    "line > 16K": b"A" * 20_000 + b"\n",
    "PUB no topic": b"PUB\n",
    "PUB bad topic": b"PUB a$b\n" + body(b"x"),
    "PUB double space": b"PUB  t\n" + body(b"x"),
    "PUB 65-char topic": b"PUB " + b"a" * 65 + b"\n" + body(b"x"),
    "PUB 64-char with #ephemeral": b"PUB " + b"a" * 54 + b"#ephemeral\n" + body(b"x"),
    "PUB extra param": b"PUB p_x extra\n" + body(b"x"),
    "PUB size 0": b"PUB p_t\n" + size(0),
    "PUB size -1": b"PUB p_t\n" + size(-1),
    "PUB size max+1": b"PUB p_t\n" + size(1_048_577),
    "PUB size max": b"PUB p_t\n" + body(b"x" * 1_048_576),
    "PUB w/o IDENTIFY": b"PUB p_t\n" + body(b"x"),
    "PUB after SUB": b"SUB p_t2 c\n" + b"PUB p_t2\n" + body(b"x"),
    "MPUB ok": b"MPUB p_t\n" + many(b"a", b"b"),
    "MPUB no topic": b"MPUB\n",
    "MPUB bad topic": b"MPUB a$b\n" + many(b"a"),
    "MPUB body size 0": b"MPUB p_t\n" + size(0),
    "MPUB body too big": b"MPUB p_t\n" + size(5_242_881),
    "MPUB count 0": b"MPUB p_t\n" + body(size(0)),
    "MPUB count huge": b"MPUB p_t\n" + body(size(1_048_577)),
    "MPUB empty msg": b"MPUB p_t\n" + many(b"a", b""),
    "MPUB msg too big": b"MPUB p_t\n" + body(size(1) + size(1_048_577)),
    "MPUB trailing bytes in body": b"MPUB p_t\n" + size(13) + size(1) + body(b"a") + b"NOP\n",
    "DPUB ok": b"DPUB p_t 100\n" + body(b"a"),
    "DPUB no timeout": b"DPUB p_t\n",
    "DPUB bad timeout": b"DPUB p_t x\n" + body(b"a"),
    "DPUB neg timeout": b"DPUB p_t -1\n" + body(b"a"),
    "DPUB too long": b"DPUB p_t 3600001\n" + body(b"a"),
    "DPUB 3600000": b"DPUB p_t 3600000\n" + body(b"a"),
    "SUB no channel": b"SUB p_t\n",
    "SUB bad topic": b"SUB a$ c\n",
    "SUB bad channel": b"SUB p_t c$\n",
    "SUB twice": _SUB + b"SUB p_t3 d\n",
    "SUB heartbeats off": identify(heartbeat_interval=-1) + _SUB,
    "RDY 1 before SUB": b"RDY 1\n",
    "FIN 0123456789abcdef before SUB": b"FIN " + _ID + b"\n",
    "REQ 0123456789abcdef 0 before SUB": b"REQ " + _ID + b" 0\n",
    "TOUCH 0123456789abcdef before SUB": b"TOUCH " + _ID + b"\n",
    "CLS before SUB": b"CLS\n",
    "RDY -1": _SUB + b"RDY -1\n",
    "RDY 2501": _SUB + b"RDY 2501\n",
    "RDY x": _SUB + b"RDY x\n",
    "RDY (none)": _SUB + b"RDY\n",
    "FIN short id": _SUB + b"FIN abc\n",
    "FIN no id": _SUB + b"FIN\n",
    "FIN unknown": _SUB + b"FIN " + _ID + b"\n",
    "REQ unknown": _SUB + b"REQ " + _ID + b" 0\n",
    "REQ no timeout": _SUB + b"REQ " + _ID + b"\n",
    "REQ bad timeout": _SUB + b"REQ " + _ID + b" -5\n",
    "TOUCH unknown": _SUB + b"TOUCH " + _ID + b"\n",
    "CLS": _SUB + b"CLS\n",
    "CLS twice": _SUB + b"CLS\nCLS\n",
    "RDY after CLS": _SUB + b"CLS\nRDY 5\n",
}


def _recorded() -> list[Exchange]:
    found: list[Exchange] = []
    for line in _RECORDED.read_text().splitlines():
        if line.startswith("#"):
            continue
        name, _, answers = line.partition(" -> ")
        name = name.rstrip()
        frames = [each for each in ast.literal_eval(answers) if isinstance(each, tuple)]
        closes = "EOF" in answers or "RESET" in answers
        sent = b"  V1" if name == "bad magic" else MAGIC + _SENT[name]
        found.append(Exchange(name, sent, frames, closes))
    return found


#: In the order in which they were recorded.
EXCHANGES: Final = _recorded()
