"""Clients of NSQ by others: what each cannot do, and how to build and start a program with it."""

from __future__ import annotations

import importlib.metadata
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Final

from tests.interop.building import (
    CACHE,
    Client,
    go_build,
    java_build,
    npm,
    unavailable,
)
from tests.project import ROOT

__all__ = ["CLIENTS", "FOLDER", "GAP", "MANY", "java"]

FOLDER: Final = Path(__file__).parent
#: What a client lacks that reads only blocks with one message each.
MANY: Final = "many messages in one block"
#: What a client lacks that never recovers from a command that a lost connection cannot carry.
GAP: Final = "publishing before it has reconnected"


def _python(name: str, version: str) -> Callable[[], tuple[list[str], Path]]:
    def build() -> tuple[list[str], Path]:
        try:
            found = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            unavailable(name, "not installed: pip install 'tmqp[interop]'")
        assert found.startswith(version), f"the table says {name} {version}, installed is {found}"
        patch = ["-m", "gevent.monkey", "--module"] if name == "gnsq" else ["-m"]
        return [sys.executable, *patch, f"tests.interop.nsq.python.{name}_client"], ROOT

    return build


def _node() -> tuple[list[str], Path]:
    sources, folder = FOLDER / "node", CACHE / "node"
    npm("nsqjs", sources, folder)
    return ["node", str(sources / "client.js")], folder


def _go() -> tuple[list[str], Path]:
    folder = CACHE / "go"
    go_build("go-nsq", FOLDER / "go", folder, "client")
    return [str(folder / "client")], folder


def java(main: str) -> tuple[list[str], Path]:
    """Give the command of a Java program, and its folder, with nsq-client beside it."""
    sources, folder = FOLDER / "java", CACHE / "java"
    programs = sorted(sources.glob("*.java"))
    words = java_build("nsq-client", sources / "pom.xml", folder, programs, {})
    return [*words, main], folder


_NO_LAYERS: Final = "its methods for these raise NotImplementedError"
_WRONG_CHECKSUMS: Final = "its netty 4.0 writes wrong checksums for half of all blocks"

CLIENTS: Final = (
    Client("pynsq", "0.9", "Python", _python("pynsq", "0.9"), {}),
    Client("gnsq", "1.0", "Python", _python("gnsq", "1.0"), {}),
    Client(
        "ansq",
        "0.3",
        "Python",
        _python("ansq", "0.3"),
        {
            **dict.fromkeys(("tls", "snappy", "deflate", "tls-snappy", "tls-deflate"), _NO_LAYERS),
            "auth": "it sends AUTH, then refuses every command as unauthorized",
            # Its list of pending commands is never emptied, so the failed command gets the answer
            # to IDENTIFY, IDENTIFY gets the next one ("failed to parse IDENTIFY response b'OK'"),
            # and the connection ends.  It does the same with nsqd 1.3.0.
            GAP: "it then mistakes later answers for those to earlier commands, with nsqd too",
        },
    ),
    Client("nsqjs", "0.13.0", "JavaScript", _node, {}),
    Client("go-nsq", "1.1.0", "Go", _go, {}),
    Client(
        "nsq-client",
        "1.0.0.RC4",
        "Java",
        lambda: java("Client"),
        {
            "defer": "it has no DPUB",
            "snappy": _WRONG_CHECKSUMS,
            "tls-snappy": _WRONG_CHECKSUMS,
            "auth": "it has no AUTH",
            MANY: "with compression it takes each received block for one frame, so it loses"
            " synchronisation one time in four, with nsqd 1.3.0 too",
        },
    ),
)
