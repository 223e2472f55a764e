# SPDX-License-Identifier: Apache-2.0
"""The page: sections of every study, the first screen, the machine, and how it was measured."""

from __future__ import annotations

import pathlib
import re
from typing import Any
from xml.etree.ElementTree import Element

import jinja2
import markdown
import markupsafe
from markdown.treeprocessors import Treeprocessor

from . import _words as words
from ._content import Content, Section, all_rows
from ._documents import Document, Run
from .sections import SECTIONS
from .sections.other import section_of

HERE = pathlib.Path(__file__).parent
USUAL = 15  # samples of a figure
OWN_COUNTS = ("devices", "energy", "timing")  # studies that take as many as their question needs
PAGES = {"method.md": "method", "bias.md": "bias"}


class Embed(Treeprocessor):  # type: ignore[misc]  # of a library without types
    """Makes a document of lab/docs/ a part of the page: headings a step lower, its tables reachable, links that lead out of the
    page's reach plain text."""

    def run(self, root: Element) -> None:
        for parent in list(root.iter()):
            for place, child in enumerate(list(parent)):
                if child.tag == "table":
                    region = Element(
                        "div", {"class": "scroll", "role": "region", "tabindex": "0", "aria-label": "Table"}
                    )
                    region.tail, child.tail = child.tail, None
                    region.append(child)
                    parent[place] = region
        for one in root.iter():
            if re.fullmatch("h[1-5]", one.tag):
                one.tag = f"h{int(one.tag[1]) + 1}"
            target = one.get("href", "")
            if one.tag == "a" and not target.startswith(("https:", "#")):
                del one.attrib["href"]
                one.tag = "span"
                here = PAGES.get(target.partition("#")[0])
                if here:
                    one.tag, one.attrib["href"] = "a", f"#{here}"


def embedded(name: str) -> markupsafe.Markup:
    """A document of lab/docs/, as HTML."""
    reader = markdown.Markdown(extensions=["tables", "fenced_code", "sane_lists"])
    reader.treeprocessors.register(Embed(reader), "embed", 0)
    return markupsafe.Markup(reader.convert((HERE / "pages" / name).read_text(encoding="utf-8")))


def gibibytes(count: object) -> str:
    return f"{count / (1 << 30):.0f} GiB" if isinstance(count, (int, float)) and count else ""


def machine_of(run: Run) -> list[tuple[str, str]]:
    """The machine, in words: what is named once where all studies say the same, and all that they say where not."""

    def said(of: Any) -> str:
        return " / ".join(dict.fromkeys(text for text in (of(document) for document in run) if text))

    entries = {
        "Processor": said(
            lambda d: f"{d.machine.get('cpu', '')}, {d.machine.get('cores', '?')} cores that may be used"
        ),
        "Memory": said(lambda d: gibibytes(d.machine.get("memory"))),
        "Device": (
            said(
                lambda d: (
                    f"{d.machine['gpu']}, {d.machine.get('multiprocessors', '?')} multiprocessors, "
                    f"{gibibytes(d.machine.get('gpu_memory'))}"
                    if d.machine.get("gpu")
                    else ""
                )
            )
            or "none"
        ),
        "Driver": said(lambda d: str(d.machine.get("driver", ""))),
        "CUDA run-time library": said(lambda d: str(d.machine.get("cuda_runtime", ""))),
        "OpenSSL": said(lambda d: str(d.about.get("openssl", ""))),
        "Compiler": said(lambda d: str(d.about.get("compiler", ""))),
        "daelstrom": said(lambda d: f"{d.about['version']}, commit {d.about['commit']}"),
        "Measured": said(lambda d: str(d.about["date"])[:10]),
    }
    return [(name, text) for name, text in entries.items() if text]


