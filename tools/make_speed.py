"""Draw ``docs/speed.svg``: the broker compared with others, from the figures in
``docs/performance/broker.md``.

    python -m tools.make_speed            write the picture
    python -m tools.make_speed --check    only tell whether it is up to date

``make bench-peers`` measures the figures; this tool only draws them.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from tools.generated import write_or_check

__all__ = ["GROUPS", "PAGE", "figures", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "speed.svg"
_FIGURES: Final = ROOT / "docs" / "performance" / "broker.md"

#: The workloads to draw, by the names that the benchmark gives them, and their headings.
GROUPS: Final = (
    ("push-acks", "Push to a queue in memory, acknowledged by consumer and server"),
    ("durable-256", "The same, durable (JetStream answers before it syncs, the others after)"),
    ("broadcast", "Broadcast from one producer to one consumer"),
    ("request-256", "Request and response between two clients, 256 in flight"),
)
_OURS: Final = "tmqp"
#: Other builds and event loops of ours.
_LEFT_OUT: Final = ("tmqp, interpreted", "tmqp on uvloop")

_WIDTH: Final = 820
_NAMES: Final = 190
_BARS: Final = 500
_ROW: Final = 22
_HEAD: Final = 34
_STYLE: Final = """\
text { font: 12px Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #24292f; }
.head { font-weight: bold; font-size: 13px; }
.name { text-anchor: end; }
.ours { font-weight: bold; }
.note { fill: #57606a; font-size: 11px; }
.bar { fill: #afb8c1; }
.best { fill: #0969da; }
"""


def figures(name: str) -> list[tuple[str, int]]:
    """Return the deliveries per second of each broker in a workload, in the order of the table.

    :raises ValueError: if ``broker.md`` has no table of that name.
    """
    text = _FIGURES.read_text(encoding="utf-8")
    found = re.search(
        rf"^[^\n]*\({re.escape(name)}\),[^\n]*\n\n[^\n]*\n-[^\n]*\n(.*?)\n\n",
        text,
        re.MULTILINE | re.DOTALL,
    )
    if found is None:
        raise ValueError(f"{_FIGURES.name} has no table for {name}")
    rows = [re.split(r"\s{2,}", line.strip()) for line in found[1].splitlines()]
    return [(row[0], int(row[1].replace(",", ""))) for row in rows if row[0] not in _LEFT_OUT]


def _group(name: str, heading: str, y: int) -> tuple[list[str], int]:
    """Draw one workload from y on; also return where it ends."""
    rows = figures(name)
    most = max(value for _, value in rows)
    out = [f'<text class="head" x="16" y="{y + 20}">{escape(heading)}</text>']
    y += _HEAD
    for broker, value in rows:
        width = max(2, round(value * _BARS / most))
        kind, bar = (" ours", "best") if broker == _OURS else ("", "bar")
        name_at, size = f'x="{_NAMES - 8}" y="{y + 14}"', f'width="{width}" height="15"'
        out += [
            f'<text class="name{kind}" {name_at}>{escape(broker)}</text>',
            f'<rect class="{bar}" x="{_NAMES}" y="{y + 3}" {size}/>',
            f'<text x="{_NAMES + width + 6}" y="{y + 14}">{value:,}</text>',
        ]
        y += _ROW
    return out, y + 8


def render() -> str:
    """Return the picture as SVG."""
    body: list[str] = []
    y = 8
    for name, heading in GROUPS:
        lines, y = _group(name, heading, y)
        body += lines
    machine = re.search(
        r"^AMD[^\n]*each broker on one core", _FIGURES.read_text("utf-8"), re.MULTILINE
    )
    where = machine[0].partition(";")[0] if machine is not None else "one machine"
    note = f"Messages of 100 bytes delivered per second; {where}; make bench-peers measures again."
    body.append(f'<text class="note" x="16" y="{y + 16}">{escape(note)}</text>')
    y += 30
    size = f'width="{_WIDTH}" height="{y}" viewBox="0 0 {_WIDTH} {y}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>Messages per second, tmqp beside other brokers</title>",
            "<!-- Made by python -m tools.make_speed from docs/performance/broker.md. -->",
            f"<style>\n{_STYLE}</style>",
            f'<rect width="{_WIDTH}" height="{y}" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def main(arguments: list[str]) -> int:
    """Write the picture, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_speed")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
