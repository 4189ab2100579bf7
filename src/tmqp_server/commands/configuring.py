"""Reads the configuration of the command, from all its sources, and shows it.

Options of the command override the environment, which overrides the file.
"""

from __future__ import annotations

import json
import platform
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, final

import attrs
import click

from tmqp.limits import Limits
from tmqp_server.commands.weaknesses import weaknesses
from tmqp_server.config import ConfigError, ServerConfig, read_config
from tmqp_server.settings.doors import door_option
from tmqp_server.settings.log import LogSettings
from tmqp_server.settings.sources import (
    PREFIX,
    effective,
    environment_table,
    flattened,
    hidden,
    merged,
)
from tmqp_server.settings.tls import TlsSettings
from tmqp_server.wiring.reloading import changes

__all__ = ["Given", "config_command"]

_FROM_FILE: Final = "file"
_FROM_ENVIRONMENT: Final = "environment"
_DEFAULT: Final = "default"


@final
@attrs.frozen(kw_only=True)
class Given:
    """The options of the command, and where it reads the rest; a reload reads it again."""

    path: Path | None = None
    environment: Mapping[str, str] = attrs.field(factory=dict)
    listen: tuple[str, ...] = ()
    doors: tuple[str, ...] = ()
    data: str | None = None
    tls: Mapping[str, str | None] = attrs.field(factory=dict)
    allow_remote: bool = False
    max_payload: int | None = None
    log: Mapping[str, str | None] = attrs.field(factory=dict)
    replicate: str | None = None

    def file_table(self) -> dict[str, Any]:
        """The settings in the file.

        :raises ConfigError: when it cannot be read.
        """
        if self.path is None:
            return {}
        try:
            return tomllib.loads(self.path.read_text(encoding="utf-8"))
        except OSError as error:
            raise ConfigError(f"cannot read {self.path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise ConfigError(f"cannot read {self.path}: {error}") from error
        except tomllib.TOMLDecodeError as error:
            raise ConfigError(f"not a TOML file: {error}") from error

    def environment_table(self) -> dict[str, Any]:
        """The settings in the environment.

        :raises ConfigError: when they cannot be read.
        """
        return environment_table(self.environment, _text_of)

    def table(self) -> dict[str, Any]:
        """The settings of file and environment together.

        :raises ConfigError: when one of them cannot be read.
        """
        return merged(self.file_table(), self.environment_table())

    def config(self) -> ServerConfig:
        """The configuration, checked.

        :raises ConfigError: when it cannot be used.
        """
        table = self.table()
        if self.replicate is not None:
            table = merged({"replication": {"node": platform.node()}}, table)
            table = merged(table, {"replication": {"log": self.replicate}})
        values = read_config(table)
        if self.listen:
            values["listen"] = self.listen
        if self.doors:
            values["doors"] = (
                *values.get("doors", ()),
                *[door_option(each) for each in self.doors],
            )
        if self.data is not None:
            values["data"] = self.data
        _evolve(values, "tls", TlsSettings(), self.tls)
        _evolve(values, "log", LogSettings(), self.log)
        if self.allow_remote:
            values["allow_remote"] = True
        if self.max_payload is not None:
            limits: Limits = values.get("connection", Limits())
            fields = {name: getattr(limits, name) for name in Limits.__dataclass_fields__}
            values["connection"] = Limits(**{**fields, "max_payload_bytes": self.max_payload})
        return ServerConfig(**values)

    def words(self, error: Exception) -> str:
        """Say what is wrong with the configuration, and in which file."""
        text = str(error)
        if self.path is None or str(self.path) in text:
            return text
        options = self.listen or self.doors or self.data or self.max_payload
        more = bool(options) or any(self.tls.values())
        return f"{self.path}{', with the options given' if more else ''}: {text}"


def _evolve(
    values: dict[str, Any], key: str, default: Any, options: Mapping[str, str | None]
) -> None:
    given = {name: value for name, value in options.items() if value is not None}
    if given:
        values[key] = attrs.evolve(values.get(key, default), **given)


def _text_of(name: str) -> str:
    try:
        return Path(name).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot read {name}, which {PREFIX}..._FILE names: {error}") from error


def _shown(value: object) -> str:
    """A value as it is written in a configuration file."""
    if isinstance(value, (tuple, list)):
        return f"[{', '.join([_shown(each) for each in value])}]"
    if isinstance(value, (bool, int, float, str)):
        return json.dumps(value, ensure_ascii=False)
    return json.dumps(str(value), ensure_ascii=False)


def _lines(given: Given) -> list[str]:
    """Each setting with its value and its source, sorted by name."""
    config = given.config()
    file_names = dict(flattened(given.file_table()))
    environment = dict(flattened(given.environment_table()))
    found: dict[str, tuple[object, str]] = {}
    for name, value in effective(config):
        origin = _DEFAULT
        if name in environment:
            origin = _FROM_ENVIRONMENT
        elif name in file_names:
            origin = _FROM_FILE
        found[name] = (value, origin)
    # Lists of tables, and whatever else has no one value, as they were written.
    for origin, names in ((_FROM_FILE, file_names), (_FROM_ENVIRONMENT, environment)):
        for name, value in names.items():
            if name not in found or found[name][1] == origin != _DEFAULT:
                found[name] = (value, origin)
    return [
        f"{name} = {_shown(hidden(name, value))}  # {origin}"
        for name, (value, origin) in sorted(found.items())
    ]


def config_command(
    given: Callable[[Path | None], Given], check: Callable[[ServerConfig], None]
) -> click.Group:
    """Make the commands ``tmqp-server config``.

    :param given: returns the command's settings with the file of this name.
    :param check: checks a configuration as a start would, and prints what would be served.
    """

    @click.group("config")
    def config() -> None:
        """Show, check or compare configurations: the file, and the environment, which overrides
        it."""

    @config.command("show")
    @click.argument("path", required=False, type=click.Path(dir_okay=False, path_type=Path))
    def show(path: Path | None) -> None:
        """Print every setting with its value and its origin: the file, the environment, or the
        default.  Secrets are not shown."""
        reader = given(path)
        try:
            for line in _lines(reader):
                click.echo(line)
        except (ConfigError, ValueError) as error:
            raise click.UsageError(reader.words(error)) from error

    @config.command("check")
    @click.argument("path", required=False, type=click.Path(dir_okay=False, path_type=Path))
    def check_file(path: Path | None) -> None:
        """Check everything that a start would, and print the resulting doors, channels and routers.

        Settings that are allowed but unwise cause a warning on standard error: plain-text
        secrets, files that other users can read, addresses without TLS.
        """
        reader = given(path)
        try:
            found = reader.config()
            check(found)
            for warning in weaknesses(reader.table(), found, path):
                click.echo(f"warning: {warning}", err=True)
        except (ConfigError, ValueError) as error:
            raise click.UsageError(reader.words(error)) from error

    @config.command("diff")
    @click.argument("old", type=click.Path(dir_okay=False, path_type=Path))
    @click.argument("new", type=click.Path(dir_okay=False, path_type=Path))
    def diff(old: Path, new: Path) -> None:
        """Print the differences between two files: those that a reload would apply, and those that
        need a restart.  The environment applies to both; secrets are listed by name only."""
        reader = given(old)
        try:
            before = reader.config()
            reader = given(new)
            now, later = changes(before, reader.config())
        except (ConfigError, ValueError) as error:
            raise click.UsageError(reader.words(error)) from error
        for line in now:
            click.echo(f"changed {line}")
        for name in later:
            click.echo(f"needs a restart: {name}")

    return config
