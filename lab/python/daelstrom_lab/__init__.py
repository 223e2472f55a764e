# SPDX-License-Identifier: Apache-2.0
"""The page that shows a run of `daelstrom lab`: one file of HTML, which needs no network.

    daelstrom lab report runs/today -o report.html
    python3 -m daelstrom_lab report runs/today -o report.html      the same

It is of the clone, on daelstrom's own package, and takes matplotlib, Jinja2 and Markdown. Each study has a module in `sections`; a study that
has none gets a plot and a table from the fields of its rows.
"""

from __future__ import annotations

import os
import pathlib

from ._documents import ReportError

__all__ = ["ReportError", "report"]


def report(folder: str | os.PathLike[str], output: str | os.PathLike[str]) -> None:
    """Writes the page of the documents in a folder, in one step: readers see the old page or the new one, and what
    somebody else puts there meanwhile stays.

    Raises `ReportError` for what is no document of the lab's, and for an output that is no regular file, naming the
    file; `OSError` where the page cannot be written; `ImportError` without matplotlib, Jinja2 or Markdown.
    """
    from daelstrom._appear import Appearing

    from ._documents import read_run
    from ._page import page_of

    text = page_of(read_run(pathlib.Path(folder)))
    try:
        file = Appearing(output, replace=True)
    except ValueError as fault:  # a device, a pipe
        raise ReportError(str(fault)) from None
    try:
        file.write(text.encode())
        file.appear()
    finally:
        file.discard()
