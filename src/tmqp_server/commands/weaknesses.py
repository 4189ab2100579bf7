"""Finds settings that are allowed but unwise, for ``tmqp-server config check``."""

from __future__ import annotations

import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from tmqp_server.config import ServerConfig

__all__ = ["weaknesses"]

#: The secrets that an entry may have in plain text instead of a hash.
_IN_THE_CLEAR: Final = ("token", "password")


def weaknesses(table: Mapping[str, Any], config: ServerConfig, path: Path | None) -> list[str]:
    """What an operator should change, one sentence each.

    :param table: the tables of the configuration.
    :param config: the configuration made from them.
    :param path: its file, if it has one.
    """
    found: list[str] = []
    access = table.get("access")
    entries = access.get("tokens", ()) if isinstance(access, Mapping) else ()
    plain = [
        str(entry.get("name") or f"number {number}")
        for number, entry in enumerate(entries, 1)
        if any(word in entry for word in _IN_THE_CLEAR)
    ]
    if plain:
        found.append(
            f"access.tokens: {', '.join(plain)}: the secret is plain text; write its hash"
            " instead: tmqp-server hash-token"
        )
    if path is not None and entries and _is_open(path):
        found.append(f"other users can read {path}, which has tokens: chmod o-r {path}")
    for key in {config.tls.key or config.tls.certificate} - {None, ""}:
        if _is_open(Path(str(key))):
            found.append(f"other users can read the private key in {key}: chmod go-r {key}")
    found += [
        f"tokens and messages travel unencrypted on {address}: use tmqs:// or a door with tls"
        for address in config.listen
        if not address.is_local and not address.tls
    ]
    return found


def _is_open(path: Path) -> bool:
    """Whether other users of this machine may read a file."""
    try:
        return bool(path.stat().st_mode & stat.S_IROTH)
    except OSError:
        return False
