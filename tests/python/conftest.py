# SPDX-License-Identifier: Apache-2.0
"""What the tests of the Python package share: other people's AES to compare with, memory that is poisoned first, and a
report of the cases as GoogleTest writes it, for scripts/test_summary."""

from __future__ import annotations

import os
import pathlib
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator
from typing import Any

import hypothesis
import pytest

hypothesis.settings.register_profile("daelstrom", max_examples=60, deadline=None, database=None)
hypothesis.settings.load_profile("daelstrom")

SOURCE = pathlib.Path(os.environ.get("DAELSTROM_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
# Around blocks, around 2 KiB from where the interpreter's lock is let go, and one that goes to several threads.
SIZES = [0, 1, 15, 16, 17, 31, 32, 63, 64, 65, 255, 256, 1000, 1024, 2047, 2048, 2049, 4096, 65537, 1 << 20]


@pytest.fixture
def stores(tmp_path: pathlib.Path) -> Iterator[Any]:
    """Of a FlexA: three, which fail as a test asks."""
    from flexa_faults import Stores  # takes fsspec

    made = Stores(tmp_path)
    yield made
    made.close()


@pytest.fixture
def four(tmp_path: pathlib.Path) -> Iterator[Any]:
    """With a secondary."""
    from flexa_faults import Stores

    made = Stores(tmp_path, secondaries=1)
    yield made
    made.close()


def poisoned(size: int) -> bytearray:
    return bytearray(b"\xa5" * size)


_cases: dict[str, dict[str, object]] = {}


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    case = _cases.setdefault(report.nodeid, {"time": 0.0, "result": "completed", "said": "", "failed": False})
    case["time"] = float(case["time"]) + report.duration  # type: ignore[arg-type]
    if report.failed:
        case["failed"], case["said"] = True, report.longreprtext
    elif report.skipped:
        case["result"] = "skipped"
        case["said"] = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""


def pytest_collectreport(report: pytest.CollectReport) -> None:
    # A whole file that skips has no cases of its own: it is one.
    if report.skipped:
        said = report.longrepr[2].removeprefix("Skipped: ") if isinstance(report.longrepr, tuple) else ""
        _cases[f"{report.nodeid}::all"] = {"time": 0.0, "result": "skipped", "said": said, "failed": False}


def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    path = os.environ.get("DAELSTROM_CASES")
    if path:
        suite = ElementTree.Element("testsuite")
        for nodeid, case in _cases.items():
            place, _, name = nodeid.partition("::")
            element = ElementTree.SubElement(
                suite, "testcase", classname="python." + pathlib.Path(place).stem.removeprefix("test_"), name=name,
                status="run", result=str(case["result"]), time=f"{case['time']:.3f}",
            )  # fmt: skip
            if case["failed"]:
                ElementTree.SubElement(element, "failure", message=str(case["said"])[-500:])
            elif case["result"] == "skipped":
                ElementTree.SubElement(element, "skipped", message=f"{place}\n{case['said']}")
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        ElementTree.ElementTree(suite).write(path, encoding="unicode")
    # Nothing ran but what skipped: CTest shows the entry as skipped, by 77.
    if exitstatus in (0, 5) and _cases and all(case["result"] == "skipped" for case in _cases.values()):
        print("\nskipped: " + next(str(case["said"]) for case in _cases.values()))
        session.exitstatus = 77