def cautions(run: Run) -> list[str]:
    """What a reader should know before any figure."""
    made = []
    quick = [document.study for document in run if document.quick]
    if quick:
        which = "A quick run" if len(quick) == len(run.documents) else f"Quick runs: {words.listed(quick)}"
        made.append(f"{which}, of small data and few samples. It shows that all works; its figures show little more.")
    few = {
        document.study: max(int(row.get("samples", USUAL)) for row in document.rows)
        for document in run
        if document.rows and not document.quick and document.study not in OWN_COUNTS
    }
    less = [f"“{study}” {count}" for study, count in few.items() if count < USUAL]
    if less:
        made.append(f"Fewer samples of each figure than the usual {USUAL}: {words.listed(less)}.")
    busy = [
        document for document in run if document.about.get("load_before", 0) / 100 > document.machine.get("cores", 1)
    ]
    if busy:
        worst = max(busy, key=lambda document: int(document.about["load_before"]))
        made.append(
            f"Others were at work on this machine: before “{worst.study}” its load was"
            f" {worst.about['load_before'] / 100:.1f} on {worst.machine.get('cores', 1)} cores."
        )
    devices = {
        (document.plays(str(row["backend"])), str(row["backend"]).partition(":")[0])
        for document in run
        for row in document.rows
        if str(row.get("backend", "")).startswith(("cuda", "opencl"))
    }
    if any(played for played, _ in devices):
        none = "" if any(not played for played, _ in devices) else "There is no GPU in this run. "
        made.append(f"{none}Where OpenCL is named, the processor plays the device (PoCL), and says nothing about GPUs.")
    for field, what in (
        ("commit", "of the same source"),
        ("cpu", "on the same processor"),
        ("openssl", "with the same OpenSSL"),
    ):
        if len({str(document.about.get(field, document.machine.get(field, ""))) for document in run}) > 1:
            made.append(f"Not all studies were made {what}; the list of the machine has all.")
    return made


def conditions(document: Document) -> list[tuple[str, str]]:
    """Under which a study ran."""
    about = document.about
    entries = [("Began", str(about["date"])), ("Took", f"{about['seconds']} s" if "seconds" in about else "")]
    for field, title, scale, unit in (("load", "Load", 100, ""), ("cpu_mhz", "Processor's clock", 1, " MHz")):
        ends = [f"{about[f'{field}_{when}'] / scale:g}" for when in ("before", "after") if f"{field}_{when}" in about]
        entries.append((title, f"{' before, '.join(ends)}{' after' if len(ends) > 1 else ''}{unit}" if ends else ""))
    entries += [(f"GPU, {when}", str(about.get(f"gpu_{when}", ""))) for when in ("before", "after")]
    return [(name, text) for name, text in entries if text]


def sections_of(run: Run) -> list[Section]:
    """Known studies in their order, then those that have no section of their own."""
    known = {section.study for section in SECTIONS}
    return [*SECTIONS, *(section_of(study) for study in run.documents if study not in known)]


def page_of(run: Run) -> str:
    """The whole page, as text."""
    studies: list[dict[str, object]] = []
    contents: list[Content] = []
    absent: list[Section] = []
    for section in sections_of(run):
        document = run.documents.get(section.study)
        if document is None:
            absent.append(section)
            continue
        content = section.content(document)
        contents.append(content)
        tables = [*content.tables, *([all_rows(document)] if document.rows else [])]
        studies.append(
            {
                "section": section,
                "document": document,
                "content": content,
                "tables": tables,
                "conditions": conditions(document),
            }
        )
    machine = machine_of(run)
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(HERE / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
    )
    return (
        environment.get_template("page.html").render(
            machine=machine,
            cautions=cautions(run),
            headlines=[headline for content in contents for headline in content.headlines],
            then=sorted((one for content in contents for one in content.then), key=lambda one: one.year),
            studies=studies,
            absent=absent,
            style=markupsafe.Markup((HERE / "templates" / "style.css").read_text(encoding="utf-8")),
            pages={name: embedded(file) for file, name in PAGES.items()},
        )
        + "\n"
    )
