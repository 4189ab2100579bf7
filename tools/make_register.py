"""Write new cases of the conformance suite into its register of slugs.

    python -m tools.make_register            write the register
    python -m tools.make_register --check    only tell whether it is up to date

A new id is entered with the suite's version (``SUITE_VERSION`` of ``tmqp_conformance.suite``).  A
removed id must be entered by hand: into ``renames`` (``{"old": {"to": "new", "suite": "1.2"}}``) or
into ``retired`` (``{"old": {"reason": "...", "suite": "1.2"}}``).
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from tmqp_conformance.packs import PACKS
from tmqp_conformance.register import NATIVE
from tmqp_conformance.suite import ALL_CASES, SUITE_VERSION
from tools.generated import write_or_check

__all__ = ["PAGE", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "fuzz" / "tmqp_conformance" / "register.json"


def render() -> str:
    """Return the text of the register.

    :raises ValueError: if an id was removed without an entry in ``renames`` or ``retired``.
    """
    table: dict[str, Any] = {"cases": {}, "renames": {}, "retired": {}}
    if PAGE.is_file():
        table = json.loads(PAGE.read_text(encoding="utf-8"))
    packs = {NATIVE: ALL_CASES, **{pack.name: pack.cases for pack in PACKS.values()}}
    known: dict[str, dict[str, str]] = table["cases"]
    for name, cases in packs.items():
        ids = known.setdefault(name, {})
        for each in cases:
            ids.setdefault(each.id, SUITE_VERSION)
    present = {each.id for cases in packs.values() for each in cases}
    gone = {each for ids in known.values() for each in ids} - present
    unexplained = sorted(gone - {*table["renames"], *table["retired"]})
    if unexplained:
        raise ValueError(
            f"{', '.join(unexplained)}: a slug never vanishes; enter it into renames or retired"
            f" of {PAGE.name}"
        )
    table["cases"] = {name: dict(sorted(known[name].items())) for name in known}
    return json.dumps(table, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write the register, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_register")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
