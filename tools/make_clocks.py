"""Makes ``examples/data/clocks.jsonl.xz`` from this machine's time zone database.

``python -m tools.make_clocks FILE`` writes another file; its contents depend on the database's
release, and on whether its files list the changes up to 2037 one by one ("fat" files).
"""

from __future__ import annotations

import json
import lzma
import struct
import sys
import zoneinfo
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

__all__ = ["main"]

_FIRST_YEAR: Final = 1900
_LAST_YEAR: Final = 2037
_NO_PLACES: Final = ("Factory", "localtime", "posixrules")
#: Of a file's head: its counts (RFC 8536, 3.1).
_HEAD: Final = struct.Struct(">4s16x6l")


def changes(file: Path) -> tuple[int, ...]:
    """Return the times at which the clocks of a zone were changed, in seconds since 1970."""
    data = file.read_bytes()
    _, utc, standard, leap, times, kinds, letters = _HEAD.unpack_from(data)
    second = _HEAD.size + times * 5 + kinds * 6 + letters + leap * 8 + standard + utc
    times = _HEAD.unpack_from(data, second)[4]
    return struct.unpack_from(f">{times}q", data, second + _HEAD.size)


def records(name: str, file: Path) -> Iterator[tuple[int, str, dict[str, Any]]]:
    """Yield time, zone and record of each line about a zone."""
    zone = zoneinfo.ZoneInfo(name)
    years = range(_FIRST_YEAR, _LAST_YEAR + 1)
    first = datetime(_FIRST_YEAR, 1, 1, tzinfo=UTC).timestamp()
    last = datetime(_LAST_YEAR + 1, 1, 1, tzinfo=UTC).timestamp()
    moments = [(int(datetime(year, 1, 1, tzinfo=UTC).timestamp()), "year") for year in years]
    moments += [(at, "change") for at in changes(file) if first <= at < last]
    for at, what in moments:
        local = datetime.fromtimestamp(at, zone)
        offset, saving = local.utcoffset(), local.dst()
        assert offset is not None, "a zone has an offset"
        yield (
            at,
            name,
            {
                "at": datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
                "zone": name,
                "what": what,
                "offset_s": int(offset.total_seconds()),
                "abbreviation": local.tzname(),
                "dst": bool(saving),
            },
        )


def main() -> None:
    """Write the file that is named."""
    found: list[tuple[int, str, dict[str, Any]]] = []
    for name in sorted(zoneinfo.available_timezones()):
        places = [Path(top) / name for top in zoneinfo.TZPATH]
        file = next((each for each in places if each.is_file()), None)
        if file is not None and name not in _NO_PLACES:
            found += records(name, file)
    found.sort(key=lambda each: (each[0], each[1], each[2]["what"]))
    text = "".join(json.dumps(each, separators=(",", ":")) + "\n" for _, _, each in found)
    packed = lzma.compress(text.encode(), preset=9 | lzma.PRESET_EXTREME)
    Path(sys.argv[1]).write_bytes(packed)
    print(f"{len(found):,} lines, {len(text):,} bytes, {len(packed):,} compressed")


if __name__ == "__main__":
    main()
