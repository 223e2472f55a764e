# SPDX-License-Identifier: Apache-2.0
"""The thirteen kernels of 2017 and what came later."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Legend, Plot, Section, Table, Then
from .._documents import Document, Row, best, grouped, rate
from .._plots import Bar, bars

STATES = {"soa": "SoA", "aos": "AoS"}


def shape(row: Row) -> str:
    """4 tables shared, keys constant, state in registers, 16 bytes a thread."""
    tables, state = row.get("tables", ""), row.get("state", "")
    parts = [
        "no tables" if tables == "none" else f"{row.get('table_count', '')} {tables}".strip(),
        f"keys {row['keys']}" if "keys" in row else "",
        STATES.get(state, state),
        f"{row['bytes_per_thread']}\u00a0B" if "bytes_per_thread" in row else "",
    ]
    return ", ".join(part for part in parts if part)


def is_of_2017(row: Row) -> bool:
    return "gbps_2017" in row


def correlation(rows: list[Row]) -> float:
    """Spearman's, of the places then and now."""
    count = len(rows)
    squares = sum((row["rank"] - row["rank_2017"]) ** 2 for row in rows)
    return float(1 - 6 * squares / (count * (count * count - 1)))


def named(row: Row) -> str:
    name = str(row["kernel"])
    return f"number {name}" if name.isdigit() else f"“{name}”"


def orders(thirteen: list[Row]) -> str:
    """How the order of the thirteen compares with that of 2017."""
    if not all("rank" in row and "rank_2017" in row for row in thirteen) or len(thirteen) < 3:
        return ""
    moved = max(thirteen, key=lambda row: abs(row["rank"] - row["rank_2017"]))
    if moved["rank"] == moved["rank_2017"]:
        return "The order is that of 2017."
    return (
        f"Their order and that of 2017 agree with a rank correlation of {correlation(thirteen):.2f}; number "
        f"{moved['kernel']} moved most, from place {moved['rank_2017']:.0f} to {moved['rank']:.0f}."
    )


def says(document: Document, rows: list[Row]) -> list[str]:
    thirteen = [row for row in rows if is_of_2017(row)]
    first, last = best(thirteen), min(thirteen, key=rate, default=None)
    if not first or not last:
        return []
    then = max(thirteen, key=lambda row: float(row["gbps_2017"]))
    found = (
        f"On {words.backend(first['backend'])} ({document.device(first['backend'])}) the fastest of the thirteen"
        f" kernels is number {first['kernel']} ({shape(first)}) with {words.digits(rate(first))} GB/s,"
        f" {words.times(rate(first) / rate(last))} the slowest, number {last['kernel']}; in 2017 number"
        f" {then['kernel']} led with {words.digits(then['gbps_2017'])}."
    )
    later = best(row for row in rows if not is_of_2017(row))
    since = ""
    if later:
        since = (
            f" Of what came later, {named(later)} is fastest: {words.digits(rate(later))} GB/s, "
            f"{words.times(rate(later) / rate(first))} the best of the thirteen."
        )
    caution = ""
    if document.plays(first["backend"]):
        caution = (
            " On a processor that plays a device all memories are the same caches: the order says nothing about GPUs."
        )
    return [found, f"{orders(thirteen)}{since}{caution}".strip()]


def then_and_now(rows: list[Row], backend: str) -> Plot:
    """Each kernel's rate as a share of the best of its time, so that a GTX 285 and today's card fit one scale."""
    now, then = max(map(rate, rows)), max(float(row["gbps_2017"]) for row in rows)
    each = [
        Bar(
            f"{row['kernel']} · {shape(row)}",
            100 * rate(row) / now,
            100 * row["gbps"]["min"] / now,
            100 * row["gbps"]["max"] / now,
            "c1",
            100 * row["gbps_2017"] / then,
            f"{words.digits(rate(row))} GB/s",
        )
        for row in rows
    ]
    return bars(
        f"The thirteen on {backend}, each as a share of the fastest of its time",
        each,
        unit="% of the fastest of the thirteen",
        mark="2017, GTX 285",
        legend=[Legend("today", "c1", "bar")],
    )


