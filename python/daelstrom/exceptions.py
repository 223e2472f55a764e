# SPDX-License-Identifier: Apache-2.0
"""What daelstrom raises. The names that pyca/cryptography has mean the same here; the classes are daelstrom's own.

What is wrong with an argument is a ``ValueError``, a ``TypeError`` or a ``BufferError``, memory that ran out a
``MemoryError``, and a file that failed an ``OSError``.
"""


class DaelstromError(Exception):
    """What all the exceptions of this module are."""


class InvalidTag(DaelstromError):
    """A tag does not match: a wrong key, nonce or additional data, or altered data.

    ``indices`` names the messages of a batch that failed.
    """

    indices: tuple[int, ...] = ()


class InvalidKey(DaelstromError):
    """A key is not the one that was expected."""


class InvalidSignature(DaelstromError):
    """For programs that import it: daelstrom has no signatures, and never raises it."""


class UnsupportedAlgorithm(DaelstromError):
    """An algorithm, a mode, or a mode on this device, that daelstrom does not have."""


class AlreadyFinalized(DaelstromError):
    """A message in pieces was at its end already."""


class AlreadyUpdated(DaelstromError):
    """Additional data came after data."""


class NotYetFinalized(DaelstromError):
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
