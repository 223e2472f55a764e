# SPDX-License-Identifier: Apache-2.0
"""FlexA: files sealed on the client and kept on three stores, of which any one may be lost, corrupted or lying. Needs
fsspec. docs/flexa.md has the promises, the formats and the argument; ``python -m daelstrom.flexa`` is the program.

>>> import tempfile
>>> from daelstrom.flexa import FlexA, Keyring
>>> here = tempfile.mkdtemp()
>>> stores = [f"{here}/store{number}" for number in range(3)]
>>> keyring = Keyring.create(f"{here}/keyring", primaries=stores, passphrase="five words or more", work=10)
>>> FlexA.init(keyring)
>>> with FlexA(keyring=f"{here}/keyring", passphrase="five words or more") as files:
...     _ = files.put("notes/first", b"what I know")
...     files.cat("notes/first")
b'what I know'
"""

from __future__ import annotations

from .errors import Conflict, Fault, FlexaError, Lost, RollBack, Unavailable, Uncertain
from .files import Entry, FlexA
from .keyring import Keyring
from .keys import FileKeys
from .repair import Report
from .writing import FlexaWriter, Written

__all__ = [
    "Conflict",
    "Entry",
    "Fault",
    "FileKeys",
    "FlexA",
    "FlexaError",
    "FlexaWriter",
    "Keyring",
    "Lost",
    "Report",
    "RollBack",
    "Unavailable",
    "Uncertain",
    "Written",
]
