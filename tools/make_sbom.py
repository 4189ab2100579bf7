"""Writes the list of parts (SBOM) of a release in CycloneDX: ``python -m tools.make_sbom FILE``.

The parts are the packages that the extra ``all`` needs, directly or indirectly, in the versions of
this environment, and the files of other projects that ours contain (``[[tool.tmqp.vendored]]`` of
pyproject.toml).  The same environment gives the same bytes.
"""

from __future__ import annotations

import hashlib
import sys
import tomllib
import uuid
from collections.abc import Iterable
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any, Final

from cyclonedx.contrib.license.factories import LicenseFactory
from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom, BomMetaData
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import LicenseRepository
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

__all__ = ["EPOCH", "main", "make", "needed"]

_ROOT: Final = Path(__file__).resolve().parent.parent
#: The date in reproducible files, in Unix time; the same as in the wheels.
EPOCH: Final = 1_735_689_600


def _settings() -> dict[str, Any]:
    with (_ROOT / "pyproject.toml").open("rb") as file:
        return tomllib.load(file)


def _requirements(lines: Iterable[str], extras: Iterable[str]) -> list[Requirement]:
    """Return the requirements that apply to this environment, with these extras."""
    found = []
    for each in map(Requirement, lines):
        marked = each.marker is None
        for extra in ("", *extras):
            marked = marked or (each.marker is not None and each.marker.evaluate({"extra": extra}))
        if marked:
            found.append(each)
    return found


def needed(extra: str) -> dict[str, set[str]]:
    """Return the packages that an extra of ours needs, each with the names of those that it needs
    itself.

    Direct dependencies are under the name ``tmqp``.

    :raises PackageNotFoundError: if one is not installed.
    """
    optional = _settings()["project"]["optional-dependencies"]
    found: dict[str, set[str]] = {"tmqp": set()}
    waiting: list[tuple[str, Requirement]] = []
    extras = [extra]
    for name in extras:  # grows on the way
        for each in _requirements(optional[name], ()):
            if each.name == "tmqp":
                extras += sorted(each.extras - set(extras))
            else:
                waiting.append(("tmqp", each))
    seen: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted_by, each = waiting.pop()
        name = canonicalize_name(each.name)
        found[wanted_by].add(name)
        found.setdefault(name, set())
        key = (name, frozenset(each.extras))
        if key not in seen:
            seen.add(key)
            more = _requirements(distribution(name).requires or (), each.extras)
            waiting += [(name, inner) for inner in more]
    return found


def _licenses(found: Distribution) -> LicenseRepository:
    metadata = found.metadata
    expression, plain = (
        (metadata.get_all(name) or [""])[0] for name in ("License-Expression", "License")
    )
    classes = [
        each.rpartition(" :: ")[2]
        for each in metadata.get_all("Classifier") or ()
        if each.startswith("License :: ") and each.count("::") > 1
    ]
    # Some packages have the whole text of their licence in the field for its name.
    name = expression or (plain if "\n" not in plain and len(plain) < 80 else "")
    text = name or (classes[0] if classes else "")
    return LicenseRepository([LicenseFactory().make_from_string(text)] if text else [])


def _part(name: str) -> Component:
    found = distribution(name)
    return Component(
        name=name,
        version=found.version,
        type=ComponentType.LIBRARY,
        purl=PackageURL("pypi", name=name, version=found.version),
        bom_ref=name,
        licenses=_licenses(found),
    )


def _vendored(entry: dict[str, Any]) -> Component:
    """Return the part for a file of another project, with the digest of the file."""
    digest = hashlib.sha256((_ROOT / entry["file"]).read_bytes()).hexdigest()
    return Component(
        name=entry["name"],
        version=entry["version"],
        type=ComponentType.LIBRARY,
        purl=PackageURL.from_string(entry["purl"]),
        bom_ref=entry["file"],
        licenses=[LicenseFactory().make_from_string(entry["license"])],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
    )


def make() -> str:
    """Return the list of parts as JSON."""
    settings = _settings()
    project = settings["project"]
    ours = Component(
        name="tmqp",
        version=project["version"],
        type=ComponentType.APPLICATION,
        purl=PackageURL("pypi", name="tmqp", version=project["version"]),
        bom_ref="tmqp",
        licenses=[LicenseFactory().make_from_string(project["license"])],
    )
    moment = datetime.fromtimestamp(EPOCH, UTC)
    bom = Bom(metadata=BomMetaData(component=ours, timestamp=moment))
    needs = needed("all")
    parts = {name: _part(name) for name in sorted(needs) if name != "tmqp"}
    vendored = [
        _vendored(each)
        for each in settings["tool"]["tmqp"]["vendored"]
        if (_ROOT / each["file"]).is_file()
    ]
    for each in (*parts.values(), *vendored):
        bom.components.add(each)
    bom.register_dependency(ours, [*[parts[name] for name in sorted(needs["tmqp"])], *vendored])
    for name, part in parts.items():
        bom.register_dependency(part, [parts[each] for each in sorted(needs[name])])
    versions = ",".join(f"{name}={part.version}" for name, part in parts.items())
    bom.serial_number = uuid.uuid5(uuid.NAMESPACE_URL, f"tmqp {project['version']} {versions}")
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def main() -> None:
    """Write the file that is named on the command line."""
    (target,) = map(Path, sys.argv[1:])
    try:
        text = make()
    except PackageNotFoundError as error:
        raise SystemExit(f"{error.name} is not installed: run make setup") from error
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(text, encoding="utf-8")
    print(f"{target}: {text.count('bom-ref') - 1} parts")


if __name__ == "__main__":
    main()
