"""The compose file: what it names exists, and the secrets that it draws let the demo in."""

from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from click.testing import CliRunner

from tests.deploy.schemas import complaints
from tests.project import ROOT
from tmqp_client.cli import cli
from tmqp_server import ServerConfig
from tmqp_server.__main__ import main
from tmqp_server.access.tokens import hash_token

pytestmark = pytest.mark.cold

FOLDER: Final = ROOT / "deploy" / "compose"
FILE: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "compose.yaml").read_text(encoding="utf-8"))
SERVICES: Final[dict[str, Any]] = FILE["services"]


def test_the_file_is_one_of_compose() -> None:
    assert complaints(FILE, "compose-spec") == []
    assert complaints({"services": {"server": {"imagee": "x"}}}, "compose-spec")


def test_what_is_mounted_exists() -> None:
    for name, service in SERVICES.items():
        for volume in service.get("volumes", []):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (FOLDER / source).exists(), name
                assert volume.endswith(":ro"), name
            else:
                assert source in FILE["volumes"], name
        for secret in service.get("secrets", []):
            assert secret in FILE["secrets"], name
    assert (FOLDER / SERVICES["server"]["build"]["context"]).resolve() == ROOT


def test_no_service_has_more_than_it_needs() -> None:
    for name, service in SERVICES.items():
        assert service["cap_drop"] == ["ALL"], name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert "privileged" not in service, name
        assert all(each.startswith("127.0.0.1:") for each in service.get("ports", [])), name
        if service.get("image", "").startswith("tmqp:"):
            assert service["read_only"], name


def test_every_image_has_a_version() -> None:
    assert [name for name, each in SERVICES.items() if ":" not in each["image"]] == []
    assert [name for name, each in SERVICES.items() if each["image"].endswith(":latest")] == []


def test_compose_waits_longer_for_the_end_than_the_server_takes() -> None:
    drain_s = ServerConfig().drain_timeout_s
    grace_s = int(SERVICES["server"]["stop_grace_period"].removesuffix("s"))
    assert grace_s > drain_s + 2 * ServerConfig().shutdown_timeout_s


def test_the_demo_runs_only_when_it_is_asked_for() -> None:
    demo = {name for name, each in SERVICES.items() if each.get("profiles") == ["demo"]}
    assert demo == {"producer", "consumer"}


@pytest.mark.parametrize("name", ["producer", "consumer"])
def test_the_commands_of_the_demo_have_such_options(name: str) -> None:
    """They fail for want of a server, and not for how they are typed."""
    (script,) = SERVICES[name]["command"]
    for command in script.replace("$$(cat /run/secrets/demo)", "secret").split("&&"):
        program, *arguments = shlex.split(command.replace("exec ", ""))
        assert program == "tmqp"
        result = CliRunner().invoke(cli, [*arguments, "-a", "tmq://127.0.0.1:1", "--timeout", "1"])
        # A consumer that keeps trying ends otherwise only when it is interrupted.
        assert result.exit_code == 3, result.output
        if "--keep" in arguments:
            break


def test_the_secrets_that_are_drawn_let_the_demo_in(tmp_path: Path) -> None:
    shutil.copy(FOLDER / "make-secrets.sh", tmp_path)
    subprocess.run([tmp_path / "make-secrets.sh"], check=True)
    drawn = {path.name: path.read_text() for path in (tmp_path / "secrets").iterdir()}
    subprocess.run([tmp_path / "make-secrets.sh"], check=True)
    assert (tmp_path / "secrets" / "demo").read_text() == drawn["demo"]
    assert set(drawn) == set(FILE["secrets"])
    assert hash_token(drawn["demo"]) in drawn["tokens"]
    assert len(drawn["demo"]) == 64
    assert len(drawn["grafana"]) == 48
    variables = SERVICES["server"]["environment"]
    name = "TMQP_SERVER_ACCESS__TOKENS_FILE"
    environment = {**variables, name: str(tmp_path / "secrets" / Path(variables[name]).name)}
    config = ROOT / "deploy" / "docker" / "tmqp.toml"
    checked = CliRunner().invoke(main, ["config", "check", str(config)], env=environment)
    assert checked.exit_code == 0, checked.output
    assert "tmq://0.0.0.0:2622" in checked.output


def test_grafana_finds_the_dashboard_and_its_source() -> None:
    provisioning = ROOT / "deploy" / "grafana" / "provisioning"
    (source,) = yaml.safe_load((provisioning / "datasources/prometheus.yaml").read_text())[
        "datasources"
    ]
    assert source["url"] == "http://prometheus:9090"
    assert "prometheus" in SERVICES
    (provider,) = yaml.safe_load((provisioning / "dashboards/tmqp.yaml").read_text())["providers"]
    places = [each.split(":")[1] for each in SERVICES["grafana"]["volumes"]]
    assert f"{provider['options']['path']}/tmqp.json" in places


@pytest.mark.skipif(shutil.which("promtool") is None, reason="promtool is not installed")
def test_promtool_takes_the_configuration_of_prometheus() -> None:
    told = subprocess.run(
        ["promtool", "check", "config", ROOT / "deploy/prometheus/prometheus.yml"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_prometheus_asks_the_server_under_the_name_that_the_alerts_expect() -> None:
    config = yaml.safe_load((ROOT / "deploy/prometheus/prometheus.yml").read_text())
    (job,) = config["scrape_configs"]
    alerts = (ROOT / "deploy/prometheus/alerts.yml").read_text()
    assert f'up{{job="{job["job_name"]}"}}' in alerts
    (target,) = job["static_configs"][0]["targets"]
    assert target.split(":")[0] in SERVICES
