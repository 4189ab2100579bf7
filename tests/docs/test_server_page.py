"""The test that ``docs/server.md`` names every key of the configuration, and no other."""

from __future__ import annotations

import re
import tomllib
from typing import Final

import attrs
import pytest

from tests.docs.pages import blocks, page, section, table
from tests.project import ROOT
from tmqp_server import OutboundLimits, ServerConfig, StorageConfig, parse_config
from tmqp_server.engine.model.handlers import built_in_handlers
from tmqp_server.settings.admin import ADMIN
from tmqp_server.settings.http import HttpSettings
from tmqp_server.settings.log import LogSettings
from tmqp_server.settings.options import CHANNEL_KEYS, QUEUE_KEYS
from tmqp_server.settings.routers import BINDING_KEYS
from tmqp_server.settings.tls import TlsSettings
from tmqp_server.wiring.assembly import broker_options

pytestmark = pytest.mark.cold

PAGE: Final = page("server.md")


def names(cells: list[str]) -> list[str]:
    """What stands in code marks, tables' brackets aside."""
    return [name.strip("[]") for cell in cells for name in re.findall(r"`([^`]+)`", cell)]


def first_cells(text: str, *head: str) -> list[str]:
    return names([row[0] for row in table(text, *head)])


def keys(kind: type) -> list[str]:
    return sorted(field.name for field in attrs.fields(kind))


#: The texts with the tables of queues' and of channels' options.
QUEUES, CHANNELS = section(PAGE, "Channels and queues").split("`[channel]` sets the default")
#: The server's own keys, and those of slow readers.
SERVER, OUTBOUND = section(PAGE, "Configuration").split("`[outbound]` limits")


def test_every_key() -> None:
    # [admin] is short for one of the [[doors]].
    assert sorted(first_cells(SERVER, "key", "default")) == sorted([*keys(ServerConfig), ADMIN])


def test_the_keys_of_tables() -> None:
    assert sorted(first_cells(OUTBOUND, "key", "default")) == keys(OutboundLimits)
    assert sorted(first_cells(QUEUES, "key", "default")) == sorted(QUEUE_KEYS)
    assert sorted(first_cells(CHANNELS, "key", "default")) == sorted(CHANNEL_KEYS)
    assert sorted(first_cells(section(PAGE, "HTTP bindings"), "key", "default")) == keys(
        HttpSettings
    )
    assert sorted(first_cells(section(PAGE, "Durable queues"), "key", "default")) == keys(
        StorageConfig
    )
    assert sorted(first_cells(section(PAGE, "TLS"), "key", "default")) == keys(TlsSettings)
    assert sorted(first_cells(section(PAGE, "Log"), "key", "default")) == keys(LogSettings)
    assert set(first_cells(section(PAGE, "Routers"), "key", "of")) == set(BINDING_KEYS)


def test_the_defaults() -> None:
    options = broker_options(ServerConfig()).channel
    rows = table(QUEUES, "key", "default") + table(CHANNELS, "key", "default")
    for key, default, _ in rows:
        name = key.strip("`")
        holder = options.queue if name in QUEUE_KEYS else options
        value = getattr(holder, name)
        if name == "status":
            assert (default, value) == ('`"push"`', 1)
        elif value is None:
            assert default in {"none", "all"}
        elif isinstance(value, bool):
            assert default == f"`{str(value).lower()}`"
        elif isinstance(value, str):
            assert default == f'`"{value}"`'
        else:
            assert default == str(value)
    for row in table(section(PAGE, "HTTP bindings"), "key", "default"):
        value = getattr(HttpSettings(), row[0].strip("`"))
        assert row[1].strip("`") == ("[]" if value == () else str(value))


def test_the_handlers() -> None:
    shown = first_cells(section(PAGE, "Delivery handlers"), "name", "what it does")
    assert sorted(shown) == sorted(built_in_handlers().names())


@pytest.mark.parametrize("block", blocks(PAGE, "toml"))
def test_examples_are_configurations(block: str) -> None:
    ServerConfig(**parse_config(block))


def test_the_page_of_the_interoperability_server() -> None:
    text = page("interoperability.md")
    written = tomllib.loads((ROOT / "examples" / "interoperability.toml").read_text("utf-8"))
    shown = first_cells(section(text, "Routers"), "router", "method")
    assert sorted(shown) == sorted(router["name"] for router in written["routers"])
    (channel,) = written["channels"]
    rows = table(section(text, "Delivery handlers"), "`Delivery-Handler`")
    assert [(row[0].strip("`"), row[1]) for row in rows] == [
        (queue["delivery_handler"], f"`handlers`, {queue['id']}") for queue in channel["queues"]
    ]


def test_a_server_is_started_again_without_a_disk(capsys: pytest.CaptureFixture[str]) -> None:
    (program,) = blocks(section(PAGE, "Tests of your own classes"), "python")
    exec(program, {})  # noqa: S102 - it is on our own page
    (shown,) = re.findall(r"# (\[.*\])$", program, re.MULTILINE)
    assert capsys.readouterr().out == f"{shown}\n"
