"""The cryptography of CURVE by PyNaCl, which the extra ``zmtp`` installs.

PyNaCl is imported when it is first needed; another library can replace it by implementing
:class:`tmqp_wires.zmtp.boxes.Cryptography`.
"""

from __future__ import annotations

import importlib
from typing import Any, final

from tmqp_wires.zmtp.boxes import Cryptography

__all__ = ["sodium"]


def sodium() -> Cryptography:
    """Create the cryptography of libsodium.

    :raises ModuleNotFoundError: when PyNaCl is missing; the text says what to install.
    """
    try:
        bindings = importlib.import_module("nacl.bindings")
        fault = importlib.import_module("nacl.exceptions").CryptoError
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "CURVE needs the package PyNaCl: install tmqp[zmtp]", name=error.name
        ) from error
    return _Sodium(bindings, fault)


@final
class _Sodium:
    """See :class:`tmqp_wires.zmtp.boxes.Cryptography`."""

    def __init__(self, bindings: Any, fault: type[Exception]) -> None:
        self._bindings = bindings
        self._fault = fault

    def random(self, size: int) -> bytes:
        """Cryptographically secure random bytes."""
        found: bytes = self._bindings.randombytes(size)
        return found

    def public_key(self, secret: bytes) -> bytes:
        """The public key for a secret one."""
        found: bytes = self._bindings.crypto_scalarmult_base(secret)
        return found

    def shared_key(self, public: bytes, secret: bytes) -> bytes:
        """The key that both sides share."""
        try:
            found: bytes = self._bindings.crypto_box_beforenm(public, secret)
        except self._fault as error:  # a point whose multiples an attacker knows
            raise ValueError("a public key is invalid") from error
        return found

    def seal(self, text: bytes, nonce: bytes, key: bytes) -> bytes:
        """Encrypt a text."""
        found: bytes = self._bindings.crypto_box_afternm(text, nonce, key)
        return found

    def open(self, box: bytes, nonce: bytes, key: bytes) -> bytes:
        """Decrypt a box."""
        try:
            found: bytes = self._bindings.crypto_box_open_afternm(box, nonce, key)
        except self._fault as error:
            raise ValueError("a box cannot be opened") from error
        return found
