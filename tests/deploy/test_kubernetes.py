"""The manifests for Kubernetes: valid by its schemas, hardened, and true about the server."""

from __future__ import annotations

import copy
import shutil
import subprocess
from pathlib import Path
from typing import Any, Final

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner

from tests.project import ROOT
from tmqp_server import ServerConfig
from tmqp_server.__main__ import main

pytestmark = pytest.mark.cold

FOLDER: Final = ROOT / "deploy" / "kubernetes"
KUSTOMIZATION: Final[dict[str, Any]] = yaml.safe_load((FOLDER / "kustomization.yaml").read_text())
#: The oldest release that they are for, and the newest whose schemas are known.
RELEASES: Final = ("1.30", "1.34")
Manifest = dict[str, Any]


def manifests() -> list[Manifest]:
    """All that kustomize reads, with the labels that it adds."""
    (labels,) = KUSTOMIZATION["labels"]
    found: list[Manifest] = []
    for name in KUSTOMIZATION["resources"]:
        found += yaml.safe_load_all((FOLDER / name).read_text(encoding="utf-8"))
    for each in found:
        each["metadata"].setdefault("labels", {}).update(labels["pairs"])
    return found


def only(kind: str, name: str = "tmqp") -> Any:
    """The manifest of a kind."""
    (found,) = [
        each for each in manifests() if (each["kind"], each["metadata"]["name"]) == (kind, name)
    ]
    return found


def pod() -> Any:
    return only("StatefulSet")["spec"]["template"]["spec"]


