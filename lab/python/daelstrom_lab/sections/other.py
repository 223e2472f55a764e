# SPDX-License-Identifier: Apache-2.0
"""A study of which nothing is known but the schema: axes and values from the fields of its rows."""

from __future__ import annotations

from collections.abc import Callable

from .. import _words as words
from .._content import Content, Plot, Section
from .._documents import Document, Row, best, grouped, rate, typical_spread
from .._plots import Bar, Series, bars, lines

MOST_BARS, MOST_LINES = 24, 7


def varying(rows: list[Row]) -> list[str]:
    """Fields of the points that are not the same throughout."""
    return [field for field in words.point_fields(rows) if len({str(row.get(field)) for row in rows}) > 1]


def label(row: Row, fields: list[str]) -> str:
    parts = [
        (
            words.value(field, row[field])
            if isinstance(row[field], str)
            else f"{words.title(field)} {words.value(field, row[field])}"
        )
        for field in fields
        if field in row
    ]
    return ", ".join(parts) or "all"


def axis_of(rows: list[Row], fields: list[str]) -> str:
    """The field with the most numbers, three at least, that every row has."""
    counts = {
        field: len({row[field] for row in rows})
        for field in fields
        if all(isinstance(row.get(field), (int, float)) for row in rows)
    }
    field = max(counts, key=lambda name: counts[name], default="")
    return field if field and counts[field] > 2 else ""


def plots_of(rows: list[Row], title: str) -> list[Plot]:
    fields = varying(rows)
    axis = axis_of(rows, fields)
    rest = [field for field in fields if field != axis]
    series = grouped(rows, lambda row: label(row, rest))
    if axis and len(series) <= MOST_LINES:
        made = [
            Series(
                name,
                [(row[axis], rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in group],
                f"c{number + 1}",
            )
            for number, (name, group) in enumerate(series.items())
        ]
        binary = min(row[axis] for row in rows) > 0
        form: Callable[[float], str] = words.size if axis in words.BYTES else lambda value: f"{value:g}"
        return [lines(title, {"": made}, x_label=words.title(axis), form=form, binary=binary)]
    fastest = sorted(rows, key=rate, reverse=True)[:MOST_BARS]
    more = f", the fastest {len(fastest)} of {len(rows)}" if len(fastest) < len(rows) else ""
    return [
        bars(
            title + more,
            [Bar(label(row, fields), rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in fastest],
        )
    ]


def says(rows: list[Row]) -> list[str]:
    top, last = best(rows), min(rows, key=rate)
    fields = varying(rows)
    if top is None or len(rows) < 2:
        return []
    first = (
        f"Fastest is “{label(top, fields)}” with {words.digits(rate(top))} GB/s; slowest “{label(last, fields)}” with "
        f"{words.digits(rate(last))}."
    )
    spread = (
        f"Within a row, samples lie within {words.share(typical_spread(rows))} of the median, in the median of the"
        " rows."
    )
    return [first, spread]


def content(document: Document) -> Content:
    if not document.rows:
        return Content([])
    plots = []
    for part, rows in grouped(document.rows, lambda row: str(row.get("study_part") or row.get("where") or "")).items():
        plots += plots_of(rows, words.sentence(part or "rates"))
    return Content(says(document.rows), plots)


def section_of(study: str) -> Section:
    return Section(study, words.sentence(study.replace("_", " ")), "", "", content)
