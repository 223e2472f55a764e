# SPDX-License-Identifier: Apache-2.0
"""Packets of IPsec, and keystream that was made ahead of time."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Plot, Section, Table, Then, pivot
from .._documents import Document, Row, best, grouped, rate, ratio_to
from .._plots import Bar, Series, bars, lines

PATCHED_2011 = 3 / 8  # GB/s, 1024-byte packets from memory; Hagenberg 2011
HOT = 16 << 10
ROOF = "memcpy"


def packet(row: Row) -> str:
    return str(row["mix"]).upper() if "mix" in row else f"{row['size']:,}"


def ours(row: Row) -> bool:
    return str(row["backend"]).startswith("daelstrom")


def one_core(document: Document, bits: int) -> list[Row]:
    rows = document.where(where="packets", bits=bits)
    hot = [row for row in rows if row.get("working_set", HOT) == HOT]
    return hot or rows


def usual(rows: list[Row]) -> list[Row]:
    """Those of the packets that the thesis had, 1024 bytes, or the nearest to them."""
    sizes = {row["size"] for row in rows if "size" in row}
    nearest = min(sizes, key=lambda size: abs(size - 1024), default=None)
    return [row for row in rows if row.get("size") == nearest]


def by_packet(rows: list[Row]) -> Plot:
    sized = [row for row in rows if "size" in row and row["backend"] != ROOF]
    if len({row["size"] for row in sized}) > 1:
        series = [
            Series(
                name,
                [(row["size"], rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in group],
                line="solid" if ours(group[0]) else "dashed",
            )
            for name, group in grouped(sized, lambda row: str(row["backend"])).items()
        ]
        return lines(
            "One core, AES-128-GCM, by packet size",
            {"": series},
            x_label="bytes of a packet",
            form=lambda size: f"{size:.0f}",
        )
    each = [
        Bar(str(row["backend"]), rate(row), row["gbps"]["min"], row["gbps"]["max"], "c1" if ours(row) else "c4")
        for row in sized
    ]
    return bars(f"One core, AES-128-GCM, packets of {packet(sized[0])} bytes", each)


def by_cores(document: Document) -> Plot | None:
    rows = [row for row in document.where(where="cores", bits=128) if row["backend"] != ROOF]
    rows = usual(rows) or rows
    if len({row["threads"] for row in rows}) < 2:
        return None
    series = [
        Series(
            name,
            [(row["threads"], rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in group],
            line="solid" if ours(group[0]) else "dashed",
        )
        for name, group in grouped(rows, lambda row: str(row["backend"])).items()
    ]
    return lines(
        f"By the number of cores that seal, packets of {packet(rows[0])} bytes",
        {"": series},
        x_label="cores",
        form=lambda count: f"{count:.0f}",
        log=False,
    )


def parts(document: Document) -> Plot | None:
    rows = usual(document.where(where="parts", bits=128))
    each = [
        Bar(str(row["backend"]), row["ns"], row["ns"], row["ns"], "c4" if "LibTomCrypt" in row["backend"] else "c2")
        for row in rows
    ]
    return (
        bars("Where the time of a packet goes, AES-128", each, unit="nanoseconds a packet", log=True) if each else None
    )


def latency(document: Document) -> Table | None:
    rows = document.where(where="latency")
    if not rows:
        return None
    return Table(
        "From a packet's coming to its call's return, packets that come at random, nanoseconds",
        ["by", "AES\t", "bytes\t", "load\t", "p50\t", "p99\t", "p99.9\t"],
        [
            [
                str(row["backend"]),
                str(row["bits"]),
                packet(row),
                f"{row.get('load', 0)}%",
                *(words.digits(row[name]) if name in row else "" for name in ("p50_ns", "p99_ns", "p999_ns")),
            ]
            for row in rows
        ],
    )


def says(rows: list[Row]) -> list[str]:
    """What keystream ahead of time is worth to one core."""
    made = best(row for row in rows if "keystream by" in row["backend"])
    direct = best(row for row in rows if ours(row) and "keystream by" not in row["backend"])
    rival = best(row for row in rows if not ours(row) and row["backend"] != ROOF and "plug-in" not in row["backend"])
    sentences = []
    top = best(row for row in (made, direct) if row)
    if top and rival:
        sentences.append(
            f"On one core, packets of {packet(top)} bytes, “{top['backend']}” seals at {words.digits(rate(top))} GB/s"
            f" ({words.digits(top['ns'])} ns a packet), {words.times(rate(top) / rate(rival))} the best of the others,"
            f" {rival['backend']}."
        )
    if made and direct:
        verdict = "gains" if rate(made) > rate(direct) else "loses"
        factor = max(rate(made), rate(direct)) / min(rate(made), rate(direct))
        found = f" {words.share(made['hits'])} of the packets found theirs ready." if "hits" in made else ""
        sentences.append(
            f"Keystream made ahead of time {made['backend'].removeprefix('daelstrom, keystream ')} {verdict} a factor"
            f" of {words.digits(factor)} over the same table without it.{found}"
        )
    return sentences


def content(document: Document) -> Content:
    rows = one_core(document, 128)
    if not rows:
        return Content([])
    columns = list(dict.fromkeys(packet(row) for row in rows))
    tables = []
    for bits in sorted({row["bits"] for row in document.rows}):
        mine = one_core(document, bits)
        if not mine:
            continue
        cells = {
            name: {packet(row): row for row in group}
            for name, group in grouped(mine, lambda row: str(row["backend"])).items()
        }
        tables.append(pivot(f"One core, AES-{bits}-GCM, GB/s by bytes of a packet", "by", columns, cells))
    late = latency(document)
    thousand = usual(rows)
    headlines: list[Headline] = []
    then: list[Then] = []
    top = best(row for row in thousand if ours(row))
    if top:
        rivals = ((name, ratio_to(top, name)) for name in ("OpenSSL EVP", "libipsec-mb"))
        beside = [f"{words.times(ratio)} {name}" for name, ratio in rivals if ratio]
        beside.append(f"{words.times(rate(top) / PATCHED_2011)} the patched LibTomCrypt of 2011")
        headlines.append(
            Headline(
                words.digits(rate(top)),
                "GB/s",
                f"AES-128-GCM of packets of {packet(top)} bytes, one core,"
                f" {top['backend'].removeprefix('daelstrom, ')}",
                beside,
            )
        )
        then.append(
            Then(
                2011,
                "AES-GCM of packets of 1024 bytes, keystream made ahead by a GPU",
                f"{words.digits(PATCHED_2011)} GB/s",
                f"{words.digits(rate(top))} GB/s",
                words.times(rate(top) / PATCHED_2011),
            )
        )
    plain = next((row for row in thousand if row["backend"] == "LibTomCrypt"), None)
    if plain:
        then.append(
            Then(
                2011,
                "the same by LibTomCrypt as it comes, one core",
                "0.06 to 0.13 GB/s",
                f"{words.digits(rate(plain))} GB/s",
            )
        )
    plots = [by_packet(rows), by_cores(document), parts(document)]
    return Content(
        says(thousand),
        [plot for plot in plots if plot],
        tables + ([late] if late else []),
        headlines=headlines,
        then=then,
    )


SECTION = Section(
    "packets",
    "Packets, and keystream ahead of time",
    "Hagenberg 2011",
    "What is keystream made ahead of time worth to packets of IPsec?",
    content,
)
