# SPDX-License-Identifier: Apache-2.0
"""What daelstrom.flexa raises, besides Python's own errors of files, and the faults that it survives."""

from __future__ import annotations

import dataclasses

from ..exceptions import DaelstromError

__all__ = ["Conflict", "Fault", "FlexaError", "Lost", "RollBack", "Unavailable", "Uncertain"]


class FlexaError(DaelstromError):
    """What all the errors of this package are."""


class Conflict(FlexaError, OSError):
    """Somebody else has written a version first. Nothing was written; read, and decide again."""


class Uncertain(FlexaError, OSError):
    """Too few stores answered to tell whether what was written counts (it will be one or the other for everybody), or
    somebody has removed or moved it since: read to know."""


class Unavailable(FlexaError, OSError):
    """Fewer than two of the three primaries answer. Of a write: nothing was written."""


class RollBack(FlexaError):
    """The stores show an older version than this keyring has seen, or another one of the same number."""


class Lost(FlexaError, OSError):
    """No store has what a name leads to, or not unharmed."""


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that a store did wrong, and that the others made good."""

    store: str
    file: str
    what: str

    def __str__(self) -> str:
        return f"{self.store}: {self.file}: {self.what}" if self.file else f"{self.store}: {self.what}"
