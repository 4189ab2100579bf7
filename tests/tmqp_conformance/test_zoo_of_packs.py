"""Which cases of a pack a broken server must fail, told from the fault and not from a run.

See ``test_zoo_reasons``: each server has a condition on what a case says and expects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Final

import pytest

from tests.tmqp_conformance.openwire_reasons import OPENWIRE
from tmqp.testing.conformance import Case
from tmqp.testing.conformance.patterns import Names
from tmqp.testing.conformance.steps import Close, Hear, Say
from tmqp_conformance.packs import PACKS
from tmqp_conformance.suite import find
from tmqp_conformance.zoo.broken_openwire import BROKEN_OPENWIRE
from tmqp_conformance.zoo.broken_stomp import BROKEN_STOMP
from tmqp_conformance.zoo.goms import BROKEN_GOMS
from tmqp_conformance.zoo.smq import BROKEN_SMQ
from tmqp_conformance.zoo.throttr import BROKEN_THROTTR
from tmqp_conformance.zoo.zmtp import BROKEN_ZMTP

EXPECTED = json.loads(files("tmqp_conformance.zoo").joinpath("expected.json").read_text("utf-8"))


class Script:
    """A case as its reasons see it: lines that are sent, and what is to be heard."""

    def __init__(self, case: Case) -> None:
        names = Names("z")
        says = [step for step in case.steps if isinstance(step, Say)]
        #: What each step sends, whole.
        self.segments = [
            b"".join(
                item if isinstance(item, bytes) else item.encode(names, "m") for item in step.items
            )
            for step in says
        ]
        self.sent = b"".join(self.segments)
        self.is_cut: bool = any(step.chop for step in says)
        hears = [step for step in case.steps if isinstance(step, Hear)]
        self.heard = [step.describe().split(" | ")[0] for step in hears]
        self.receivers: set[str] = {
            step.line for step, text in zip(hears, self.heard, strict=True) if MESSAGE.search(text)
        }
        self.leaves: bool = any(isinstance(step, Close) for step in case.steps)

    def says(self, pattern: bytes) -> bool:
        """Whether something is sent that fits."""
        return re.search(pattern, self.sent) is not None

    def hears(self, pattern: str) -> bool:
        """Whether something is to be heard that fits."""
        return any(re.search(pattern, text) for text in self.heard)


#: A delivery: no statistics and no error.
MESSAGE: Final = re.compile(r"line text=b'(?!UNKNOWN)|type\": \"message\"|message body=")
#: A key that was made again when it was over.
ENDED: Final = "no to='QUERY', then yes to='INSERT'"
Reason = Callable[[Script], object]

SMQ: Final[dict[str, tuple[str, Reason]]] = {
    "names-the-queue": ("fail", lambda script: script.receivers),
    "splits-bodies": ("fail", lambda script: script.says(rb"M:q-z:[^:\n]*:.*\n")),
    "broadcasts": ("fail", lambda script: len(script.receivers) > 1 and not script.leaves),
    "first-consumer-only": ("fail", lambda script: len(script.receivers) > 1 and not script.leaves),
    "loses-unfinished": ("fail", lambda script: script.leaves),
    "forgets-empty-queues": ("fail", lambda script: script.hears(r"with \$q: 0")),
    "counts-one-less": (
        "fail",
        lambda script: (
            script.receivers & {"c"}
            and script.hears(r"with \$q: [1-9]")
            and not (
                script.says(rb"S::\nC")  # it is asked before
            )
        ),
    ),
    "done-is-all": ("fail", lambda script: script.says(rb"D:")),
    "ignores-unknown": ("fail", lambda script: script.hears("UNKNOWN_TYPE")),
    "closes-on-unknown": ("fail", lambda script: script.says(rb"X:.*\n(.*\n)*S")),
    "crashes-on-unknown": ("crash", lambda script: script.says(rb"X:")),
    "confirms-messages": ("fail", lambda script: script.says(rb"M:")),
    "drops-empty": ("fail", lambda script: script.says(rb"M:q-z:\n")),
    "last-in-first-out": ("fail", lambda script: script.says(rb"M:.*\nM:.*\n.*C:")),
    "one-queue-for-all": (
        "fail",
        lambda script: script.says(rb"M:r-z:") and not script.says(rb"C:r-z:"),
    ),
    "cuts-long-lines": ("fail", lambda script: any(len(each) > 65_540 for each in script.segments)),
    "reads-segments": (
        "fail",
        lambda script: script.is_cut or any(each.count(b"\n") > 1 for each in script.segments),
    ),
}
GOMS: Final[dict[str, tuple[str, Reason]]] = {
    "confirms-registration": (
        "fail",
        # With an unknown topic in the same registration there is nothing to confirm.
        lambda script: script.says(rb'(?i)"register","topics":\["conf[^,]*"(,"conf[^,]*")?\]'),
    ),
    "names-all-topics": ("fail", lambda script: script.says(rb'"conformance-a","nope","nix"')),
    "refuses-all": ("fail", lambda script: script.says(rb'"conformance-a","nope","nix"')),
    "another-code": ("fail", lambda script: script.hears('"error"')),
    "old-errors": ("fail", lambda script: script.hears('"messagetype": "error"')),
    "old-deliveries": ("fail", lambda script: script.hears('"messagetype": "message"')),
    "first-topic-only": (
        "fail",
        lambda script: script.says(rb'"send","topics":\["[^"]*","') and script.receivers,
    ),
    "once-per-receiver": ("fail", lambda script: script.hears('"data": "x".*"data": "x"')),
    "first-receiver-only": ("fail", lambda script: len(script.receivers) > 1),
    "ignores-logout": ("fail", lambda script: script.says(b'"logout"')),
    "no-logout-of-all": ("fail", lambda script: script.says(b'"logout"}')),
    "ignores-close": ("unclean", lambda script: script.says(b'"close"')),
    "empty-lines": ("fail", lambda script: script.hears('"messagetype": "error"')),
    "exact-topics": ("fail", lambda script: script.says(b"CONFORMANCE")),
    "one-line-only": ("fail", lambda script: script.says(rb"\{\n")),
    "ascii-only": ("fail", lambda script: script.says(rb"\\u[0-9a-f]{4}")),
    "crashes-on-nonsense": ("crash", lambda script: script.says(b"hello\n")),
    "reads-segments": ("fail", lambda script: script.is_cut),
    "first-of-segment": (
        "fail",
        lambda script: any(b'"send"' in each[each.find(b"\n") + 1 :] for each in script.segments),
    ),
}


def _says(pattern: bytes) -> Reason:
    return lambda script: script.says(b"(?s)" + pattern)


def _hears(pattern: str) -> Reason:
    return lambda script: script.hears(pattern)


ZMTP: Final[dict[str, tuple[str, Reason]]] = {
    "waits-for-the-greeting": (
        "fail",
        lambda script: not script.segments or len(script.segments[0]) < 64,
    ),
    "checks-padding": ("fail", _says(rb"\xff(?!\0{7}\x01).{8}\x7f")),
    "no-3-0": ("fail", _says(rb"\x7f\x03\0")),
    "none-to-come": ("fail", _says(rb"\x7f\x04")),
    "no-2-0": ("fail", _says(rb"\x7f\x01")),
    "takes-old": ("unclean", _says(rb"^\x01\0")),
    "any-mechanism": ("unclean", _says(b"CURVE")),
    "exact-names": ("fail", _says(b"socket-TYPE")),
    "always-router": ("fail", _hears(r"socket_type=b'(?!ROUTER)")),
    "takes-pairs": ("fail", _says(b"PAIR")),
    "refuses-silently": ("fail", _says(b"PAIR")),
    "takes-any-type": ("unclean", _says(b"NOSUCH")),
    # A frame that is no command behind the 64 bytes of a greeting.
    "takes-early-messages": ("unclean", _says(rb"\x7f\x03.{53}\0")),
    "crashes-on-metadata": ("crash", _says(rb"\0\0\0\tPUSH")),
    "no-pong": ("fail", _hears("pong")),
    "empty-pong": ("fail", _hears(r"pong data=b'.")),
    "first-part-only": ("fail", _hears(r"parts=\(b'[^']*', b'|under an envelope")),
    "short-form-only": ("fail", _says(rb"\x02\0{6}")),
    "low-byte-of-lengths": ("fail", _says(rb"\x02\0{6}\x01")),
    "takes-reserved": ("unclean", _says(rb"\x08\x01x$")),
    "takes-any-command": ("unclean", _says(rb"\x06\0{4}\x80")),
    "takes-any-length": ("unclean", _says(rb"\x02\x80")),
    "no-subscribing-messages": ("fail", _says(rb"\0[\x02-\x09]\x01[a-z]")),
    "no-subscribing-commands": ("fail", _says(b"SUBSCRIBE")),
    "counts-no-subscriptions": ("fail", _says(b"CANCEL")),
    "ignores-cancel": ("fail", _says(b"CANCEL")),
    # Something is published that nobody wants, or wants any more.
    "wants-all": ("fail", _says(rb"\x02c2|CANCEL.*\x02a2")),
    "commands-to-all": ("fail", _hears(r"parts=\(b'\\x01',\)")),
    "asks-nobody": ("fail", _hears(r"subscribe|parts=\(b'\\x01',\)")),
    "first-consumer-only": ("fail", _says(b"PULL.*PULL")),
    # A PUSH socket sends before there is a PULL socket.
    "keeps-nothing": ("fail", _says(rb"PUSH\tX-Channel.{4}q-z[\0\x01].*PULL")),
    "new-envelopes": ("fail", _says(rb"\x01\x04\0\0\0\x07")),
    "no-envelopes": ("fail", _hears("under an envelope")),
    "never-busy": ("fail", _says(rb"\x01\0\0\x011\x01\0\0\x012")),
}
THROTTR: Final[dict[str, tuple[str, Reason]]] = {
    "inserts-again": ("fail", lambda script: script.hears("no to='INSERT'")),
    "goes-below-zero": (
        "fail",
        # With an unknown unit the case is about words that there are not.
        lambda script: script.hears("no to='UPDATE'") and not script.hears("no to='SET'"),
    ),
    "keeps-the-end": ("fail", lambda script: script.hears("ttl=115 to 120")),
    "cuts-values": ("fail", lambda script: script.hears("value=b'0123456789")),
    "keeps-the-first": ("fail", lambda script: script.hears("'SET', then yes to='SET'")),
    "purges-nothing": ("fail", lambda script: script.hears("'PURGE'")),
    "any-kind": ("fail", lambda script: script.hears("no to='GET'")),
    "blocks-what-is-over": ("fail", lambda script: script.hears(ENDED)),
    "lives-for-ever": ("fail", lambda script: script.hears(ENDED)),
    "any-unit": ("fail", lambda script: script.hears("no to='SET'")),
    "loses-requests": (
        "fail",
        lambda script: any(each.count("to=") > 100 for each in script.heard),
    ),
    "reads-segments": ("fail", lambda script: script.is_cut),
    "text-keys": ("fail", lambda script: script.says(rb"\xff\xfe")),
    "hangs-on-unknown": ("fail", lambda script: script.hears("to='unknown'")),
    "stays-on-unknown": ("unclean", lambda script: script.hears("to='unknown'")),
    "crashes-on-unknown": ("crash", lambda script: script.hears("to='unknown'")),
    "silent-publish": ("fail", lambda script: script.hears("'PUBLISH'")),
    "always-heard": ("fail", lambda script: script.hears("no to='PUBLISH'")),
    "newer-pushes": ("fail", lambda script: script.hears("push payload")),
    "older-pushes": ("fail", lambda script: script.hears("push channel")),
    "status-first": ("fail", lambda script: script.hears("push channel.*, then yes")),
    "serves-the-publisher": (
        "fail",
        lambda script: script.hears("'SUBSCRIBE', then yes to='PUBLISH'"),
    ),
    "subscribes-twice": (
        "fail",
        lambda script: script.hears("'SUBSCRIBE', then yes to='SUBSCRIBE'"),
    ),
    "always-leaves": ("fail", lambda script: script.hears("no to='UNSUBSCRIBE'")),
    "bare-ids": ("fail", lambda script: script.hears("'WHOAMI'")),
    "older-entries": ("fail", lambda script: script.hears("type: 0")),
    "short-info": ("fail", lambda script: script.hears("'INFO'")),
    "bare-listings": ("fail", lambda script: script.hears("'LIST'")),
    "two-zeros": ("fail", lambda script: script.hears("no to='STAT'")),
    "short-subscribers": ("fail", lambda script: script.hears("yes to='CHANNEL'")),
    "nobody-is-on-its-own": (
        "fail",
        lambda script: script.says(rb"\x12\x01\*") or script.hears(r"push channel=b'\$me"),
    ),
    "forgets-events": ("fail", lambda script: script.hears("'EVENT'")),
}
#: A new consumer comes to the queue after its messages were acknowledged.
LATER: Final = rb"\0ACK\n[a-z].*\0SUBSCRIBE"


def _acknowledges(script: Script) -> bool:
    """A later consumer shows whether a message was acknowledged; and it was."""
    committed = script.says(rb"\0COMMIT") or not script.says(rb"\0BEGIN")
    return script.says(b"(?s)" + LATER) and committed


def _ends_auto(script: Script) -> bool:
    """A later consumer shows whether what had come in the mode auto is done."""
    return script.says(rb"(?s)\0UNSUBSCRIBE.*\0SUBSCRIBE")


def _leaves_for_others(script: Script) -> bool:
    """What one client leaves comes to another."""
    return script.leaves and "b" in script.receivers


STOMP: Final[dict[str, tuple[str, Reason]]] = {
    # Who is let in with 1.2, and who is led to ERROR by frames of it.
    "no-newest": ("fail", _hears("connected version='1.2'")),
    "always-newest": ("fail", _hears("connected version=('1.[01]'|None)")),
    "no-stomp-frame": ("fail", _says(b"^STOMP")),
    "escaped-connect": ("fail", _says(rb"^CONNECT\n[^\0]*\\")),
    "any-version": ("fail", _says(rb"accept-version:0.9,7.7\n")),
    "takes-early": ("unclean", _says(b"^SEND")),
    "breaks-promises": ("fail", _hears("beat, then beat")),
    "no-heart-beats": ("unimplemented", _hears(r"heart_beat=\w+ heart-beats")),
    "never-gives-up": ("unclean", _hears("wants heart-beats")),
    "bare-errors": ("fail", _hears("error .+=")),
    # Over a limit an ERROR may be lost, and who says nothing at all leaves a sentence unread.
    "silent-errors": (
        "non-strict",
        lambda script: script.hears("error") and not script.says(b"y{131072}"),
    ),
    "stays-after-errors": ("unclean", _hears("error|wants heart-beats")),
    "ignores-unknown": ("unclean", _says(b"PUBLISH")),
    "crashes-on-unknown": ("crash", _says(b"PUBLISH")),
    "takes-anything": (
        "unclean",
        _says(
            rb"\0SEND\n(?!destination:)|\0ACK\n\n|\0BEGIN\n\n|ack:sometimes|transaction:none"
            rb"|^CONNECT\naccept-version:1.2\nhost:localhost\n\n\0SUBSCRIBE\n(?!id:)"
        ),
    ),
    "writes-no-escapes": (
        "fail",
        # For a client of 1.0 that is right.
        lambda script: (
            script.says(b"accept-version")
            and script.hears(r"(x_a|receipt_id)='[^']*\\[n\\]| x:\\\\a=| x:\\a=")
        ),
    ),
    "always-escapes": ("fail", lambda script: script.hears(r"new\\") and not script.hears("1.2'")),
    "any-escape": ("fail", _says(rb"\\t\n|half\\\n")),
    "latin-headers": ("fail", _says(rb"\xc3\xa4")),
    "trims": ("fail", _says(b": padded \n")),
    "keeps-returns": ("fail", _says(b"SEND\r\n")),
    "no-feeds": ("fail", _says(rb"\0\n\nSEND")),
    "last-header": ("fail", _says(b"x-a:1\nx-a:2")),
    "ends-at-nul": ("fail", lambda script: script.says(b"content-length:(10|31|2|many|3)\n")),
    "short-lengths": ("fail", _says(b"content-length:(2|many)\n")),
    "strips-bodies": ("fail", _hears(r"message body=b'[^']*\\n'")),
    "drops-empty": ("fail", _hears("message body=b''")),
    "cuts-bodies": ("fail", _says(b"(0123456789){6554}")),
    "reads-segments": ("fail", lambda script: script.is_cut),
    "no-limit": ("informational", _says(b"y{131072}")),
    "receipts-of-send-only": (
        "fail",
        lambda script: (
            script.hears("receipt_id")
            and script.says(
                rb"\0((UN)?SUBSCRIBE|N?ACK|BEGIN|COMMIT|ABORT|DISCONNECT)\n(.+\n)*receipt:"
            )
        ),
    ),
    "raw-receipts": ("fail", _says(rb"receipt:.*\\")),
    "stops-after-three": ("fail", _hears("(message body.*){4}")),
    "keeps-nothing": (
        "fail",
        lambda script: (
            _leaves_for_others(script)
            or (
                script.says(rb"(?s)^((?!\0SUBSCRIBE).)*\0SEND.*\0SUBSCRIBE")
                and "c" in script.receivers
            )
        ),
    ),
    "keeps-copies": (
        "fail",
        lambda script: (
            _acknowledges(script)
            or _ends_auto(script)
            # The third consumer of a queue comes when its message is done.
            or (script.says(rb"(?s)(\0SUBSCRIBE.*){3}") and not script.says(b"/topic/"))
        ),
    ),
    "no-subscription": ("fail", _hears("subscription='[^/]")),
    "no-message-id": ("fail", _hears("message_id=")),
    "drops-headers": ("fail", _hears(r"message .*(x_a|x_ä|x:.*|content_type)=")),
    "topics-serve-one": ("fail", _says(b"/topic/t-z")),
    "no-unsubscribe": ("fail", _says(rb"\0UNSUBSCRIBE.*\0SEND")),
    "needs-ids": (
        "fail",
        lambda script: script.says(rb"\0SUBSCRIBE\n(?!id:)") and not script.says(b"accept-version"),
    ),
    "forgets-acks": ("fail", _acknowledges),
    "auto-waits": ("fail", _ends_auto),
    "acks-all": (
        "fail",
        # After NACK of the first message nothing is before the second.
        lambda script: (
            script.says(rb"(?s)ack:client-individual\n.*\0ACK\n[a-z-]+:m2-z")
            and not script.says(b"NACK")
        ),
    ),
    "acks-one": ("fail", _says(rb"ack:client\n.*\0ACK\n[a-z-]+:m2-z")),
    "loses-unacknowledged": (
        "fail",
        lambda script: _leaves_for_others(script) and script.says(b"ack:client"),
    ),
    "no-ack-header": ("fail", _hears(r" ack=.*called")),
    "always-ack-header": ("fail", _hears(" ack=None")),
    "no-nack": ("fail", _says(b"NACK")),
    "needs-ack-ids": ("fail", _says(rb"\0ACK\nmessage-id:")),
    "sends-at-once": (
        "fail",
        lambda script: (
            script.hears("message body") and script.says(rb"\0SEND\n(.+\n)*transaction:[tu]")
        ),
    ),
    "commits-aborted": (
        "fail",
        lambda script: script.hears("message body") and script.says(rb"\0ABORT"),
    ),
    "commits-lost": (
        "fail",
        lambda script: script.leaves and script.says(rb"\0BEGIN") and not script.says(rb"\0COMMIT"),
    ),
    "acks-at-once": (
        "fail",
        lambda script: script.says(rb"\0ACK\n.+\ntransaction:t") and not script.says(rb"\0COMMIT"),
    ),
    "forgets-staged-acks": (
        "fail",
        lambda script: script.says(rb"\0ACK\n.+\ntransaction:t") and script.says(rb"\0COMMIT"),
    ),
    "one-transaction": (
        "fail",
        lambda script: script.hears("message body") and script.says(b"transaction:u"),
    ),
}
#: Where a pack says which verdict a case gives.
EXCEPTIONS: Final = {
    ("empty-lines", "server.goms.no-empty-line"): "non-strict",
    # They are about what ERROR says, and accept nothing else.
    ("silent-errors", "server.stomp.error-says-why"): "fail",
    ("silent-errors", "server.stomp.error-names-its-receipt"): "fail",
    ("takes-anything", "server.stomp.error-says-why"): "fail",
    ("takes-anything", "server.stomp.error-names-its-receipt"): "fail",
}
REASONS: Final = {
    "smq": SMQ,
    "goms": GOMS,
    "throttr": THROTTR,
    "zmtp": ZMTP,
    "stomp": STOMP,
    "openwire": OPENWIRE,
}


def test_every_broken_server_has_a_reason() -> None:
    assert set(SMQ) == set(BROKEN_SMQ)
    assert set(GOMS) == set(BROKEN_GOMS)
    assert set(ZMTP) == set(BROKEN_ZMTP)
    assert set(THROTTR) == set(BROKEN_THROTTR)
    assert set(STOMP) == set(BROKEN_STOMP)
    assert set(OPENWIRE) == set(BROKEN_OPENWIRE)


@pytest.mark.parametrize("pack", REASONS)
def test_the_zoo_is_tried_with_every_case(pack: str) -> None:
    assert EXPECTED[pack]["cases"] == [each.id for each in PACKS[pack].cases]
    failed = {name for verdicts in EXPECTED[pack]["animals"].values() for name in verdicts}
    assert {*EXPECTED[pack]["cases"]} == failed, "each case has found a fault"


@pytest.mark.parametrize(
    ("pack", "name"), [(pack, name) for pack, found in REASONS.items() for name in found]
)
def test_what_the_zoo_expects_follows_from_the_fault(pack: str, name: str) -> None:
    verdict, reason = REASONS[pack][name]
    due = {}
    for each in EXPECTED[pack]["cases"]:
        case = find(each)
        assert case is not None
        if reason(Script(case)):
            due[each] = EXCEPTIONS.get((name, each), verdict)
    assert due == EXPECTED[pack]["animals"][name]
