"""The configuration: what is read, and the sentence each mistake gets."""

from __future__ import annotations

from typing import Any

import pytest

from tmqp.address import Address
from tmqp_server.config import ConfigError, OutboundLimits, ServerConfig, parse_config


def test_the_defaults_listen_on_loopback_only() -> None:
    config = ServerConfig()
    assert [str(address) for address in config.listen] == ["tmq://127.0.0.1:2622"]
    assert not config.allow_remote


def test_a_file_sets_every_part() -> None:
    values = parse_config(
        """
        listen = ["tmq://127.0.0.1:0", "unix:/tmp/x"]
        max_connections = 7
        [connection]
        max_payload_bytes = 4096
        [outbound]
        stall_timeout_s = 2.5
        [storage]
        floor_bytes = 5
        """
    )
    config = ServerConfig(**values)
    assert config.listen == (Address("127.0.0.1", 0), Address(socket_path="/tmp/x"))
    assert config.max_connections == 7
    assert config.connection.max_payload_bytes == 4096
    assert config.outbound.stall_timeout_s == 2.5
    assert config.storage.floor_bytes == 5
    assert config.data is None


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("listen = ", "not a TOML file"),
        ("max_conections = 1", "did you mean max_connections"),
        ("[connection]\nmax_payload = 1", "connection.max_payload_bytes"),
        ("[outbound]\nnothing_like_it_at_all = 1", "unknown key outbound"),
        ("connection = 3", "must be a table"),
        (
            "[connection]\nmax_payload_bytes = 'big'",
            "connection.max_payload_bytes must be a number",
        ),
        ("[connection]\nmax_payload_bytes = 0", "connection: max_payload_bytes must be positive"),
        ("[outbound]\nhigh_water_bytes = 1", "must not decrease"),
        ("[outbound]\nhigh_water_bytes = 1e6", "outbound: high_water_bytes must be a positive wh"),
        ("[outbound]\nstall_timeout_s = 'long'", "outbound: stall_timeout_s must be a positive"),
        ("[outbound]\nstall_timeout_s = nan", "stall_timeout_s must be a positive number"),
        ("[connection]\nmax_payload_bytes = 1.5", "max_payload_bytes must be a whole number"),
        ("[connection]\nping_interval_s = nan", "connection: ping_interval_s must be positive"),
        ("[connection]\nping_interval_s = true", "connection.ping_interval_s must be a number"),
        ("[broker]\nmax_channels = 1.0", "broker.max_channels must be a whole number"),
        ("[broker]\nmax_channels = 0", "broker: max_channels must be a positive whole number"),
        ("[broker]\nmax_chanels = 1", "did you mean broker.max_channels"),
    ],
)
def test_a_mistake_in_a_file_names_the_key(text: str, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        parse_config(text)


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"listen": []}, "one or more addresses"),
        ({"listen": 5}, "one or more addresses"),
        ({"listen": ["ftp://x"]}, "listen: "),
        ({"listen": [5]}, "listen: an address must be a string, got 5"),
        ({"max_connections": 0}, "max_connections must be a positive whole number"),
        ({"max_connections": "many"}, "max_connections must be a positive whole number"),
        ({"max_connections": 1.5}, "max_connections must be a positive whole number"),
        ({"max_connections": True}, "max_connections must be a positive whole number"),
        ({"allow_remote": "yes"}, "allow_remote must be true or false, got 'yes'"),
        ({"shutdown_timeout_s": "long"}, "shutdown_timeout_s must be a positive number"),
        ({"shutdown_timeout_s": -1}, "shutdown_timeout_s must be a positive number"),
        ({"shutdown_timeout_s": True}, "shutdown_timeout_s must be a positive number"),
        ({"listen": ["tmqs://127.0.0.1:1"]}, "tmqs://127.0.0.1:1 needs a certificate"),
        ({"listen": ["tmq://0.0.0.0:1"]}, "clients are not authenticated"),
    ],
)
def test_a_bad_value_names_its_key(values: dict[str, Any], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        ServerConfig(**values)


def test_one_address_need_not_stand_in_a_list() -> None:
    assert ServerConfig(listen="unix:/tmp/x").listen == (Address(socket_path="/tmp/x"),)


def test_listening_for_other_machines_must_be_asked_for() -> None:
    """G1 of the reliability cases: never open to the network by accident."""
    config = ServerConfig(listen=["tmq://0.0.0.0:1"], allow_remote=True)
    assert not config.listen[0].is_local


def test_water_marks_must_be_in_order() -> None:
    with pytest.raises(ConfigError, match="must not decrease"):
        OutboundLimits(low_water_bytes=10, high_water_bytes=5)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("data = 7", "data must be the name of a directory, got 7"),
        ('data = ""', "data must be the name of a directory, got ''"),
        ("[storage]\nfloor_bytes = 0", "storage: floor_bytes must be a positive whole number"),
        ("[storage]\nflor_bytes = 1", "did you mean storage.floor_bytes?"),
    ],
)
def test_what_is_wrong_with_the_storage(text: str, reason: str) -> None:
    with pytest.raises(ConfigError) as refused:
        ServerConfig(**parse_config(text))
    assert reason in str(refused.value)
