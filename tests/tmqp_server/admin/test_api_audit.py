"""What the audit says was there before something was changed or removed, over the API."""

from __future__ import annotations

from typing import Any, Final

from tests.tmqp_server.access.kept import Kept
from tests.tmqp_server.admin.api_stage import ApiStage
from tmqp_server.access.auditing import Auditor

FEED: Final = "/channels/c/queues/1/feeds/d/1"
BINDING: Final = "/routers/r/bindings/"
DIRECT: Final = {
    "kind": "direct",
    "target": "@name:worker",
    "priority": 3,
    "interaction": "response",
    "method": "only-first",
}


def test_what_was_is_told_of_routers_bindings_and_feeds() -> None:
    stage, kept = ApiStage(), Kept()
    stage.prepare()
    stage.hub.auditor = Auditor(kept)
    caller = stage.caller()
    steps: tuple[tuple[str, str, Any, dict[str, Any]], ...] = (
        ("PATCH", "/routers/r", {"enabled": False}, {"enabled": True}),
        ("PATCH", "/routers/r", {"enabled": False}, {}),
        ("PUT", f"{BINDING}w", DIRECT, {}),
        ("DELETE", f"{BINDING}w", None, DIRECT),
        ("DELETE", f"{BINDING}w", None, {}),
        ("DELETE", "/routers/r", None, {"enabled": False, "method": "distribute", "bindings": 1}),
        ("DELETE", FEED, None, {}),
        ("PUT", FEED, {"filter": "Country=fr"}, {}),
        ("DELETE", FEED, None, {"filter": "Country=fr"}),
        ("DELETE", FEED, None, {}),
    )
    for method, path, body, before in steps:
        kept.records.clear()
        caller.ask(method, f"/api/v1{path}", body)
        assert kept.records[-1].before == before, f"{method} {path}"


def test_a_binding_and_a_feed_are_told_whole_when_they_are_added() -> None:
    stage, kept = ApiStage(), Kept()
    stage.prepare()
    stage.hub.auditor = Auditor(kept)
    caller = stage.caller()
    caller.ask("PUT", f"/api/v1{BINDING}w", DIRECT)
    caller.ask("PUT", "/api/v1/channels/d/queues/2", {})
    caller.ask("PUT", "/api/v1/channels/c/queues/1/feeds/d/2", {"filter": "Country=fr"})
    told = {each.action: each.after for each in kept.records}
    assert told["add-binding"] == {"binding": "w", **DIRECT}
    assert told["add-feed"] == {"target": "d/2", "filter": "Country=fr"}
