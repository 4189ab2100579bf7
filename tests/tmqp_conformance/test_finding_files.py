"""Findings as files over real sockets: ``fuzz wire``, ``replay`` and ``shrink``."""

from __future__ import annotations

import json
import socket
from pathlib import Path
from typing import Any, Final

import pytest
from click.testing import CliRunner, Result

from tests.tmqp_conformance.serving import served
from tmqp.testing.conformance import MemoryStage, Patience
from tmqp.testing.conformance.servers import SERVER_CASES
from tmqp_conformance.__main__ import main
from tmqp_conformance.fuzzing.findings import (
    Found,
    read_corpus,
    read_found,
    write_corpus,
    write_wire,
)
from tmqp_conformance.fuzzing.native import NativeSubject
from tmqp_conformance.fuzzing.wire import WireFuzzer
from tmqp_conformance.grammar import Piece
from tmqp_conformance.zoo.broken_servers import BROKEN_SERVERS
from tmqp_conformance.zoo.nsq import SmallNsq
from tmqp_conformance.zoo.server import SmallServer
from tmqp_conformance.zoo.smq import BROKEN_SMQ, SmallSmq

#: The third line is what the broken server closes behind.
LONG: Final = Found(
    (
        Piece(0, b"M:q:1\nC:q:\n"),
        Piece(1, b"C:r:\n"),
        Piece(1, b"M:r:2\nX:q:and more\nM:r:3\n"),
        Piece(0, b"S::\n"),
    ),
    pack="smq",
)


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(main, [str(each) for each in arguments])


def written(path: Path, found: Found = LONG, **changed: Any) -> Path:
    path.write_text(json.dumps(found.as_json("planted") | changed), encoding="utf-8")
    return path


def closing() -> SmallSmq:
    return BROKEN_SMQ["closes-on-unknown"][1]()


def test_a_server_of_another_protocol_is_fuzzed_and_what_is_found_replays(tmp_path: Path) -> None:
    fuzz = ("fuzz", "wire", "--pack", "smq", "--seed", "2", "--timeout", "0.5", "--out", tmp_path)
    with served(closing()) as address:
        result = run(*fuzz, address, "--budget", "20s")
        assert result.exit_code == 1, result.output
        assert "FOUND closed: the server closed, although no rule was broken" in result.output
        assert "states: idle " in result.output
        assert "message types: " in result.output
        assert "values of fields: " in result.output
        path = tmp_path / "found.smq.2.1.json"
        assert read_found(path).pack == "smq"
        again = run("replay", address, path)
        assert again.exit_code == 1
        assert again.output == (
            "WRONG  closed: the server closed, although no rule was broken;"
            " it said last: line text=b'UNKNOWN_TYPE'\n"
        )
    with served(SmallSmq()) as address:
        assert run(*fuzz, address, "--budget", "0.3s").exit_code == 0
        assert run("replay", address, path).output == "nothing is wrong\n"


def test_a_finding_is_made_smaller_and_still_replays(tmp_path: Path) -> None:
    path = written(tmp_path / "long.json")
    with served(closing()) as address:
        result = run("shrink", path, address, "--timeout", "0.5")
        assert result.exit_code == 1, result.output
        small = tmp_path / "long.small.json"
        assert result.output.startswith(f"4 -> 1 parts, written to {small}: closed: the server")
        (piece,) = read_found(small).conversation
        assert len(piece.data) <= len(b"X:\n")
        assert run("replay", address, small).exit_code == 1
        assert json.loads(small.read_text("utf-8"))["message"].startswith("closed: ")


def test_a_finding_about_tmqp_is_made_smaller(tmp_path: Path) -> None:
    make = BROKEN_SERVERS["closes-on-unknown-types"][1]
    subject = NativeSubject(SERVER_CASES)
    fuzzer = WireFuzzer(MemoryStage(make()), subject, 5, Patience(quiet_s=0.01))
    finding = next(fuzzer.run(lambda: fuzzer.played < 5_000))
    path = write_wire(tmp_path, finding, 5, 1)
    out = tmp_path / "small.json"

    def sooner_or_later(*arguments: str | Path) -> bool:
        # A server that closes without reading all resets the connection, and what it said before
        # may be lost with that: then nobody knows that it had accepted the client.
        return any(run(*arguments).exit_code == 1 for _ in range(20))

    with served(make()) as address:
        assert sooner_or_later("shrink", path, address, "--timeout", "0.5", "--out", out)
        assert sooner_or_later("replay", address, out, "--patience", "0.5")
    small = read_found(out)
    assert small.size <= len(finding.conversation)
    before = sum(len(piece.data) for piece in finding.conversation)
    assert sum(len(piece.data) for piece in small.conversation) <= before


def test_a_server_that_is_right_leaves_nothing_to_shrink(tmp_path: Path) -> None:
    path = written(tmp_path / "long.json")
    with served(SmallSmq()) as address:
        result = run("shrink", path, address)
    assert result.exit_code == 0
    assert result.output == "the server answers correctly: there is nothing to minimise\n"
    assert [each.name for each in tmp_path.iterdir()] == ["long.json"]


def test_a_server_that_dies_keeps_the_finding_as_it_is(tmp_path: Path) -> None:
    path = written(tmp_path / "long.json")
    with served(BROKEN_SMQ["crashes-on-unknown"][1]()) as address:
        result = run("shrink", path, address, "--timeout", "0.3")
    assert result.exit_code == 1, result.output
    assert result.output.startswith("4 -> 4 parts")
    assert "crash" in result.output


