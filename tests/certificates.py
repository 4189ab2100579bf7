"""Certificates for tests: made for one run, for localhost, and good for nothing else."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Final

import pytest

__all__ = ["make_certificate", "make_revoked"]


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


_AUTHORITY: Final = """
[ca]
default_ca = own
[own]
database = {folder}/index.txt
serial = {folder}/serial
new_certs_dir = {folder}
certificate = {folder}/authority.pem
private_key = {folder}/authority.key
default_md = sha256
default_days = 2
default_crl_days = 2
policy = any
[any]
commonName = supplied
[end]
basicConstraints = CA:FALSE
"""


def make_revoked(folder: Path) -> tuple[Path, list[tuple[Path, Path]], Path]:
    """An authority, two keys with certificates of it, and its list that revokes the second."""
    authority_key, authority = make_certificate(folder, "authority")
    program = shutil.which("openssl") or "openssl"
    config = folder / "authority.cnf"
    config.write_text(_AUTHORITY.format(folder=folder), "ascii")
    (folder / "index.txt").touch()
    (folder / "serial").write_text("01", "ascii")

    def run(*words: str) -> None:
        subprocess.run([program, *words], check=True, capture_output=True)

    pairs: list[tuple[Path, Path]] = []
    own = ("ca", "-batch", "-config", str(config))
    for name in ("kept", "revoked"):
        key, request, made = (folder / f"{name}.{kind}" for kind in ("key", "csr", "pem"))
        run(
            *("req", *_KEYS["ec"], "-nodes", "-keyout", str(key), "-out", str(request)),
            *("-subj", f"/CN={name}"),
        )
        run(*own, "-extensions", "end", "-in", str(request), "-out", str(made), "-notext")
        pairs.append((key, made))
    assert authority_key.exists()
    run(*own, "-revoke", str(pairs[1][1]))
    revocations = folder / "revoked.crl"
    run(*own, "-gencrl", "-out", str(revocations))
    return authority, pairs, revocations
