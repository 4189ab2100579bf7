"""``tmqp-server goms-config``: converts the configuration of a goMS server to a table for this
server.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

import click

__all__ = ["goms_config"]

_MOST_BYTES: Final = 1_048_576


class _BadFileError(Exception):
    """A file cannot be used; the text says which and why."""


@click.command("goms-config")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path))
def goms_config(file: Path) -> None:
    r"""Print the [[doors]] table for a goMS server's own configuration.

    FILE is its server.json.  The file of topics that it names is read, too: as it is named, or
    beside FILE.

    \b
    Example:
      tmqp-server goms-config conf/server.json >> tmqp.toml
    """
    try:
        click.echo(_table(file), nl=False)
    except _BadFileError as error:
        click.echo(f"tmqp-server: {error}", err=True)
        sys.exit(2)


def _table(file: Path) -> str:
    configuration = _read(file)
    topics = _topics(_topics_file(file, configuration))
    listen = [_address(file, each) for each in _list(file, configuration, "connectors")]
    if not listen:
        raise _BadFileError(f"{file}: connectors is empty")
    options = json.dumps(list(dict.fromkeys([topic.lower() for topic in topics])))
    return (
        "[[doors]]\n"
        'protocol = "goms"\n'
        f"listen = {json.dumps(listen)}\n"
        f"options = {{ topics = {options} }}\n"
    )


def _read(file: Path) -> dict[str, Any]:
    try:
        data = file.read_bytes()[: _MOST_BYTES + 1]
    except OSError as error:
        raise _BadFileError(f"{file}: {error.strerror}") from error
    if len(data) > _MOST_BYTES:
        raise _BadFileError(f"{file} has more than {_MOST_BYTES} bytes")
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise _BadFileError(f"{file} is not JSON: {error}") from error
    if not isinstance(value, dict):
        raise _BadFileError(f"{file} must hold a JSON object")
    return value


def _list(file: Path, value: dict[str, Any], name: str) -> list[Any]:
    found = value.get(name)
    if not isinstance(found, list):
        raise _BadFileError(f"{file}: {name} must be a list")
    return found


def _topics_file(file: Path, configuration: dict[str, Any]) -> Path:
    name = configuration.get("topic-config")
    if not isinstance(name, str) or not name:
        raise _BadFileError(f"{file}: topic-config must name the file of topics")
    beside = file.parent / Path(name).name
    return beside if not Path(name).is_file() and beside.is_file() else Path(name)


def _topics(file: Path) -> list[str]:
    topics = _list(file, _read(file), "topics")
    for topic in topics:
        if not isinstance(topic, str) or not topic:
            raise _BadFileError(
                f"{file}: a topic must be a string that is not empty, not {topic!r}"
            )
    return topics


def _address(file: Path, connector: object) -> str:
    if not isinstance(connector, dict):
        raise _BadFileError(f"{file}: a connector is an object, not {connector!r}")
    # The document spells it with two l; the program's key is the other one.
    protocol = connector.get("protocoll", connector.get("protocol", "tcp"))
    if protocol not in ("tcp", "udp"):
        raise _BadFileError(f"{file}: protocoll must be tcp or udp, not {protocol!r}")
    host = connector.get("ip", "127.0.0.1")
    port = connector.get("port", 55_545)
    if not isinstance(host, str) or not host:
        raise _BadFileError(f"{file}: ip must be an address, not {host!r}")
    if isinstance(port, bool) or not isinstance(port, int) or not 0 <= port <= 65_535:
        raise _BadFileError(f"{file}: port must be a number from 0 to 65535, not {port!r}")
    place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
    return f"udp://{place}" if protocol == "udp" else place
