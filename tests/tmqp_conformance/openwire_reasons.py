"""Why each broken server of OpenWire must fail which cases: conditions on the bytes of a case.

In them a name is a letter and ``-z``; a command is its type, its number and whether it asks.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from struct import unpack_from
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tests.tmqp_conformance.test_zoo_of_packs import Reason, Script

__all__ = ["OPENWIRE"]

_CONNECTION: Final = rb"\x03\0\0\0\x01\x01\x01x"
_QUEUE: Final = rb"\x01d\x01\0\x03q-z"
#: A consumer of the queue that is no browser.
_CONSUMER: Final = rb"\x05\0\0\0\x02\x01\x01z\x01\0\x03.-z.{16}\0" + _QUEUE
_MESSAGE: Final = rb"\x18\0\0\0..\x01\x7b\x01\0\x03.-z.{16}" + _QUEUE
_ACK: Final = rb"\x16\0\0\0.." + _QUEUE
_WITHIN: Final = rb"\x01o"
_TRANSACTION: Final = rb"\x07\0\0\0..\x01x\x01\0\x03a-z\x01o.{8}\x01x\x01\0\x03a-z"
_BEGIN: Final = _TRANSACTION + rb"\0"
_COMMIT: Final = _TRANSACTION + rb"\x02"
_ROLLBACK: Final = _TRANSACTION + rb"\x04"
_MESSAGE_TYPE: Final = 0x18
_ACK_TYPE: Final = 0x16
_UNKNOWN: Final = rb"\x63\0\0\0\x07"


def _says(pattern: bytes, but: bytes = b"") -> Reason:
    """Whether a script says the one, and not the other."""
    return lambda script: (
        script.says(b"(?s)" + pattern) and not (but and script.says(b"(?s)" + but))
    )


def _hears(pattern: str) -> Reason:
    return lambda script: script.hears(pattern)


def _frames(segment: bytes) -> list[bytes]:
    """The commands of a segment."""
    found = []
    while len(segment) >= 4:
        (size,) = unpack_from(">i", segment)
        found.append(segment[4 : 4 + size])
        segment = segment[4 + size :]
    return found


def _needs_later_commands(script: Script) -> bool:
    """Something is to be heard that is due to a later command of a segment."""
    later = [each for segment in script.segments for each in _frames(segment)[1:]]
    is_committed = script.says(b"(?s)" + _COMMIT)
    for each in later:
        body = re.search(rb"\x01\0\0\0\x01(\d)", each) if each[0] == _MESSAGE_TYPE else None
        is_heard = body is not None and script.hears(f"body=b'{body[1].decode()}'")
        is_heard = is_heard or (each[0] == _ACK_TYPE and script.hears("message body"))
        if each[5] or (is_heard and (is_committed or b"\x01o\0\0" not in each)):
            return True
    return False


def _acknowledges(script: Script) -> bool:
    """Something is acknowledged in the end."""
    return bool(_says(_ACK)(script)) and (
        not _says(_ACK + _WITHIN)(script) or bool(_says(_COMMIT)(script))
    )


def _both(one: Reason, other: Callable[[Script], object]) -> Reason:
    return lambda script: one(script) and other(script)


OPENWIRE: Final[dict[str, tuple[str, Reason]]] = {
    "old-hello": ("fail", _hears("hello version")),
    "parrots-versions": ("fail", _says(rb"ActiveMQ\0\0\0[\x63\x01]")),
    "any-version": ("informational", _says(rb"ActiveMQ\0\0\0\x01")),
    "all-options": ("informational", _says(rb"TightEncodingEnabled\x01\x01")),
    "any-magic": ("unclean", _says(b"inActive")),
    "no-hello-needed": ("unclean", _says(b"^", but=b"ActiveMQ|inActive")),
    "takes-early": ("fail", _says(rb"ActiveMQ\0\0\0\x0c", but=_CONNECTION)),
    "shares-ids": ("fail", _hears("InvalidClientID")),
    "ignores-unknown": ("unclean", _says(_UNKNOWN)),
    "crashes-on-unknown": ("crash", _says(_UNKNOWN)),
    "no-limit": ("informational", _says(rb"\x7f\xff\xff\xff")),
    "silent-errors": ("non-strict", _hears(r"\berror")),
    "stays-after-errors": ("unclean", _hears("the connection ends")),
    "reads-segments": ("fail", lambda script: script.is_cut),
    "first-of-segment": ("fail", _needs_later_commands),
    "stays-after-shutdown": ("unclean", _says(rb"\x06\x0b\0\0\0\0\0")),
    "no-keep-alive": ("fail", _hears("alive")),
    # Each client that is let in begins a session, and wants no response.
    "answers-all": ("fail", _says(rb"\x04\0\0\0\0\0\x01y")),
    "no-answers-to-sends": ("fail", _says(rb"\x18\0\0\0.\x01\x01\x7b")),
    "short-numbers": ("fail", _hears("to=300000")),
    # XA may be served.
    "bare-exceptions": ("fail", _hears("exception to=[12]")),
    "one-exception": ("wrong-code", _hears("InvalidClientID")),
    "silent-xa": ("fail", _says(rb"\x01p\0\0\0\x01")),
    "any-destination": ("fail", _hears("exception to=2")),
    "no-destination": ("fail", _hears("message [^,]*destination=")),
    "wrong-consumer": ("fail", _hears("message [^,]*consumer=")),
    "always-redelivered": ("fail", _hears("redelivered=[01]")),
    "cuts-at-nul": ("fail", _hears(r"body=b'[^']*\\x00")),
    "stops-after-three": ("fail", _hears("(message body.*){4}")),
    "no-prefetch": ("fail", _says(_CONSUMER + rb"\0\0\0\x02")),
    "pushes-all": ("fail", _says(_CONSUMER + rb"\0\0\0\0")),
    "no-pull": ("fail", _says(rb"\x14\0\0\0\0\0\x01z")),
    "serves-all": ("fail", _says(_CONSUMER + b".*" + _CONSUMER + b".*" + _MESSAGE)),
    "keeps-copies": ("fail", _says(_CONSUMER + b".*" + _MESSAGE + b".*" + _CONSUMER)),
    "keeps-nothing": (
        "fail",
        _says(_MESSAGE + b".*" + _CONSUMER, but=_CONSUMER + b".*" + _MESSAGE),
    ),
    "topics-serve-one": ("fail", _says(b"t-z")),
    "topics-keep": ("fail", _says(b"t-z")),
    "forgets-acks": ("fail", _acknowledges),
    "acks-one": ("fail", _says(rb"m1-z.{1,60}m2-z", but=_BEGIN)),
    "acks-all": ("fail", _says(_ACK + rb".{0,40}\x04\x01n")),
    "loses-unacknowledged": ("fail", _says(_CONSUMER + b".*" + _CONSUMER)),
    "counts-nothing": ("fail", _hears("redelivered=1")),
    "counts-all": ("fail", _hears("redelivered=1.*redelivered=0")),
    "browsers-take": ("fail", _hears("end consumer")),
    "browsers-wait": ("fail", _hears("end consumer")),
    "sends-at-once": ("fail", _says(_MESSAGE + _WITHIN)),
    "acks-at-once": ("fail", _says(_ACK + _WITHIN, but=_COMMIT)),
    "forgets-staged-acks": ("fail", _both(_says(_ACK + _WITHIN), _says(_COMMIT))),
    "commits-rolled-back": ("fail", _says(_ROLLBACK)),
    "commits-lost": (
        "fail",
        _both(_says(_BEGIN, but=_COMMIT), lambda script: script.leaves),
    ),
    "no-commit": ("fail", _says(_COMMIT)),
}
