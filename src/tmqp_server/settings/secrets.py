"""Reads and writes files with secrets that options name."""

from __future__ import annotations

import logging
import os
import stat
from pathlib import Path
from typing import Final

from tmqp_server.settings.checks import ConfigError

__all__ = ["read_secret", "write_secret"]

logger = logging.getLogger("tmqp_server")

_MOST_BYTES: Final = 65_536


def read_secret(name: str) -> str:
    """Read the secret in a file; log a warning if other users can read the file.

    :raises ConfigError: when it cannot be read, is too large, or is not text; the message does not
        show the secret.
    """
    path = Path(name)
    try:
        with path.open("rb") as file:
            mode = stat.S_IMODE(os.fstat(file.fileno()).st_mode)
            data = file.read(_MOST_BYTES + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"cannot read {name}: {reason}") from error
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{name} has more than {_MOST_BYTES} bytes")
    if mode & 0o077:
        logger.warning(
            "other users can open %s (mode %04o), which holds a secret;"
            " to close it: chmod go-rwx %s",
            name,
            mode,
            name,
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise ConfigError(f"{name} is not text") from None


def write_secret(path: Path, text: str) -> None:
    """Create a file that only its owner can read.

    :raises FileExistsError: when it exists: a secret is never overwritten.
    :raises OSError: when it cannot be created.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
        file.write(text)
