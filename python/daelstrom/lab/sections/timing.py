# SPDX-License-Identifier: Apache-2.0
"""Whether times depend on the data."""

from __future__ import annotations

from .._content import Section
from . import other

SECTION = Section(
    "timing",
    "Whether time tells about the data",
    "",
    "Do times on fixed and on random input differ, by Welch's t-test?",
    other.content,
)
