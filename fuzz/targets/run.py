"""Fuzzes one codec, guided by coverage (Atheris, ``pip install atheris``).

::

    PYTHONPATH=src:fuzz python fuzz/targets/run.py decoder -max_total_time=3600

The arguments behind the target's name go to libFuzzer.  It begins with the corpus in the repository
and with seeds from the published generators; new inputs go to ``build/corpus``.  An input that
fails is added to ``fuzz/corpus`` by hand, as a line with the reason above it, and stays there.
"""

from __future__ import annotations

import sys
from contextlib import nullcontext
from hashlib import sha256
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

SEEDS = 200
#: What is watched for coverage.
OURS = ["tmqp", "tmqp_server", "tmqp_wires"]


def folder_of(name: str, checks: ModuleType) -> Path:
    """Where the fuzzer works: the kept inputs and the seeds, unpacked."""
    folder = Path(__file__).resolve().parents[2] / "build" / "corpus" / name
    folder.mkdir(parents=True, exist_ok=True)
    for data in [*checks.corpus(name), *checks.seeds(name, SEEDS)]:
        (folder / sha256(data).hexdigest()[:16]).write_bytes(data)
    return folder


def main(arguments: list[str]) -> int:
    """Run one target; does not return while nothing is found."""
    atheris = import_module("atheris") if find_spec("atheris") else None  # only this needs it
    with nullcontext() if atheris is None else atheris.instrument_imports(include=OURS):
        checks = import_module("targets.checks")
    if not arguments or arguments[0] not in checks.TARGETS:
        print(f"name a target: {', '.join(checks.TARGETS)}", file=sys.stderr)
        return 2
    if atheris is None:
        print("Atheris is missing: pip install atheris", file=sys.stderr)
        return 1
    name = arguments[0]
    folder = folder_of(name, checks)
    atheris.Setup([sys.argv[0], str(folder), *arguments[1:]], checks.TARGETS[name])
    atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
