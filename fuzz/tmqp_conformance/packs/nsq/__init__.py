"""The pack of NSQ: nsqd by TCP and HTTP, nsqlookupd by TCP and HTTP."""

from __future__ import annotations

from typing import Final

from tmqp_conformance.packs.ears import HttpEar, SizedEar
from tmqp_conformance.packs.http_grammar import HttpGrammar
from tmqp_conformance.packs.nsq import daemon, directory, web
from tmqp_conformance.packs.nsq.facts import FACTS
from tmqp_conformance.packs.nsq.grammar import DAEMON, DIRECTORY
from tmqp_conformance.packs.nsq.words import OK, NsqEar, connect, identify
from tmqp_conformance.packs.pack import Pack
from tmqp_conformance.packs.words import hear, pack_case, say

__all__ = ["PACK"]

_DAEMON_PATHS: Final = (
    *(b"GET /ping", b"GET /info", b"GET /stats", b"POST /pub", b"POST /mpub"),
    *(b"POST /topic/create", b"POST /topic/delete", b"POST /topic/empty", b"POST /topic/pause"),
    *(b"POST /topic/unpause", b"POST /channel/create", b"POST /channel/delete"),
    *(b"POST /channel/empty", b"POST /channel/pause", b"POST /channel/unpause"),
)
_DIRECTORY_PATHS: Final = (
    *(b"GET /ping", b"GET /info", b"GET /lookup", b"GET /topics", b"GET /channels", b"GET /nodes"),
    *(b"POST /topic/create", b"POST /topic/delete", b"POST /topic/tombstone"),
    *(b"POST /channel/create", b"POST /channel/delete"),
)

PACK: Final = Pack(
    name="nsq",
    title="NSQ (TCP protocol V2)",
    page="docs/doors/nsq.md",
    ears={"": NsqEar, "http": HttpEar, "lookup": SizedEar, "lookup-http": HttpEar},
    grammars={
        "": DAEMON,
        "http": HttpGrammar(_DAEMON_PATHS),
        "lookup": DIRECTORY,
        "lookup-http": HttpGrammar(_DIRECTORY_PATHS),
    },
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
