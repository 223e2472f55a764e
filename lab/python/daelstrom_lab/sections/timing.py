# SPDX-License-Identifier: Apache-2.0
"""Whether times tell about the data: Welch's t, and what the test must find or prove nothing."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Legend, Section, Table
from .._documents import Document, Row, grouped
from .._plots import Bar, bars


PARTS = {
    "control": "The control: a comparison that ends early",
    "host": "Messages of 256 bytes on one core, by what varies",
    "own kernels": "The lab's kernels on a device",
    "library": "daelstrom's kernels on a device",
}
LOG_FROM = 20  # times the threshold: on an even scale the threshold would not be seen


def who(row: Row) -> str:
    kernel = str(row.get("kernel", "")) if row.get("study_part") != "library" else ""
    parts = [
        words.backend(str(row.get("backend", ""))),
        str(row.get("isa", "")),
        f"kernel {kernel}" if kernel.isdigit() else kernel,
        str(row.get("mode", "")).upper(),
        "decryption" if row.get("direction") == "decrypt" else "",
        str(row.get("varied", "")) if row.get("study_part") == "host" else "",
    ]
    return ", ".join(part for part in parts if part)


def says(rows: list[Row]) -> list[str]:
    if not rows:
        return []
    held = [row for row in rows if not row.get("must_leak")]
    planted = [row for row in rows if row.get("must_leak")]
    found = [row for row in planted if row.get("leaks")]
    leaking = [row for row in held if row.get("leaks")]
    least = min(row["threshold"] for row in rows)
    sentences = []
    if leaking:
        named = words.listed([who(row) for row in sorted(leaking, key=lambda row: -float(row["t"]))[:4]])
        sentences.append(
            f"Of {len(held)} cases that must not, {len(leaking)} {'shows' if len(leaking) == 1 else 'show'} times that"
            f" differ with the input (t above {least:g} in every collection): {named}."
        )
    else:
        sentences.append(
            f"In none of {len(held)} cases do times on fixed and on random input differ by a t above {least:g} in every"
            " collection."
        )
    if planted:
        weakest = min(planted, key=lambda row: float(row["t"]))
        missed = (
            ""
            if len(found) == len(planted)
            else f" What it missed: {words.listed([who(row) for row in planted if not row.get('leaks')])}."
        )
        sentences.append(
            f"The test can see: of {len(planted)} that must leak it found {len(found)}, the faintest with a t of"
            f" {words.digits(weakest['t'])}.{missed}"
            if found
            else "The test found none of those that must leak, so what it says of the others proves nothing here."
        )
    return sentences


def colour(document: Document, row: Row) -> str:
    if document.plays(str(row.get("backend", ""))):
        return "c7"
    return "c4" if row.get("must_leak") else "c6" if row.get("leaks") else "c1"


def content(document: Document) -> Content:
    rows = [row for row in document.rows if "t" in row and "threshold" in row]
    if not rows:
        return Content([])
    plots = []
    legend = [
        Legend("must leak", "c4", "bar"),
        Legend("must not, and does not", "c1", "bar"),
        Legend("must not, and does", "c6", "bar"),
        Legend("a processor plays the device: says nothing", "c7", "bar"),
    ]
    for part, mine in grouped(rows, lambda row: str(row.get("study_part", ""))).items():
        each = [Bar(who(row), row["t"], row["t"], row["t"], colour(document, row)) for row in mine]
        shown = [entry for entry in legend if entry.colour in {one.colour for one in each}]
        plots.append(
            bars(
                PARTS.get(part, words.sentence(part or "all")),
                each,
                unit="Welch's t, the least of all collections",
                log=max(one.value for one in each) > LOG_FROM * mine[0]["threshold"],
                legend=shown,
                limit=(mine[0]["threshold"], "threshold"),
            )
        )
    table = Table(
        "Welch's t of times on fixed and on random input",
        ["what", "part", "t\t", "threshold\t", "inputs\t", "one call\t", "random longer by\t", "verdict"],
        [
            [
                who(row),
                str(row.get("study_part", "")),
                words.digits(row["t"]),
                f"{row['threshold']:g}",
                words.value("", row.get("inputs", 0)),
                words.span(row["seconds"]),
                f"{100 * row['difference']:.2f}%" if "difference" in row else "",
                ("leaks" if row.get("leaks") else "nothing seen") + (", and must" if row.get("must_leak") else ""),
            ]
            for row in rows
        ],
    ).filled()
    judged = [row for row in rows if not document.plays(str(row.get("backend", "")))]
    held = [row for row in judged if not row.get("must_leak")]
    quiet = [row for row in held if not row.get("leaks")]
    loud = [who(row) for row in held if row.get("leaks")]
    headline = Headline(
        f"{len(quiet)} of {len(held)}",
        "",
        "ciphers and kernels in whose times Welch's t-test sees no difference between inputs",
        [
            f"{sum(bool(row.get('leaks')) for row in rows if row.get('must_leak'))} of "
            f"{sum(bool(row.get('must_leak')) for row in rows)} planted leaks found",
            *([f"not {words.listed(loud)}"] if 0 < len(loud) < 3 else []),
        ],
    )
    return Content(says(judged), plots, [table], headlines=[headline] if held and len(held) < len(judged) else [])


SECTION = Section(
    "timing",
    "Whether time tells about the data",
    "",
    "Do times on fixed and on random input differ, by Welch's t-test?",
    content,
)
