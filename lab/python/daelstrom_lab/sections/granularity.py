# SPDX-License-Identifier: Apache-2.0
"""Threads of a block, and blocks of AES for each."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Plot, Section, Table, pivot
from .._documents import Document, Row, best, grouped, rate
from .._plots import Series, lines


def each(row: Row) -> str:
    count = row.get("blocks_per_thread", 0)
    return f"{count} a thread" if count else "until nothing is left"


def reach(rows: list[Row], top: Row, field: str, other: str) -> float:
    """How much one axis decides, the other kept where the fastest has it."""
    along = [rate(row) for row in rows if row.get(other) == top.get(other)]
    return max(along) / min(along)


def says(document: Document, rows: list[Row]) -> list[str]:
    top, last = best(rows), min(rows, key=rate, default=None)
    if not top or not last:
        return []
    where = f"{words.backend(top['backend'])} ({document.device(top['backend'])})"
    return [
        (
            f"On {where} blocks of {top['threads']} threads that take AES blocks {each(top)} are fastest:"
            f" {words.digits(rate(top))} GB/s, {words.times(rate(top) / rate(last))} the slowest, {last['threads']}"
            f" threads that take them {each(last)}."
        ),
        (
            "From there, the number of threads decides a factor of"
            f" {words.digits(reach(rows, top, 'threads', 'blocks_per_thread'))}, and what each thread takes a factor of"
            f" {words.digits(reach(rows, top, 'blocks_per_thread', 'threads'))}."
        ),
    ]


def content(document: Document) -> Content:
    sentences: list[str] = []
    plots: list[Plot] = []
    tables: list[Table] = []
    for name, rows in grouped(document.rows, lambda row: str(row["backend"])).items():
        backend = words.backend(name)
        sentences += says(document, rows)
        by_each = grouped(rows, each)
        series = [
            Series(
                key,
                [(row["threads"], rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in group],
                f"c{number % 7 + 1}",
            )
            for number, (key, group) in enumerate(by_each.items())
        ]
        plots.append(
            lines(
                f"Kernel 2 on {backend}, by threads of a block",
                {"": series},
                x_label="threads of a block",
                form=lambda value: f"{value:.0f}",
                log=False,
            )
        )
        columns = [f"{count}" for count in sorted({row["threads"] for row in rows})]
        cells = {key: {str(row["threads"]): row for row in group} for key, group in by_each.items()}
        tables.append(pivot(f"GB/s on {backend}, by threads of a block", "AES blocks", columns, cells))
    return Content(sentences, plots, tables)


SECTION = Section(
    "granularity",
    "How fine the work is cut",
    "Brno 2011, São José do Rio Preto 2013",
    "How many threads in a block, and how many blocks of AES for each?",
    content,
)
