"""Which cases a broken peer must fail, told from the rule that it breaks and not from a run.

Each peer of the zoo has a *reason* here: a condition on what a case says and expects.  Where it
holds, the verdict is the given one; everywhere else the peer must pass.  What the zoo's file
expects has to be exactly that.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.resources import files
from typing import Final

import pytest

from tmqp.testing.conformance import Case
from tmqp.testing.conformance.steps import Fence, Hear, Message, Say
from tmqp_conformance.suite import find
from tmqp_conformance.zoo.broken_clients import BROKEN_CLIENTS
from tmqp_conformance.zoo.broken_servers import BROKEN_SERVERS

EXPECTED = json.loads(files("tmqp_conformance.zoo").joinpath("expected.json").read_text("utf-8"))


class Script:
    """A case as its reasons see it: what is sent, and what is to be heard (the best answer)."""

    def __init__(self, case: Case) -> None:
        self.case = case
        texts = [step.describe() for step in case.steps]
        self.sent = [text for text in texts if ": send " in text]
        self.heard = [text.split(" | ")[0] for text in texts if ": expect " in text]
        self.everything = "\n".join(texts)
        self.messages = [
            item
            for step in case.steps
            if isinstance(step, Say)
            for item in step.items
            if isinstance(item, Message)
        ]
        fences = [step.fence for step in case.steps if isinstance(step, Hear)]
        self.asks = Fence.ASK in fences
        self.fences = Fence.AUTO in fences

    def says(self, pattern: str) -> bool:
        """Whether something is sent that fits."""
        return any(re.search(pattern, text) for text in self.sent)

    def hears(self, pattern: str) -> bool:
        """Whether something is to be heard that fits."""
        return any(re.search(pattern, text) for text in self.heard)

    @property
    def ends(self) -> bool:
        """The peer must close a connection."""
        return self.hears("the connection ends")

    @property
    def stays(self) -> bool:
        """A client is accepted and stays, so that the end of the case is a ping."""
        lines = {text.split(":")[0] for text in self.heard if "content_type=202" in text}
        ended = {text.split(":")[0] for text in self.heard if "the connection ends" in text}
        return bool(lines - ended) and not self.case.loose

    @property
    def requests(self) -> bool:
        """An operation that has to be answered; the fence of cases about pings is one, too."""
        return self.hears("RESPONSE") and not self.says("target='a b' payload")

    @property
    def block(self) -> list[str]:
        """The lines of the header block that has to arrive as it is."""
        for text in self.heard:
            found = re.search(r"header_block=b'(.*)'", text)
            if found:
                return found[1].split(r"\r\n")[:-1]
        return []


Reason = Callable[[Script], str]


def when(condition: Callable[[Script], bool], verdict: str = "fail") -> Reason:
    return lambda script: verdict if condition(script) else ""


def hears(pattern: str, verdict: str = "fail") -> Reason:
    return when(lambda script: script.hears(pattern), verdict)


def says(pattern: str, verdict: str = "fail") -> Reason:
    return when(lambda script: script.says(pattern), verdict)


def first(*reasons: Reason) -> Reason:
    """The verdict of the first reason that holds."""
    return lambda script: next((found for each in reasons if (found := each(script))), "")


#: A request is answered twice, or with something beside: what may come among others is no fault.
TWICE = when(lambda script: (script.requests and not script.case.loose) or script.asks)
ACKNOWLEDGES = hears("ACKNOWLEDGE")

SERVERS: Final[dict[str, Reason]] = {
    "no-pong": first(hears("PONG"), when(lambda script: script.stays, "hang")),
    "pong-garbage": when(lambda script: script.stays),
    "pong-other-bits": hears("PONG raw="),
    "wrong-id": first(hears("RESPONSE"), when(lambda script: script.asks, "hang")),
    "acknowledges-requests": hears("RESPONSE"),
    "no-flags-in-answers": says("SERVER (FR|HR) content_type=601"),
    "answers-without-target": hears("RESPONSE .*target='\\$a'"),
    "never-answers": first(
        when(lambda script: script.requests), when(lambda script: script.asks, "hang")
    ),
    "answers-unasked": when(
        lambda script: script.says(": send SERVER (F )?content_type=601") and not script.asks
    ),
    "answers-twice": TWICE,
    "conflict-for-duplicate": when(
        lambda script: script.hears("=481") and script.says("=603"), "wrong-code"
    ),
    "closes-on-mistakes": when(lambda script: script.requests and script.hears("RESPONSE .*=400")),
    "answers-and-closes": hears("RESPONSE content_type=481", "unclean"),
    "nothing-implemented": says("SERVER R content_type=(603|101) ", "unimplemented"),
    "any-name": says("target='a b'"),
    "case-matters": says("target='\\$ch-N"),
    "unknown-is-501": when(lambda script: "501" in script.everything, "non-strict"),
    "waits-for-hello": hears("expect the preamble b'TMQP/2.0'$", "hang"),
    "one-read-preamble": first(
        says("cut: \\(3,\\)"), says("send bytes 54 4d 51 50 2f 32 2e$", "unclean")
    ),
    "other-preamble": hears("the preamble"),
    "newer-preamble": hears("TMQ/1.01"),
    "talks-to-strangers": when(lambda script: script.ends and not script.hears("the preamble")),
    "never-closes": when(lambda script: script.ends, "unclean"),
    "ignores-the-end": when(lambda script: ": half" in script.everything, "unclean"),
    "closes-without-terminate": hears("TERMINATE content_type=400"),
    "terminate-500": hears("TERMINATE content_type=400", "wrong-code"),
    "refuses-silently": hears("SERVER content_type=(400|503)", "non-strict"),
    "wrong-refusal": hears("SERVER content_type=503", "wrong-code"),
    "lets-duplicates-in": hears("SERVER content_type=503"),
    "accepts-without-id": hears("content_type=202 target='\\$a'"),
    "big-endian": hears("DIRECT_MESSAGE .*content_type="),
    "long-forms": hears("QUEUE_MESSAGE .*canonical"),
    "keeps-time-to-live": hears("QUEUE_MESSAGE .* ttl="),
    "cuts-long-payloads": when(
        lambda script: any(len(each.payload) > 65_535 for each in script.messages)
    ),
    "trims-headers": when(
        lambda script: (
            any(line != re.sub(r": *(.*?) *$", r":\1", line) for line in script.block)
            or any(":" not in line for line in script.block)
        )
    ),
    "sorts-headers": when(
        lambda script: script.block != sorted(line for line in script.block if ":" in line)
    ),
    "lowers-headers": when(
        lambda script: (
            script.block != [line.lower() for line in script.block]
            or script.hears("headers=\\[\\('K'")
        )
    ),
    "hangs-on-empty-block": says("header_block=b''", "hang"),
    "answers-unknown-types": says("send 0x"),
    "closes-on-unknown-types": says("send 0x", "unclean"),
    "crashes-on-long-ids": when(
        lambda script: any(len(each.message_id or "") > 254 for each in script.messages), "crash"
    ),
    "accepts-forgers": says("source='\\$other'"),
    "forgets-source": hears("DIRECT_MESSAGE .*source="),
    "delivers-twice": hears("QUEUE_MESSAGE"),
    "loses-every-tenth": hears("(QUEUE_MESSAGE.*){10}"),
    # Who has joined one channel gets what is pushed to another.
    "leaks-between-channels": when(
        lambda script: (
            script.hears("expect nothing$")
            and script.says("JOIN.*'\\$ch'")
            and script.says("QUEUE_MESSAGE .*target='\\$ch2'")
        )
    ),
    "last-in-first-out": hears("QUEUE_MESSAGE.*QUEUE_MESSAGE"),
    "forgets-leave": when(lambda script: script.says("LEAVE") and script.says("QUEUE_MESSAGE")),
    "no-first-acquirer": hears("QUEUE_MESSAGE .*first_acquirer=True"),
    "sends-events-unasked": TWICE,
}

CLIENTS: Final[dict[str, Reason]] = {
    "no-pong": when(
        lambda script: script.says("=202") and script.fences and not script.ends, "hang"
    ),
    "older-preamble": hears("the preamble"),
    "first-line": hears("payload=CONNECT"),
    "never-closes": when(lambda script: script.ends, "unclean"),
    "acknowledges-twice": ACKNOWLEDGES,
    "never-acknowledges": ACKNOWLEDGES,
    "acknowledges-another": ACKNOWLEDGES,
    "refuses-all": ACKNOWLEDGES,
    "answers-the-id": hears("RESPONSE .*target="),
    "answers-with-failure": hears("RESPONSE .*content_type=0"),
    "forgets-the-answer": hears("RESPONSE"),
    # The hello is as it should be, and 0 reads the same from both ends.
    "big-endian": first(
        hears("TERMINATE content_type=400", "wrong-code"), hears("content_type=(601|1)\\b")
    ),
    "no-ids": hears("(JOIN|ACKNOWLEDGE|RESPONSE|PULL_REQUEST).* message_id="),
    "pulls-without-count": hears("PULL_REQUEST"),
}


def test_every_broken_peer_has_a_reason() -> None:
    assert set(SERVERS) == set(BROKEN_SERVERS)
    assert set(CLIENTS) == set(BROKEN_CLIENTS)


@pytest.mark.parametrize(
    ("role", "name"), [*(("server", name) for name in SERVERS), *(("client", n) for n in CLIENTS)]
)
def test_what_the_zoo_expects_follows_from_the_rule(role: str, name: str) -> None:
    reason = (SERVERS if role == "server" else CLIENTS)[name]
    cases = {each: find(each) for each in EXPECTED[role]["cases"]}
    due = {each: reason(Script(case)) for each, case in cases.items() if case is not None}
    assert len(due) == len(cases)
    assert {each: verdict for each, verdict in due.items() if verdict} == EXPECTED[role]["animals"][
        name
    ]
