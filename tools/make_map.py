"""Draw the maps of ``docs/architecture.md`` from the imports of the sources.

    python -m tools.make_map            write the pictures
    python -m tools.make_map --check    only tell whether they are up to date
    python -m tools.make_map --count    print how many modules, parts, floors and arrows there are

Each map shows the parts of one package: its sub-packages and modules.  A part is one floor above
the highest part that it imports, and its caption comes from the tables of ``architecture.md``.  An
arrow means "imports"; arrows that follow from others are left out.

The layout is Sugiyama's: long arrows get a bend on every floor that they cross, each floor is
sorted by the mean position of its neighbours, and positions are then spread with a minimum
distance.  Positions are rounded to whole units and ties are broken by name, so the pictures do not
depend on the machine.
"""

from __future__ import annotations

import ast
import re
import sys
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from tools.generated import write_or_check

__all__ = [
    "MAPS",
    "PAGE",
    "Map",
    "captions",
    "counts",
    "imports",
    "main",
    "ranks",
    "reduced",
    "render",
]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "architecture.md"
_SOURCES: Final = (ROOT / "src", ROOT / "fuzz")

_BOX_WIDTH: Final = 180
_BOX_GAP: Final = 16
_BEND_WIDTH: Final = 6
_FLOOR_GAP: Final = 44
_MARGIN: Final = 24
_LINE: Final = 14
_CAPTION_CHARACTERS: Final = 26
_SWEEPS: Final = 24

_STYLE: Final = """\
text { font: 11px Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #57606a; text-anchor: middle; }
.name { font: bold 13px Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #24292f; }
.package { fill: #ddf4ff; stroke: #0969da; stroke-width: 1.3; }
.module { fill: #f6f8fa; stroke: #57606a; stroke-width: 1.1; }
.edge { fill: none; stroke: #8c959f; stroke-width: 1.2; }
"""


@dataclass(frozen=True)
class Map:
    """A picture of the parts of a package; an empty name means all packages."""

    package: str
    picture: Path
    title: str


MAPS: Final = (
    Map("", ROOT / "docs" / "map.svg", "Packages and their imports"),
    Map("tmqp_server", ROOT / "docs" / "map-server.svg", "The parts of tmqp_server"),
    Map("tmqp_server.engine", ROOT / "docs" / "map-engine.svg", "The parts of the engine"),
)

Graph = dict[str, set[str]]


# --- The graph -----------------------------------------------------------------------------------


@cache
def _modules() -> dict[str, Path]:
    """Return all modules and packages of this project by their dotted names."""
    found: dict[str, Path] = {}
    for root in _SOURCES:
        for path in sorted(root.glob("tmqp*/**/*.py")):
            parts = path.relative_to(root).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@cache
