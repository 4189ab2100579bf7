"""HTTP bindings of a running server: real requests to a real program, on each event loop."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from tests.ports import free_port
from tests.tmqp_server.programs import Program, program
from tests.tmqp_server.wires import Wire, serving, wire
from tmqp.constants import MessageType, Operation
from tmqp.frames import Frame
from tmqp_server.config import ServerConfig
from tmqp_server.settings.http import HttpSettings

pytestmark = pytest.mark.anyio

NONE, ACKNOWLEDGE, RESPONSE = 0, 1, 2


@pytest.fixture
def called() -> Iterator[Program]:
    with program() as server:
        yield server


def allowing(*prefixes: str, **settings: Any) -> HttpSettings:
    settings.setdefault("timeout_s", 5.0)
    return HttpSettings(allow=prefixes, **settings)


async def bind(client: Wire, url: str, method: int | None = 1, interaction: int = NONE) -> int:
    """A router r with one HTTP binding; the code of the answer."""
    await client.ask(Operation.REMOVE_ROUTER, "r")
    await client.ask(Operation.CREATE_ROUTER, "r")
    body = {
        "Name": "b",
        "Target": url,
        "ContentType": method,
        "Interaction": interaction,
        "BindingType": 2,
    }
    answer = await client.ask(Operation.ADD_BINDING, "r", json.dumps(body).encode())
    return answer.content_type


async def publish(client: Wire, payload: bytes = b"hello", **more: Any) -> Frame:
    """Publish to r; the answer."""
    more.setdefault("pending_response", True)
    message = Frame.build(MessageType.ROUTER, "r", 7, payload, message_id="m1", **more)
    await client.say(message)
    answer = await client.hear()
    assert answer.message_id == "m1"
    return answer


@pytest.mark.parametrize(
    ("method", "word"), list(enumerate(["GET", "POST", "PUT", "PATCH", "DELETE"]))
)
async def test_each_method(called: Program, method: int, word: str) -> None:
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        assert await bind(client, called.url + "x?a=b", method, RESPONSE) == 0
        answer = await publish(client)
    assert (answer.type, answer.content_type) == (MessageType.RESPONSE, 0)
    assert answer.payload == word.encode()
    assert answer.target == "me"
    (asked,) = called.asked
    assert (asked.method, asked.path) == (word, "/x?a=b")
    assert asked.body == (b"" if word in ("GET", "DELETE") else b"hello")


async def test_what_the_program_is_told(called: Program) -> None:
    headers = [
        ("Country", "dk"),
        ("Content-Type", "text/plain"),
        ("Host", "evil"),
        ("Content-Length", "3"),
        ("Name", "Søren"),
        ("not a token", "x"),
        ("Bell", "\x07"),
    ]
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        await bind(client, called.url + "x")
        assert (await publish(client, headers=headers)).content_type == 0
    (asked,) = called.asked
    told = asked.headers
    assert asked.body == b"hello"
    assert told["content-type"] == "text/plain"
    assert told["content-length"] == "5"
    assert told["host"] == called.url[7:-1]
    assert told["user-agent"].startswith("tmqp-server/")
    own = {name: value for name, value in told.items() if name.startswith("tmqp-")}
    assert own.pop("tmqp-header-name").encode("latin-1").decode() == "Søren"
    assert own == {
        "tmqp-message-id": "m1",
        "tmqp-source": "me",
        "tmqp-router": "r",
        "tmqp-content-type": "7",
        "tmqp-header-country": "dk",
        "tmqp-header-content-type": "text/plain",
        "tmqp-header-host": "evil",
        "tmqp-header-content-length": "3",
    }


async def test_a_bounded_number_of_headers_is_passed_on(called: Program) -> None:
    headers = [(f"H{number}", "x") for number in range(5_000)]
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        await bind(client, called.url + "x")
        assert (await publish(client, headers=headers)).content_type == 0
    (asked,) = called.asked
    assert sum(name.startswith("tmqp-header-") for name in asked.headers) == 64


async def test_what_a_url_asks_for_is_not_logged(
    called: Program, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        await bind(client, called.url + "500?token=secret")
        assert (await publish(client)).content_type == 404
    assert "secret" not in caplog.text


async def test_an_acknowledge_is_what_the_program_decides(called: Program) -> None:
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        for path, reason in (("204", None), ("404", "not-found"), ("302", "failed")):
            await bind(client, called.url + path, 1, ACKNOWLEDGE)
            answer = await publish(client, pending_response=False, pending_acknowledge=True)
            assert (answer.type, answer.target) == (MessageType.ACKNOWLEDGE, "r")
            assert answer.content_type == 7
            assert answer.header("Nack-Reason") == reason


async def test_a_status_that_is_an_error_is_the_code_of_the_response(called: Program) -> None:
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        await bind(client, called.url + "503", 1, RESPONSE)
        answer = await publish(client)
        assert (answer.content_type, answer.payload) == (503, b"status 503")


async def test_without_an_interaction_the_router_answers(called: Program) -> None:
    """F123: reached is who answered that all is well."""
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        for path, reason in (("x", None), ("500", "no-consumers")):
            await bind(client, called.url + path)
            answer = await publish(client, pending_response=False, pending_acknowledge=True)
            assert answer.header("Nack-Reason") == reason


@pytest.mark.parametrize(
    ("path", "code", "said"),
    [
        ("never", 504, "no answer within 0.4 s"),
        ("slow", 504, "no answer within 0.4 s"),
        ("huge", 502, "the answer has more than 1000000 bytes"),
        ("garbage", 502, ""),
    ],
)
async def test_calls_that_fail(
    called: Program, path: str, code: int, said: str, caplog: pytest.LogCaptureFixture
) -> None:
    http = allowing(called.url, timeout_s=0.4, max_response_bytes=1_000_000)
    async with serving(http=http) as server, wire(server, "me") as client:
        await bind(client, called.url + path, 1, RESPONSE)
        answer = await publish(client)
        assert (answer.content_type, answer.payload) == (code, b"")
        await bind(client, called.url + "after", 1, RESPONSE)
        assert (await publish(client)).content_type == 0
    (line,) = [record for record in caplog.records if record.name == "tmqp_server.http"]
    assert line.levelno == logging.WARNING
    assert line.getMessage().startswith(f"POST {called.url}{path}: ")
    assert said in line.getMessage()
    assert line.exc_info is None


async def test_nobody_listens_there() -> None:
    url = f"http://127.0.0.1:{free_port()}/"
    async with serving(http=allowing(url)) as server, wire(server, "me") as client:
        await bind(client, url, 1, RESPONSE)
        assert (await publish(client)).content_type == 502


async def test_a_redirect_is_not_followed_and_a_cookie_not_kept(called: Program) -> None:
    async with serving(http=allowing(called.url)) as server, wire(server, "me") as client:
        for path in ("redirect", "cookie", "x"):
            await bind(client, called.url + path, 1, RESPONSE)
            assert (await publish(client)).content_type == (1 if path == "redirect" else 0)
    assert [asked.path for asked in called.asked] == ["/redirect", "/cookie", "/x"]
    assert "cookie" not in called.asked[-1].headers


async def test_a_bounded_number_at_a_time(called: Program) -> None:
    http = allowing(called.url, max_concurrent=2)
    async with serving(http=http) as server, wire(server, "me") as client:
        await bind(client, called.url + "wait", 1, RESPONSE)
        for number in range(8):
            await client.say(Frame.build(MessageType.ROUTER, "r", message_id=f"m{number}"))
        answers = {(await client.hear()).message_id for _ in range(8)}
    assert answers == {f"m{number}" for number in range(8)}
    assert called.most == 2


async def test_waiting_for_a_turn_counts(called: Program) -> None:
    http = allowing(called.url, max_concurrent=1, timeout_s=0.3)
    async with serving(http=http) as server, wire(server, "me") as client:
        await bind(client, called.url + "never", 1, RESPONSE)
        began = anyio.current_time()
        for number in range(5):
            await client.say(Frame.build(MessageType.ROUTER, "r", message_id=f"m{number}"))
        assert [(await client.hear()).content_type for _ in range(5)] == [504] * 5
        assert anyio.current_time() - began < 3


async def test_only_what_is_allowed_is_bound(called: Program) -> None:
    async with serving(http=allowing(called.url + "in/")) as server, wire(server, "me") as client:
        assert await bind(client, called.url + "in/x") == 0
        assert await bind(client, called.url + "out") == 401
        assert await bind(client, "http://169.254.169.254/latest/") == 401
        assert await bind(client, called.url + "in/../out") == 400
    async with serving() as server, wire(server, "me") as client:
        assert await bind(client, called.url + "in/x") == 501


async def test_a_server_stops_while_calls_are_under_way(called: Program) -> None:
    http = allowing(called.url, timeout_s=60.0)
    async with serving(within_s=5, http=http) as server, wire(server, "me") as client:
        await bind(client, called.url + "never", 1, RESPONSE)
        await client.say(Frame.build(MessageType.ROUTER, "r", message_id="m"))
        while not called.asked:  # noqa: ASYNC110 - the caller's time is bounded
            await anyio.sleep(0.01)
    assert [asked.path for asked in called.asked] == ["/never"]


async def test_who_leaves_before_the_answer_hurts_nobody(called: Program) -> None:
    async with serving(http=allowing(called.url)) as server, wire(server, "stays") as stays:
        async with wire(server, "goes") as goes:
            await bind(goes, called.url + "wait", 1, RESPONSE)
            await goes.say(Frame.build(MessageType.ROUTER, "r", message_id="m"))
        assert (await publish(stays)).payload == b"waited"


def test_settings_are_the_configurations() -> None:
    assert ServerConfig().http.allow == ()
