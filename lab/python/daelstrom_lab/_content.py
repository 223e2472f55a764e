# SPDX-License-Identifier: Apache-2.0
"""What a section of the report consists of."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

from . import _words as words
from ._documents import Document, Row, rate


@dataclasses.dataclass(frozen=True)
class Legend:
    """One line of a plot's key: its name, the style sheet's colour and how it is drawn."""

    name: str
    colour: str
    line: str = "solid"  # solid, dashed, dot


@dataclasses.dataclass(frozen=True)
class Plot:
    """One plot, drawn for a wide screen and for a narrow one."""

    caption: str
    wide: str
    narrow: str
    legend: Sequence[Legend] = ()


@dataclasses.dataclass(frozen=True)
class Table:
    """A table of text. Columns whose title ends in a tab hold numbers."""

    caption: str
    titles: Sequence[str]
    lines: Sequence[Sequence[str]]
    folded: bool = False  # shown when it is asked for

    @property
    def columns(self) -> list[tuple[str, bool]]:
        return [(title.removesuffix("\t"), title.endswith("\t")) for title in self.titles]

    def filled(self) -> Table:
        """Without the columns that say nothing."""
        kept = [place for place in range(len(self.titles)) if any(line[place] for line in self.lines)]
        return dataclasses.replace(
            self,
            titles=[self.titles[place] for place in kept],
            lines=[[line[place] for place in kept] for line in self.lines],
        )


@dataclasses.dataclass(frozen=True)
class Picture:
    caption: str
    source: str  # a data: URL


@dataclasses.dataclass(frozen=True)
class Headline:
    """A figure of the first screen."""

    value: str
    unit: str
    what: str
    beside: Sequence[str] = ()  # ceilings, and years gone by


@dataclasses.dataclass(frozen=True)
class Then:
    """A figure of 2007 to 2017 beside today's."""

    year: int
    what: str
    then: str
    now: str
    times: str = ""


@dataclasses.dataclass(frozen=True)
class Content:
    """What a section shows. `says` are sentences written from the data."""

    says: Sequence[str]
    plots: Sequence[Plot] = ()
    tables: Sequence[Table] = ()
    pictures: Sequence[Picture] = ()
    headlines: Sequence[Headline] = ()
    then: Sequence[Then] = ()


@dataclasses.dataclass(frozen=True)
class Section:
    """A study's place in the report."""

    study: str
    title: str
    origin: str
    question: str
    content: Callable[[Document], Content]


def all_rows(document: Document) -> Table:
    """Every row with every figure but the series."""
    rows = document.rows
    fields = [name for name in words.point_fields(rows) if len({str(row.get(name)) for row in rows}) > 1]
    figures = words.own_figures(rows)
    numeric = {name for name in fields if all(isinstance(row.get(name, 0), (int, float)) for row in rows)}
    titles = [words.title(name) + ("\t" if name in numeric else "") for name in fields]
    titles += ["GB/s\t", "least\t", "most\t", "one call\t", "samples\t"]
    titles += [words.title(name) + "\t" for name in figures] + ["of the ceiling\t", "ceiling, GB/s"]
    return Table(f"All {len(rows)} rows", titles, [_line(row, fields, figures) for row in rows], folded=True)


def _line(row: Row, fields: list[str], figures: list[str]) -> list[str]:
    line = [words.value(name, row[name]) if name in row else "" for name in fields]
    line += [words.digits(float(row["gbps"][name])) for name in ("median", "min", "max")]
    line += [words.span(row["seconds"]) if "seconds" in row else "", words.value("samples", row.get("samples", ""))]
    line += [words.value(name, row[name]) if name in row else "" for name in figures]
    ceiling = row.get("ceiling")
    if ceiling is None:
        return [*line, "", ""]
    return [*line, words.share(row["ratio"]), f"{ceiling['name']}: {words.digits(ceiling['gbps'])}"]


def pivot(caption: str, corner: str, columns: Sequence[str], lines: dict[str, dict[str, Row]]) -> Table:
    """Rates in GB/s: a line for each name, a column for each value."""
    return Table(
        caption,
        [corner, *(f"{column}\t" for column in columns)],
        [
            [name, *(words.digits(rate(cells[column])) if column in cells else "" for column in columns)]
            for name, cells in lines.items()
        ],
    )
