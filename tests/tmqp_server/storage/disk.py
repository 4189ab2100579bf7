"""What may be found on a disk after a power cut, given all that was done to it.

The changes come from ``disk.c``.  What was synced is there; of what was not, each sector may be
there, missing or garbage, in any order.  The name of a new file, and that an old one is gone, are
sure when the folder was synced.  What a *failed* sync should have written counts as given up by the
system: no later sync brings it to the disk, only writing it again does.
"""

from __future__ import annotations

import ctypes
import errno
import os
import random
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

from tests.project import ROOT

SECTOR: Final = 512
RECORD: Final = struct.Struct("<cIQI")
#: What may become of what was not synced.
FATES: Final = ("kept", "lost", "torn", "mixed")

Operation = tuple[str, int, int, bytes]
Image = dict[str, bytes]


def build_shim(folder: Path) -> Path | None:
    """Compile ``disk.c``; none where that is not possible."""
    if sys.platform != "linux":
        return None
    shim = folder / "disk.so"
    source = Path(__file__).with_suffix(".c")
    command = [os.environ.get("CC", "cc"), "-O1", "-shared", "-fPIC", "-ldl", "-lpthread"]
    try:
        subprocess.run([*command, "-o", str(shim), str(source)], check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return shim


def run_breaking(shim: Path, *arguments: str) -> str:
    """Run ``breaking.py`` on the disk of ``disk.c``; what it said."""
    environment = {
        **os.environ,
        "LD_PRELOAD": str(shim),
        "PYTHONPATH": os.pathsep.join([os.environ.get("PYTHONPATH", "src"), str(ROOT)]),
    }
    ended = subprocess.run(
        [sys.executable, "-m", "tests.tmqp_server.storage.breaking", *arguments],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr[-3_000:]
    print(ended.stdout)
    return ended.stdout


class Disk:
    """The calls of ``disk.c``, in a process that was started with it."""

    def __init__(self) -> None:
        self._shim: Any = ctypes.CDLL(None)
        self._shim.disk_log.restype = ctypes.c_void_p
        self._shim.disk_log_size.restype = ctypes.c_size_t
        self._shim.disk_calls.restype = ctypes.c_long

    def watch(self, folder: Path | None) -> None:
        """Begin anew, below a folder; or end."""
        self._shim.disk_watch(b"" if folder is None else os.fsencode(folder))

    def mark(self, number: int) -> None:
        """Leave a number in the record."""
        self._shim.disk_mark(ctypes.c_uint64(number))

    def fail(self, at: int, error: int = errno.EIO, always: bool = False) -> None:
        """Fail the call that follows ``at`` others, and with ``always`` all that follow it."""
        self._shim.disk_fail(ctypes.c_long(at), error, int(always))

    def heal(self) -> None:
        """Fail nothing any more."""
        self._shim.disk_fail(ctypes.c_long(-1), 0, 0)

    def calls(self) -> int:
        """How many calls could have failed so far."""
        return int(self._shim.disk_calls())

    def record(self) -> list[Operation]:
        """What was done since :meth:`watch`."""
        data = ctypes.string_at(self._shim.disk_log(), self._shim.disk_log_size())
        found: list[Operation] = []
        at = 0
        while at < len(data):
            kind, file, offset, length = RECORD.unpack_from(data, at)
            at += RECORD.size
            found.append((kind.decode(), file, offset, data[at : at + length]))
            at += length
        return found


class File:
    """The contents of one file: what is sure, and what was done since the last sync."""

    def __init__(self, sure: bytes) -> None:
        self.sure = bytearray(sure)
        self.pending: list[tuple[int, bytes | None]] = []
        #: What the process sees; sectors that the system gave up are in here only.
        self.seen = bytearray(sure)

    def do(self, offset: int, data: bytes | None) -> None:
        self.pending.append((offset, data))
        apply(self.seen, offset, data)

    def sync(self) -> None:
        for offset, data in self.pending:
            apply(self.sure, offset, data)
        self.pending.clear()

    def after(self, fate: str, chance: random.Random) -> bytes:
        """What is found after a power cut."""
        if fate == "kept":
            return bytes(self.seen)
        found = bytearray(self.sure)
        pending = list(self.pending)
        if fate == "torn":
            for offset, data in pending[:-1]:
                apply(found, offset, data)
            for offset, data in pending[-1:]:
                if data is not None:
                    apply(found, offset, data[: chance.randrange(len(data) + 1)])
        elif fate == "mixed":
            for offset, data in pending:
                if data is None:
                    if chance.random() < 0.5:
                        apply(found, offset, None)
                    continue
                for start in range(0, len(data), SECTOR):
                    what = chance.random()
                    sector = data[start : start + SECTOR]
                    if what < 0.45:
                        apply(found, offset + start, sector)
                    elif what < 0.55:
                        apply(found, offset + start, chance.randbytes(len(sector)))
        return bytes(found)


def apply(content: bytearray, offset: int, data: bytes | None) -> None:
    """Write bytes at a place, or cut there."""
    size = offset if data is None else offset + len(data)
    if size > len(content):
        content.extend(bytes(size - len(content)))
    if data is None:
        del content[offset:]
    else:
        content[offset:size] = data


class Replay:
    """Does again what was recorded, step by step, and shows what a cut would leave."""

    def __init__(self, image: Image) -> None:
        self.names: dict[str, File] = {name: File(data) for name, data in image.items()}
        #: Names whose coming or going was not synced, with what a cut would bring back.
        self.unsure: dict[str, File | None] = {}
        self.by_number: dict[int, File] = {}
        self.marks: list[int] = []

    def step(self, operation: Operation) -> None:
        kind, file, offset, data = operation
        if kind == "C":
            name = data.decode()
            self.unsure.setdefault(name, self.names.get(name))
            self.names[name] = self.by_number[file] = File(b"")
        elif kind == "O":
            self.by_number[file] = self.names[data.decode()]
        elif kind == "U":
            name = data.decode()
            self.unsure.setdefault(name, self.names[name])
            del self.names[name]
        elif kind == "W":
            self.by_number[file].do(offset, data)
        elif kind == "T":
            self.by_number[file].do(offset, None)
        elif kind == "S":
            self.by_number[file].sync()
        elif kind == "F":
            self.by_number[file].pending.clear()
        elif kind == "D":
            self.unsure.clear()
        else:
            self.marks.append(offset)

    def image(self, fate: str, chance: random.Random) -> Image:
        """What is found after a power cut now."""
        names: dict[str, File | None] = dict(self.names)
        if fate != "kept":
            for name, before in self.unsure.items():
                names[name] = before if fate == "lost" or chance.random() < 0.5 else names.get(name)
        return {name: file.after(fate, chance) for name, file in names.items() if file is not None}


def lay_out(image: Image, folder: Path) -> None:
    """Make a folder hold exactly these files."""
    folder.mkdir(exist_ok=True)
    for path in folder.iterdir():
        path.unlink()
    for name, data in image.items():
        (folder / name).write_bytes(data)
