"""Settings of the environment, and how sources are joined."""

from __future__ import annotations

from typing import Any

import pytest

from tmqp_server.config import ConfigError, ServerConfig, read_config
from tmqp_server.settings.sources import environment_table, flattened, hidden, merged


def no_file(name: str) -> str:
    raise AssertionError(f"{name} is read")


@pytest.mark.parametrize(
    ("environment", "table"),
    [
        ({}, {}),
        ({"PATH": "/bin", "TMQP_OTHER": "1"}, {}),
        ({"TMQP_SERVER_DATA": "/var/lib/tmqp"}, {"data": "/var/lib/tmqp"}),
        ({"TMQP_SERVER_MAX_CONNECTIONS": "7"}, {"max_connections": 7}),
        ({"TMQP_SERVER_ALLOW_REMOTE": "true"}, {"allow_remote": True}),
        ({"TMQP_SERVER_BROKER__MAX_SESSIONS": "5"}, {"broker": {"max_sessions": 5}}),
        (
            {"TMQP_SERVER_LISTEN": '["tmq://a:1", "tmq://b:2"]'},
            {"listen": ["tmq://a:1", "tmq://b:2"]},
        ),
        ({"TMQP_SERVER_LISTEN": "tmq://[::1]:1"}, {"listen": "tmq://[::1]:1"}),
        ({"TMQP_SERVER_DATA": "a\nb = 1"}, {"data": "a\nb = 1"}),
        ({"TMQP_SERVER_DATA": "1 # comment"}, {"data": 1}),
    ],
)
def test_variables_become_settings(environment: dict[str, str], table: dict[str, Any]) -> None:
    assert environment_table(environment, no_file) == table


def test_a_variable_can_name_a_file_with_the_value() -> None:
    table = environment_table(
        {"TMQP_SERVER_TLS__KEY_FILE": "/run/key"}, {"/run/key": "/etc/key.pem\n"}.__getitem__
    )
    assert table == {"tls": {"key": "/etc/key.pem"}}


@pytest.mark.parametrize(
    ("environment", "words"),
    [
        ({"TMQP_SERVER_": "1"}, "is not a setting"),
        ({"TMQP_SERVER_A__": "1"}, "is not a setting"),
        ({"TMQP_SERVER_TLS": "1", "TMQP_SERVER_TLS__KEY": "2"}, "it is not a table"),
        ({"TMQP_SERVER_DATA": "a", "TMQP_SERVER_data": "b"}, "given twice"),
    ],
)
def test_variables_that_cannot_be_used(environment: dict[str, str], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        environment_table(environment, no_file)


def test_the_stronger_source_wins_key_by_key() -> None:
    file = {"data": "a", "broker": {"max_sessions": 1, "max_channels": 2}}
    stronger = {"broker": {"max_sessions": 3}, "max_connections": 4}
    assert merged(file, stronger) == {
        "data": "a",
        "broker": {"max_sessions": 3, "max_channels": 2},
        "max_connections": 4,
    }
    assert file["broker"] == {"max_sessions": 1, "max_channels": 2}


def test_settings_by_their_names() -> None:
    table = {"a": 1, "b": {"c": [2], "d": [{"token": "x"}]}}
    found = dict(flattened(table))
    assert found == {"a": 1, "b.c": [2], "b.d[0].token": "x"}
    assert hidden("b.d[0].token", "x") == "***"
    assert hidden("b.c", [2]) == [2]


# --- [admin] and [log] ---------------------------------------------------------------------------


def test_the_table_admin_is_one_of_the_doors() -> None:
    table = {
        "admin": {"listen": "127.0.0.1:2680", "metrics_queues": ["a*"], "anonymous_metrics": True},
        "doors": [{"protocol": "http"}],
    }
    config = ServerConfig(**read_config(table))
    assert [door.protocol for door in config.doors] == ["http", "admin"]
    assert config.doors[1].options == {"metrics_queues": ("a*",), "anonymous_metrics": True}
    assert str(config.doors[1].listen[0]) == "tmq://127.0.0.1:2680"


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"admin": {"listn": "x"}}, "admin.listen"),
        ({"admin": {"listen": "http://x"}}, "admin.listen"),
        ({"admin": {"listen": "0.0.0.0:2680"}}, "clients are not authenticated"),
        ({"log": {"level": "loud"}}, "log: level must be one of 'debug', 'info'"),
        ({"log": {"fromat": "json"}}, "log.format"),
    ],
)
def test_mistakes_are_named(table: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        ServerConfig(**read_config(table))
