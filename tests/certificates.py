"""Certificates for tests: made for one run, for localhost, and good for nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

__all__ = ["make_certificate"]


_KEYS: Final = {
    "ec": ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256"),
    "rsa": ("-newkey", "rsa:2048"),
}


def make_certificate(folder: Path, name: str = "server", kind: str = "ec") -> tuple[Path, Path]:
    """The files of a key and of its own certificate; skips where they cannot be made.

    :param kind: ``ec``, or ``rsa`` for old clients.
    """
    program = shutil.which("openssl")
    if program is None:
        pytest.skip("there is no openssl here to make a certificate with")
    key, certificate = folder / f"{name}.key", folder / f"{name}.pem"
    subprocess.run(
        [
            *(program, "req", "-x509", *_KEYS[kind]),
            *("-nodes", "-keyout", str(key), "-out", str(certificate), "-days", "2"),
            *("-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"),
        ],
        check=True,
        capture_output=True,
    )
    return key, certificate
