"""The pack of NSQ: nsqd by TCP and HTTP, nsqlookupd by TCP and HTTP."""

from __future__ import annotations

from typing import Final

from tmqp_conformance.packs.ears import HttpEar, SizedEar
from tmqp_conformance.packs.nsq import daemon, directory, web
from tmqp_conformance.packs.nsq.facts import FACTS
from tmqp_conformance.packs.nsq.words import OK, NsqEar, connect, identify
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.words import hear, pack_case, say

__all__ = ["PACK"]

PACK: Final = Pack(
    name="nsq",
    title="NSQ (TCP protocol V2)",
    page="docs/doors/nsq.md",
    ears={"": NsqEar, "http": HttpEar, "lookup": SizedEar, "lookup-http": HttpEar},
    facts=FACTS,
    cases=(*daemon.CASES, *web.CASES, *directory.CASES),
    probe=pack_case(
        "server.nsq.probe",
        "Takes a new client",
        "A server that does not take a new client has crashed.",
        "N33",
        connect("probe"),
        say("probe", identify(client_id="probe")),
        hear("probe", OK),
    ),
    setting="Limits are the original's defaults.",
)
