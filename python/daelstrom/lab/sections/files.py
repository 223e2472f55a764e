# SPDX-License-Identifier: Apache-2.0
"""Eight files through programs."""

from __future__ import annotations

from .._content import Section
from . import other

SECTION = Section(
    "files",
    "Files through programs",
    "Tartu 2007",
    "What do whole files cost, from disk through a program and back?",
    other.content,
)
