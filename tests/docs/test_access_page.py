"""The test that ``docs/server.md`` tells the truth of access, and that its examples run."""

from __future__ import annotations

import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
import pytest

from tests.docs.pages import page
from tests.project import ROOT
from tmqp_client import Client, ConnectRefused, OperationFailed, connect
from tmqp_server import Access, Server, ServerConfig, parse_config, running
from tmqp_server.access.auth import load_access
from tmqp_server.access.gate import MAX_KEPT_ANSWERS
from tmqp_server.access.rights import RIGHTS
from tmqp_server.access.roles import ADMIN

PAGE: Final = page("server.md")
TOML: Final = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)


@pytest.fixture(autouse=True)
def examples_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    monkeypatch.delitem(sys.modules, "access_hooks", raising=False)


@pytest.mark.parametrize("text", TOML, ids=range(len(TOML)))
def test_each_configuration_on_the_page_can_be_used(text: str) -> None:
    config = ServerConfig(**parse_config(text))
    access = load_access(config.access)
    assert access is None or isinstance(access, Access)


def test_each_right_has_its_row() -> None:
    table = PAGE.partition("| right | of | allows |")[2].partition("\n\n")[0]
    listed: dict[str, str] = {}
    for names, of in re.findall(r"^\| (`[^|]*) \| (\w*) ?\|", table, re.MULTILINE):
        listed.update(dict.fromkeys(re.findall(r"`([\w-]+)`", names), of))
    assert listed == RIGHTS
    assert ADMIN.name in PAGE
    assert f"{MAX_KEPT_ANSWERS} answers" in PAGE


@asynccontextmanager
async def example(name: str) -> AsyncIterator[Server]:
    """A server as an example configures it, on a port of its own."""
    values = parse_config((ROOT / "examples" / name).read_text(encoding="utf-8"))
    values["listen"] = "tmq://127.0.0.1:0"
    with anyio.fail_after(20):
        async with running(ServerConfig(**values)) as server:
            yield server


def client_of(server: Server, **who: Any) -> Client:
    return connect(server.addresses[0], **who)


@pytest.mark.anyio
async def test_the_table_of_the_example_does_what_it_says() -> None:
    async with example("access.toml") as server:
        async with (
            client_of(server, client_id="web-1", token="open sesame") as shop,
            client_of(server, type="clerk", token="clerks know this") as clerk,
            client_of(server, token="change me") as admin,
            client_of(server) as guest,
        ):
            await admin.create_queue("orders", 1, status="push")
            async with clerk.consume("orders", 1) as orders:
                await shop.push("orders", 1, "one pizza", wait=False)
                assert (await anext(aiter(orders))).text == "one pizza"
            with pytest.raises(OperationFailed, match="401"):
                await shop.push("secrets", 1, "x")
            await guest.join("news")
            for refused in (shop.join("orders"), clerk.remove_channel("orders")):
                with pytest.raises(OperationFailed, match="401"):
                    await refused
            with pytest.raises(OperationFailed, match="401"):
                await guest.join("orders")
        for who in (
            {"token": "open sesame", "client_id": "shop"},
            {"token": "clerks know this", "type": "boss"},
            {"token": "wrong"},
        ):
            with pytest.raises(ConnectRefused):
                async with client_of(server, **who):
                    raise AssertionError("it must not connect")


@pytest.mark.anyio
async def test_the_code_of_the_example_does_what_it_says() -> None:
    async with example("access_hooks.toml") as server:
        async with client_of(server, token="north-sesame") as clerk:
            await clerk.push("north-orders", 1, "x")
            await clerk.join("North-Orders")
            with pytest.raises(OperationFailed, match="401"):
                await clerk.push("south-orders", 1, "x")
            assert (await clerk.request_custom("hello")).text == "hello"
            async with clerk.custom_messages() as messages:
                await clerk.send_custom("said", content_type=5)
                message = await anext(messages)
                assert (message.text, message.content_type) == ("said", 5)
        with pytest.raises(ConnectRefused):
            async with client_of(server, token="west-sesame"):
                raise AssertionError("it must not connect")
