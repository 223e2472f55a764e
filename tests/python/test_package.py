# SPDX-License-Identifier: Apache-2.0
"""The wheel that `pip wheel .` makes, around the module that is built already: what lies in it, and that it works where
nothing else of the clone is in reach."""

import email
import importlib.util
import os
import pathlib
import subprocess
import sys
import zipfile

import pytest
from conftest import SOURCE

from daelstrom import _core

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("scikit_build_core") is None, reason="needs scikit-build-core (scripts/setup)"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    module = pathlib.Path(_core.__file__).resolve()
    ran = subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
         "--wheel-dir", str(folder), "--config-settings", f"build-dir={folder}/build", "--config-settings", "cmake.version=>=3.25", "--config-settings", "build.targets=all",
         "--config-settings", f"cmake.define.DAELSTROM_PYTHON_MODULE={module}", str(SOURCE)],
        capture_output=True, text=True, env={key: os.environ[key] for key in os.environ if key != "PYTHONPATH"},
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout + ran.stderr
    (made,) = folder.glob("daelstrom-*.whl")
    return made


def test_what_lies_in_the_wheel(wheel):
    files = set(zipfile.ZipFile(wheel).namelist())
    sources = SOURCE / "python"
    expected = {
        str(path.relative_to(sources))
        for path in (sources / "daelstrom").rglob("*")
        if path.suffix in {".py", ".pyi", ".typed", ".html", ".css", ".md"} or path.name == "py.typed"
    }
    expected |= {"AESCuda.py", "daelstrom/" + pathlib.Path(_core.__file__).name}
    info = {name for name in files if ".dist-info/" in name}
    assert files - info == expected
    (metadata,) = (name for name in info if name.endswith("/METADATA"))
    said = email.message_from_bytes(zipfile.ZipFile(wheel).read(metadata))
    assert said["Name"] == "daelstrom" and said["Requires-Python"] == ">=3.10"
    assert all("extra ==" in needs for needs in said.get_all("Requires-Dist", []))  # nothing is needed
    assert said["Version"] == _core.version()
    assert any(name.endswith("/LICENSE") for name in info)
    (notices,) = (name for name in info if name.endswith("/NOTICES.txt"))
    said = zipfile.ZipFile(wheel).read(notices).decode()
    assert all(name in said for name in ("Intel Corporation", "Wenzel Jakob", "Goetghebuer-Planchon"))


def test_it_works_by_itself(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    program = """
import daelstrom, AESCuda, os
assert os.path.dirname(daelstrom.__file__).startswith(os.environ["HERE"])
sealed = daelstrom.AESGCM(bytes(16)).encrypt(bytes(12), b"data")
assert daelstrom.AESGCM(bytes(16)).decrypt(bytes(12), sealed) == b"data"
assert AESCuda.decrypt(AESCuda.encrypt(b"data", bytes(16), bytes(8)), bytes(16), bytes(8)) == b"data"
"""
    ran = subprocess.run([sys.executable, "-I", "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})" + program],
                         cwd=tmp_path, env={"HERE": str(tmp_path), "PATH": os.environ["PATH"]},
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_the_module_shows_nothing_but_its_entry():
    """Nothing of the library, nor of those linked into it, may meet another one's in a process."""
    ran = subprocess.run(["nm", "--dynamic", "--defined-only", _core.__file__], capture_output=True, text=True)
    if ran.returncode:
        pytest.skip("nm is missing")
    names = {line.split()[-1] for line in ran.stdout.splitlines()}
    assert {name for name in names if "dael" in name.lower() or "imb_" in name.lower()} == set()
    assert "PyInit__core" in names