def _imported(path: Path) -> frozenset[str]:
    """Return the dotted names that a module imports; for ``from a import b`` both ``a`` and
    ``a.b``."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)


def _part(name: str, package: str) -> str | None:
    """The part of a package that a module belongs to; None for the package itself and others."""
    if not package:
        return name.partition(".")[0]
    if not name.startswith(f"{package}."):
        return None
    depth = package.count(".") + 2
    return ".".join(name.split(".")[:depth])


def imports(package: str) -> Graph:
    """Which parts of a package import which, by their dotted names."""
    modules = _modules()
    graph: Graph = {}
    for name, path in modules.items():
        part = _part(name, package)
        if part is None:
            continue
        known = {each for each in _imported(path) if each in modules}
        targets = {_part(each, package) for each in known}
        graph.setdefault(part, set()).update(each for each in targets if each not in (None, part))
    return graph


def ranks(graph: Graph) -> dict[str, int]:
    """The floor of each part: 0 if it imports none, else one above the highest that it imports.

    :raises ValueError: if the imports have a cycle.
    """
    floors: dict[str, int] = {}
    waiting = set(graph)
    while waiting:
        ready = sorted(name for name in waiting if graph[name] <= set(floors))
        if not ready:
            raise ValueError(f"the imports of {sorted(waiting)} have a cycle")
        for name in ready:
            floors[name] = max((floors[each] + 1 for each in graph[name]), default=0)
        waiting -= set(ready)
    return floors


def reduced(graph: Graph) -> Graph:
    """The graph without the arrows that follow from two or more others."""
    floors = ranks(graph)
    reach: Graph = {}
    for name in sorted(graph, key=lambda each: (floors[each], each)):
        reach[name] = set(graph[name]).union(*(reach[each] for each in graph[name]))
    return {
        name: {each for each in targets if not any(each in reach[other] for other in targets)}
        for name, targets in graph.items()
    }


def captions() -> dict[str, str]:
    """The captions of parts: the second column of the tables in ``architecture.md``."""
    rows = re.findall(
        r"^\| \[?`(tmqp[\w.]*)`(?:\]\([^)]*\))? \| ([^|]+?) \|",
        PAGE.read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    return {name: text.replace("`", "") for name, text in rows}


def counts(package: str) -> tuple[int, int, int, int, int]:
    """The modules, lines, parts, floors and arrows of a package."""
    own = [path for name, path in _modules().items() if f"{name}.".startswith(f"{package}.")]
    lines = sum(len(path.read_text(encoding="utf-8").splitlines()) for path in own)
    graph = imports(package)
    floors = max(ranks(graph).values(), default=-1) + 1
    return len(own), lines, len(graph), floors, sum(map(len, graph.values()))


# --- The layout ----------------------------------------------------------------------------------


@dataclass
class Node:
    """A box, or a bend of a long arrow if it has no name."""

    name: str
    floor: int
    key: str
    above: list[Node]
    below: list[Node]
    x: float = 0.0

    @property
    def width(self) -> int:
        """How much room it takes on its floor."""
        return _BOX_WIDTH if self.name else _BEND_WIDTH


def _nodes(graph: Graph) -> list[list[Node]]:
    """The boxes and bends of each floor, the lowest floor first, joined by their arrows."""
    floors = ranks(graph)
    boxes = {name: Node(name, floors[name], name, [], []) for name in sorted(graph)}
    rows: list[list[Node]] = [[] for _ in range(max(floors.values()) + 1)]
    for box in boxes.values():
        rows[box.floor].append(box)
    for name, targets in sorted(reduced(graph).items()):
        for target in sorted(targets):
            upper = boxes[name]
            for floor in range(floors[name] - 1, floors[target], -1):
                bend = Node("", floor, f"{name}>{target}", [upper], [])
                upper.below.append(bend)
                rows[floor].append(bend)
                upper = bend
            upper.below.append(boxes[target])
            boxes[target].above.append(upper)
    return rows


def _spread(row: list[Node], wanted: list[float]) -> None:
    """Place a floor near the wanted positions, in its order and without overlaps.

    Neighbours that would overlap are merged into blocks, which stand at the mean of their wishes.
    """
    offsets = [0.0]
    for left, right in pairwise(row):
        offsets.append(offsets[-1] + (left.width + right.width) / 2 + _BOX_GAP)
    blocks: list[tuple[float, int]] = []
    for wish, offset in zip(wanted, offsets, strict=True):
        total, count = wish - offset, 1
        while blocks and blocks[-1][0] / blocks[-1][1] > total / count:
            before, members = blocks.pop()
            total, count = total + before, count + members
        blocks.append((total, count))
    places = [total / count for total, count in blocks for _ in range(count)]
    for node, place, offset in zip(row, places, offsets, strict=True):
        node.x = round(place + offset)


def _mean(nodes: list[Node], otherwise: float) -> float:
    return sum(node.x for node in nodes) / len(nodes) if nodes else otherwise


def _arrange(rows: list[list[Node]]) -> None:
    """Sort and place all floors: sweeps down and up, each floor by its neighbours' positions."""
    for row in rows:
        row.sort(key=lambda node: node.key)
        _spread(row, [0.0] * len(row))
    for sweep in range(_SWEEPS):
        down = sweep % 2 == 0
        for row in reversed(rows) if down else rows:
            wishes = {id(node): _mean(node.above if down else node.below, node.x) for node in row}
            row.sort(key=lambda node: (round(wishes[id(node)]), node.key))
            _spread(row, [wishes[id(node)] for node in row])
    for row in rows:
        _spread(row, [_mean([*node.above, *node.below], node.x) for node in row])


# --- The picture ---------------------------------------------------------------------------------


def _caption_lines(text: str) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(f"{lines[-1]} {word}") > _CAPTION_CHARACTERS:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return lines


def _box(node: Node, y: int, height: int, short: str, lines: list[str], kind: str) -> list[str]:
    x = node.x
    size = f'width="{_BOX_WIDTH}" height="{height}"'
    out = [f'<rect class="{kind}" x="{x - _BOX_WIDTH / 2:g}" y="{y}" {size} rx="6"/>']
    top = y + (height - (len(lines) + 1) * _LINE) / 2 + 11
    out.append(f'<text class="name" x="{x:g}" y="{top:g}">{escape(short)}</text>')
    out += [
        f'<text x="{x:g}" y="{top + number * _LINE + 1:g}">{escape(line)}</text>'
        for number, line in enumerate(lines, 1)
    ]
    return out


