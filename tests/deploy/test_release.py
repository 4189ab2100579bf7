"""What a release is made of: the workflow, the locked versions, the list of parts."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any, Final

import pytest
import yaml
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tools.make_sbom import make, needed
from tools.reproduce import build, normalised

from tests.deploy.schemas import complaints
from tests.project import ROOT, settings
from tests.test_build import MODULES, PYPROJECT

pytestmark = pytest.mark.cold

WORKFLOW: Final = ROOT / ".github" / "workflows" / "release.yml"
SUPPORTED: Final = ("3.11", "3.12", "3.13", "3.14")
ZIZMOR: Final = Path(sys.executable).parent / "zizmor"


def workflow() -> dict[str, Any]:
    found = yaml.safe_load(WORKFLOW.read_text(encoding="utf-8"))
    found["on"] = found.pop(True)  # YAML 1.1 reads this word as a truth value
    return dict(found)


def test_the_workflow_is_one() -> None:
    assert complaints(workflow(), "github-workflows") == []
    assert complaints({**workflow(), "jobs": {"x": {"runs-on": 5}}}, "github-workflows")


@pytest.mark.skipif(not ZIZMOR.exists(), reason="zizmor has no wheel for this system")
def test_the_workflow_gives_nothing_away() -> None:
    told = subprocess.run(
        [ZIZMOR, "--offline", "--no-progress", WORKFLOW],
        capture_output=True,
        text=True,
        check=False,
    )
    assert told.returncode == 0, told.stdout + told.stderr


def test_nothing_is_published_but_for_a_tag_and_after_all_was_built() -> None:
    jobs = workflow()["jobs"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(jobs["publish"]["needs"]) == set(jobs) - {"publish"}
    writing = {
        name
        for name, job in jobs.items()
        if any(each == "write" for each in job["permissions"].values())
    }
    assert writing == {"publish"}
    assert workflow()["permissions"] == {}


def test_every_action_is_one_commit() -> None:
    uses = re.findall(r"uses: (\S+)(.*)", WORKFLOW.read_text(encoding="utf-8"))
    assert len(uses) > 5
    for action, version in uses:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", action), action
        assert re.fullmatch(r" # v[\d.]+", version), action


def test_the_commands_of_the_workflow_exist() -> None:
    text = WORKFLOW.read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"run: make ([a-z-]+)", text):
        assert re.search(rf"^{target}: .*##", makefile, re.MULTILINE), target
    (command,) = re.findall(
        r"python \{project\}/(\S+)", settings()["tool"]["cibuildwheel"]["test-command"]
    )
    assert (ROOT / command).is_file()


def test_there_are_wheels_for_every_python_that_is_supported() -> None:
    built = settings()["tool"]["cibuildwheel"]["build"]
    assert built == [f"cp{each.replace('.', '')}-*" for each in SUPPORTED]
    head = "Programming Language :: Python :: 3."
    classifiers = settings()["project"]["classifiers"]
    assert [each for each in classifiers if each.startswith(head) and each[-1].isdigit()] == [
        f"Programming Language :: Python :: {each}" for each in SUPPORTED
    ]
    names = {each["name"] for each in workflow()["jobs"]["wheels"]["strategy"]["matrix"]["include"]}
    assert names == {
        *("linux-x86_64", "linux-aarch64", "macos-arm64", "macos-x86_64", "windows-amd64"),
    }


def test_a_wheel_is_tried_with_the_extras_that_the_trial_imports() -> None:
    options = settings()["tool"]["cibuildwheel"]
    assert set(options["test-extras"]) == {"server", "client", "http"}
    assert options["environment"]["TMQP_COMPILE"] == "1"
    assert options["test-command"].endswith("--compiled")


@pytest.mark.long
def test_the_trial_of_a_wheel_passes() -> None:
    command = [sys.executable, str(ROOT / "tools" / "smoke.py")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    told = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=False, timeout=50
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "works on Python" in told.stdout


@pytest.mark.parametrize("name", ["constraints.txt", "deploy/docker/requirements.txt"])
def test_whatever_is_locked_has_a_digest_and_no_place(name: str) -> None:
    """The index of one machine is none of another's."""
    text = (ROOT / name).read_text(encoding="utf-8")
    blocks = re.split(r"\n(?=[A-Za-z])", text.strip())
    assert len(blocks) > 10
    for block in blocks:
        assert re.match(r"[a-z0-9-]+==\S+", block), block
        assert "--hash=sha256:" in block, block
    assert not re.search(r"://|--index-url|--find-links", text)


