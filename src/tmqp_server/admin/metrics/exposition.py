"""Writes metrics for Prometheus: in its text format 0.0.4, and in OpenMetrics 1.0.

A page is written family by family, and a long family in portions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final, TypeAlias

from tmqp_server.admin.metrics.catalogue import BY_NAME, COUNTER, HISTOGRAM, Metric
from tmqp_server.engine.model.exemplars import Exemplar
from tmqp_server.engine.model.histograms import Histogram

__all__ = [
    "OPENMETRICS",
    "OPENMETRICS_TYPE",
    "TEXT",
    "TEXT_TYPE",
    "Family",
    "Row",
    "series_of",
    "wants_openmetrics",
    "written",
]

#: The formats.
TEXT: Final = 0
OPENMETRICS: Final = 1
TEXT_TYPE: Final = b"text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS_TYPE: Final = b"application/openmetrics-text; version=1.0.0; charset=utf-8"
#: Lines of one portion, about.
_PORTION: Final = 500
#: The divisor of the bounds of histograms in seconds, which count microseconds.
_MICROSECONDS: Final = 1_000_000

#: The values of the labels, in the order of the catalogue, and the value.
Row: TypeAlias = tuple[tuple[str, ...], int | float | Histogram]


class Family:
    """A metric and its rows.  ``exemplars`` are those of its buckets, if it has one row;
    ``offset_s`` plus their times is Unix time.
    """

    __slots__ = ("exemplars", "metric", "offset_s", "rows")

    def __init__(self, name: str, rows: Sequence[Row]) -> None:
        self.metric: Metric = BY_NAME[name]
        self.rows = rows
        self.exemplars: Sequence[Exemplar | None] = ()
        self.offset_s = 0.0
        for labels, _ in rows:
            assert len(labels) == len(self.metric.labels), f"{name} has other labels than {labels}"


def series_of(family: Family) -> int:
    """How many time series a family has."""
    count = 0
    for _, value in family.rows:
        count += len(value.counts) + 2 if isinstance(value, Histogram) else 1
    return count


def written(family: Family, form: int) -> Iterator[str]:
    """The lines of a family in portions; no lines if it has no rows."""
    if not family.rows:
        return
    metric = family.metric
    name = metric.full_name if form == TEXT else metric.family
    lines = [f"# HELP {name} {_escaped_help(metric.text)}\n", f"# TYPE {name} {metric.kind}\n"]
    if form == OPENMETRICS and metric.unit:
        lines.append(f"# UNIT {name} {metric.unit}\n")
    names = list(metric.labels)
    sample = metric.full_name if metric.kind == COUNTER else metric.family
    for labels, value in family.rows:
        if isinstance(value, Histogram):
            examples = _examples(family) if form == OPENMETRICS else {}
            _write_histogram(lines, metric, _pairs(names, labels), value, examples)
        else:
            pairs = _pairs(names, labels)
            lines.append(f"{sample}{{{pairs}}} {value!r}\n" if pairs else f"{sample} {value!r}\n")
        if len(lines) >= _PORTION:
            yield "".join(lines)
            lines = []
    yield "".join(lines)


def _examples(family: Family) -> dict[int, str]:
    """The exemplars to append to the lines of buckets, by bucket."""
    return {
        bucket: f' # {{trace_id="{each.trace}"}} {each.seconds!r} {each.at + family.offset_s:.3f}'
        for bucket, each in enumerate(family.exemplars)
        if each is not None
    }


def _write_histogram(
    lines: list[str], metric: Metric, pairs: str, value: Histogram, examples: Mapping[int, str]
) -> None:
    assert metric.kind == HISTOGRAM, f"{metric.name} is no histogram"
    scale = _MICROSECONDS if metric.unit == "seconds" else 1
    name = metric.family
    before = f"{pairs}," if pairs else ""
    count = 0
    for place, found in enumerate(value.counts):
        count += found
        bound = repr(value.bounds[place] / scale) if place < len(value.bounds) else "+Inf"
        lines.append(f'{name}_bucket{{{before}le="{bound}"}} {count}{examples.get(place, "")}\n')
    after = f"{{{pairs}}}" if pairs else ""
    lines.append(f"{name}_sum{after} {value.total / scale!r}\n")
    lines.append(f"{name}_count{after} {count}\n")


def _pairs(names: Sequence[str], values: Sequence[str]) -> str:
    return ",".join(
        [f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)]
    )


def _escaped(value: str) -> str:
    """Escape a label's value; only a line feed ends a line in these formats."""
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')


def _escaped_help(text: str) -> str:
    return text.replace("\\", "\\\\").replace("\n", "\\n")


def wants_openmetrics(accept: bytes) -> bool:
    """Whether the header Accept prefers OpenMetrics 1.0 to the older format."""
    best, best_weight = TEXT, 0.0
    for part in accept.decode("latin-1").split(","):
        kind, *parameters = [each.strip().lower() for each in part.split(";")]
        given = dict(each.partition("=")[::2] for each in parameters)
        form = {"application/openmetrics-text": OPENMETRICS, "text/plain": TEXT}.get(kind)
        if form is None or (form == OPENMETRICS and given.get("version", "1.0.0") != "1.0.0"):
            continue
        weight = _weight(given.get("q", "1"))
        if weight > best_weight:
            best, best_weight = form, weight
    return best == OPENMETRICS


def _weight(text: str) -> float:
    try:
        weight = float(text)
    except ValueError:
        return 0.0
    return weight if 0.0 <= weight <= 1.0 else 0.0
