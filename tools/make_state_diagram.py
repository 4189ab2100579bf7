"""Draw ``docs/states.svg``: the states of a connection, from the table that the code runs on.

    python -m tools.make_state_diagram            write the picture
    python -m tools.make_state_diagram --check    only tell whether it is up to date

Theory of operation.  A connection walks a straight line of states and may leave it for CLOSED from
each of them, for both roles.  So the picture needs no layout engine: the states of one role are
below each other, edges that keep a state are at its left, edges that end the connection at its
right, where CLOSED is a bar along all states.  :func:`chain` raises an error if the table no longer
has this form, which would need another layout.

Every edge names the inputs that take it (above) and the action that is carried out (below).  Inputs
that a state does not name are violations if they come from the peer or the clock; the edge shows
those that can really happen in this state, and then "anything else".
"""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.sax.saxutils import escape

from tmqp.state import TABLE, Action, Input, Role, State
from tools.generated import write_or_check

__all__ = ["PAGE", "chain", "main", "render"]

ROOT: Final = Path(__file__).resolve().parent.parent
PAGE: Final = ROOT / "docs" / "states.svg"
_SOURCE: Final = ROOT / "src" / "tmqp" / "state.py"

_PROGRAM: Final = (Input.INITIATE, Input.ACCEPT, Input.REFUSE, Input.SEND, Input.CLOSE)
_CLOCK: Final = (Input.HANDSHAKE_EXPIRED, Input.SILENCE, Input.LIFELESS)
#: Unnamed inputs worth showing, each with another that the state must name to make it possible.
_POSSIBLE: Final = (
    (Input.WRONG_PREAMBLE, Input.PREAMBLE),
    (Input.FAULT, Input.END),
    (Input.TORN, Input.END),
    (Input.LIFELESS, Input.SILENCE),
)

_WIDTH: Final = 960
_BOX_X: Final = 312
_BOX_WIDTH: Final = 212
_CLOSED_X: Final = 848
_CLOSED_WIDTH: Final = 88
_GAP: Final = 62
_LINE: Final = 15
_LEFT_CHARACTERS: Final = 37
_RIGHT_CHARACTERS: Final = 42
_BOX_CHARACTERS: Final = 34

_STYLE: Final = """\
text { font: 12px Helvetica, Arial, 'DejaVu Sans', sans-serif; fill: #24292f; }
.role { font-size: 20px; font-weight: bold; }
.state { font-weight: bold; font-size: 13px; text-anchor: middle; }
.about { font-size: 11px; fill: #57606a; text-anchor: middle; }
.input { font: bold 11px Menlo, Consolas, 'DejaVu Sans Mono', monospace; }
.action { font-style: italic; fill: #57606a; }
.program { fill: #0550ae; }
.clock { fill: #953800; }
.left { text-anchor: end; }
.box { fill: #f6f8fa; stroke: #24292f; stroke-width: 1.5; }
.closed { fill: #eaeef2; stroke: #24292f; stroke-width: 1.5; }
.edge { fill: none; stroke: #57606a; stroke-width: 1.3; }
.way { stroke: #24292f; stroke-width: 2; }
.violate { stroke: #cf222e; stroke-dasharray: 5 3; }
.violates { fill: #cf222e; }
"""


@dataclass(frozen=True)
class Edge:
    """One arrow: the inputs that take it, the action, the state it leads to."""

    inputs: tuple[Input, ...]
    action: Action
    following: State
    anything_else: bool = False


def chain(role: Role) -> list[State]:
    """Return the states of a role in their order, without CLOSED.

    :raises ValueError: if the table is not a straight line.
    """
    rows = TABLE[role]
    reached = {
        following
        for state, row in rows.items()
        for _action, following in row.values()
        if following is not state
    }
    order = [state for state in rows if state not in reached]
    if len(order) != 1:
        raise ValueError(f"{role.name} begins in {order}")
    while True:
        onward = {
            following
            for _action, following in rows[order[-1]].values()
            if following not in (order[-1], State.CLOSED)
        }
        if not onward:
            break
        if len(onward) > 1 or onward & set(order):
            raise ValueError(f"{role.name}: {order[-1].name} leads to {onward}")
        order.append(onward.pop())
    if {*order, State.CLOSED} != set(rows):
        raise ValueError(f"{role.name}: {set(rows) - set(order)} is never reached")
    return order


def edges(role: Role, state: State) -> list[Edge]:
    """Return the arrows that leave a state, in the order of their first input, violations last."""
    row = TABLE[role][state]
    groups: dict[tuple[Action, State], list[Input]] = {}
    for item in Input:
        if item in row:
            groups.setdefault(row[item], []).append(item)
    violating = groups.pop((Action.VIOLATE, State.CLOSED), [])
    violating += [item for item, needs in _POSSIBLE if needs in row and item not in row]
    result = [Edge(tuple(items), *key) for key, items in groups.items()]
    return [*result, Edge(tuple(violating), Action.VIOLATE, State.CLOSED, anything_else=True)]


