"""The page about groups of servers: its configuration is accepted, its settings are all there."""

from __future__ import annotations

import re
import shlex
import tomllib
from typing import Any, Final

import attrs
import pytest
import yaml

from tests.deploy.schemas import complaints
from tests.docs.pages import blocks, page, table
from tests.docs.test_operate import unknown
from tests.project import ROOT
from tmqp_client import FAIL_OVER
from tmqp_server.__main__ import main
from tmqp_server.config import ServerConfig, read_config
from tmqp_server.settings.replication import ReplicationConfig
from tmqp_server.settings.sources import environment_table, merged

pytestmark = pytest.mark.cold

#: Steps of a list are indented.
PAGE: Final = re.sub(r"^    ", "", page("guides/high-availability.md"), flags=re.MULTILINE)
GROUP: Final = yaml.safe_load(
    (ROOT / "deploy" / "compose" / "group.yaml").read_text(encoding="utf-8")
)
SERVERS: Final = ("a", "b", "c")


def test_the_configuration_of_the_page_is_accepted() -> None:
    (text,) = blocks(PAGE, "toml")
    config = ServerConfig(**read_config(tomllib.loads(text)))
    assert config.replication is not None
    assert len(config.replication.servers) == 3


def commands() -> list[str]:
    found = []
    for each in blocks(PAGE, "sh"):
        found += [line.strip() for line in each.replace("\\\n", " ").splitlines()]
    return [line for line in found if line.split()[0] in ("tmqp", "tmqp-server")]


@pytest.mark.parametrize("line", commands())
def test_a_command_of_the_page_exists(line: str) -> None:
    words = shlex.split(line)
    if words[1].startswith("-"):  # the server itself
        known = {option for each in main.params for option in each.opts}
        assert {each for each in words if each.startswith("-")} <= known
    else:
        assert unknown(line) == ""


def test_the_page_has_each_setting_with_its_default() -> None:
    told: dict[str, str] = {}
    for names, value, _ in table(PAGE, "key of `[replication]`"):
        told.update(dict.fromkeys([each.strip("` ") for each in names.split(",")], value))
    fields: dict[str, Any] = {each.name: each.default for each in attrs.fields(ReplicationConfig)}
    assert set(told) == set(fields)
    for name, default in fields.items():
        if default is attrs.NOTHING:
            assert told[name] == "required", name
        elif default not in ("", None, ()):
            assert told[name] == str(default), name
    # "says nothing for two seconds", "within a second", "every half second"
    assert FAIL_OVER.silence_s == 1.0
    assert FAIL_OVER.attempt_timeout_s == 1.0
    assert FAIL_OVER.max_delay_s == 0.5


def test_the_group_of_compose_is_one_of_compose() -> None:
    assert complaints(GROUP, "compose-spec") == []
    services = GROUP["services"]
    assert set(services) == {*SERVERS, "e1", "e2", "e3"}
    for name, service in services.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["read_only"], name
        assert ":" in service["image"], name
        assert all(each.startswith("127.0.0.1:") for each in service.get("ports", [])), name
        for volume in service["volumes"]:
            assert volume.split(":")[0] in GROUP["volumes"], name


def test_the_servers_of_compose_are_configured_for_one_group() -> None:
    image = tomllib.loads((ROOT / "deploy/docker/tmqp.toml").read_text(encoding="utf-8"))
    nodes = set()
    for name in SERVERS:
        service = GROUP["services"][name]
        given = {k: v for k, v in service["environment"].items() if not k.endswith("_FILE")}
        settings = merged(image, environment_table(given, lambda _: ""))
        config = ServerConfig(**read_config({**settings, "allow_remote": True, "data": "/data"}))
        group = config.replication
        assert group is not None
        assert [each.partition(":")[0] for each in group.servers] == ["e1", "e2", "e3"]
        published = service["ports"][0].split(":")[1]
        assert group.told(()).port == int(published)
        nodes.add(group.node)
    assert nodes == set(SERVERS)
    members = GROUP["services"]["e1"]["environment"]["ETCD_INITIAL_CLUSTER"]
    assert members == ",".join(f"{each}=http://{each}:2380" for each in ("e1", "e2", "e3"))
