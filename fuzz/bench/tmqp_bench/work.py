"""What a measured path is: a :class:`Work`, its name, and the messages all of them carry.

A work goes over one prepared stream and says how many messages it saw.  Asked to keep, the very
same code also hands over the payloads, so that a test can tell whether anything was left out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

__all__ = [
    "CHUNK_BYTES",
    "NAMES",
    "OUR_TITLES",
    "PEER_TITLES",
    "Prepare",
    "Run",
    "Work",
    "chunks",
    "message_count",
    "message_ids",
    "payloads",
]

#: What one read from a socket yields at the most.
CHUNK_BYTES: Final = 65_536
#: Source and target of every message: 19 bytes; the message id has 32 more.
NAMES: Final = ("producer-1", "channel-7")

#: Goes over the stream once and returns the number of messages; a list given is filled with their
#: payloads.
Run = Callable[[list[bytes] | None], int]


@dataclass(frozen=True)
class Work:
    """One measured path over one prepared stream.

    ``stream_bytes`` is what a pass reads or writes, ``messages`` how many messages that is.
    """

    run: Run
    messages: int
    stream_bytes: int


#: Makes a work from a payload size in bytes and a number of messages.
Prepare = Callable[[int, int], Work]

#: What is measured of ``tmqp``, and how the table calls it; :mod:`tmqp_bench.ours` has the works.
OUR_TITLES: Final = {
    "decode": "decode, read lazily",
    "decode-mixed": "the same, nine sources in turn",
    "decode-read": "decode, everything read",
    "build": "write (Frame.build)",
    "forward": "forward with a new head",
    "receive": "Connection.receive",
}
#: The same for the peers; a name is the distribution's, with something behind it if it has several.
PEER_TITLES: Final = {
    "websockets": "websockets, client's side (unmasked)",
    "websockets-masked": "websockets, server's side (masked)",
    "wsproto": "wsproto, client's side",
    "nats-py": "nats-py, parser",
    "pamqp": "pamqp, deliver + header + body",
}


def message_count(payload_bytes: int) -> int:
    """How many messages of this payload make a stream worth measuring: about 256 KiB, at least 64.

    A stream that stays in the processor's cache is what a broker sees: it has just been received.
    """
    return max(64, 262_144 // (payload_bytes + 64))


def payloads(payload_bytes: int, count: int) -> list[bytes]:
    """``count`` payloads of one size; those with room for four bytes differ from each other."""
    made: list[bytes] = []
    for number in range(count):
        unit = number.to_bytes(4, "little")
        made.append((unit * (payload_bytes // 4 + 1))[:payload_bytes])
    return made


def message_ids(count: int) -> list[str]:
    """``count`` different ids of 32 hexadecimal digits, as clients make them (F45)."""
    return [f"{0xC0DEC0DE0000 + number:032x}" for number in range(count)]


def chunks(stream: bytes) -> list[bytes]:
    """A stream in pieces of 64 KiB."""
    return [stream[at : at + CHUNK_BYTES] for at in range(0, len(stream), CHUNK_BYTES)]
