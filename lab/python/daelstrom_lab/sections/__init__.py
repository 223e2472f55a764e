# SPDX-License-Identifier: Apache-2.0
"""The studies' sections, in the order of the page: each module has a `SECTION`. A study without one has `other`'s."""

from __future__ import annotations

from .._content import Section
from . import devices, energy, files, granularity, overlap, packets, picture, placement, sizes, timing

SECTIONS: tuple[Section, ...] = (
    placement.SECTION,
    granularity.SECTION,
    sizes.SECTION,
    overlap.SECTION,
    devices.SECTION,
    files.SECTION,
    packets.SECTION,
    energy.SECTION,
    timing.SECTION,
    picture.SECTION,
)
