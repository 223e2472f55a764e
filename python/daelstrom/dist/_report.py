# SPDX-License-Identifier: Apache-2.0
"""What was done, object by object."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field
from typing import Any

from ..exceptions import DaelstromError

__all__ = ["DistError", "Done", "Report"]


class DistError(DaelstromError):
    """Some objects failed. `report` has them all."""

    def __init__(self, text: str, report: Report) -> None:
        super().__init__(text)
        self.report = report

    def __reduce__(self) -> Any:
        return type(self), (self.args[0], self.report)


@dataclass
class Done:
    """One object. `outcome` is "encrypted", "decrypted", "verified" or "rekeyed"; "there" where its target held the
    same already, "skipped" where it was not looked at, "planned" in a dry run, or "failed", and then `error` says why."""

    source: str
    target: str | None
    size: int  #: bytes of plaintext; of what failed, or is planned, those that are expected, where they are known
    outcome: str = "planned"
    parts: int = 1  #: ranges that it was cut into
    attempts: int = 0  #: of all its parts
    workers: list[str] = field(default_factory=list)
    error: str | None = None


@dataclass
class Report:
    """Of a whole job. `workers` says by which backends each of them worked."""

    verb: str
    job: str
    objects: list[Done] = field(default_factory=list)
    seconds: float = 0.0
    dry_run: bool = False
    workers: dict[str, list[str]] = field(default_factory=dict)

    @property
    def failed(self) -> list[Done]:
        return [one for one in self.objects if one.outcome == "failed"]

    @property
    def size(self) -> int:
        """Bytes of plaintext that were worked on."""
        return sum(one.size for one in self.objects if one.outcome not in ("failed", "skipped", "planned"))

    def check(self) -> Report:
        """Itself, or `DistError` where something failed."""
        if self.failed:
            first = self.failed[0]
            raise DistError(f"{len(self.failed)} of {len(self.objects)} objects failed; {first.source}: {first.error}", self)
        return self

    def json(self) -> str:
        return json.dumps(asdict(self), indent=1)

    def __str__(self) -> str:
        counts: dict[str, int] = {}
        for one in self.objects:
            counts[one.outcome] = counts.get(one.outcome, 0) + 1
        told = ", ".join(f"{count} {outcome}" for outcome, count in sorted(counts.items())) or "nothing to do"
        rate = f", {self.size / self.seconds / 1e6:.0f} MB/s" if self.seconds > 0 and not self.dry_run else ""
        return f"{self.verb}: {told}; {self.size} bytes in {self.seconds:.1f} s{rate}"
