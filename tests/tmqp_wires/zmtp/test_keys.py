"""Keys of CURVE as text and in files, beside RFC 32 and pyzmq."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq.auth
from hypothesis import given
from hypothesis import strategies as st
from zmq.utils import z85

from tmqp_wires.zmtp.keys import key_file, key_from, key_text, secret_key_in, z85_bytes, z85_text

PUBLIC, SECRET = bytes(range(32)), bytes(range(100, 132))


def test_the_example_of_the_rfc() -> None:
    assert z85_text(bytes.fromhex("864FD26FB559F75B")) == "HelloWorld"
    assert z85_bytes("HelloWorld") == bytes.fromhex("864FD26FB559F75B")


@given(st.binary(min_size=32, max_size=32))
def test_keys_are_written_as_pyzmq_writes_them(key: bytes) -> None:
    assert key_text(key).encode() == z85.encode(key)
    assert key_from(key_text(key)) == key


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("0" * 39, "has 40 characters of Z85, not 39"),
        ("0" * 39 + "~", "a character is not in Z85"),
        ("0" * 39 + "é", "a character is not in Z85"),
        ("#" * 40, "stands for more than 4 bytes"),
    ],
)
def test_what_is_no_key_is_refused_and_not_repeated(text: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as caught:
        key_from(text)
    assert text not in str(caught.value)


def test_groups_are_whole() -> None:
    with pytest.raises(ValueError, match="groups of 4 bytes"):
        z85_text(b"12345")
    with pytest.raises(ValueError, match="groups of 5 characters"):
        z85_bytes("1234")


def test_a_file_of_ours_is_read_by_pyzmq_and_by_us(tmp_path: Path) -> None:
    path = tmp_path / "server.key"
    path.write_text(key_file(PUBLIC, SECRET))
    assert zmq.auth.load_certificate(path) == (z85.encode(PUBLIC), z85.encode(SECRET))
    assert secret_key_in(path.read_text()) == SECRET


def test_a_file_of_pyzmq_is_read_by_us(tmp_path: Path) -> None:
    public, secret = zmq.auth.create_certificates(tmp_path, "server")
    found = zmq.auth.load_certificate(secret)[1]
    assert found is not None
    assert secret_key_in(Path(secret).read_text()) == z85.decode(found)
    with pytest.raises(ValueError, match="no line secret-key"):
        secret_key_in(Path(public).read_text())


def test_a_key_alone_is_a_file_too() -> None:
    assert secret_key_in(f"# of the server\n{key_text(SECRET)}\n") == SECRET
    with pytest.raises(ValueError, match="no line secret-key"):
        secret_key_in("")
    with pytest.raises(ValueError, match="not 3"):
        secret_key_in('secret-key = "abc"')