def _ports(nodes: list[Node], index: int) -> float:
    """How far from the middle of a box its n-th arrow ends."""
    return (index - (len(nodes) - 1) / 2) * min(18.0, 120 / max(len(nodes), 1))


def _arrow(upper: Node, lower: Node, tops: list[int], heights: list[int]) -> str:
    """The piece of an arrow between two neighbouring floors."""
    leaving = sorted(upper.below, key=lambda node: (node.x, node.key))
    coming = sorted(lower.above, key=lambda node: (node.x, node.key))
    x1 = upper.x + (_ports(leaving, leaving.index(lower)) if upper.name else 0)
    x2 = lower.x + (_ports(coming, coming.index(upper)) if lower.name else 0)
    y1, y2 = tops[upper.floor] + heights[upper.floor], tops[lower.floor]
    if not lower.name:
        end, marker = f"V {y2 + heights[lower.floor]}", ""
    else:
        end, marker, y2 = "", ' marker-end="url(#tip)"', y2 - 2
    middle = (y1 + y2) / 2
    curve = f"M {x1:g} {y1} C {x1:g} {middle:g} {x2:g} {middle:g} {x2:g} {y2} {end}".strip()
    return f'<path class="edge" d="{curve}"{marker}/>'


def render(drawing: Map) -> str:
    """Return a map as SVG.

    :raises ValueError: if ``architecture.md`` has no caption for a part.
    """
    known = captions()
    graph = imports(drawing.package)
    missing = sorted(set(graph) - set(known))
    if missing:
        raise ValueError(f"{PAGE.name} has no row in a table for {', '.join(missing)}")
    rows = _nodes(graph)
    _arrange(rows)
    lines = {name: _caption_lines(known[name]) for name in graph}
    left = min(node.x - node.width / 2 for row in rows for node in row) - _MARGIN
    right = max(node.x + node.width / 2 for row in rows for node in row) + _MARGIN
    for row in rows:
        for node in row:
            node.x -= left
    heights = [
        max((len(lines[node.name]) + 1) * _LINE + 14 for node in row if node.name) for row in rows
    ]
    tops = [0] * len(rows)
    y = _MARGIN
    for floor in reversed(range(len(rows))):
        tops[floor] = y
        y += heights[floor] + _FLOOR_GAP
    body = [
        _arrow(node, lower, tops, heights) for row in rows for node in row for lower in node.below
    ]
    modules = _modules()
    for row in rows:
        for node in row:
            if node.name:
                kind = "package" if modules[node.name].name == "__init__.py" else "module"
                short = node.name.removeprefix(f"{drawing.package}.")
                body += _box(
                    node, tops[node.floor], heights[node.floor], short, lines[node.name], kind
                )
    return _page(drawing.title, round(right - left), y - _FLOOR_GAP + _MARGIN, body)


def _page(title: str, width: int, height: int, body: list[str]) -> str:
    size = f'width="{width}" height="{height}" viewBox="0 0 {width} {height}"'
    tip = (
        '<marker id="tip" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="7" markerHeight="7" '
        'markerUnits="userSpaceOnUse" orient="auto">'
        '<path d="M 0 0 L 10 5 L 0 10 z" fill="#57606a"/></marker>'
    )
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            f"<title>{escape(title)}</title>",
            "<!-- Made by python -m tools.make_map from the imports of the sources. -->",
            f"<style>\n{_STYLE}</style>",
            f"<defs>{tip}</defs>",
            f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def main(arguments: list[str]) -> int:
    """Write the pictures, or with ``--check`` compare them; 1 if one is out of date.

    With ``--count`` print a table of all packages, and of the parts of the server, instead.
    """
    if arguments == ["--count"]:
        print(
            f"{'package':<24} {'modules':>8} {'lines':>8} {'parts':>6} {'floors':>7} {'arrows':>7}"
        )
        server = [part for part in imports("tmqp_server") if imports(part)]
        for package in sorted([*imports(""), *server]):
            modules, lines, parts, floors, arrows = counts(package)
            print(f"{package:<24} {modules:>8} {lines:>8} {parts:>6} {floors:>7} {arrows:>7}")
        return 0
    pictures = {drawing.picture: render(drawing) for drawing in MAPS}
    return write_or_check(pictures, arguments, "make_map")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
