# SPDX-License-Identifier: Apache-2.0
"""Joules for a gigabyte, and the clocks at which it was done."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Legend, Section, Table
from .._documents import Document, Row, rate
from .._plots import Bar, bars

# Bits as nvml.h has them (nvmlClocksEventReason...); bit 0, idle, holds nothing back that is wanted.
REASONS = {
    0x2: "clocks were set",
    0x4: "power cap",
    0x8: "hardware slowdown",
    0x10: "boosts with others",
    0x20: "temperature",
    0x40: "temperature, by hardware",
    0x80: "power brake",
    0x100: "display clocks",
}


def joules(row: Row) -> float | None:
    """Of what did the work: the GPU for data in its memory, the processor for the host's."""
    kind = "gpu" if row.get("where") == "device" else "cpu"
    figure = row.get(f"{kind}_joules_per_gb")
    return float(figure) if figure else None


def who(row: Row) -> str:
    form = f", {row['isa']}" if "isa" in row else ""
    return f"{words.backend(row['backend'])}{form}, {words.cipher(row)}"


def reasons(row: Row) -> str:
    held = int(row.get("clock_reasons", 0))
    return ", ".join(name for bit, name in REASONS.items() if held & bit)


def says(rows: list[Row]) -> list[str]:
    least, most = min(rows, key=lambda row: joules(row) or 0), max(rows, key=lambda row: joules(row) or 0)
    sentences = [
        f"{who(least)} takes least, {words.digits(joules(least) or 0)} J for a gigabyte, and {who(most)} most, "
        f"{words.digits(joules(most) or 0)} J."
    ]
    held = [row for row in rows if reasons(row)]
    if held:
        worst = min(held, key=lambda row: float(row.get("sm_mhz") or 1e9))
        sentences.append(
            f"Clocks were held back in {len(held)} of {len(rows)} cases ({reasons(worst)}): down to"
            f" {worst.get('sm_mhz', 0):.0f} MHz at {worst.get('gpu_watts', 0):.0f} W, in {who(worst)}."
        )
    elif any("sm_mhz" in row for row in rows):
        sentences.append("No clock was held back.")
    return sentences


def content(document: Document) -> Content:
    rows = [row for row in document.rows if joules(row)]
    if not rows:
        return Content(
            ["The machine lets nobody read its energy counters, so there is no figure."] if not document.rows else []
        )
    each = [
        Bar(who(row), joules(row) or 0, joules(row) or 0, joules(row) or 0, "c3" if row["where"] == "device" else "c1")
        for row in rows
    ]
    kinds = {row["where"] for row in rows}
    legend = [
        Legend(name, colour, "bar")
        for name, colour, where in (("GPU", "c3", "device"), ("processor", "c1", "host"))
        if where in kinds
    ]
    names = ("gpu_watts", "gpu_idle_watts", "cpu_watts", "cpu_idle_watts", "sm_mhz", "celsius")
    table = Table(
        "Energy, power and clocks",
        [
            "by",
            "J/GB\t",
            "GB/s\t",
            "GPU, W\t",
            "idle\t",
            "processor, W\t",
            "idle\t",
            "clock, MHz\t",
            "°C\t",
            "held back by",
        ],
        [
            [
                who(row),
                words.digits(joules(row) or 0),
                words.digits(rate(row)),
                *(words.digits(row[name]) if row.get(name) else "" for name in names),
                reasons(row),
            ]
            for row in rows
        ],
    ).filled()
    gcm = next((row for row in rows if row["where"] == "device" and row["mode"] == "gcm"), None)
    headlines = []
    if gcm:
        clocks = f"at {gcm['sm_mhz']:.0f} MHz{', ' + reasons(gcm) if reasons(gcm) else ''}" if gcm.get("sm_mhz") else ""
        headlines.append(
            Headline(
                words.digits(joules(gcm) or 0),
                "J/GB",
                f"{words.cipher(gcm)} in the memory of {document.device(gcm['backend'])}",
                [text for text in (f"{gcm.get('gpu_watts', 0):.0f} W", clocks) if text],
            )
        )
    return Content(
        says(rows), [bars("Joules for a gigabyte", each, unit="J/GB", legend=legend)], [table], headlines=headlines
    )


SECTION = Section(
    "energy",
    "Energy",
    "Tartu 2007",
    "How many joules does a gigabyte take, and at which clocks?",
    content,
)
