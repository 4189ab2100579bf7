"""The names of files: placeholders, revisions (N158, N160).  Pure: the time is an argument."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePath
from typing import Final

from tmqp_nsq.flags import FlagError, FlagValues

__all__ = ["FileSettings", "file_template", "read_settings"]

_REVISION: Final = "<REV>"


@dataclass(frozen=True)
class FileSettings:
    """What the flags say about files."""

    output_dir: PurePath
    work_dir: PurePath
    datetime_format: str
    filename_format: str
    host_identifier: str
    gzip_level: int
    skip_empty: bool
    rotate_size: int
    rotate_interval_s: float

    @property
    def moves(self) -> bool:
        """Whether finished files move to another directory."""
        return self.work_dir != self.output_dir

    @property
    def is_exclusive(self) -> bool:
        """Whether a file that exists is never continued."""
        return bool(self.gzip_level) or self.rotate_interval_s > 0

    def name(self, template: str, now_s: float) -> str:
        """The current name, still without its revision."""
        return template.replace(
            "<DATETIME>", time.strftime(self.datetime_format, time.localtime(now_s))
        )


def read_settings(values: FlagValues) -> FileSettings:
    """Read the flags about files.

    :raises FlagError: if one is wrong.
    """
    level = values.number("gzip-level")
    if not 1 <= level <= 9:
        raise FlagError(f"invalid --gzip-level value ({level}), should be 1-9")
    if values.number("rotate-size") < 0 or values.number("rotate-interval") < 0:
        raise FlagError("--rotate-size and --rotate-interval cannot be negative")
    output = PurePath(values.text("output-dir"))
    return FileSettings(
        output,
        PurePath(values.text("work-dir")) if values.text("work-dir") else output,
        values.text("datetime-format"),
        values.text("filename-format"),
        values.text("host-identifier"),
        level if values.is_on("gzip") else 0,
        values.is_on("skip-empty-files"),
        values.number("rotate-size"),
        values.seconds("rotate-interval"),
    )


def file_template(settings: FileSettings, topic: str, host: str, pid: int) -> str:
    """The name of a topic's files, with the placeholders that change left in it.

    :raises FlagError: if the format has no revision and needs one.
    """
    template = settings.filename_format
    if settings.is_exclusive or settings.rotate_size or settings.moves:
        if _REVISION not in template:
            raise FlagError(
                "missing <REV> in --filename-format when gzip, rotation, or work dir enabled"
            )
    else:
        template = template.replace(_REVISION, "")
    short = host.partition(".")[0]
    identifier = settings.host_identifier or short
    identifier = identifier.replace("<SHORT_HOST>", short).replace("<HOSTNAME>", host)
    template = template.replace("<TOPIC>", topic).replace("<HOST>", identifier)
    template = template.replace("<PID>", str(pid))
    if settings.gzip_level and not template.endswith(".gz"):
        template += ".gz"
    parts = PurePath(template).parts
    if ".." in parts or PurePath(template).is_absolute():
        raise FlagError(f"--filename-format leads out of the directory: {template!r}")
    return template
