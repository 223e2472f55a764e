# SPDX-License-Identifier: Apache-2.0
"""Eight files through programs."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Legend, Plot, Section, Table, Then
from .._documents import Document, Row, grouped, rate
from .._plots import Bar, Series, bars, lines

THEN_2007 = "1.00 to 1.04×"
CLEAR = "no cipher"


def who(row: Row) -> str:
    """The program, and the backend that it was told to take."""
    backend = str(row.get("backend", ""))
    told = backend and row.get("program") != "openssl enc" and backend != "provider"
    return str(row.get("program", "")) + (f", {words.backend(backend)}" if told else "")


def together(rows: list[Row]) -> float:
    """GB/s of all files, one after the other."""
    return sum(float(row["size"]) for row in rows) / sum(float(row["seconds"]) for row in rows) / 1e9


def processor(rows: list[Row]) -> float:
    """Seconds of the processor for a gigabyte."""
    return sum(float(row.get("cpu_seconds", 0)) for row in rows) / (sum(float(row["size"]) for row in rows) / 1e9)


def megabytes(size: float) -> str:
    return f"{size / 1e6:g}"


def is_clear(rows: list[Row]) -> bool:
    return rows[0].get("study_part") == CLEAR


def says(by: dict[str, list[Row]]) -> list[str]:
    encrypted = {name: rows for name, rows in by.items() if not is_clear(rows)}
    if not encrypted:
        return []
    first = max(encrypted, key=lambda name: together(encrypted[name]))
    last = min(encrypted, key=lambda name: together(encrypted[name]))
    sentences = [
        f"All {len(by[first])} files, one after the other, go through “{first}” at {words.digits(together(by[first]))}"
        f" GB/s, {words.times(together(by[first]) / together(by[last]))} “{last}”."
    ]
    clear = next((name for name, rows in by.items() if is_clear(rows)), None)
    if clear:
        part = together(by[first]) / together(by[clear])
        sentences.append(
            f"Without any cipher (“{clear}”) it is {words.digits(together(by[clear]))} GB/s, of which the fastest way"
            f" with one keeps {words.share(part)}; it takes {words.digits(processor(by[first]))} seconds of the"
            f" processor for a gigabyte, against {words.digits(processor(by[clear]))}."
        )
    return sentences


def plots(by: dict[str, list[Row]]) -> list[Plot]:
    def bar(name: str, value: float) -> Bar:
        return Bar(name, value, value, value, "c4" if is_clear(by[name]) else "c1")

    legend = [Legend("encrypts", "c1", "bar"), Legend("no cipher", "c4", "bar")]
    made = [
        bars("All files, one after the other", [bar(name, together(rows)) for name, rows in by.items()], legend=legend),
        bars(
            "What it costs the processor",
            [bar(name, processor(rows)) for name, rows in by.items()],
            unit="seconds of all cores for a gigabyte",
            legend=legend,
        ),
    ]
    encrypted = [
        Series(name, [(row["size"], rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in rows])
        for name, rows in by.items()
        if not is_clear(rows)
    ]
    if encrypted and len(encrypted[0].points) > 1:
        made.append(
            lines("File by file", {"": encrypted}, x_label="megabytes of the file", binary=False, form=megabytes)
        )
    return made


def content(document: Document) -> Content:
    by = grouped((row for row in document.rows if row.get("seconds")), who)
    if not by:
        return Content([])
    table = Table(
        "All files, one after the other",
        ["program", "GB/s\t", "processor, s/GB\t", "cores at work\t", "cipher"],
        [
            [
                name,
                words.digits(together(rows)),
                words.digits(processor(rows)),
                words.digits(sum(row.get("cpu_seconds", 0) for row in rows) / sum(row["seconds"] for row in rows)),
                "none" if is_clear(rows) else words.cipher(rows[0]),
            ]
            for name, rows in by.items()
        ],
    )
    encrypted = {name: rows for name, rows in by.items() if not is_clear(rows)}
    headlines, then = [], []
    if encrypted:
        first = max(encrypted, key=lambda name: together(encrypted[name]))
        beside = [
            f"{words.share(together(by[first]) / together(rows))} of “{name}”"
            for name, rows in list(by.items())[:1]
            if is_clear(rows)
        ]
        headlines.append(Headline(words.digits(together(by[first])), "GB/s", f"whole files, {first}", beside))
    device, cpu = by.get("daelstrom encrypt, CUDA"), by.get("daelstrom encrypt, CPU")
    if device and cpu:
        ratio = together(device) / together(cpu)
        then.append(
            Then(2007, "files through a program by a GPU (8800 GTS), beside the CPU", THEN_2007, words.times(ratio))
        )
    return Content(says(by), plots(by), [table], headlines=headlines, then=then)


SECTION = Section(
    "files",
    "Files through programs",
    "Tartu 2007",
    "What is left of a cipher's speed when programs encrypt files with it?",
    content,
)
