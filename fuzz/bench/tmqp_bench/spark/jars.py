"""The jars of the peer: which they are, and fetching them from Maven Central.

They are neither part of the project nor in any Python package.  Maven puts them into two folders,
once: the broker with all that it needs, and what Spark lacks to talk to it.  The connector's own
dependencies are named one by one, for most of what it declares is in Spark, in other versions.
"""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

__all__ = [
    "BROKER_VERSION",
    "CONNECTOR_VERSION",
    "JarsMissingError",
    "broker_jars",
    "connector_jars",
]

BROKER_VERSION: Final = "3.9.1"
#: The newest on Maven Central; it runs in Spark 4.2 and 4.3.
CONNECTOR_VERSION: Final = "4.2.0"
_BROKER: Final = (f"org.apache.kafka:kafka_2.13:{BROKER_VERSION}",)
_CONNECTOR: Final = (
    f"org.apache.spark:spark-sql-kafka-0-10_2.13:{CONNECTOR_VERSION}",
    # Its newer ones are not on Maven Central.
    "org.apache.spark:spark-token-provider-kafka-0-10_2.13:4.0.0",
    f"org.apache.kafka:kafka-clients:{BROKER_VERSION}",
    "org.apache.commons:commons-pool2:2.12.0",
)
_PLUGIN: Final = "org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies"
_FETCH_S: Final = 600.0


class JarsMissingError(Exception):
    """The peer cannot be fetched; the text says why, and what would help."""


def broker_jars(folder: Path) -> list[Path]:
    """The jars of a Kafka broker, fetched into a folder below this one if they are not there.

    :raises JarsMissingError: when they cannot be fetched.
    """
    return _jars(folder / f"kafka-{BROKER_VERSION}", _BROKER, alone=False)


def connector_jars(folder: Path) -> list[Path]:
    """The jars that Spark needs for its Kafka connector, the same way.

    :raises JarsMissingError: when they cannot be fetched.
    """
    return _jars(folder / f"spark-kafka-{CONNECTOR_VERSION}", _CONNECTOR, alone=True)


def _jars(folder: Path, wanted: Sequence[str], *, alone: bool) -> list[Path]:
    folder = folder.resolve()  # Maven has another idea of where relative paths begin
    if not (folder / "complete").exists():
        _fetch(folder, wanted, alone=alone)
    found = sorted(folder.glob("*.jar"))
    if not found:
        raise JarsMissingError(f"mvn brought no jar of {', '.join(wanted)}")
    (folder / "complete").write_text("\n".join(wanted))
    return found


def _fetch(folder: Path, wanted: Sequence[str], *, alone: bool) -> None:
    for program, package in (("java", "openjdk-17-jre-headless"), ("mvn", "maven")):
        if shutil.which(program) is None:
            raise JarsMissingError(f"there is no {program} on the path: apt-get install {package}")
    folder.mkdir(parents=True, exist_ok=True)
    project = folder / "pom.xml"
    project.write_text(_project(wanted, alone=alone), encoding="utf-8")
    command = ["mvn", "-q", "-B", "-f", str(project), _PLUGIN, f"-DoutputDirectory={folder}"]
    command.append("-DincludeScope=runtime")
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_FETCH_S, check=False
        )
    except subprocess.TimeoutExpired:
        raise JarsMissingError(f"mvn needs over {_FETCH_S:g} s for {', '.join(wanted)}") from None
    if done.returncode:
        said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        why = said[0] if said else "mvn said nothing"
        raise JarsMissingError(f"mvn could not fetch {', '.join(wanted)}: {why}")


def _project(wanted: Sequence[str], *, alone: bool) -> str:
    """A project that depends on these; ``alone`` leaves out what they depend on themselves."""
    nothing_else = (
        "<exclusions><exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
        "</exclusions>"
    )
    lines = [
        '<project xmlns="http://maven.apache.org/POM/4.0.0"><modelVersion>4.0.0</modelVersion>',
        "<groupId>tmqp</groupId><artifactId>bench</artifactId><version>1</version><dependencies>",
    ]
    for each in wanted:
        group, artifact, version = map(escape, each.split(":"))
        lines.append(
            f"<dependency><groupId>{group}</groupId><artifactId>{artifact}</artifactId>"
            f"<version>{version}</version>{nothing_else if alone else ''}</dependency>"
        )
    return "\n".join([*lines, "</dependencies></project>"])
