"""Keys of CURVE as text: Z85 (ZeroMQ RFC 32), and key files.

A key has 32 bytes, which are 40 characters of Z85.  A file has one such line, or the form of
pyzmq's ``create_certificates`` and czmq's ``zcert``: lines ``public-key = "..."`` and ``secret-key
= "..."``.
"""

from __future__ import annotations

from typing import Final

__all__ = [
    "KEY_BYTES",
    "key_file",
    "key_from",
    "key_text",
    "secret_key_in",
    "z85_bytes",
    "z85_text",
]

KEY_BYTES: Final = 32
_KEY_DIGITS: Final = 40
_DIGITS: Final = (
    "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
)
_VALUES: Final = {digit: value for value, digit in enumerate(_DIGITS)}
_BASE: Final = 85
_GROUP_BYTES: Final = 4
_GROUP_DIGITS: Final = 5
_SECRET: Final = "secret-key"


def z85_text(data: bytes) -> str:
    """Encode bytes as Z85.

    :raises ValueError: when their number is not a multiple of four.
    """
    if len(data) % _GROUP_BYTES:
        raise ValueError(f"Z85 encodes groups of 4 bytes, not {len(data)} bytes")
    digits: list[str] = []
    for at in range(0, len(data), _GROUP_BYTES):
        value = int.from_bytes(data[at : at + _GROUP_BYTES], "big")
        group: list[str] = []
        for _ in range(_GROUP_DIGITS):
            value, digit = divmod(value, _BASE)
            group.append(_DIGITS[digit])
        digits += reversed(group)
    return "".join(digits)


def z85_bytes(text: str) -> bytes:
    """Decode Z85.

    :raises ValueError: when it is invalid; the error does not repeat it: it may be a secret.
    """
    if len(text) % _GROUP_DIGITS:
        raise ValueError(f"Z85 has groups of 5 characters, not {len(text)} characters")
    found: list[bytes] = []
    for at in range(0, len(text), _GROUP_DIGITS):
        value = 0
        for digit in text[at : at + _GROUP_DIGITS]:
            if digit not in _VALUES:
                raise ValueError("a character is not in Z85")
            value = value * _BASE + _VALUES[digit]
        if value >> 32:
            raise ValueError("a group of 5 characters stands for more than 4 bytes")
        found.append(value.to_bytes(_GROUP_BYTES, "big"))
    return b"".join(found)


def key_text(key: bytes) -> str:
    """A key as Z85."""
    return z85_text(key)


def key_from(text: str) -> bytes:
    """Read a key from Z85.

    :raises ValueError: when it is invalid; the error does not repeat it: it may be a secret.
    """
    if len(text) != _KEY_DIGITS:
        raise ValueError(f"a key of CURVE has {_KEY_DIGITS} characters of Z85, not {len(text)}")
    return z85_bytes(text)


def secret_key_in(contents: str) -> bytes:
    """The secret key in the contents of a file.

    :raises ValueError: when there is none; the error does not repeat the contents.
    """
    lines = [line.strip() for line in contents.splitlines()]
    lines = [line for line in lines if line and not line.startswith("#")]
    for line in lines:
        name, equals, value = line.partition("=")
        if equals and name.strip() == _SECRET:
            return key_from(value.strip().strip("\"'"))
    if len(lines) == 1 and len(lines[0]) == _KEY_DIGITS:
        return key_from(lines[0])
    raise ValueError("it has no line secret-key, and is not a key of 40 characters")


def key_file(public_key: bytes, secret_key: bytes) -> str:
    """The contents of a file with both keys, which other ZeroMQ programs can also read."""
    return (
        "# Keys of ZeroMQ's CURVE.  The owner of the secret key is this server, or this client.\n"
        "metadata\n"
        "curve\n"
        f'    public-key = "{key_text(public_key)}"\n'
        f'    {_SECRET} = "{key_text(secret_key)}"\n'
    )
