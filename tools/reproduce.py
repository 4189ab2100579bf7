"""Builds the source archive and the wheel twice, in two places, and compares: ``make reproduce``.

Builds of the same commit with the same tools have the same bytes, so anyone can check that
published files were built from the repository.  Equal results are left in ``build/reproduce/dist``.
``TMQP_COMPILE`` says whether the wheel is compiled, as for every build.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import os
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Final

from tools.make_sbom import EPOCH

__all__ = ["build", "main", "normalised"]

_ROOT: Final = Path(__file__).resolve().parent.parent
_FOLDER: Final = _ROOT / "build" / "reproduce"


def normalised(archive: bytes) -> bytes:
    """Return a source archive without times, users and other traces of its build.

    setuptools writes times, users and the order of the folder into it.
    """
    made = io.BytesIO()
    with (
        tarfile.open(fileobj=io.BytesIO(archive)) as source,
        gzip.GzipFile(filename="", fileobj=made, mode="wb", mtime=EPOCH) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in sorted(source.getmembers(), key=lambda each: each.name):
            member.mtime = EPOCH
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            member.mode = 0o755 if member.isdir() or member.mode & 0o100 else 0o644
            member.pax_headers = {}
            target.addfile(member, source.extractfile(member) if member.isfile() else None)
    return made.getvalue()


def _copy(root: Path, target: Path) -> None:
    """Copy the files of the repository."""
    names = subprocess.run(
        ["git", "ls-files", "-z"],  # noqa: S607 - whichever git there is
        cwd=root,
        capture_output=True,
        check=True,
        text=True,
    ).stdout.split("\0")
    for name in filter(None, names):
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(root / name, target / name)


def build(root: Path, target: Path, *options: str) -> dict[str, str]:
    """Build a copy of the repository in a folder; return the digests of the results.

    :param target: the folder; the results are in ``dist`` there.
    :param options: for ``python -m build``.
    """
    shutil.rmtree(target, ignore_errors=True)
    _copy(root, target / "checkout")
    environment = {**os.environ, "SOURCE_DATE_EPOCH": str(EPOCH)}
    # Compilers write the folder's name into their output.
    flags = f"-g0 -ffile-prefix-map={target}=. {os.environ.get('CFLAGS', '')}"
    subprocess.run(
        [sys.executable, "-m", "build", *options, "--outdir", target / "dist", "."],
        cwd=target / "checkout",
        env={**environment, "CFLAGS": flags.strip()},
        stdout=subprocess.DEVNULL,
        check=True,
    )
    digests = {}
    for path in sorted((target / "dist").iterdir()):
        if path.name.endswith(".tar.gz"):
            path.write_bytes(normalised(path.read_bytes()))
        digests[path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return digests


def main() -> None:
    """Build twice; ends with a sentence if something differs."""
    # Names of different lengths, so that a path left anywhere shifts the bytes after it.
    first, second = (build(_ROOT, _FOLDER / name, *sys.argv[1:]) for name in ("one", "another"))
    if first != second:
        differing = sorted(name for name in first | second if first.get(name) != second.get(name))
        raise SystemExit(f"built twice, these differ: {', '.join(differing)}; see {_FOLDER}")
    shutil.rmtree(_FOLDER / "dist", ignore_errors=True)
    shutil.copytree(_FOLDER / "one" / "dist", _FOLDER / "dist")
    for name, digest in first.items():
        print(f"{digest}  {name}")


if __name__ == "__main__":
    main()