def test_a_server_that_is_started_again_lets_a_crash_be_made_smaller(tmp_path: Path) -> None:
    machine = BROKEN_SMQ["crashes-on-unknown"][1]()
    path = written(tmp_path / "long.json")
    marker = tmp_path / "again"

    class Reborn(type(machine)):  # type: ignore[misc]  # the class of a value
        @property
        def crashed(self) -> bool:
            if marker.exists():
                marker.unlink()
                self.dead = False
            return bool(getattr(self, "dead", False))

        @crashed.setter
        def crashed(self, value: bool) -> None:
            self.dead = value

    with served(Reborn()) as address:
        result = run(
            *("shrink", path, address, "--timeout", "0.3", "--restart-cmd", f"touch {marker}")
        )
    assert result.exit_code == 1, result.output
    assert result.output.startswith("4 -> 1 parts"), result.output


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"format": "another"}, "not a finding"),
        ({"conversation": [], "acts": []}, "the finding is empty"),
        ({"conversation": [{"line": 0, "hex": "zz"}]}, "not a finding"),
        ({"conversation": [{"line": "x", "hex": "00"}]}, "not a finding"),
        ({"pack": "amqp"}, "there is no pack 'amqp'; there are nsq, smq, goms, throttr"),
        ({"conversation": [{"line": 0, "hex": "00", "at": "http"}]}, "no address 'http'"),
        ({"conversation": 5}, "not a finding"),
    ],
)
def test_what_is_no_finding_is_refused_in_a_sentence(
    tmp_path: Path, changed: dict[str, Any], sentence: str
) -> None:
    path = written(tmp_path / "found.json", **changed)
    result = run("shrink", path, "127.0.0.1:1")
    assert result.exit_code == 3
    last = result.output.splitlines()[-1]
    assert last.startswith("Error: Invalid value for FOUND")
    assert sentence in last


def test_a_finding_that_needs_another_address_says_so(tmp_path: Path) -> None:
    found = Found((Piece(0, b"GET /ping HTTP/1.1\r\n\r\n", "http"),), pack="nsq")
    path = written(tmp_path / "found.json", found)
    for command in (("shrink", path, "127.0.0.1:1"), ("replay", "127.0.0.1:1", path)):
        result = run(*command)
        assert result.exit_code == 3
        assert "the finding needs --at http=..." in result.output


def test_nobody_there_is_status_2(tmp_path: Path) -> None:
    path = written(tmp_path / "found.json")
    with socket.create_server(("127.0.0.1", 0)) as closed:
        address = f"127.0.0.1:{closed.getsockname()[1]}"
    for command in (
        ("shrink", path, address),
        ("replay", address, path),
        ("fuzz", "wire", address, "--pack", "smq"),
    ):
        result = run(*command)
        assert result.exit_code == 2, result.output
        assert len(result.output.splitlines()) == 1 or command[0] == "fuzz"
        assert f"tmqp-conformance: cannot connect to tmq://{address}" in result.output


def test_a_folder_that_cannot_be_written_is_status_2(tmp_path: Path) -> None:
    path = written(tmp_path / "found.json")
    (tmp_path / "file").write_text("x", encoding="utf-8")
    with served(closing()) as address:
        result = run("shrink", path, address, "--timeout", "0.3", "--out", tmp_path / "file/x")
    assert result.exit_code == 2, result.output
    assert result.output.startswith("tmqp-conformance: ")


def test_a_server_has_addresses_of_its_own(tmp_path: Path) -> None:
    """Only the addresses that are given are fuzzed, each with its own coverage."""
    with served(SmallNsq()) as address:
        result = run(
            *("fuzz", "wire", address, "--pack", "nsq", "--budget", "0.5s", "--seed", "1"),
            *("--out", tmp_path),
        )
    assert result.exit_code == 0, result.output
    assert "states: greeting " in result.output
    assert "http states" not in result.output


def test_a_run_against_the_small_server_is_quiet(tmp_path: Path) -> None:
    with served(SmallServer()) as address:
        words = ("fuzz", "wire", address, "--budget", "0.3s", "--seed", "1", "--out", tmp_path)
        result = run(*words)
    assert "conversations in" in result.output
    assert "message types: " in result.output


def test_a_conversation_that_was_learnt_twice_is_one(tmp_path: Path) -> None:
    """Cut in another way it showed another behaviour, and was counted as two files."""
    learnt = [[Piece(0, b"S::\n")], [Piece(0, b"S::\n")], [Piece(0, b"\n")]]
    assert write_corpus(tmp_path, "smq", learnt) == 2
    assert len([*tmp_path.iterdir()]) == 2


def test_a_corpus_keeps_what_a_run_has_learnt(tmp_path: Path) -> None:
    words = (
        "fuzz",
        "wire",
        "--pack",
        "smq",
        "--seed",
        "4",
        "--budget",
        "0.4s",
        "--corpus",
        tmp_path,
    )
    with served(SmallSmq()) as address:
        first = run(*words, address)
        kept = {each.name for each in tmp_path.iterdir()}
        assert f"learnt {len(kept)} conversations, written to {tmp_path}" in first.output
        assert len(kept) >= 5
        assert all(read_found(tmp_path / name).pack == "smq" for name in kept)
        assert run(*words, address).exit_code == 0
        # Those of another protocol are left alone.
        nsq = written(tmp_path / "nsq.json", Found((Piece(0, b"  V2"),), pack="nsq"))
        assert read_corpus(tmp_path, "nsq", ("",)) == [[Piece(0, b"  V2")]]
        assert len(read_corpus(tmp_path, "smq", ("",))) >= len(kept)
        nsq.write_text("{}", encoding="utf-8")
        refused = run(*words, address)
    assert refused.exit_code == 3
    assert "nsq.json: not a finding" in refused.output
