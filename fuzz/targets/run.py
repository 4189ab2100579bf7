"""Fuzzes one codec, guided by coverage (Atheris, ``pip install atheris``).

::

    PYTHONPATH=src:fuzz python fuzz/targets/run.py decoder -max_total_time=3600

The arguments behind the target's name go to libFuzzer.  It begins with the corpus in the repository
and with seeds from the published generators; new inputs go to ``build/corpus``.  An input that
fails is added to ``fuzz/corpus`` by hand, as a line with the reason above it, and stays there.
"""

from __future__ import annotations

import sys
from hashlib import sha256
from importlib import import_module
from pathlib import Path

from targets.checks import TARGETS, corpus, seeds

SEEDS = 200


def folder_of(name: str) -> Path:
    """Where the fuzzer works: the kept inputs and the seeds, unpacked."""
    folder = Path(__file__).resolve().parents[2] / "build" / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for data in [*corpus(name), *seeds(name, SEEDS)]:
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    return folder


def main(arguments: list[str]) -> int:
    """Run one target; does not return while nothing is found."""
    if not arguments or arguments[0] not in TARGETS:
        print(f"name a target: {', '.join(TARGETS)}", file=sys.stderr)
        return 2
    try:
        atheris = import_module("atheris")  # nothing else needs it
    except ImportError:
        print("Atheris is missing: pip install atheris", file=sys.stderr)
        return 1
    name = arguments[0]
    atheris.instrument_all()
    atheris.Setup([sys.argv[0], str(folder_of(name)), *arguments[1:]], TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
