# SPDX-License-Identifier: Apache-2.0
"""What a program at a terminal has to see to: passphrases, progress, signals, streams that are closed, errors in words."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import math
import os
import re
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, BinaryIO

from .errors import FlexaError

if TYPE_CHECKING:
    from types import TracebackType

    from typing_extensions import Self

__all__ = ["Piped", "Progress", "Stopped", "ask", "first_line", "said", "seconds", "shown", "signals", "size", "span", "streams"]


# Numbers of the command line.
def seconds(text: str) -> float:
    value = float(text)
    if not (0 < value < math.inf):
        raise argparse.ArgumentTypeError(f"{text} is no time to wait: seconds, more than 0")
    return value


def size(text: str) -> int:
    found = re.fullmatch(r"(\d+)([kKMGT]?)(i?B)?", text)
    if not found:
        raise argparse.ArgumentTypeError(f"{text!r} is no size: bytes, or with K, M, G or T behind it")
    return int(found[1]) << 10 * " KMGT".index(found[2].upper() or " ")


def span(text: str) -> tuple[int, int | None]:
    found = re.fullmatch(r"(\d*)-(\d*)", text)
    if not found or (found[1] and found[2] and int(found[1]) > int(found[2])):
        raise argparse.ArgumentTypeError(f"{text!r} is no range: FROM-TO, FROM- or -TO")
    return int(found[1] or 0), int(found[2]) if found[2] else None


# What is said.
def shown(name: str) -> str:
    """A name that a stranger may have chosen, without what a terminal would obey."""
    return "".join(letter if letter.isprintable() else "?" for letter in name)


def said(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror and error.filename not in (None, ""):
        names = [os.fsdecode(name) for name in (error.filename, error.filename2) if isinstance(name, (str, bytes, os.PathLike))]
        return ": ".join((*names, error.strerror))
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return str(error) or type(error).__name__


class Progress:
    """A line on standard error, where that is a terminal."""

    def __init__(self, off: bool, total: int | None) -> None:
        self.on = not off and sys.stderr is not None and sys.stderr.isatty()
        self._total, self._done, self._shown, self._begun = total, 0, 0.0, time.monotonic()
        self._lock = threading.Lock()

    def add(self, more: int) -> None:
        with self._lock:
            self._show(self._done + more)

    def show(self, done: int) -> None:
        with self._lock:
            self._show(done)

    def _show(self, done: int) -> None:
        self._done = done
        now = time.monotonic()
        if self.on and now - self._shown > 0.1:
            self._shown = now
            rate = done / max(1e-3, now - self._begun)
            of = f" of {self._total / 1e6:.1f}" if self._total else ""
            print(f"\r{done / 1e6:.1f}{of} MB, {rate / 1e6:.1f} MB/s ", end="", file=sys.stderr, flush=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._shown:
            print(file=sys.stderr)


# Passphrases.
def first_line(path: str) -> bytearray:
    with open(path, "rb") as file:
        words = bytearray(file.readline(1 << 16).rstrip(b"\r\n"))
    if not words:
        raise FlexaError(f"{path}: its first line, the passphrase, is empty")
    return words


def ask(what: str, option: str, *, twice: bool = False) -> bytearray:
    try:
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY | os.O_CLOEXEC))
    except OSError:
        # Of standard input nothing is taken for a passphrase, which may be what is to be put.
        raise FlexaError(f"there is no terminal to ask for the passphrase of {what}: {option} FILE names a file that has it") from None
    old = signal.getsignal(signal.SIGTSTP)
    with contextlib.suppress(ValueError):  # not the main thread
        signal.signal(signal.SIGTSTP, signal.SIG_IGN)  # nobody types it where it is shown, after Ctrl-Z
    try:
        words = bytearray(getpass.getpass(f"Passphrase of {what}: ").encode("utf-8", "surrogateescape"))
        if words and twice and bytearray(getpass.getpass("Once more: ").encode("utf-8", "surrogateescape")) != words:
            raise FlexaError("those are two passphrases")
    except EOFError:
        raise FlexaError("no passphrase was given") from None
    finally:
        with contextlib.suppress(ValueError):
            signal.signal(signal.SIGTSTP, old)
    if not words:
        raise FlexaError("the passphrase is empty")
    return words


# Signals.
class Stopped(KeyboardInterrupt):
    """By a signal: what was begun is undone on the way out."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def signals() -> Iterator[None]:
    """Ctrl-C and its like end what is done in an orderly way; a second one, at once."""
    came: list[int] = []

    def stop(number: int, frame: Any) -> None:
        came.append(number)
        if len(came) > 1:
            os._exit(128 + number)  # nothing that is half there has a name
        raise Stopped(number)

    before: dict[int, Any] = {}
    try:
        for number in (int(one) for one in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)):
            old = signal.getsignal(number)
            if old in (signal.SIG_DFL, signal.default_int_handler):  # not under nohup
                with contextlib.suppress(ValueError):
                    before[number] = old
                    signal.signal(number, stop)
        yield
    finally:
        with contextlib.suppress(ValueError):
            for number, old in before.items():
                signal.signal(number, old)


# Standard streams.
class Piped:
    """What comes, as it comes: a signal ends the wait for more, which it may not within a buffered read. That nothing
    has come yet is no end."""

    def __init__(self, raw: Any) -> None:
        self._raw = raw

    def read(self, length: int) -> bytes:
        while True:
            data = self._raw.read(min(length, 1 << 20))
            if data is not None:
                return bytes(data)
            select.select([self._raw], [], [])


class streams:
    """Standard input and output as bytes, which may be closed."""

    @staticmethod
    def take_closed() -> None:
        """So that no file of ours gets their numbers, and what a library says goes into it."""
        for number in range(3):
            try:
                os.fstat(number)
            except OSError:
                os.open(os.devnull, os.O_RDWR)
        for stream in (sys.stdout, sys.stderr):
            with contextlib.suppress(AttributeError):
                stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]

    @staticmethod
    def input() -> Piped:
        if sys.stdin is None:
            raise FlexaError("standard input is closed")
        return Piped(getattr(sys.stdin.buffer, "raw", sys.stdin.buffer))

    @staticmethod
    def output() -> BinaryIO:
        if sys.stdout is None:
            raise FlexaError("standard output is closed")
        return sys.stdout.buffer

    @staticmethod
    def flush() -> None:
        if sys.stdout is not None:
            sys.stdout.flush()

    @staticmethod
    def drop() -> None:
        """What cannot be written is not tried once more when Python ends."""
        if sys.stdout is not None:
            with contextlib.suppress(OSError, ValueError):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, sys.stdout.fileno())
                os.close(null)
