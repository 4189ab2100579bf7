"""The table ``[replication]``: what is read, and how mistakes are named."""

from __future__ import annotations

from typing import Any

import pytest

from tmqp.address import Address
from tmqp_server.commands.configuring import Given
from tmqp_server.config import ConfigError, ServerConfig, parse_config
from tmqp_server.settings.sources import effective

LOG = "etcd://a:2379,b:2379,[::1]:2379/shop"
GOOD = f"""
listen = ["tmq://127.0.0.1:2622"]
data = "d"
[replication]
log = "{LOG}"
node = "n1"
"""


def config(more: str = "", text: str = GOOD) -> ServerConfig:
    return ServerConfig(**parse_config(text + more))


def test_a_group_is_read() -> None:
    group = config('user = "u"\npassword = "p"\nca = "ca.pem"\nlease_s = 3\n').replication
    assert group is not None
    assert group.servers == ["a:2379", "b:2379", "[::1]:2379"]
    assert (group.group, group.node, group.lease_s) == ("shop/0", "n1", 3)
    assert str(group.told((Address("127.0.0.1", 2622),))) == "tmq://127.0.0.1:2622"
    assert "'p'" not in repr(group)


def test_clients_are_told_an_address_that_they_can_reach() -> None:
    group = config('address = "tmqs://b1:2622"').replication
    assert group is not None
    assert str(group.told(())) == "tmqs://b1:2622"
    everywhere = GOOD.replace("127.0.0.1", "0.0.0.0") + "[access]\n"
    with pytest.raises(ConfigError, match="address is missing: clients need the leader's"):
        config("", everywhere.replace("[access]", "").replace("data", "allow_remote = true\ndata"))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ("lease = 3", "unknown key replication.lease; did you mean replication.lease_s"),
        ("lease_s = 0", "replication: lease_s must be 1 to 60, got 0"),
        ("lease_s = 2.5", "lease_s must be a whole number of seconds, got 2.5"),
        ("timeout_s = 2", "timeout_s must be less than lease_s"),
        ("shard = 1", "shard must be 0: so far there is only one part of the channels"),
        ("shard = -1", "shard must be 0 to 1023"),
        ('password = "p"', "password needs user"),
        ('key = "k"', "certificate and key belong together"),
        ('certificate = "c"\nkey = "k"', "certificate needs ca"),
        ('address = "tmq://0.0.0.0:1"', "clients cannot connect to"),
        ('address = "http://a"', "address: 'http://a': an address must begin with tmq://"),
        ("max_behind = 0", "max_behind must be a positive whole number"),
        ("ca = 3", "ca must be the name of a file"),
        ("user = 3", "user must be a string, got 3"),
    ],
)
def test_mistakes_are_named(more: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        config(more)


@pytest.mark.parametrize(
    ("log", "words"),
    [
        ("a:2379/g", "does not begin with etcd://; write etcd://HOST:PORT"),
        ("etcd://a:2379", "does not name the group"),
        ("etcd://a:2379/", "does not name the group"),
        ("etcd://a:2379/a/b", "letters, digits and ._-, got 'a/b'"),
        ("etcd://a/g", "'a' is not HOST:PORT"),
        ("etcd://a:b/g", "'a:b' is not HOST:PORT"),
        ("etcd://a:0/g", "a port is 1 to 65535"),
        ("etcd://a:1,a:1/g", "a:1 is named twice"),
        ("etcd://u:p@a:1/g", "use the keys user and password"),
    ],
)
def test_a_log_that_cannot_be_one_is_refused(log: str, words: str) -> None:
    with pytest.raises(ConfigError, match=f"replication: log: .*{words}"):
        config("", GOOD.replace(LOG, log))


def test_a_group_needs_data_and_stands_outside_of_clusters() -> None:
    with pytest.raises(ConfigError, match="replication needs data, a directory"):
        config("", GOOD.replace('data = "d"', ""))
    with pytest.raises(ConfigError, match="cluster and replication exclude each other"):
        config('[cluster]\nname = "a"\ntoken = "t"\nrole = "master"\n')
    for key in ("log", "node"):
        text = "\n".join([line for line in GOOD.splitlines() if not line.startswith(key)])
        with pytest.raises(ConfigError, match=f"replication.{key} is missing"):
            config("", text)


def test_the_option_of_the_command_names_the_log() -> None:
    environment = {"TMQP_SERVER_REPLICATION__NODE": "n7", "TMQP_SERVER_REPLICATION__LEASE_S": "5"}
    given = Given(environment=environment, data="d", replicate=LOG)
    group = given.config().replication
    assert group is not None
    assert (group.log, group.node, group.lease_s) == (LOG, "n7", 5)
    alone = Given(data="d", replicate=LOG).config().replication
    assert alone is not None
    assert alone.node


def test_the_password_of_etcd_is_not_shown() -> None:
    found: list[tuple[str, Any]] = effective(config('user = "u"\npassword = "hidden"\n'))
    assert "hidden" not in repr(found)
