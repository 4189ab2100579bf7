"""The configuration of a cluster: what is read, and the sentence each mistake gets."""

from __future__ import annotations

import pytest

from tmqp.address import Address
from tmqp_server.config import ServerConfig, parse_config
from tmqp_server.settings.checks import ConfigError
from tmqp_server.settings.cluster import ClusterConfig

GOOD = """
[cluster]
name = "one"
token = "secret"
role = "both"
masters = ["tmq://127.0.0.1:2623", "unix:/run/two"]
forward = ["orders/*", "log*"]
accept_kinds = ["queue"]
share_decisions = true
buffer_bytes = 1000
reconnect_max_s = 5
"""


def test_a_file_sets_every_part() -> None:
    config = ServerConfig(**parse_config(GOOD)).cluster
    assert config is not None
    assert config.masters == (Address("127.0.0.1", 2623), Address(socket_path="/run/two"))
    assert (config.name, config.role, config.takes_slaves) == ("one", "both", True)
    assert (config.forward, config.accept) == (("orders/*", "log*"), ("*",))
    assert config.accept_kinds == ("queue",)
    assert len(config.forward_kinds) == 6
    assert (config.share_decisions, config.buffer_bytes) == (True, 1000)
    assert (config.reconnect_min_s, config.reconnect_max_s) == (0.5, 5)
    assert "secret" not in repr(config)


def test_a_server_stands_alone_unless_it_is_told_otherwise() -> None:
    assert ServerConfig().cluster is None


def test_roles() -> None:
    master = ClusterConfig(name="m", token="t", role="master")
    slave = ClusterConfig(name="s", token="t", role="slave", masters=["tmq://h"])
    assert (master.takes_slaves, slave.takes_slaves) == (True, False)


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ('name = "one"\n', "", "cluster.name is missing"),
        ('token = "secret"\n', "", "cluster.token is missing"),
        ('role = "both"\n', "", "cluster.role is missing"),
        ('"one"', "1", "cluster: name must be a string without blanks"),
        ('"one"', '" one"', "cluster: name must be a string without blanks"),
        ('"one"', '"o\\tne"', "cluster: name must be one line"),
        ('"one"', '"' + "é" * 128 + '"', "cluster: name must be at most 255 bytes"),
        ('"secret"', '""', "cluster: token must be a string without blanks"),
        ('"both"', '"leader"', "cluster: role must be master, slave or both, got 'leader'"),
        ('"both"', '"master"', "cluster: a master does not connect"),
        ("masters = [", "masters = []\nfilter = [", "cluster: filter must be a string"),
        ('["tmq://127.0.0.1:2623", "unix:/run/two"]', "[]", "cluster: role both needs masters"),
        ("unix:/run/two", "tmq://127.0.0.1:2623", "masters: .* is named twice"),
        ("unix:/run/two", "tmqs://h", "masters: tmqs://h:2622: TLS is not supported"),
        ("unix:/run/two", "ftp://h", "masters: "),
        ('["orders/*", "log*"]', '"orders"', "cluster: forward must be a list of strings"),
        ('"log*"', "5", "cluster: forward must be a list of strings"),
        ("= true", '= "yes"', "cluster: share_decisions must be true or false"),
        ("1000", "0", "cluster: buffer_bytes must be a positive whole number"),
        ("max_s = 5", "max_s = 0.1", "cluster: reconnect_max_s must not be less"),
        ("buffer_bytes", "bufer_bytes", "did you mean cluster.buffer_bytes"),
        ("[cluster]", "cluster = 3\n[other]", "unknown key other|must be a table"),
    ],
)
def test_a_mistake_names_its_key(old: str, new: str, reason: str) -> None:
    assert old in GOOD
    with pytest.raises(ConfigError, match=reason):
        parse_config(GOOD.replace(old, new))
