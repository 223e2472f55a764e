# SPDX-License-Identifier: Apache-2.0
"""How numbers, names and rows are written."""

from __future__ import annotations

import math

from ._documents import FIGURES, Row

BACKENDS = {
    "cpu": "CPU",
    "openssl": "OpenSSL",
    "cuda": "CUDA",
    "opencl": "OpenCL",
    "opengl": "OpenGL",
    "reference": "reference",
    "auto": "auto",
}
TITLES = {
    "bytes_per_thread": "bytes per thread",
    "table_count": "tables of each",
    "study_part": "part",
    "isa": "form",
    "blocks_per_thread": "AES blocks per thread",
    "messages": "messages",
    "gbps_2017": "2017, GB/s",
    "rank": "place",
    "rank_2017": "place in 2017",
    "p50_ns": "p50, ns",
    "p99_ns": "p99, ns",
    "p999_ns": "p99.9, ns",
    "memory_mib": "memory, MiB",
}
BYTES = {"size", "chunk", "working_set", "budget"}


def digits(value: float) -> str:
    """Three significant digits."""
    if value == 0 or not math.isfinite(value):
        return f"{value:.0f}"
    if abs(value) >= 99.95:
        return f"{value:,.0f}"
    places = max(0, 2 - math.floor(math.log10(abs(value)) + 1e-9))
    return f"{value:.{min(places, 6)}f}"


def size(count: float) -> str:
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return (f"{count / unit:.0f}" if count % unit == 0 else f"{count / unit:.1f}") + f" {name}"
    return f"{count:.0f} bytes"


def times(ratio: float) -> str:
    return digits(ratio) + "×"


def share(ratio: float) -> str:
    """A part of a whole, in percent."""
    percent = 100 * ratio
    return f"{percent:.0f}%" if percent >= 1 or percent == 0 else f"{digits(percent)}%"


def span(seconds: float) -> str:
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs")):
        if seconds >= unit:
            return f"{digits(seconds / unit)} {name}"
    return f"{digits(seconds * 1e9)} ns"


def backend(name: str) -> str:
    kind, _, number = name.partition(":")
    return BACKENDS.get(kind, kind) + (f" {number}" if number not in ("", "0") else "")


def cipher(row: Row) -> str:
    """AES-128-CTR."""
    return f"AES-{row['bits']}-{str(row['mode']).upper()}" if "bits" in row and "mode" in row else "AES"


def title(field: str) -> str:
    return TITLES.get(field, field.replace("_", " "))


def value(field: str, what: object) -> str:
    if isinstance(what, bool) or not isinstance(what, (int, float)):
        return backend(str(what)) if field == "backend" else str(what)
    if field in BYTES:
        return size(what)
    if field == "seconds":
        return span(what)
    return f"{what:,.0f}" if float(what).is_integer() else digits(what)


def point_fields(rows: list[Row]) -> list[str]:
    """The fields of the rows' points, in their order."""
    fields: dict[str, None] = {}
    for row in rows:
        for field in row:
            if field in FIGURES:
                break
            fields[field] = None
    return list(fields)


def own_figures(rows: list[Row]) -> list[str]:
    """Figures beside the rate, which stand behind it."""
    fields: dict[str, None] = {}
    for row in rows:
        names = list(row)
        for field in names[names.index("gbps") :]:
            if field not in FIGURES:
                fields[field] = None
    return list(fields)


def listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else ", ".join(names[:-1]) + " and " + names[-1]


def sentence(text: str) -> str:
    return text[:1].upper() + text[1:]
