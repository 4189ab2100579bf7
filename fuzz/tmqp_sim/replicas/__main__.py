"""Runs seeds of simulated groups, or tells which seed notices each planted bug."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Sequence

from tmqp_sim.replicas.bugs import BUGS, caught_at
from tmqp_sim.replicas.runner import run_groups
from tmqp_sim.runner import seeds_of

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run them; 0 when all promises were kept and every bug was found, else 1."""
    parser = argparse.ArgumentParser(prog="python -m tmqp_sim.replicas", description=__doc__)
    parser.add_argument("--seeds", type=seeds_of, default=range(500), help="such as 0..499")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--mutants", action="store_true", help="which seed notices each bug")
    options = parser.parse_args(arguments)
    if options.mutants:
        found = {name: caught_at(name, options.seeds) for name in BUGS}
        for name, seed in found.items():
            print(f"{name:<26} {BUGS[name].text}: {'not found' if seed < 0 else seed}")
        return int(min(found.values()) < 0)
    marks: Counter[str] = Counter()
    failures = 0
    for met, broken in run_groups(options.seeds, options.jobs):
        marks.update(met)
        if broken:
            failures += 1
            print(broken, end="\n\n", flush=True)
    for name, count in sorted(marks.items()):
        print(f"{count:>9,}  {name}")
    print(f"{len(options.seeds):,} groups, {failures} of them broke a promise")
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
