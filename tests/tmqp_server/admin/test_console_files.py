"""How the admin door serves the console: its files, what is said of them, and the guards of a
browser on every answer."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from typing import Final

import pytest

from tests.project import ROOT
from tests.tmqp_server.admin.stage import Stage
from tests.tmqp_server.doors.http.stage import request
from tests.tmqp_server.shell.stage import StubWire
from tmqp_server.access.rights import CREATE_QUEUE, PUSH, RIGHTS, SEE_CHANNEL, SEE_ROUTERS
from tmqp_server.admin.console.files import console_files
from tmqp_server.admin.kind import AdminKind
from tmqp_server.admin.world import AdminWorld
from tmqp_server.config import ServerConfig, parse_config
from tmqp_server.doors.facts import events_by_name
from tmqp_server.doors.registry import DoorRegistry
from tmqp_server.engine.options.table import CHANNEL_OPTIONS, QUEUE_OPTIONS
from tmqp_server.wiring.doors import Doors

pytestmark = pytest.mark.cold

FILES: Final = console_files()
PAGE: Final = ROOT / "src" / "tmqp_server" / "admin" / "console" / "page"
_MOST_BYTES: Final = 250_000
_MOST_LINES: Final = 2_800
_NUMBER: Final = 900


def answer(
    stage: Stage, target: str, *fields: tuple[str, str], method: str = "GET"
) -> tuple[int, dict[str, str], bytes]:
    """Status, fields and body of the answer to a request on a new connection."""
    wire = stage.wires[_NUMBER] = StubWire()
    stage.turn.opened(_NUMBER, stage.admin, wire, "host", stage.now)
    stage.say(_NUMBER, request(method, target, None, *fields))
    head, end, body = bytes(wire.sent).partition(b"\r\n\r\n")
    assert end, "it is answered at once"
    first, *lines = head.decode("latin-1").split("\r\n")
    stage.end(_NUMBER)
    found = [line.partition(": ") for line in lines]
    return int(first.split()[1]), {name.lower(): value for name, _, value in found}, body


@pytest.fixture(scope="module")
def stage() -> Stage:
    return Stage()


def test_the_document_names_only_files_that_are_served(stage: Stage) -> None:
    status, fields, body = answer(stage, "/")
    assert (status, fields["content-type"]) == (200, "text/html; charset=utf-8")
    assert fields["content-length"] == str(len(body))
    named = re.findall(r'(?:href|src)="(?!#)([^"]+)"', body.decode())
    assert len(named) >= 5
    for name in named:
        assert not name.startswith(("/", "http")), "it may stand behind a proxy's prefix"
        assert answer(stage, f"/{name}")[0] == 200, name


def test_every_module_imports_what_is_served_and_nothing_from_elsewhere() -> None:
    for name, file in FILES.items():
        if name.endswith(".js") and "/" not in name:
            text = file.data.decode()
            for imported in re.findall(r'from "([^"]+)"', text):
                assert imported.removeprefix("./") in FILES, f"{name}: {imported}"
    page = FILES["index.html"].data.decode() + FILES["style.css"].data.decode()
    assert "http" not in page.replace("http-equiv", "")
    assert "@import" not in page


def test_every_colour_is_said_once() -> None:
    palette = FILES["palette.css"].data.decode()
    names = re.findall(r"--([a-z-]+): light-dark\(#[0-9a-f]{6}, #[0-9a-f]{6}\);", palette)
    assert len(names) == len(set(names)) == palette.count("#") // 2
    assert {*names, "columns"} >= set(
        re.findall(r"var\(--([a-z-]+)\)", FILES["style.css"].data.decode())
    )
    assert not re.search(r"#[0-9a-fA-F]{3,8}\b", FILES["style.css"].data.decode())


@pytest.mark.parametrize(
    "target", ["/", "/console/app.js", "/none", "/api/v1/none", "/healthz?x", "/%zz"]
)
def test_every_answer_has_the_guards(stage: Stage, target: str) -> None:
    _, fields, _ = answer(stage, target)
    policy = fields["content-security-policy"]
    assert policy.startswith("default-src 'none';")
    for words in (
        *("script-src 'self'", "style-src 'self'", "frame-ancestors 'none'", "base-uri 'none'"),
        *("require-trusted-types-for 'script'", "trusted-types 'none'"),
    ):
        assert words in policy
    assert "unsafe" not in policy
    assert fields["x-content-type-options"] == "nosniff"
    assert fields["referrer-policy"] == "no-referrer"
    assert fields["cross-origin-opener-policy"] == "same-origin"


def test_what_has_not_changed_is_not_sent_again(stage: Stage) -> None:
    status, fields, body = answer(stage, "/console/app.js")
    assert (status, fields["cache-control"]) == (200, "no-cache")
    for known in (fields["etag"], f'"other", W/{fields["etag"]}', "*"):
        status, again, nothing = answer(stage, "/console/app.js", ("If-None-Match", known))
        assert (status, nothing, again["etag"]) == (304, b"", fields["etag"])
        assert "content-length" not in again
    status, _, again_body = answer(stage, "/console/app.js", ("If-None-Match", '"other"'))
    assert (status, again_body) == (200, body)


def test_only_files_may_be_kept(stage: Stage) -> None:
    assert answer(stage, "/none")[1]["cache-control"] == "no-store"
    assert answer(stage, "/healthz")[1]["cache-control"] == "no-store"


def test_files_are_compressed_for_who_takes_that(stage: Stage) -> None:
    _, fields, body = answer(stage, "/console/app.js", ("Accept-Encoding", "br, gzip"))
    assert (fields["content-encoding"], fields["vary"]) == ("gzip", "Accept-Encoding")
    assert gzip.decompress(body) == FILES["app.js"].data


@pytest.mark.parametrize("target", ["/admin", "/admin/"])
def test_the_way_of_those_who_come_from_activemq(stage: Stage, target: str) -> None:
    status, fields, _ = answer(stage, target)
    assert (status, fields["location"]) == (302, "/")


def test_the_console_is_where_activemq_has_it_if_its_programs_connect() -> None:
    kind = AdminKind(AdminWorld())
    assert kind.ports({"admin", "stomp"}) == (2680,)
    assert kind.ports({"admin", "openwire"}) == (2680, 8161)


def listened_on(text: str) -> list[int]:
    """The ports of the admin door of a configuration."""
    config = ServerConfig(**parse_config(text))
    doors = Doors(config, DoorRegistry([AdminKind(AdminWorld())]), lambda: "id", 0.0)
    (found,) = [each for each in doors.further if each.protocol == "admin"]
    return [each.port for each in found.addresses]


def test_an_address_that_is_given_is_the_only_one() -> None:
    openwire = '[[doors]]\nprotocol = "openwire"\n'
    assert listened_on(f"[admin]\n{openwire}") == [2680, 8161]
    assert listened_on("[admin]\n") == [2680]
    assert listened_on(f'[admin]\nlisten = ["127.0.0.1:1234"]\n{openwire}') == [1234]


def test_types(stage: Stage) -> None:
    for name, kind in (
        ("app.js", "text/javascript; charset=utf-8"),
        ("style.css", "text/css; charset=utf-8"),
        ("icon.svg", "image/svg+xml"),
        ("vendor/uPlot.LICENSE.txt", "text/plain; charset=utf-8"),
    ):
        assert answer(stage, f"/console/{name}")[1]["content-type"] == kind


@pytest.mark.parametrize("name", ["..%2Fconsole.py", "%2e%2e/files.py", "files.py", "page/app.js"])
def test_nothing_else_is_served(stage: Stage, name: str) -> None:
    assert answer(stage, f"/console/{name}")[0] in (400, 404)


def test_a_server_without_the_console_serves_its_metrics() -> None:
    without = Stage(console=False)
    assert answer(without, "/")[0] == 404
    assert answer(without, "/console/app.js")[0] == 404
    assert without.get("/metrics")[0] == 200


def test_nobody_has_to_log_in_for_the_files() -> None:
    guarded = Stage(guarded=True)
    guarded.policy = lambda _: False
    assert answer(guarded, "/")[0] == 200
    assert answer(guarded, "/console/app.js")[0] == 200
    assert guarded.get("/api/v1/session/rights")[0] == 401


def test_what_is_vendored_is_what_its_authors_published() -> None:
    text = (PAGE / "vendor" / "README.md").read_text(encoding="utf-8")
    named = dict(re.findall(r"\| `([^`]+)` \| `([0-9a-f]{64})` \|", text))
    there = {each.name for each in (PAGE / "vendor").iterdir()} - {"README.md"}
    assert named.keys() == there
    for name, digest in named.items():
        assert hashlib.sha256((PAGE / "vendor" / name).read_bytes()).hexdigest() == digest, name


def test_the_console_stays_small() -> None:
    assert sum(len(file.data) for file in FILES.values()) < _MOST_BYTES
    own = [path for path in PAGE.iterdir() if path.is_file()]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in own)
    assert lines < _MOST_LINES


#: What turns a text into markup or into a program; the policy refuses it, and it is not written.
_MARKUP: Final = (
    *("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "new Function"),
    *("srcdoc", "javascript:", "DOMParser", "createContextualFragment", "setHTML"),
)


def test_no_script_makes_markup_of_text() -> None:
    for path in sorted(PAGE.glob("*.js")):
        text = path.read_text(encoding="utf-8")
        for word in _MARKUP:
            assert word not in text, f"{path.name}: {word}"
        assert re.search(r'\bstyle: ?["`]', text) is None, f"{path.name}: an inline style"


def exported(name: str) -> list[object]:
    """A table that the server makes for the console."""
    text = FILES["tables.js"].data.decode()
    value = re.findall(rf"^export const {name} = (.*);$", text, re.MULTILINE)[0]
    found: list[object] = json.loads(value)
    return found


def test_the_console_knows_all_options() -> None:
    for name, table in (("QUEUE_OPTIONS", QUEUE_OPTIONS), ("CHANNEL_OPTIONS", CHANNEL_OPTIONS)):
        names = [each["name"] for each in exported(name) if isinstance(each, dict)]
        assert names == [each.name for each in table]


def test_the_console_knows_which_events_need_a_channel() -> None:
    assert exported("SERVER_EVENTS")[:2] == ["ClientConnected", "ClientDisconnected"]
    assert exported("CHANNEL_EVENTS")[0] == "ClientJoined"
    both = [*exported("SERVER_EVENTS"), *exported("CHANNEL_EVENTS")]
    assert sorted(map(str, both)) == sorted({*events_by_name()} - {"MessageProduced"})


# --- What the client may do -----------------------------------------------------------------------


def rights(stage: Stage, query: str = "") -> list[str]:
    """What the API says that the client may do."""
    status, text = stage.get(f"/api/v1/session/rights{query}")
    assert status == 200
    found: list[str] = json.loads(text)["rights"]
    return found


def test_where_everybody_may_do_everything_so_may_the_client(stage: Stage) -> None:
    assert rights(stage) == list(RIGHTS)


def test_rights_are_those_about_the_names_that_are_given() -> None:
    guarded = Stage(guarded=True)
    asked: list[tuple[str, str, int]] = []

    def policy(question: object) -> bool:
        right, about, queue_id = (
            getattr(question, name) for name in ("right", "about", "queue_id")
        )
        asked.append((right, about, queue_id))
        return right not in (PUSH, CREATE_QUEUE) or about == "orders"

    guarded.policy = policy
    assert {PUSH, CREATE_QUEUE}.isdisjoint(rights(guarded))
    found = rights(guarded, "?channel=orders&queue=7&router=r")
    assert {PUSH, CREATE_QUEUE, SEE_CHANNEL} <= set(found)
    assert (PUSH, "orders", 7) in asked
    assert (SEE_ROUTERS, "r", -1) in asked


def test_asking_for_rights_is_no_refusal_that_an_alert_counts() -> None:
    guarded = Stage(guarded=True)
    guarded.policy = lambda question: question.right == "authenticate"
    assert rights(guarded) == []
    assert guarded.hub.gate is not None
    assert guarded.hub.gate.denied == {}


def test_paths_of_the_console_are_in_the_wheel() -> None:
    names = {path.relative_to(PAGE).as_posix() for path in PAGE.rglob("*") if path.is_file()}
    assert names - {"vendor/README.md"} == FILES.keys() - {"tables.js"}
    assert Path(PAGE / "index.html").is_file()
