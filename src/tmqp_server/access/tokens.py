"""Tokens: how their hashes are stored, and how the token of a client is compared with them.

Only the hash of a token is stored.  A random token, from ``tmqp-server hash-token --new``, needs
only SHA-256: nobody can try 2^256 of them.  A token that a person has chosen can be guessed, so
scrypt makes each guess cost tens of milliseconds.  No comparison ends early, neither within a hash
nor at the first match: the time does not show what was wrong.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Sequence
from typing import Final, final

__all__ = ["TokenHash", "find_token", "hash_token", "new_token"]

_SHA256: Final = "sha256"
_SCRYPT: Final = "scrypt"
_SCRYPT_LOG_N: Final = 14
_SCRYPT_R: Final = 8
_SCRYPT_P: Final = 1
_SALT_BYTES: Final = 16
_HASH_BYTES: Final = 32
#: The limits for a hash in a file: 128 * r * n bytes, and p times the time.
_MAX_LOG_N: Final = 18
_MAX_R: Final = 32
_MAX_P: Final = 16
_FORMS: Final = "sha256:HEX or scrypt:LOG2N:R:P:SALT:HEX, as tmqp-server hash-token writes it"


def new_token() -> str:
    """A random token: 43 letters, digits, ``-`` and ``_``."""
    return secrets.token_urlsafe(32)


def hash_token(token: str, *, slow: bool = False) -> str:
    """The hash of a token for a configuration.

    :param slow: use scrypt, for a token that a person has chosen; each comparison takes tens of
        milliseconds.
    :raises ValueError: when the token is empty, has spaces around it, or a line break in it: no
        client could send it.
    """
    if not token or token != token.strip() or len(token.splitlines()) != 1:
        raise ValueError("a token is one line without spaces around it")
    if not slow:
        return f"{_SHA256}:{_sha256(token).hex()}"
    salt = secrets.token_bytes(_SALT_BYTES)
    digest = _scrypt(token, salt, _SCRYPT_LOG_N, _SCRYPT_R, _SCRYPT_P)
    return f"{_SCRYPT}:{_SCRYPT_LOG_N}:{_SCRYPT_R}:{_SCRYPT_P}:{salt.hex()}:{digest.hex()}"


@final
class TokenHash:
    """The hash of one token.

    :param text: as :func:`hash_token` returns it.
    :raises ValueError: when it is not such a hash; the text says what is wrong without showing the
        hash.

    Attribute: ``slow``, whether a comparison takes too long for the event loop.
    """

    __slots__ = ("_digest", "_log_n", "_p", "_r", "_salt", "slow")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TokenHash) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[object, ...]:
        return (self.slow, self._log_n, self._r, self._p, self._salt, self._digest)

    def __init__(self, text: str) -> None:
        parts = text.split(":")
        self.slow = parts[0] == _SCRYPT
        self._log_n = self._r = self._p = 0
        self._salt = b""
        try:
            if self.slow:
                _, log_n, r, p, salt, digest = parts
                self._log_n, self._r, self._p = int(log_n), int(r), int(p)
                self._salt = bytes.fromhex(salt)
            else:
                name, digest = parts
                if name != _SHA256:
                    raise ValueError(name)
            self._digest = bytes.fromhex(digest)
        except ValueError:
            raise ValueError(f"a hash has the form {_FORMS}") from None
        if len(self._digest) != _HASH_BYTES:
            raise ValueError(f"a hash ends with {_HASH_BYTES} bytes in hexadecimal")
        if self.slow and not (
            1 <= self._log_n <= _MAX_LOG_N and 1 <= self._r <= _MAX_R and 1 <= self._p <= _MAX_P
        ):
            raise ValueError(
                f"scrypt takes LOG2N up to {_MAX_LOG_N}, R up to {_MAX_R} and P up to {_MAX_P}"
            )

    def fits(self, token: str) -> bool:
        """Whether this is the hash of the token."""
        if self.slow:
            digest = _scrypt(token, self._salt, self._log_n, self._r, self._p)
        else:
            digest = _sha256(token)
        return hmac.compare_digest(digest, self._digest)

    def __repr__(self) -> str:
        return f"<TokenHash {_SCRYPT if self.slow else _SHA256}>"  # no log shall hold the rest


def find_token(token: str, hashes: Sequence[TokenHash]) -> list[int]:
    """The indexes of the hashes that match the token; all hashes are always compared."""
    return [place for place, each in enumerate(hashes) if each.fits(token)]


def _sha256(token: str) -> bytes:
    return hashlib.sha256(_encoded(token)).digest()


def _scrypt(token: str, salt: bytes, log_n: int, r: int, p: int) -> bytes:
    n = 1 << log_n
    room = 128 * r * (n + p) + (1 << 20)
    return hashlib.scrypt(_encoded(token), salt=salt, n=n, r=r, p=p, maxmem=room, dklen=_HASH_BYTES)


def _encoded(token: str) -> bytes:
    return token.encode("utf-8", "surrogatepass")