# --- The list of parts ---------------------------------------------------------------------------


def test_the_list_of_parts_is_valid_and_the_same_each_time() -> None:
    text = make()
    assert JsonStrictValidator(SchemaVersion.V1_6).validate_str(text) is None
    assert make() == text


def test_the_list_has_what_is_needed_and_nothing_else() -> None:
    found = json.loads(make())
    names = {each["name"] for each in found["components"]}
    optional = settings()["project"]["optional-dependencies"]
    wanted = {
        canonicalize_name(requirement.name)
        for extra in ("server", "client", "http", "spark", "zmtp")
        for requirement in map(Requirement, optional[extra])
        if requirement.name != "tmqp"
        and (requirement.marker is None or requirement.marker.evaluate())
    }
    assert wanted - names == set()
    assert "httpcore" in names, "what is needed through another"
    assert not {"pytest", "mypy", "ruff"} & names
    assert found["metadata"]["component"]["version"] == settings()["project"]["version"]
    depends = {each["ref"]: each.get("dependsOn", []) for each in found["dependencies"]}
    assert "httpx" in depends["tmqp"]
    assert "httpcore" in depends["httpx"]
    assert "httpcore" not in depends["tmqp"]
    assert needed("http").keys() < needed("all").keys()


def test_every_file_of_others_is_a_part() -> None:
    entries = settings()["tool"]["tmqp"]["vendored"]
    entries = [each for each in entries if (ROOT / each["file"]).is_file()]
    shipped = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "src").rglob("*")
        if "vendor" in path.parts and path.is_file() and path.suffix not in (".md", ".txt", ".py")
    }
    assert {each["file"] for each in entries} == shipped
    parts = {each["bom-ref"]: each for each in json.loads(make())["components"]}
    assert [each for each in entries if "hashes" not in parts[each["file"]]] == []


# --- The same bytes ------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.skipif(shutil.which("cc") is None, reason="there is no C compiler")
def test_a_compiled_wheel_is_the_same_in_another_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Compilers write the folder into what they make; tried on a small project."""
    root = tmp_path / "project"
    for name, text in MODULES.items():
        (root / "src" / "sample" / name).parent.mkdir(parents=True, exist_ok=True)
        (root / "src" / "sample" / name).write_text(text, encoding="utf-8")
    (root / "pyproject.toml").write_text(PYPROJECT, encoding="utf-8")
    shutil.copy(ROOT / "setup.py", root)
    for words in (["init", "--quiet"], ["add", "."]):
        subprocess.run(["git", *words], cwd=root, check=True)
    monkeypatch.setenv("TMQP_COMPILE", "1")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    options = ("--no-isolation", "--wheel")
    first, second = (build(root, tmp_path / name, *options) for name in ("one", "another"))
    (name,) = first
    assert "none-any" not in name, "it is compiled"
    assert first == second


def archive(moment: int, user: str, names: tuple[str, ...]) -> bytes:
    made = io.BytesIO()
    with tarfile.open(fileobj=made, mode="w:gz") as target:
        for name in names:
            member = tarfile.TarInfo(name)
            member.mtime, member.uname, member.size = moment, user, len(name)
            target.addfile(member, io.BytesIO(name.encode()))
    return made.getvalue()


def test_who_made_an_archive_and_when_does_not_show() -> None:
    one = archive(1_000_000_000, "ann", ("a", "b"))
    another = archive(1_700_000_000, "bob", ("b", "a"))
    assert one != another
    assert normalised(one) == normalised(another)
    assert normalised(one) != normalised(archive(1, "ann", ("a", "c")))
    with tarfile.open(fileobj=io.BytesIO(normalised(one))) as found:
        assert found.getnames() == ["a", "b"]
