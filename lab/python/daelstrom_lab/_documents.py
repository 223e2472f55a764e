# SPDX-License-Identifier: Apache-2.0
"""Documents of `daelstrom lab run`: read, and checked as far as the report relies on them. lab/README.md has the schema."""

from __future__ import annotations

import dataclasses
import json
import pathlib
import statistics
from collections.abc import Callable, Iterable, Iterator
from typing import Any

FORMAT = 1
Row = dict[str, Any]
# What follows the fields of a row's point; figures of a study's own stand between `samples` and `series`.
FIGURES = ("gbps", "seconds", "samples", "series", "ceiling", "ratio", "against")


class ReportError(Exception):
    """What stands against the report, in one line that names the file."""


@dataclasses.dataclass(frozen=True)
class Document:
    """One study of one run."""

    study: str
    path: pathlib.Path
    about: dict[str, Any]  # every field but the rows
    rows: list[Row]

    @property
    def machine(self) -> dict[str, Any]:
        machine: dict[str, Any] = self.about["machine"]
        return machine

    @property
    def quick(self) -> bool:
        return bool(self.about.get("quick"))

    @property
    def skipped(self) -> list[str]:
        return [str(line) for line in self.about["skipped"]]

    def plays(self, backend: str) -> bool:
        """Whether the device behind a backend is a processor that plays one."""
        return backend.startswith("opencl") and "pocl" in str(self.machine.get("driver", "")).lower()

    def device(self, backend: str) -> str:
        """The device behind a backend, in words. A document names the last of its devices alone."""
        if self.plays(backend):
            return "a processor that plays a device"
        named = str(self.machine.get("gpu", ""))
        return named if named and not self.plays("opencl") else "the GPU"

    def where(self, **want: object) -> list[Row]:
        """Rows whose fields have these values; a callable is asked, None stands for an absent field."""
        return [row for row in self.rows if matches(row, want)]


@dataclasses.dataclass(frozen=True)
class Run:
    """A folder of documents."""

    folder: pathlib.Path
    documents: dict[str, Document]

    def __iter__(self) -> Iterator[Document]:
        return iter(self.documents.values())


def matches(row: Row, want: dict[str, Any]) -> bool:
    return all(value(row.get(field)) if callable(value) else row.get(field) == value for field, value in want.items())


def rate(row: Row) -> float:
    """GB/s, the median."""
    return float(row["gbps"]["median"])


def best(rows: Iterable[Row]) -> Row | None:
    return max(rows, key=rate, default=None)


def ratio_to(row: Row, name: str) -> float | None:
    """The rate over that of another contestant of the same turns."""
    if row.get("ceiling", {}).get("name") == name:
        return float(row["ratio"])
    return next((float(one["ratio"]) for one in row.get("against", ()) if one["name"] == name), None)


def grouped(rows: Iterable[Row], key: Callable[[Row], str]) -> dict[str, list[Row]]:
    """Rows by a key, in the order in which keys come."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(key(row), []).append(row)
    return groups


def spread(row: Row) -> float:
    """The greatest distance of a sample from the median, as a share of it."""
    middle = rate(row)
    return max(row["gbps"]["max"] - middle, middle - row["gbps"]["min"]) / middle if middle else 0.0


def typical_spread(rows: Iterable[Row]) -> float:
    return statistics.median([spread(row) for row in rows] or [0.0])


def read_document(path: pathlib.Path) -> Document:
    def fault(what: str) -> ReportError:
        return ReportError(f"{str(path)!r} {what}")

    try:
        about = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ReportError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except ValueError:
        raise fault("is no JSON; the report takes a folder of `daelstrom lab run --out`") from None
    if (
        not isinstance(about, dict)
        or not isinstance(about.get("suite"), str)
        or not isinstance(about.get("rows"), list)
    ):
        raise fault("is no document of `daelstrom lab run`: it has no suite and rows")
    if "format" not in about:
        raise fault("is no document of `daelstrom lab run`: it names no format (`daelstrom bench` writes such)")
    if about["format"] != FORMAT:
        raise fault(f"has the format {about['format']!r}; this report reads {FORMAT}: make it with another daelstrom")
    for field, kind in (("machine", dict), ("skipped", list), ("date", str), ("version", str), ("commit", str)):
        if not isinstance(about.get(field), kind):
            raise fault(f"has no {field} as lab/README.md describes it")
    rows = about.pop("rows")
    for number, row in enumerate(rows, 1):
        figures = row.get("gbps") if isinstance(row, dict) else None
        if not isinstance(figures, dict):
            raise fault(f"has a row without a rate, number {number}")
        if not all(isinstance(figures.get(name), (int, float)) for name in ("median", "min", "max")):
            raise fault(f"has a row whose rate is not median, min and max, number {number}")
    return Document(about["suite"], path, about, rows)


def read_run(folder: pathlib.Path) -> Run:
    """Every document of a folder, by its study."""
    if not folder.is_dir():
        raise ReportError(f"{str(folder)!r} is no folder; the report takes one of `daelstrom lab run --out`")
    documents: dict[str, Document] = {}
    for path in sorted(folder.glob("*.json")):
        document = read_document(path)
        if document.study in documents:
            raise ReportError(
                f"{str(path)!r} and {str(documents[document.study].path)!r} are both of "
                f"{document.study!r}; keep one of them"
            )
        documents[document.study] = document
    if not documents:
        raise ReportError(f"there is no document in {str(folder)!r}; `daelstrom lab run all --out` writes some")
    return Run(folder, documents)
