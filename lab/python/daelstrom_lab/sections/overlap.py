# SPDX-License-Identifier: Apache-2.0
"""How much of the copies chunks on several streams hide."""

from __future__ import annotations

from .. import _words as words
from .._content import Content, Headline, Plot, Section, Then, pivot
from .._documents import Document, Row, best, grouped, rate
from .._plots import Series, lines

HIDDEN_2017 = 0.65
OVERLAPPED_2017 = 22.5 / 8  # GB/s
WAYS = {"in": "copies in", "out": "copies out", "both": "copies both ways"}
MEMORY = {"pinned": "page-locked", "pageable": "ordinary"}


def streams(row: Row) -> str:
    count = row.get("streams", 0)
    return f"{count} stream{'s' if count > 1 else ''}" if count else "the library's pipeline"


def best_hidden(rows: list[Row]) -> Row | None:
    """Of the rows that tell what is hidden the fastest. Of small chunks several streams hide more than the copies: what
    the launches cost; but those are slow."""
    return best(row for row in rows if "hidden" in row)


def at_most(rows: list[Row], row: Row) -> float | None:
    """The share that can be hidden at best: all but the copies of one way, the longer one."""
    like = [one for one in rows if all(one.get(field) == row.get(field) for field in ("where", "chunk"))]
    alone = {one["ways"]: one["size"] / one["ceiling"]["gbps"] for one in like if "ceiling" in one}
    sequence = next((one for one in like if one["ways"] == row["ways"] and one.get("streams") == 1), None)
    if not sequence or not {"in", "out", "both"} <= alone.keys():
        return None
    return float((sequence["size"] / rate(sequence) - max(alone["in"], alone["out"])) / alone["both"])


def plot_of(rows: list[Row], backend: str, memory: str) -> Plot:
    panels = {}
    for ways, title in WAYS.items():
        mine = [row for row in rows if row["ways"] == ways and row.get("streams")]
        if mine:
            panels[title] = [
                Series(
                    name,
                    [(row["chunk"], rate(row), row["gbps"]["min"], row["gbps"]["max"]) for row in group],
                    f"c{number % 7 + 1}",
                )
                for number, (name, group) in enumerate(grouped(mine, streams).items())
            ]
    return lines(f"{backend}, {memory} memory, by the size of the chunks", panels, x_label="chunk", log=False)


def says(rows: list[Row], document: Document) -> list[str]:
    sentences = []
    both = [row for row in rows if row["ways"] == "both"]
    hidden = best_hidden([row for row in both if row["where"] == "pinned"]) or best_hidden(both)
    most = at_most(rows, hidden) if hidden else None
    if hidden:
        limit = f", of at most {words.share(most)}, since the copies of one way are always to be seen" if most else ""
        sentences.append(
            f"On {words.backend(hidden['backend'])} ({document.device(hidden['backend'])}) {streams(hidden)} with"
            f" chunks of {words.size(hidden['chunk'])} hide {words.share(max(0.0, hidden['hidden']))} of the copies"
            f" both ways behind each other and the kernels{limit}; in 2017 it was {words.share(HIDDEN_2017)} with four chunks."
        )
    else:
        sentences.append("What streams hide could not be told here: the copies are too small a part of it all.")
    pinned, ordinary = (best(row for row in both if row["where"] == where) for where in ("pinned", "pageable"))
    if pinned and ordinary:
        sentences.append(
            f"The fastest way there and back makes {words.digits(rate(pinned))} GB/s from page-locked memory"
            f" ({streams(pinned)}) and {words.digits(rate(ordinary))} from ordinary memory ({streams(ordinary)})."
        )
    return sentences


def content(document: Document) -> Content:
    sentences: list[str] = []
    plots, tables = [], []
    headlines: list[Headline] = []
    then: list[Then] = []
    for name, rows in grouped(document.rows, lambda row: str(row["backend"])).items():
        backend = words.backend(name)
        sentences += says(rows, document)
        for where, memory in MEMORY.items():
            mine = [row for row in rows if row["where"] == where]
            if not mine:
                continue
            plots.append(plot_of(mine, backend, memory))
            columns = list(dict.fromkeys(words.size(row["chunk"]) for row in mine if row.get("chunk")))
            cells = {
                label: {words.size(row["chunk"]): row for row in group if row.get("chunk")}
                for label, group in grouped(mine, lambda row: f"{WAYS[row['ways']]}, {streams(row)}").items()
                if any(row.get("chunk") for row in group)
            }
            tables.append(
                pivot(f"GB/s on {backend} from {memory} memory, by the size of the chunks", "how", columns, cells)
            )
        both = [row for row in rows if row["ways"] == "both" and row["where"] == "pinned"]
        hidden, fastest = best_hidden(both), best(both)
        if hidden and fastest and not headlines and not document.plays(name):
            headlines.append(
                Headline(
                    words.share(hidden["hidden"]),
                    "",
                    f"of the copies hidden, {streams(hidden)}, chunks of {words.size(hidden['chunk'])}",
                    [
                        *([f"{words.share(most)} is the most that can be"] if (most := at_most(rows, hidden)) else []),
                        f"{words.share(HIDDEN_2017)} in 2017",
                    ],
                )
            )
            then.append(
                Then(
                    2017,
                    "share of the copies hidden behind other work",
                    words.share(HIDDEN_2017),
                    words.share(hidden["hidden"]),
                )
            )
            then.append(
                Then(
                    2017,
                    "AES-128-ECB there and back, copies overlapped, GTX 285",
                    f"{words.digits(OVERLAPPED_2017)} GB/s",
                    f"{words.digits(rate(fastest))} GB/s",
                    words.times(rate(fastest) / OVERLAPPED_2017),
                )
            )
    return Content(sentences, plots, tables, headlines=headlines, then=then)


SECTION = Section(
    "overlap",
    "Copies behind kernels",
    "Kazan 2017",
    "How much of the copies can chunks on several streams hide?",
    content,
)