def server() -> Any:
    (found,) = pod()["containers"]
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_the_manifests_are_valid(release: str) -> None:
    for each in manifests():
        if each["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # of the Prometheus operator, whose schema does not come with Kubernetes'
        kubernetes_validate.validate(each, release, strict=True)


def test_a_misspelt_field_is_found() -> None:
    wrong = copy.deepcopy(only("StatefulSet"))
    wrong["spec"]["template"]["spec"]["terminationGracePeriod"] = 1
    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(wrong, RELEASES[-1], strict=True)


@pytest.mark.skipif(shutil.which("kubectl") is None, reason="kubectl is not installed")
def test_kustomize_makes_the_same_of_them() -> None:
    told = subprocess.run(
        ["kubectl", "kustomize", FOLDER], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stderr
    made = list(yaml.safe_load_all(told.stdout))
    (config,) = [each for each in made if each["kind"] == "ConfigMap"]
    assert config["data"]["tmqp.toml"] == (FOLDER / "tmqp.toml").read_text(encoding="utf-8")
    names = {(each["kind"], each["metadata"]["name"]) for each in made if each != config}
    assert names == {(each["kind"], each["metadata"]["name"]) for each in manifests()}
    (stateful,) = [each for each in made if each["kind"] == "StatefulSet"]
    volumes = {each["name"]: each for each in stateful["spec"]["template"]["spec"]["volumes"]}
    # A name with a digest: a changed configuration starts a new pod.
    assert volumes["config"]["configMap"]["name"] == config["metadata"]["name"] != "tmqp-config"


def test_the_pod_has_no_more_rights_than_it_needs() -> None:
    """As the profile *restricted* of the pod security standards demands, and more."""
    spec = pod()
    assert spec["automountServiceAccountToken"] is False
    assert spec["securityContext"]["runAsNonRoot"] is True
    assert spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    context = server()["securityContext"]
    assert context["allowPrivilegeEscalation"] is False
    assert context["readOnlyRootFilesystem"] is True
    assert context["capabilities"] == {"drop": ["ALL"]}
    dockerfile = (ROOT / "deploy/docker/Dockerfile").read_text()
    user = spec["securityContext"]["runAsUser"]
    assert f"USER {user}:{spec['securityContext']['runAsGroup']}\n" in dockerfile


def test_kubernetes_waits_longer_for_the_end_than_the_server_takes() -> None:
    drain_s = ServerConfig().drain_timeout_s
    shutdown_s = ServerConfig().shutdown_timeout_s
    assert pod()["terminationGracePeriodSeconds"] > drain_s + 2 * shutdown_s


def test_a_busy_pod_is_not_restarted_and_one_that_recovers_neither() -> None:
    probes = {name: server()[f"{name}Probe"] for name in ("startup", "readiness", "liveness")}
    assert probes["liveness"]["httpGet"]["path"] == "/healthz"
    assert probes["readiness"]["httpGet"]["path"] == "/readyz"
    assert probes["startup"]["httpGet"]["path"] == "/readyz?storage=ignore"
    assert {each["httpGet"]["port"] for each in probes.values()} == {"admin"}
    assert probes["liveness"]["failureThreshold"] * probes["liveness"]["periodSeconds"] >= 60
    assert probes["startup"]["failureThreshold"] * probes["startup"]["periodSeconds"] >= 900


def test_every_selector_selects_something() -> None:
    pod_labels = only("StatefulSet")["spec"]["template"]["metadata"]["labels"]
    for each in manifests():
        spec = each["spec"]
        if each["kind"] == "Service":
            assert spec["selector"].items() <= pod_labels.items()
            ports = {port["name"] for port in server()["ports"]}
            assert {port["targetPort"] for port in spec["ports"]} <= ports
        elif each["kind"] in ("PodDisruptionBudget", "StatefulSet"):
            assert spec["selector"]["matchLabels"].items() <= pod_labels.items()
        elif each["kind"] == "NetworkPolicy":
            assert spec["podSelector"]["matchLabels"].items() <= pod_labels.items()
    wanted = only("ServiceMonitor")["spec"]["selector"]["matchLabels"].items()
    selected = [
        each["metadata"]["name"]
        for each in manifests()
        if each["kind"] == "Service" and wanted <= each["metadata"]["labels"].items()
    ]
    assert selected == ["tmqp-admin"]
    assert only("StatefulSet")["spec"]["serviceName"] == "tmqp-nodes"


def test_the_monitor_asks_under_the_name_that_the_alerts_expect() -> None:
    label = only("ServiceMonitor")["spec"]["jobLabel"]
    name = only("Service", "tmqp-admin")["metadata"]["labels"][label]
    assert f'up{{job="{name}"}}' in (ROOT / "deploy/prometheus/alerts.yml").read_text()


def test_clients_do_not_reach_the_admin_port() -> None:
    clients, monitoring = only("NetworkPolicy")["spec"]["ingress"]
    assert [each["port"] for each in clients["ports"]] == ["tmqp"]
    assert [each["port"] for each in monitoring["ports"]] == ["admin"]
    assert only("NetworkPolicy")["spec"]["policyTypes"] == ["Ingress", "Egress"]
    assert "admin" not in {each["name"] for each in only("Service")["spec"]["ports"]}


def test_the_server_takes_the_configuration_and_the_secret(tmp_path: Path) -> None:
    mounted = {each["name"]: each["mountPath"] for each in server()["volumeMounts"]}
    variables = {each["name"]: each["value"] for each in server()["env"]}
    name = "TMQP_SERVER_ACCESS__TOKENS_FILE"
    assert Path(variables[name]).parent == Path(mounted["access"])
    given = main.make_context("tmqp-server", list(server()["args"])).params
    assert given["config_path"].parent == Path(mounted["config"])
    assert given["data"] == mounted["data"]
    tokens = tmp_path / "tokens"
    tokens.write_text('[{ name = "p", token = "t", roles = ["monitor"] }]')
    options = ["config", "check", str(FOLDER / "tmqp.toml")]
    checked = CliRunner().invoke(main, options, env={name: str(tokens)})
    assert checked.exit_code == 0, checked.output


def test_the_memory_is_enough_for_the_servers_own_limit() -> None:
    limit = server()["resources"]["limits"]["memory"]
    assert limit.endswith("Gi")
    text = (FOLDER / "tmqp.toml").read_text().replace("_", "")
    bound = int(text.split("maxtotalbytes = ")[1].split()[0])
    assert int(limit.removesuffix("Gi")) * 2**30 >= 1.5 * bound
