# SPDX-License-Identifier: Apache-2.0
"""One job by devices and the host's cores together, by the cores' share."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Plot, Section, pivot
from .._documents import Document, Row, best, grouped, rate
from .._plots import Series, lines


def members(row: Row) -> str:
    return " and ".join(words.backend(name) for name in str(row["backend"]).split("+"))


def is_fixed(row: Row) -> bool:
    return bool(row["study_part"] == "fixed share")


def share(row: Row) -> float:
    """Of the cores, per cent."""
    return float(row.get("cpu_share" if is_fixed(row) else "cpu_percent", 0))


def joules(row: Row) -> float | None:
    """For a gigabyte, of all that was weighed: GPUs, processors or both."""
    figures = [float(row[name]) for name in ("gpu_joules_per_gb", "cpu_joules_per_gb") if name in row]
    return sum(figures) if figures else None


def weighed(rows: list[Row]) -> str:
    kinds = (("gpu", "the GPUs"), ("cpu", "the processors"))
    return words.listed([name for kind, name in kinds if any(f"{kind}_joules_per_gb" in row for row in rows)])


def series(rows: list[Row]) -> list[Series]:
    """A line over the fixed shares, and a dot where the scheduler is."""
    return [
        Series(
            f"{name}, {'fixed' if fixed else 'the scheduler'}",
            [(share(row), rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in rows if is_fixed(row) == fixed],
        )
        for name, rows in grouped(rows, members).items()
        for fixed in (True, False)
        if any(is_fixed(row) == fixed for row in rows)
    ]


def energy(rows: list[Row]) -> list[Series]:
    return [
        Series(name, [(share(row), each, each, each) for row in group if (each := joules(row)) is not None])
        for name, group in grouped([row for row in rows if is_fixed(row) and joules(row)], members).items()
    ]


def by_share(caption: str, panels: dict[str, list[Series]], unit: str) -> Plot:
    return lines(
        caption,
        panels,
        x_label="the cores' share, %",
        unit=unit,
        log=False,
        form=lambda value: f"{value:g}",
        binary=False,
    )


def says(rows: list[Row]) -> list[str]:
    fixed = [row for row in rows if is_fixed(row)]
    top = best(fixed)
    if top is None:
        return []
    alone = {share(row): rate(row) for row in fixed if share(row) in (0, 100)}
    beside = [
        f"{words.times(rate(top) / alone[which])} {name}"
        for which, name in ((0, "without the cores"), (100, "the cores alone"))
        if which in alone
    ]
    text = (
        f"{words.cipher(top)} by {members(top)} is fastest where the cores have {share(top):.0f}% of it:"
        f" {words.digits(rate(top))} GB/s, {words.listed(beside)}."
    )
    for row in rows:
        if not is_fixed(row):
            text += (
                f" The scheduler gives them {share(row):.0f}%, and makes {words.digits(rate(row))} GB/s,"
                f" {words.share(rate(row) / rate(top))} of that."
            )
    least = min((row for row in fixed if joules(row)), key=lambda row: joules(row) or 0, default=None)
    if least:
        text += (
            f" A gigabyte takes least energy of {weighed(rows)} at {share(least):.0f}%:"
            f" {words.digits(joules(least) or 0)} J."
        )
    return [text]


def content(document: Document) -> Content:
    rows = document.rows
    if not rows:
        return Content([])
    sentences = []
    for group in grouped(rows, lambda row: f"{row['backend']} {words.cipher(row)}").values():
        sentences += says(group)
    if not any(joules(row) for row in rows):
        sentences.append("Nobody could read what energy it took.")
    ciphers = grouped(rows, words.cipher)
    plots = [by_share("Rate, by the share of the host's cores", {name: series(own) for name, own in ciphers.items()}, "GB/s")]
    if any(joules(row) for row in rows):
        plots.append(
            by_share(
                f"Energy of {weighed(rows)} for a gigabyte, by the share of the host's cores",
                {name: energy(own) for name, own in ciphers.items() if energy(own)},
                "J/GB",
            )
        )
    columns = [f"{each:.0f}%" for each in sorted({share(row) for row in rows if is_fixed(row)})]
    cells = {
        name: {f"{share(row):.0f}%" if is_fixed(row) else "the scheduler": row for row in group}
        for name, group in grouped(rows, lambda row: f"{words.cipher(row)}, {members(row)}").items()
    }
    table = pivot("GB/s, by the share of the host's cores", "by", [*columns, "the scheduler"], cells)
    gained = best(row for row in rows if not is_fixed(row) and not document.plays(str(row["backend"])))
    headlines = []
    if gained and gained.get("of_best"):
        headlines.append(
            Headline(
                words.digits(rate(gained)),
                "GB/s",
                f"{words.cipher(gained)} by {members(gained)} at one job",
                [f"{words.share(gained['of_best'])} of the best share that is fixed"],
            )
        )
    return Content(sentences, plots, [table], headlines=headlines)


SECTION = Section(
    "devices",
    "Devices and cores together",
    "daelstrom",
    "How much of a job should the host's cores do beside a GPU?",
    content,
)
