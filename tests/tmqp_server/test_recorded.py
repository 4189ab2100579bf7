"""The recorded exchanges of the original client and server, replayed against ours.

Every exchange is in one of four classes: *matched* (all answers as recorded, ids and times aside);
*differs on purpose* (the original is wrong there, or our answer is the recommended one; the reason
stands beside it); *not yet* (it uses an operation that is not served so far); *other settings* (the
recorded server was configured in a way the exchange does not show).  The classes are exact: an
exchange that begins to match, or stops, fails the test until it is moved.
"""

from __future__ import annotations

import tomllib
from typing import Any

from tests.project import ROOT
from tests.support import load_exchanges
from tests.tmqp_server.world import World
from tmqp.limits import Limits
from tmqp.testing.replay import Outcome, Player
from tmqp.testing.vectors import Exchange
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.wiring.assembly import build_broker, declare

CONFIGURATION = ROOT / "examples" / "interoperability.toml"

ANSWERED = "the original is silent or closes; ours always answers and stays (F43)"
DUPLICATE = "a client id in use is refused with 503 (F32)"
OPTIONS = "options the original parses and ignores are applied (F71)"
COUNT = "the Count of a pull is what will be sent, not what was asked for (F107)"
ADDRESS = "a copy bears the address of the queue it lies in (F83)"
KEPT = "a pull takes out what it sends, not one message more (F109)"
BINDINGS = "the original's models of bindings are broken, and it closes (F121)"
TAG = "a tag binding delivers queue messages, not router messages (F126)"
HELLO = "a refused hello is told why before the close (F34)"

ON_PURPOSE = {
    "real-004": DUPLICATE,
    "real-007": ANSWERED,
    "real-008": OPTIONS,
    "real-010": OPTIONS,
    "real-011": OPTIONS,
    "real-036": OPTIONS,
    "real-038": OPTIONS,
    "real-039": OPTIONS,
    "real-041": OPTIONS,
    "real-057": "a broadcast without consumers is lost (F86); the recording's was still on its way",
    "real-062": ADDRESS,
    "real-067": COUNT,
    "real-068": KEPT,
    "real-070": KEPT,  # the counters include the message that real-068 lost
    "real-073": "a cache queue answers with a Response (F112)",
    "real-106": BINDINGS,
    "real-114": TAG,
    "real-117": BINDINGS,
    "probe-001": "the protocol answer does not wait for the hello (F21)",
    "probe-002": "a preamble may come in two segments (F22)",
    "probe-010": HELLO,
    "probe-011": HELLO,
    "probe-012": HELLO,
    "probe-013": DUPLICATE,
    "probe-014": DUPLICATE,
    "probe-017": "a header flag with an empty block is accepted (F9)",
    "probe-019": "the close for a forged source is announced with Terminate (F42)",
    "probe-020": "a missing Queue-Id creates no queue 0 (F54)",
    "probe-021": ANSWERED,
    "probe-022": ANSWERED,
    "probe-023": ANSWERED,
    "probe-024": ANSWERED,
    "probe-025": ANSWERED,
    "probe-026": ANSWERED,
    "probe-027": ANSWERED,
    "probe-028": "the specification's operation numbers are served (F19)",
    "probe-029": ANSWERED,
    "probe-030": OPTIONS,
    "probe-031": ANSWERED,
    "probe-036": ANSWERED,
    "probe-040": "a pull without an id is refused with a word of its own (F106)",
    "probe-039": "an answer that nobody asked for is not passed on (F117)",
    "probe-041": COUNT,
    "probe-042": KEPT,
    "probe-037": "who waits for the acknowledge of a direct message is told of its failure (C22)",
    "probe-043": "a cache queue keeps the latest message (F91)",
    "probe-045": ADDRESS,
    "probe-046": TAG,
    "probe-047": "a method that is none is refused (F60)",
    "probe-048": "an unknown event is answered (F127); the subscriber's spelling is kept (F131)",
    "probe-056": "an acknowledge timeout is told with its own reason (F80)",
    "probe-059": ANSWERED,
    "probe-050": "a producer that waits for an acknowledge hears of a refused push (C22)",
    "probe-051": ANSWERED,
    "probe-052": "the limit of queues is a maximum (C14)",
    "probe-053": "a client too many is told why before the close (C55)",
    "probe-060": "a ping is sent when it is due, not at the next tick of five seconds (C53)",
    "probe-062": HELLO,
    "probe-201": "a header flag with an empty block is accepted (F9)",
    "probe-202": "a message for the first acquirer only is redelivered, not lost (F88)",
    "probe-205": "an unknown status word is refused, not read as broadcast (F55)",
    "probe-206": "a channel list is filtered by its target too (F52)",
}