def later_ones(rows: list[Row], backend: str) -> Plot:
    best_of_table = best(row for row in rows if is_of_2017(row))
    shown = sorted((row for row in rows if not is_of_2017(row)), key=rate, reverse=True)
    each = (
        [Bar(f"best of the thirteen, number {best_of_table['kernel']}", *_rates(best_of_table), "c4")]
        if best_of_table
        else []
    )
    each += [
        Bar(
            f"{row['kernel']}, {str(row['mode']).upper()}",
            *_rates(row),
            "c1" if row.get("where") == "library" else "c2",
        )
        for row in shown
    ]
    return bars(
        f"What came later, on {backend}",
        each,
        legend=[
            Legend("of 2017", "c4", "bar"),
            Legend("the lab's kernels", "c2", "bar"),
            Legend("daelstrom's own", "c1", "bar"),
        ],
    )


def _rates(row: Row) -> tuple[float, float, float]:
    return rate(row), float(row["gbps"]["min"]), float(row["gbps"]["max"])


def table(rows: list[Row], backend: str) -> Table:
    def number(row: Row, field: str, form: str = "{:.0f}") -> str:
        return form.format(row[field]) if field in row else ""

    return Table(
        f"Kernels on {backend}, GB/s; and on a GTX 285 in 2017",
        [
            "kernel",
            "GB/s\t",
            "place\t",
            "2017, GB/s\t",
            "place in 2017\t",
            "of the copy\t",
            "tables, keys, state, bytes a thread",
        ],
        [
            [
                str(row["kernel"]) + (f", {str(row['mode']).upper()}" if row.get("where") == "library" else ""),
                words.digits(rate(row)),
                number(row, "rank"),
                words.digits(row["gbps_2017"]) if is_of_2017(row) else "",
                number(row, "rank_2017"),
                words.share(row["ratio"]) if "ratio" in row else "",
                shape(row),
            ]
            for row in rows
        ],
    )


def content(document: Document) -> Content:
    sentences: list[str] = []
    plots: list[Plot] = []
    tables: list[Table] = []
    headlines: list[Headline] = []
    then: list[Then] = []
    # The first device is the one that the first screen speaks of.
    for name, rows in grouped(document.rows, lambda row: str(row["backend"])).items():
        backend = words.backend(name)
        thirteen = [row for row in rows if is_of_2017(row)]
        sentences += says(document, rows)
        if thirteen:
            plots.append(then_and_now(thirteen, backend))
        if len(thirteen) < len(rows):
            plots.append(later_ones(rows, backend))
        tables.append(table(rows, backend))
        first, fastest = best(thirteen), best(rows)
        if first and fastest and not headlines and not document.plays(name):
            led = max(float(row["gbps_2017"]) for row in thirteen)
            beside = [f"{words.times(rate(fastest) / led)} the fastest kernel of 2017"]
            if "ratio" in fastest:
                beside.insert(0, f"{words.share(fastest['ratio'])} of its ceiling, {fastest['ceiling']['name']}")
            headlines.append(
                Headline(
                    words.digits(rate(fastest)),
                    "GB/s",
                    f"{words.cipher(fastest)} in the memory of {document.device(name)}",
                    beside,
                )
            )
            then.append(
                Then(
                    2017,
                    "fastest of thirteen kernels, AES-128-ECB, 256 MiB in device memory, GTX 285",
                    f"{words.digits(led)} GB/s",
                    f"{words.digits(rate(first))} GB/s",
                    words.times(rate(first) / led),
                )
            )
    return Content(sentences, plots, tables, headlines=headlines, then=then)


SECTION = Section(
    "placement",
    "Where tables, keys and state lie",
    "Kazan 2017",
    "Where should T-tables, round keys and the state lie, and how fine should the work be cut?",
    content,
)