def _about() -> dict[State, str]:
    """Return the explanation of each state in ``state.py``, without the role."""
    for node in ast.parse(_SOURCE.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == "State":
            return {
                State[item.targets[0].id]: " ".join(str(below.value.value).split())
                for item, below in zip(node.body, node.body[1:], strict=False)
                if isinstance(item, ast.Assign)
                and isinstance(item.targets[0], ast.Name)
                and isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
            }
    raise ValueError(f"{_SOURCE} has no class State")


def _wrap(words: list[str], width: int) -> list[list[str]]:
    """Wrap words into lines of at most ``width`` characters."""
    lines: list[list[str]] = [[]]
    for word in words:
        if lines[-1] and len(" ".join([*lines[-1], word])) > width:
            lines.append([])
        lines[-1].append(word)
    return lines


def _input_lines(edge: Edge, width: int) -> list[str]:
    """Return the inputs of an edge as lines of SVG, each name in the colour of its origin."""
    names = [item.name for item in edge.inputs] + (["anything else"] if edge.anything_else else [])
    spelt = [f"{name}," for name in names[:-1]] + names[-1:]
    kinds = {item.name: "program" for item in _PROGRAM} | {item.name: "clock" for item in _CLOCK}
    return [
        " ".join(
            f'<tspan class="{kinds.get(word.rstrip(","), "peer")}">{escape(word)}</tspan>'
            for word in line
        )
        for line in _wrap(spelt, width)
    ]


def _text(x: float, y: float, kind: str, content: str) -> str:
    return f'<text x="{x:g}" y="{y:g}" class="{kind}">{content}</text>'


def _box(kind: str, x: float, y: float, width: float, height: float) -> str:
    size = f'width="{width:g}" height="{height:g}"'
    return f'<rect class="{kind}" x="{x:g}" y="{y:g}" {size} rx="8"/>'


def _arrow(path: str, kind: str = "") -> str:
    marker = "red" if kind == "violate" else "grey"
    if kind == "way":
        marker = "black"
    classes = f"edge {kind}".strip()
    return f'<path class="{classes}" d="{path}" marker-end="url(#{marker})"/>'


def _words(action: Action) -> str:
    return action.name.lower().replace("_", " ")


def _row_height(edge: Edge, width: int) -> int:
    """Return the height of a row: the lines of inputs, the line of the action, and space."""
    return (len(_input_lines(edge, width)) + 1) * _LINE + 16


def _draw_right(edge: Edge, y: float) -> tuple[list[str], float]:
    """Draw an edge from a state to CLOSED in the row at y; also return where the next row
    begins."""
    lines = _input_lines(edge, _RIGHT_CHARACTERS)
    at = y + len(lines) * _LINE + 4
    start = _BOX_X + _BOX_WIDTH
    kind = "violate" if edge.action is Action.VIOLATE else ""
    out = [
        _text(start + 12, y + number * _LINE + 11, "input", line)
        for number, line in enumerate(lines)
    ]
    out.append(_arrow(f"M {start} {at:g} H {_CLOSED_X - 3}", kind))
    out.append(
        _text(start + 12, at + 14, f"action {kind and 'violates'}".strip(), _words(edge.action))
    )
    return out, y + _row_height(edge, _RIGHT_CHARACTERS)


def _draw_left(edge: Edge, y: float) -> tuple[list[str], float]:
    """Draw an edge that keeps its state in the row at y; also return where the next row begins."""
    lines = _input_lines(edge, _LEFT_CHARACTERS)
    middle = y + (len(lines) + 1) * _LINE / 2
    x = _BOX_X - 44
    out = [
        _text(x, y + number * _LINE + 11, "input left", line) for number, line in enumerate(lines)
    ]
    out.append(_text(x, y + len(lines) * _LINE + 11, "action left", _words(edge.action)))
    top, low = middle - 8, middle + 8
    out.append(
        _arrow(
            f"M {_BOX_X} {top:g} C {_BOX_X - 42} {top - 4:g} {_BOX_X - 42} {low + 4:g} "
            f"{_BOX_X - 3} {low:g}"
        )
    )
    return out, y + _row_height(edge, _LEFT_CHARACTERS)


def _draw_state(role: Role, state: State, y: float, about: str) -> tuple[list[str], float]:
    """Draw a state's box at y with the edges left and right of it; also return where the box
    ends."""
    leaving = edges(role, state)
    stays = [edge for edge in leaving if edge.following is state]
    ends = [edge for edge in leaving if edge.following is State.CLOSED]
    text = [" ".join(line) for line in _wrap(about.split(), _BOX_CHARACTERS)]
    left = sum(_row_height(edge, _LEFT_CHARACTERS) for edge in stays)
    right = sum(_row_height(edge, _RIGHT_CHARACTERS) for edge in ends)
    height = max(left, right, (len(text) + 1) * _LINE) + 18
    out = [_box("box", _BOX_X, y, _BOX_WIDTH, height)]
    centre = _BOX_X + _BOX_WIDTH / 2
    top = y + (height - (len(text) + 1) * _LINE) / 2 + 11
    out.append(_text(centre, top, "state", state.name))
    out += [
        _text(centre, top + (number + 1) * _LINE + 2, "about", escape(line))
        for number, line in enumerate(text)
    ]
    for drawn, rows, used in ((_draw_left, stays, left), (_draw_right, ends, right)):
        at = y + (height - used) / 2 + 6
        for edge in rows:
            lines, at = drawn(edge, at)
            out += lines
    return out, y + height


def _draw_onward(edge: Edge, y: float) -> list[str]:
    """Draw an edge from the box that ends at y to the next one below."""
    centre = _BOX_X + _BOX_WIDTH / 2
    out = [_arrow(f"M {centre:g} {y:g} V {y + _GAP - 4:g}", "way")]
    for number, line in enumerate(_input_lines(edge, _RIGHT_CHARACTERS)):
        out.append(_text(centre + 12, y + 26 + number * _LINE, "input", line))
    out.append(_text(centre + 12, y + 41, "action", _words(edge.action)))
    return out


def _draw_role(role: Role, y: float, about: dict[State, str]) -> tuple[list[str], float]:
    """Draw one role from y on; also return where it ends."""
    states = chain(role)
    centre = _BOX_X + _BOX_WIDTH / 2
    out = [
        _text(24, y + 26, "role", role.name.capitalize()),
        f'<circle cx="{centre:g}" cy="{y + 14:g}" r="6" fill="#24292f"/>',
        _arrow(f"M {centre:g} {y + 20:g} V {y + 48:g}", "way"),
    ]
    first = y + 52
    at = first
    for number, state in enumerate(states):
        words = about[state].removeprefix(f"{role.name.capitalize()}: ")
        lines, at = _draw_state(role, state, at, words[0].upper() + words[1:])
        out += lines
        if number + 1 < len(states):
            following = states[number + 1]
            for edge in edges(role, state):
                if edge.following is following:
                    out += _draw_onward(edge, at)
            at += _GAP
    bar = [
        _box("closed", _CLOSED_X, first, _CLOSED_WIDTH, at - first),
        _text(_CLOSED_X + _CLOSED_WIDTH / 2, first + 24, "state", State.CLOSED.name),
    ]
    x = _CLOSED_X + _CLOSED_WIDTH / 2
    for number, line in enumerate(_wrap(about[State.CLOSED].split(), 13)):
        bar.append(_text(x, first + 42 + number * _LINE, "about", escape(" ".join(line))))
    return [*bar, *out], at


def _draw_legend(y: float) -> tuple[list[str], float]:
    """Draw the legend from y on."""
    out = [
        _text(
            24,
            y,
            "",
            "An edge names its inputs (above) and the action (below). Inputs from "
            '<tspan class="input">THE_PEER</tspan>, '
            '<tspan class="input program">THE_PROGRAM</tspan>, '
            '<tspan class="input clock">THE_CLOCK</tspan>.',
        ),
        _arrow(f"M 24 {y + 20:g} H 64", "violate"),
        _text(
            72,
            y + 24,
            "",
            "A violation: the peer is told if it can understand, and the connection ends.",
        ),
        _text(
            24,
            y + 46,
            "",
            "A call that no edge allows raises LocalProtocolError and changes nothing.",
        ),
    ]
    return out, y + 62


def _marker(name: str, colour: str) -> str:
    return (
        f'<marker id="{name}" viewBox="0 0 10 10" refX="8" refY="5" markerWidth="8" '
        f'markerHeight="8" markerUnits="userSpaceOnUse" orient="auto">'
        f'<path d="M 0 0 L 10 5 L 0 10 z" fill="{colour}"/></marker>'
    )


def render() -> str:
    """Return the picture as SVG."""
    about = _about()
    body: list[str] = []
    y = 16.0
    for role in (Role.CLIENT, Role.SERVER):
        lines, y = _draw_role(role, y, about)
        body += lines
        y += 36
    lines, y = _draw_legend(y)
    body += lines
    markers = [_marker("grey", "#57606a"), _marker("black", "#24292f"), _marker("red", "#cf222e")]
    size = f'width="{_WIDTH}" height="{y:g}" viewBox="0 0 {_WIDTH} {y:g}"'
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">',
            "<title>States of a TMQP connection, client and server</title>",
            "<!-- Made by python -m tools.make_state_diagram from src/tmqp/state.py. -->",
            f"<style>\n{_STYLE}</style>",
            f"<defs>{''.join(markers)}</defs>",
            f'<rect width="{_WIDTH}" height="{y:g}" fill="#ffffff"/>',
            *body,
            "</svg>",
            "",
        ]
    )


def main(arguments: list[str]) -> int:
    """Write the picture, or with ``--check`` compare it; 1 if it is out of date."""
    return write_or_check({PAGE: render()}, arguments, "make_state_diagram")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
