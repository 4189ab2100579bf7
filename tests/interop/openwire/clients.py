"""ActiveMQ and the versions of its client and of Spring, each with its lists of checks."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from tests.interop.building import CACHE, java_build, unavailable
from tests.project import ROOT

__all__ = [
    "PACKAGED",
    "SIMPLIFIED",
    "SPRINGS",
    "VERSIONS",
    "Command",
    "example",
    "failover",
    "features",
    "program",
    "reference",
    "simplified",
    "spring",
]

#: Words of a command, and the folder where it runs.
Command = tuple[list[str], Path]

_SOURCES: Final = Path(__file__).parent / "java"
_CACHE: Final = CACHE / "openwire"
#: Clients of ActiveMQ: the version that users have, the last for ``javax.jms``, and one for
#: ``jakarta.jms``.
VERSIONS: Final = ("5.16.4", "5.18.7", "6.1.7")
#: The version that Debian 12 has as a package.
PACKAGED: Final = "5.17.2"
_PACKAGE: Final = Path("/usr/share/activemq/lib")
#: Those that know of JMS 2.0.
SIMPLIFIED: Final = ("5.18.7", "6.1.7")
#: Versions of Spring, each with the version of the client that it is tried with.
SPRINGS: Final = (("5.3.39", "5.16.4"), ("6.2.8", "6.1.7"))


def program(name: str, version: str) -> Command:
    """The command of a program beside this file, with one version of the client."""
    folder = _CACHE / f"{name}-{version}"
    sources = _sources(("Checks", name), version, folder)
    words = _build(f"activemq-client-{version}", "pom.xml", folder, sources, activemq=version)
    return [*words, name], folder


def features(version: str) -> Command:
    """The list of features of JMS 1.1 and of ActiveMQ."""
    return program("Features", version)


def simplified(version: str) -> Command:
    """What JMS 2.0 has more."""
    return program("Simplified", version)


def failover(version: str) -> Command:
    """What becomes of a program whose broker is killed."""
    return program("Failover", version)


def spring(spring_version: str, version: str) -> Command:
    """What Spring does, in one version, with one version of the client."""
    folder = _CACHE / f"Spring-{spring_version}"
    sources = _sources(("Checks", "Spring"), version, folder)
    versions = {"activemq": version, "spring": spring_version}
    words = _build(f"activemq-spring-{spring_version}", "spring.xml", folder, sources, **versions)
    return [*words, "Spring"], folder


def example() -> Command:
    """The guide's program."""
    folder = _CACHE / "example"
    sources = [ROOT / "examples" / "jms" / "Orders.java"]
    words = _build("activemq-client", "pom.xml", folder, sources, activemq=VERSIONS[0])
    return [*words, "Orders"], folder


def reference(version: str = VERSIONS[0]) -> Command:
    """ActiveMQ itself, which prints its URL."""
    built = VERSIONS[0] if version == PACKAGED else version
    folder = _CACHE / f"Reference-{built}"
    sources = [_SOURCES / "Reference.java"]
    words = _build("activemq-broker", "reference.xml", folder, sources, activemq=built)
    if version == PACKAGED:
        if not _PACKAGE.is_dir():
            unavailable("activemq", "the distribution's package is not installed")
        words[-1] = f"classes{os.pathsep}{_PACKAGE}/*"
    return [*words, "Reference"], folder


def _build(
    client: str, pom: str, folder: Path, sources: list[Path], **properties: str
) -> list[str]:
    return java_build(client, _SOURCES / pom, folder, sources, properties)


def _sources(names: tuple[str, ...], version: str, folder: Path) -> list[Path]:
    """Programs as the client of a version needs them: with JMS by today's name, or by the old."""
    found = [_SOURCES / f"{name}.java" for name in names]
    if version.startswith("6."):
        found = [_for_jakarta(each, folder / "sources") for each in found]
    return found


def _for_jakarta(source: Path, folder: Path) -> Path:
    """A program for the JMS of today, which has another package."""
    text = source.read_text(encoding="utf-8").replace("javax.jms.", "jakarta.jms.")
    folder.mkdir(parents=True, exist_ok=True)
    changed = folder / source.name
    if not changed.exists() or changed.read_text(encoding="utf-8") != text:
        changed.write_text(text, encoding="utf-8")
    return changed
