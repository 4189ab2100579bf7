"""Libraries of ZeroMQ by others: what each cannot do, and how to build a program with it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from tests.interop.building import (
    CACHE,
    Client,
    compile_program,
    fetch,
    go_build,
    java_build,
    made,
    need,
    npm,
)

__all__ = ["AGAIN", "CLIENTS", "CURVE", "EMPTY", "FOLDER", "NOTES"]

FOLDER: Final = Path(__file__).parent
_CACHE: Final = CACHE / "zmtp"
#: What a library lacks whose REP socket cannot tell an empty part of a request from its envelope.
EMPTY: Final = "a request with an empty part"
#: What a library lacks whose sockets, all but SUB, stay without a connection that has ended.
AGAIN: Final = "reconnecting automatically"


def _node() -> tuple[list[str], Path]:
    sources, folder = FOLDER / "node", _CACHE / "node"
    npm("zeromq.js", sources, folder)
    return ["node", str(sources / "sockets.js")], folder


def _go() -> tuple[list[str], Path]:
    folder = _CACHE / "go"
    go_build("zmq4", FOLDER / "go", folder, "sockets")
    return [str(folder / "sockets")], folder


def _rust() -> tuple[list[str], Path]:
    need("zmq.rs", "cargo")
    sources, folder = FOLDER / "rust", _CACHE / "rust"
    files = [sources / name for name in ("Cargo.toml", "Cargo.lock", "src/main.rs")]
    with made(folder, files) as is_due:
        if is_due:
            fetch("zmq.rs", ["cargo", "fetch", "--quiet", "--locked"], sources)
            words = ["cargo", "build", "--quiet", "--locked", "--offline"]
            compile_program([*words, "--target-dir", str(folder)], sources)
    return [str(folder / "debug" / "sockets")], folder


def _java(name: str, version: str, main: str = "Sockets") -> Callable[[], tuple[list[str], Path]]:
    def build() -> tuple[list[str], Path]:
        sources, folder = FOLDER / "java", _CACHE / name
        program = sources / f"{main}.java"
        properties = {"jeromq": version}
        words = java_build(name, sources / "pom.xml", folder, [program], properties)
        return [*words, main], folder

    return build


def _jeromq(version: str, lacks: Mapping[str, str]) -> Client:
    name = f"jeromq-{version}"
    return Client(name, version, "Java", _java(name, version), lacks)


CLIENTS: Final = (
    Client("zeromq.js", "6.8.0", "JavaScript", _node, {}),
    Client(
        "zmq4",
        "0.17.0",
        "Go",
        _go,
        {
            EMPTY: "its REP socket takes it for the end of the envelope",
            AGAIN: "a send that finds its connection ended blocks for ever",
        },
    ),
    Client(
        "zmq.rs",
        "0.7.0",
        "Rust",
        _rust,
        {"plain": "it has no PLAIN", AGAIN: "only its SUB socket does"},
    ),
    _jeromq("0.3.6", {"plain": "ZMTP 2.0 has no mechanisms"}),
    _jeromq("0.4.2", {}),
    _jeromq("0.5.4", {}),
    _jeromq("0.6.0", {}),
)
#: A program of its own: its cryptography is JeroMQ's, as its ZMTP is.
CURVE: Final = Client(
    "jeromq-curve", "0.6.0", "Java", _java("jeromq-curve", "0.6.0", "CurveSockets"), {}
)
#: The programs of the users' notes, with their version.
NOTES: Final = Client("jeromq-notes", "0.4.2", "Java", _java("jeromq-notes", "0.4.2", "Notes"), {})
