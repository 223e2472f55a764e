# SPDX-License-Identifier: Apache-2.0
"""The modes that do not authenticate, on a whole message in one call, wherever it lies. For messages in pieces there
is daelstrom.ciphers, and for authentication AESGCM and what is beside it in daelstrom.aead."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Literal

from . import _core
from .aead import BY_NAME

if TYPE_CHECKING:
    from ._types import Buffer, HostBuffer, Stream

_MODES = {"ecb": 0, "cbc": 1, "cfb": 2, "ofb": 3, "ctr": 4, "xts": 7}
_OTHERS: set[str] = {"gcm", *BY_NAME}
_DIRECTIONS = {"encrypt": 0, "decrypt": 1}


def crypt(
    mode: Literal["ecb", "cbc", "cfb", "ofb", "ctr", "xts"],
    direction: Literal["encrypt", "decrypt"],
    key: _core.Key | HostBuffer,
    data: Buffer,
    *,
    iv: HostBuffer | None = None,
    sector: int | None = None,
    first_sector: int = 0,
    out: Any = None,
    stream: Stream = None,
    engine: _core.Engine | None = None,
) -> Any:
    """``iv``: 16 bytes, for all modes but ECB and XTS. XTS has ``sector``, the bytes of one, and the number of the
    first. On a GPU what is sequential (CBC, CFB and OFB encryption of one message) is refused.

    >>> import daelstrom
    >>> daelstrom.crypt("ecb", "encrypt", bytes(16), bytes(16)).hex()
    '66e94bd4ef8a2c3b884cfa59ca342b2e'
    """
    if mode not in _MODES:
        other = "; those that authenticate have classes and seal_batch()" if mode in _OTHERS else ""
        raise ValueError(f'mode is "{mode}"; there are {", ".join(_MODES)}{other}')
    if direction not in _DIRECTIONS:
        raise ValueError(f'direction is "{direction}"; it is "encrypt" or "decrypt"')
    start = iv
    if mode == "xts":
        if iv is not None:
            raise ValueError("xts takes first_sector, not iv")
        if sector is None:
            raise ValueError("xts takes sector, the bytes of one")
        number = operator.index(first_sector)
        if not 0 <= number < 1 << 128:
            raise ValueError(f"first_sector is {number}; it is a number from 0 to 2^128 - 1")
        if not 16 <= operator.index(sector) <= 1 << 24:
            raise ValueError(f"sector is {sector}; XTS takes sectors of 16 to 2^24 bytes")
        start = number.to_bytes(16, "little")
    elif sector is not None:
        raise ValueError(f"{mode} has no sectors")
    elif mode == "ecb":
        if iv is not None:
            raise ValueError("ecb takes no iv")
    elif iv is None:
        raise ValueError(f"{mode} takes iv, 16 bytes")
    return _core.crypt(
        _MODES[mode],
        _DIRECTIONS[direction],
        key,
        start,
        data,
        sector=sector or 0,
        out=out,
        stream=stream,
        engine=engine,
    )