NOT_YET: dict[str, str] = {}

OTHER_SETTINGS = {
    "real-122": "time passed between two recordings: messages went round by timeouts",
    "probe-054": "the server had an authenticator",
    "probe-055": "the server had no admin authorization (its other settings are here)",
    "probe-208": "that the first consumer left was not recorded",
}

#: What the recorded servers of some probes were started with, beside the configuration's settings.
SETTINGS: dict[str, dict[str, dict[str, Any]]] = {
    "probe-050": {"queue": {"message_limit": 2}},
    "probe-051": {"broker": {"max_channels": 2}},  # one is declared
    "probe-052": {"channel": {"queue_limit": 8}},  # five, recorded; more are declared
    "probe-053": {"broker": {"max_sessions": 1}},
    "probe-060": {"connection": {"ping_interval_s": 3}},
}

#: Routers of the configuration that the recorded servers had not: a list would tell them.
OUR_ROUTERS = ("r-disabled", "r-http", "r-http-ack", "r-http-response", "r-http-others")

#: A long message of the client was not recorded whole, and the recording does not say so.
CUT = ("probe-207",)


def _world(number: str = "") -> World:
    """The server for interoperability tests, which has the routers of the recorded one; a probe's
    has the settings that the recorded server was started with."""
    table = tomllib.loads(CONFIGURATION.read_text(encoding="utf-8"))
    routers = [router for router in table["routers"] if router["name"] not in OUR_ROUTERS]
    table["routers"] = routers
    if number.startswith("probe"):
        # The second series was in a hurry.
        timeout_ms = 1_200 if number.startswith("probe-2") else 1_500
        table["queue"]["acknowledge_timeout_ms"] = timeout_ms
    for key, values in SETTINGS.get(number, {}).items():
        table[key] = {**table.get(key, {}), **values}
    config = ServerConfig(**read_config(table))
    limits = Limits(max_payload_bytes=16_777_216, ping_interval_s=config.connection.ping_interval_s)
    world = World(limits=limits, broker=build_broker(config))
    declare(world.broker, config, world.now)
    return world


def _play_all() -> list[Outcome | Exchange]:
    """All outcomes; an exchange that cannot be replayed stands for itself."""
    exchanges = load_exchanges()
    outcomes: list[Outcome | Exchange] = []
    for series in ("real", "fixed"):  # each is one long session: connections live across files
        player = Player(_world().open_link)
        for exchange in exchanges:
            if exchange.name.startswith(series):
                outcomes.append(_play(player, exchange))
    for exchange in exchanges:
        if exchange.name.startswith("probe"):
            world = _world(_number(exchange.name))
            outcomes.append(_play(Player(world.open_link, world.advance_to), exchange))
    return outcomes


def _play(player: Player, exchange: Exchange) -> Outcome | Exchange:
    cut = any(step.truncated and step.direction == "c2s" for step in exchange.steps)
    if cut or _number(exchange.name) in CUT:
        return exchange
    return player.play(exchange)


def _number(name: str) -> str:
    return "-".join(name.split("-")[:2])


def test_each_recorded_exchange_is_answered_as_recorded_or_differs_for_a_known_reason() -> None:
    matched: list[Outcome] = []
    table: dict[str, list[str]] = {"on purpose": [], "not yet": [], "other settings": [], "cut": []}
    wrong: list[str] = []
    for outcome in _play_all():
        number = _number(outcome.name)
        expected = [
            kind
            for kind, names in (
                ("on purpose", ON_PURPOSE),
                ("not yet", NOT_YET),
                ("other settings", OTHER_SETTINGS),
            )
            if number in names
        ]
        if isinstance(outcome, Exchange):
            table["cut"].append(outcome.name)
        elif outcome.matched and not expected:
            matched.append(outcome)
        elif outcome.matched:
            wrong.append(f"{outcome.name} matches now: take it out of the list")
        elif len(expected) == 1:
            table[expected[0]].append(outcome.name)
        else:
            wrong.append(f"{outcome.name}: {expected} {outcome.differences[:3]}")
    answers = sum(outcome.compared for outcome in matched)
    counts = ", ".join(f"{len(names)} {kind}" for kind, names in table.items())
    print(f"recorded exchanges: {len(matched)} matched ({answers} answers), {counts}")
    assert not wrong, "\n".join(wrong)
