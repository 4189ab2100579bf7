"""Versions of ActiveMQ's client, each with the list of features, and ActiveMQ itself."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.interop.building import CACHE, java_build
from tests.project import ROOT

__all__ = ["VERSIONS", "example", "features", "reference"]

_SOURCES: Final = Path(__file__).parent / "java"
_CACHE: Final = CACHE / "openwire"
_FEATURES: Final = ("Checks.java", "Features.java")
#: Clients of ActiveMQ: the version that users have, the last for ``javax.jms``, and one for
#: ``jakarta.jms``.
VERSIONS: Final = ("5.16.4", "5.18.7", "6.1.7")


def features(version: str) -> tuple[list[str], Path]:
    """The command of the list of features with one version of the client, and its folder."""
    folder = _CACHE / version
    sources = [_SOURCES / name for name in _FEATURES]
    if version.startswith("6."):
        sources = [_for_jakarta(each, folder / "sources") for each in sources]
    words = _build(f"activemq-client-{version}", "activemq-client", version, folder, sources)
    return [*words, "Features"], folder


def example() -> tuple[list[str], Path]:
    """The command of the guide's program, and its folder."""
    folder = _CACHE / "example"
    sources = [ROOT / "examples" / "jms" / "Orders.java"]
    words = _build("activemq-client", "activemq-client", VERSIONS[0], folder, sources)
    return [*words, "Orders"], folder


def reference() -> tuple[list[str], Path]:
    """The command of ActiveMQ 5.16.4, which prints its URL, and its folder."""
    folder = _CACHE / "reference"
    sources = [_SOURCES / "Reference.java"]
    words = _build("activemq-broker", "activemq-broker", VERSIONS[0], folder, sources)
    return [*words, "Reference"], folder


def _build(client: str, part: str, version: str, folder: Path, sources: list[Path]) -> list[str]:
    properties = {"part": part, "activemq": version}
    return java_build(client, _SOURCES / "pom.xml", folder, sources, properties)


def _for_jakarta(source: Path, folder: Path) -> Path:
    """A program for the JMS of today, which has another package."""
    text = source.read_text(encoding="utf-8").replace("javax.jms.", "jakarta.jms.")
    folder.mkdir(parents=True, exist_ok=True)
    changed = folder / source.name
    if not changed.exists() or changed.read_text(encoding="utf-8") != text:
        changed.write_text(text, encoding="utf-8")
    return changed
