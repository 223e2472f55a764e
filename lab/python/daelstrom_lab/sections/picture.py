# SPDX-License-Identifier: Apache-2.0
"""The picture, as it was and encrypted by ECB, CBC and CTR."""

from __future__ import annotations

import base64
import io

from PIL import Image

from .. import _words as words
from .._content import Content, Picture, Section, Table
from .._documents import Document, ReportError, rate
from .._plots import Bar, bars

PANELS = ("as it was", "ECB", "CBC", "CTR")
SIDE = 256  # px at most; noise cannot be compressed, and a page is to stay small
COLOURS = 32


def panels(document: Document) -> list[Picture]:
    """The file's panels, each by itself, with fewer pixels and colours: every n-th pixel is kept, none is blended."""
    name = document.about.get("picture")
    if not name:
        return []
    path = document.path.parent / str(name)
    try:
        whole = Image.open(path).convert("RGB")
    except (OSError, ValueError):
        raise ReportError(f"cannot read {str(path)!r}, the picture of {str(document.path)!r}") from None
    side = whole.height
    made = []
    for number, title in enumerate(PANELS[: max(1, whole.width // side)]):
        panel = whole.crop((number * side, 0, (number + 1) * side, side))
        panel = panel.resize((min(side, SIDE),) * 2, Image.Resampling.NEAREST).quantize(
            COLOURS, dither=Image.Dither.NONE
        )
        file = io.BytesIO()
        panel.save(file, "PNG", optimize=True)
        made.append(Picture(title, "data:image/png;base64," + base64.b64encode(file.getvalue()).decode()))
    return made


def content(document: Document) -> Content:
    repeats = {str(row["mode"]).upper(): float(row.get("repeats", 0)) for row in document.rows}
    hidden = [mode for mode, part in repeats.items() if part < 1]
    shown = [mode for mode, part in repeats.items() if part >= 1]
    sentences = []
    if shown:
        sentences.append(
            f"Under {words.listed(shown)} {words.listed([words.value('', repeats[mode]) for mode in shown])} of 100"
            " blocks of the ciphertext occur more than once, and the picture can be made out: equal blocks of pixels"
            " stay equal."
        )
    if hidden:
        sentences.append(f"Under {words.listed(hidden)} hardly any block does, and nothing is left to see.")
    lines = [
        [str(row["mode"]).upper(), words.value("", row.get("repeats", 0)), words.digits(rate(row))]
        for row in document.rows
    ]
    each = [Bar(mode, part, part, part) for mode, part in repeats.items()]
    return Content(
        sentences,
        [bars("Blocks of the ciphertext that occur more than once", each, unit="of 100")],
        [Table("The three modes", ["mode", "of 100 blocks, repeated\t", "GB/s\t"], lines)],
        panels(document),
    )


SECTION = Section(
    "picture",
    "A picture, encrypted",
    "Brno 2011",
    "What of a picture is still to be seen in ECB, and in CBC and CTR?",
    content,
)
