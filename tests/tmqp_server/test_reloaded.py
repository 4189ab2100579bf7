"""The command tmqp-server reads its configuration again, shows it, and takes the environment."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.certificates import make_certificate
from tests.tmqp_server.processes import configured_server
from tmqp_server.__main__ import main

pytestmark = pytest.mark.cold

PATIENCE_S = 20.0


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="this system has no SIGHUP")
def test_sighup_has_it_read_its_file_again(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text('listen = ["tmq://127.0.0.1:0"]\n[log]\nformat = "json"\n', encoding="utf-8")
    with configured_server(path, TMQP_SERVER_MAX_CONNECTIONS="11") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert "ready on tmq://" in process.stdout.readline()
        said: list[str] = []
        for text in ("max_connections_per_address = 5", "max_connections_per_address = 0", ""):
            head = 'listen = ["tmq://127.0.0.1:0"]\n' if text else "listen = 5\n"
            path.write_text(f'{head}{text}\n[log]\nformat = "json"\n', encoding="utf-8")
            process.send_signal(signal.SIGHUP)
            while not said or not said[-1].startswith(("changed", "the conf")):
                line = json.loads(process.stderr.readline())
                said.append(line["message"])
            said.append("")
        process.terminate()
        process.communicate(timeout=PATIENCE_S)
    found = [each for each in said if each.startswith(("changed", "the conf"))]
    assert process.returncode == 0
    assert found[0] == "changed max_connections_per_address: 1000 -> 5"
    assert "the old one stays in use: max_connections_per_address must be" in found[1]
    assert "the old one stays in use: listen must be" in found[2]


def test_config_show_tells_where_each_setting_comes_from(tmp_path: Path) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text(
        "max_connections = 7\nhook_timeout_s = 2\n[access.roles.r]\nrights = ['push']\n"
        "[[access.tokens]]\nname = 'me'\ntoken = 'a secret'\nroles = ['r']\n",
        encoding="utf-8",
    )
    shown = CliRunner().invoke(
        main, ["config", "show", str(path)], env={"TMQP_SERVER_HOOK_TIMEOUT_S": "3"}
    )
    lines = shown.output.splitlines()
    assert shown.exit_code == 0
    assert "max_connections = 7  # file" in lines
    assert "hook_timeout_s = 3  # environment" in lines
    assert "shutdown_timeout_s = 10.0  # default" in lines
    assert 'access.tokens[0].token = "***"  # file' in lines
    assert "secret" not in shown.output


def test_config_diff_tells_what_a_reload_would_change_and_what_it_could_not(tmp_path: Path) -> None:
    old, new = tmp_path / "old.toml", tmp_path / "new.toml"
    token = "[[access.tokens]]\nname = 'me'\ntoken = '{}'\nroles = ['admin']\n"
    old.write_text("max_connections = 7\n" + token.format("a secret"), encoding="utf-8")
    new.write_text(
        "max_connections = 8\nlisten = ['tmq://127.0.0.1:9']\n" + token.format("a new secret"),
        encoding="utf-8",
    )
    shown = CliRunner().invoke(main, ["config", "diff", str(old), str(new)])
    assert shown.exit_code == 0
    assert sorted(shown.output.splitlines()) == [
        "changed access: changed me",
        "changed max_connections: 7 -> 8",
        "needs a restart: listen",
    ]
    assert CliRunner().invoke(main, ["config", "diff", str(old), str(old)]).output == ""
    new.write_text("max_conections = 7\n", encoding="utf-8")
    wrong = CliRunner().invoke(main, ["config", "diff", str(old), str(new)])
    assert wrong.exit_code == 2
    assert "new.toml" in wrong.output


@pytest.mark.parametrize("command", ["show", "check"])
def test_a_configuration_that_cannot_be_used_is_named(tmp_path: Path, command: str) -> None:
    path = tmp_path / "tmqp.toml"
    path.write_text("max_conections = 7\n", encoding="utf-8")
    shown = CliRunner().invoke(main, ["config", command, str(path)])
    assert shown.exit_code == 2
    assert "max_connections" in shown.output
    assert "tmqp.toml" in shown.output


def test_config_check_prints_what_would_be_served() -> None:
    env = {"TMQP_SERVER_ADMIN__LISTEN": "127.0.0.1:2680"}
    shown = CliRunner().invoke(main, ["config", "check"], env=env)
    assert shown.exit_code == 0
    assert "admin://127.0.0.1:2680" in shown.output


def test_config_check_warns_of_what_is_allowed_and_unwise(tmp_path: Path) -> None:
    path, key = tmp_path / "tmqp.toml", tmp_path / "both.pem"
    _, certificate = make_certificate(tmp_path)
    key.write_bytes((tmp_path / "server.key").read_bytes() + certificate.read_bytes())
    text = f"""
listen = ["tmq://0.0.0.0:2622", "tmq://127.0.0.1:2622"]
tls = {{ certificate = "{key}" }}
access.tokens = [
  {{ name = "me", token = "a secret", roles = ["admin"] }},
  {{ hash = "sha256:{"0" * 64}", roles = ["admin"] }},
  {{ user = "u", password = "another", roles = ["admin"] }},
]
"""
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    key.chmod(0o644)
    checked = CliRunner().invoke(main, ["config", "check", str(path)])
    assert checked.exit_code == 0, checked.output
    secrets, config, private, plain = checked.stderr.replace(f"{tmp_path}/", "").splitlines()
    assert secrets.startswith("warning: access.tokens: me, number 3: the secret is plain text;")
    assert config.startswith("warning: other users can read tmqp.toml, which has tokens:")
    assert private.startswith("warning: other users can read the private key in both.pem:")
    assert plain.startswith("warning: tokens and messages travel unencrypted on tmq://0.0.0.0:2622")
    path.write_text(re.sub(r".*(name|user) =.*\n", "", text.replace("0.0.0.0", "127.0.0.9")))
    path.chmod(0o640)
    key.chmod(0o640)
    checked = CliRunner().invoke(main, ["config", "check", str(path)])
    assert (checked.exit_code, checked.stderr) == (0, "")
