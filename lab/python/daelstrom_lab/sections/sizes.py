# SPDX-License-Identifier: Apache-2.0
"""From 16 KiB to 1 GiB: every way from host memory, and the three times of 2011."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Plot, Section, Table, Then, pivot
from .._documents import Document, Row, best, grouped, rate
from .._plots import Bar, Series, bars, lines

PANELS = (("ctr", "encrypt", "CTR"), ("ecb", "encrypt", "ECB"), ("cbc", "decrypt", "CBC decryption"))
GTX_465 = {"kernel": 3.7, "async": 3.0}  # GB/s; Brno 2011
GTX_460M = 2.230 / 8  # GB/s, CTR of 512 MB; São José do Rio Preto 2013
CROSSOVER_2013 = "4 MB"
HUES = {"CPU": "c1", "OpenSSL": "c4", "CUDA": "c3", "OpenCL": "c2"}
FORMS = {"sse": "with AES-NI", "avx2": "with VAES, 256 bits", "avx512": "with VAES, 512 bits"}
YARDSTICK = "OpenSSL, 1 core"


def from_host(row: Row) -> bool:
    """From host memory and back to it, one message."""
    if row.get("messages", 1) > 1 or row.get("placement", "apart") != "apart":
        return False
    return row.get("where") == "host" or (row.get("where") in ("pinned", "pageable") and row.get("measure") == "async")


def way(row: Row) -> str:
    """Who does it: "CPU, 16 cores", "CUDA, page-locked"."""
    name = words.backend(row["backend"])
    if row["where"] == "host":
        cores = row.get("threads", 1)
        return f"{name}, {cores} core{'s' if cores > 1 else ''}"
    return f"{name}, {'page-locked' if row['where'] == 'pinned' else 'ordinary'} memory"


def point(row: Row) -> tuple[float, float, float, float]:
    return row["size"], rate(row), row["gbps"]["min"], row["gbps"]["max"]


def ways(rows: list[Row]) -> dict[str, list[Row]]:
    """Rows by who does it: on one core, on as many as it takes (each size with the most that it was given), by a device."""
    most = max((row.get("threads", 1) for row in rows if row["where"] == "host"), default=1)
    made: dict[str, list[Row]] = {}
    for name, mine in grouped(rows, lambda row: way({**row, "threads": 1})).items():
        if mine[0]["where"] != "host":
            made[name] = mine
            continue
        single = [row for row in mine if row.get("threads", 1) == 1]
        if single:
            made[name] = single
        if most > 1:
            by_size = grouped(mine, lambda row: str(row["size"])).values()
            widest = [max(group, key=lambda row: int(row.get("threads", 1))) for group in by_size]
            made[f"{name.split(',')[0]}, up to {most} cores"] = widest
    return made


def of_work(rows: list[Row], mode: str, direction: str) -> list[Row]:
    return [row for row in rows if (row["mode"], row["direction"], row["bits"]) == (mode, direction, 128)]


def by_size(rows: list[Row]) -> Plot | None:
    panels: dict[str, list[Series]] = {}
    for mode, direction, title in PANELS:
        mine = ways(of_work(rows, mode, direction))
        if mine:
            widest = max(len(group) for group in mine.values())
            panels[f"{title}, AES-128"] = [
                Series(
                    name,
                    [point(row) for row in group],
                    HUES.get(name.split(",")[0], ""),
                    "dashed" if name.endswith((" 1 core", "ordinary memory")) else "solid",
                )
                for name, group in mine.items()
                if len(group) > 1 or widest == 1  # one size among lines says nothing
            ]
    return lines("From host memory and back to it, by size", panels, x_label="size") if panels else None


def three_times(document: Document) -> Plot | None:
    """Kernel, total and async, as the thesis of 2011 has them."""
    panels: dict[str, list[Series]] = {}
    rows = document.where(mode="ctr", bits=128, placement="apart", messages=1)
    for name, mine in grouped(rows, lambda row: str(row["backend"])).items():
        series: list[Series] = []
        for title, where, measure in (
            ("kernel alone", "device", "kernel"),
            ("copies and kernel overlapped (async)", "pinned", "async"),
            ("one after the other (total)", "pinned", "total"),
        ):
            points = [point(row) for row in mine if (row["where"], row["measure"]) == (where, measure)]
            if points:
                series.append(Series(title, points, f"c{len(series) + 1}"))
        if series:
            panels[f"{words.backend(name)}, AES-128-CTR"] = series
    return lines("The three times of a device: kernel, async, total", panels, x_label="size") if panels else None


def pays_from(group: list[Row], openssl: dict[int, float]) -> int | None:
    """The size from which on a way is faster than OpenSSL on one core at every size that both have."""
    found = None
    for row in sorted(group, key=lambda row: -int(row["size"])):
        if row["size"] in openssl:
            if rate(row) <= openssl[row["size"]]:
                break
            found = int(row["size"])
    return found


def crossings(rows: list[Row]) -> dict[str, dict[str, int]]:
    """Of each way, by mode, the size from which on it pays; 0 where it does at none."""
    made: dict[str, dict[str, int]] = {}
    for mode, direction, _ in PANELS:
        mine = ways(of_work(rows, mode, direction))
        openssl = {int(row["size"]): rate(row) for row in mine.get(YARDSTICK, ())}
        for name, group in mine.items():
            if openssl and name != YARDSTICK and (len(group) > 1 or len(openssl) == 1):
                size = pays_from(group, openssl)
                made.setdefault(name, {})[mode] = size or 0
    return made


def crossing_table(crossed: dict[str, dict[str, int]]) -> Table:
    return Table(
        "From which size on a way is always faster than OpenSSL on one core (AES-128)",
        ["way", *(f"{title}\t" for _, _, title in PANELS)],
        [
            [
                name,
                *(
                    (words.size(size) if size else "at none") if (size := cells.get(mode, -1)) >= 0 else "one size alone"
                    for mode, _, _ in PANELS
                ),
            ]
            for name, cells in crossed.items()
        ],
    )


def says(rows: list[Row]) -> list[str]:
    ctr = [row for row in rows if (row["mode"], row["bits"]) == ("ctr", 128)]
    if not ctr:
        return []
    largest, smallest = max(row["size"] for row in ctr), min(row["size"] for row in ctr)
    top = best(row for row in ctr if row["size"] == largest)
    small = best(row for row in ctr if row["size"] == smallest)
    assert top and small
    sentences = [
        f"From host memory the fastest way for {words.size(largest)} by AES-128-CTR is {way(top)}, with"
        f" {words.digits(rate(top))} GB/s; for {words.size(smallest)} it is {way(small)}, with"
        f" {words.digits(rate(small))}."
    ]
    devices = {way(row) for row in ctr if row["where"] != "host"}
    crossed = {name: cells["ctr"] for name, cells in crossings(rows).items() if name in devices and cells.get("ctr")}
    if devices and crossed:
        first = min(crossed, key=lambda name: crossed[name])
        sentences.append(
            f"Through a device it pays from {words.size(crossed[first])} on ({first}), against OpenSSL on one core."
        )
    elif devices:
        sentences.append("Through a device it pays at none of these sizes, against OpenSSL on one core.")
    return sentences


def ratio_line(row: Row) -> list[str]:
    return [f"{words.share(row['ratio'])} of its ceiling, {row['ceiling']['name']}"] if "ratio" in row else []


def front(document: Document, rows: list[Row]) -> tuple[list[Headline], list[Then]]:
    """What goes to the first screen."""
    headlines: list[Headline] = []
    then: list[Then] = []
    large = [row for row in rows if (row["mode"], row["bits"]) == ("ctr", 128)]
    host = best(row for row in large if row["where"] == "host" and row["size"] == max(each["size"] for each in large))
    device = best(row for row in large if row["where"] != "host" and not document.plays(row["backend"]))
    resident = document.where(where="device", measure="kernel", mode="ecb", bits=128, direction="encrypt", messages=1)
    kernel = best(row for row in resident if not document.plays(row["backend"]))
    for row in (host, device):
        if row:
            headlines.append(
                Headline(
                    words.digits(rate(row)),
                    "GB/s",
                    f"{words.cipher(row)} of {words.size(row['size'])} from host memory, {way(row)}",
                    [*ratio_line(row), f"{words.times(rate(row) / GTX_465['async'])} the fastest way of 2011"],
                )
            )
    if kernel:
        then.append(
            Then(
                2011,
                "AES in device memory, GTX 465, kernel alone (today ECB-128)",
                f"{words.digits(GTX_465['kernel'])} GB/s",
                f"{words.digits(rate(kernel))} GB/s",
                words.times(rate(kernel) / GTX_465["kernel"]),
            )
        )
    largest = max((row["size"] for row in rows), default=0)
    top = best(row for row in rows if row["size"] == largest)
    if top:
        then.append(
            Then(
                2011,
                "host memory and back by the fastest way: then a GTX 465, copies overlapped",
                f"{words.digits(GTX_465['async'])} GB/s",
                f"{words.digits(rate(top))} GB/s, {way(top)}",
                words.times(rate(top) / GTX_465["async"]),
            )
        )
    if device:
        then.append(
            Then(
                2013,
                "AES-128-CTR of 512 MB through a GTX 460M",
                f"{words.digits(GTX_460M)} GB/s",
                f"{words.digits(rate(device))} GB/s, {words.size(device['size'])}",
                words.times(rate(device) / GTX_460M),
            )
        )
        devices = {way(row) for row in large if row["where"] != "host"}
        sizes = [cells["ctr"] for name, cells in crossings(rows).items() if name in devices and cells.get("ctr")]
        then.append(
            Then(
                2013,
                "size from which a GPU is faster than the CPU (today: than OpenSSL on one core)",
                CROSSOVER_2013,
                words.size(min(sizes)) if sizes else "none of those measured",
            )
        )
    return headlines, then


def forms(document: Document) -> Plot | None:
    """What each kind of instructions makes of what lies in a core's cache."""
    rows = document.where(where="cache", mode="ctr", bits=128, messages=1)
    largest = max((row["size"] for row in rows), default=0)
    mine = [row for row in rows if row["size"] == largest]
    each = [
        Bar(
            f"{words.backend(row['backend'])} {FORMS.get(row.get('isa', ''), row.get('isa', ''))}".strip(),
            rate(row),
            row["gbps"]["min"],
            row["gbps"]["max"],
            HUES.get(words.backend(row["backend"]), "c1"),
        )
        for row in mine
    ]
    caption = f"One core, AES-128-CTR of {words.size(largest)} in its cache, by the instructions that do it"
    return bars(caption, each) if each else None


def content(document: Document) -> Content:
    rows = [row for row in document.rows if from_host(row)]
    headlines, then = front(document, rows)
    ctr = [row for row in rows if (row["mode"], row["bits"]) == ("ctr", 128)]
    columns = [words.size(size) for size in sorted({row["size"] for row in ctr})]
    cells = {name: {words.size(row["size"]): row for row in group} for name, group in ways(ctr).items()}
    tables = [pivot("AES-128-CTR from host memory, GB/s", "way", columns, cells)] if cells else []
    crossed = crossings(rows)
    return Content(
        says(rows),
        [plot for plot in (by_size(rows), forms(document), three_times(document)) if plot],
        tables + ([crossing_table(crossed)] if crossed else []),
        headlines=headlines,
        then=then,
    )


SECTION = Section(
    "sizes",
    "From small to large",
    "Brno 2011",
    "How fast is each way from 16 KiB to 1 GiB, and from where on does it pay?",
    content,
)
