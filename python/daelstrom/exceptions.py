# SPDX-License-Identifier: Apache-2.0
"""What daelstrom raises. The names that pyca/cryptography has mean the same here; the classes are daelstrom's own. Where
pyca/cryptography is loaded, what is raised is of its class of that name too, so that ``except`` clauses of programs in
which only some imports were swapped still hold.

What is wrong with an argument is a ``ValueError``, a ``TypeError`` or a ``BufferError``, memory that ran out a
``MemoryError``, and a file that failed an ``OSError``.
"""


from __future__ import annotations

import sys
from typing import Any


class DaelstromError(Exception):
    """What all the exceptions of this module are."""


_of_both: dict[tuple[type, type], type] = {}


class _PycasError(DaelstromError):
    """An exception that pyca/cryptography has by the same name."""

    def __new__(cls, *arguments: Any, **named: Any) -> Any:
        theirs = getattr(sys.modules.get("cryptography.exceptions"), cls.__name__, None)
        made: type = cls
        if cls.__module__ == __name__ and isinstance(theirs, type) and not issubclass(cls, theirs):
            both = _of_both.get((cls, theirs))
            if both is None:
                both = type(cls.__name__, (cls, theirs), {"__doc__": cls.__doc__, "__module__": __name__, "_ours": cls})
                both = _of_both.setdefault((cls, theirs), both)
            made = both
        return super().__new__(made, *arguments)

    def __reduce__(self) -> Any:
        # In another process it is made anew, of what is loaded there.
        return getattr(self, "_ours", type(self)), self.args, self.__dict__ or None


class InvalidTag(_PycasError):
    """A tag does not match: a wrong key, nonce or additional data, or altered data.

    ``indices`` names the messages of a batch that failed.
    """

    indices: tuple[int, ...] = ()


class InvalidKey(_PycasError):
    """A key is not the one that was expected."""


class InvalidSignature(_PycasError):
    """For programs that import it: daelstrom has no signatures, and never raises it."""


class UnsupportedAlgorithm(_PycasError):
    """An algorithm, a mode, or a mode on this device, that daelstrom does not have."""


class AlreadyFinalized(_PycasError):
    """A message in pieces was at its end already."""


class AlreadyUpdated(_PycasError):
    """Additional data came after data."""


class NotYetFinalized(_PycasError):
    """A tag was asked for before the end."""


class BackendError(DaelstromError, RuntimeError):
    """A backend that does not exist, or that this machine or this build has not got."""


class LimitError(DaelstromError, OverflowError):
    """A limit of the mode would be passed: a nonce or a counter that would repeat, more data than one may hold."""


class DeviceError(DaelstromError, RuntimeError):
    """A call to a device's driver failed; the message names it."""


class FormatError(DaelstromError, ValueError):
    """Input that is not what it should be."""


class InternalError(DaelstromError, RuntimeError):
    """A defect in daelstrom."""
