# SPDX-License-Identifier: Apache-2.0
"""Every example of the package and of its documents, types by mypy --strict, and that what is optional is optional."""

import doctest
import importlib
import os
import pathlib
import pkgutil
import re
import subprocess
import sys

import pytest
from conftest import SOURCE

import daelstrom

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(daelstrom.__path__, "daelstrom.")
    if not module.name.endswith("._core")
)
DOCUMENTS = sorted((SOURCE / "docs" / "python").glob("*.md")) + [SOURCE / "python" / "README.md", SOURCE / "docs" / "flexa.md"]


@pytest.mark.parametrize("name", ["daelstrom", *MODULES])
def test_examples_of_modules(name):
    try:
        module = importlib.import_module(name)
    except ImportError as missing:
        pytest.skip(f"{name} needs {missing.name}")
    assert doctest.testmod(module).failed == 0


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_examples_of_documents(path, tmp_path, monkeypatch):
    """A page's Python, block after block, as a reader would type it in; those with `# GPU` or `# needs NAME` in their
    first line run where that is."""
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "page"}
    for block in re.findall(r"```python\n(.*?)```", path.read_text(), re.S):
        first = block.splitlines()[0]
        if first.startswith("# GPU"):
            continue  # test_gpu.py's affair
        needs = re.match(r"# needs ([\w, ]+)", first)
        if needs and any(importlib.util.find_spec(name.strip()) is None for name in needs[1].split(",")):
            continue
        exec(compile(block, str(path), "exec"), names)


def test_the_example_that_the_demo_shows():
    ran = subprocess.run([sys.executable, "-B", str(SOURCE / "examples" / "messages.py")], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert "refused: 1 of 10000 messages do not authenticate: 42" in ran.stdout


def test_the_types_are_strict():
    mypy = pathlib.Path(sys.executable).with_name("mypy")
    if not mypy.exists():
        pytest.skip("mypy is not installed")
    ran = subprocess.run([str(mypy), "--cache-dir", os.devnull], cwd=SOURCE, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout


USER = """
import mmap
import numpy
from daelstrom import AESGCM, ctr

sealed: bytes = AESGCM(bytes(16)).encrypt(bytes(12), bytearray(5))
secret: bytes = ctr(bytes(16), bytes(16), memoryview(sealed))
AESGCM(bytes(16)).encrypt_into(bytes(12), numpy.zeros(3), None, bytearray(40))
AESGCM(bytes(16)).encrypt(bytes(12), mmap.mmap(-1, 16), out=numpy.zeros(32, numpy.uint8))
AESGCM("a key")  # line 10
"""


def test_a_typed_program_is_told_what_is_wrong(tmp_path):
    mypy = pathlib.Path(sys.executable).with_name("mypy")
    if not mypy.exists():
        pytest.skip("mypy is not installed")
    (tmp_path / "user.py").write_text(USER)
    ran = subprocess.run([str(mypy), "--strict", "--config-file=", "--cache-dir", os.devnull, "user.py"], cwd=tmp_path,
                         env=dict(os.environ, MYPYPATH=str(SOURCE / "python")),
                         capture_output=True, text=True)  # fmt: skip
    faults = [line for line in ran.stdout.splitlines() if " error: " in line]
    assert len(faults) == 1 and faults[0].startswith("user.py:10: ") and '"str"' in faults[0], ran.stdout


def test_the_stub_names_what_there_is():
    """Everything public of the compiled module has its type, and nothing else has."""
    import ast

    from daelstrom import _core

    stub = ast.parse((SOURCE / "python" / "daelstrom" / "_core.pyi").read_text())
    said = {node.name: node for node in stub.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
    assert set(said) == {name for name in dir(_core) if not name.startswith("_")}
    for name, node in said.items():
        if isinstance(node, ast.ClassDef):
            members = {inner.name for inner in node.body if isinstance(inner, ast.FunctionDef)}
            there = {member for member in vars(getattr(_core, name)) if not member.startswith("_")}
            assert {member for member in members if not member.startswith("_")} == there, name


@pytest.mark.parametrize("module", ["numpy", "torch", "cupy", "fsspec", "tqdm", "cryptography"])
def test_what_is_optional_is_not_imported(module):
    program = f"import sys; sys.modules[{module!r}] = None; import daelstrom, daelstrom.ciphers, daelstrom.random; " \
              "print(daelstrom.AESGCM(bytes(16)).encrypt(bytes(12), b'x').hex(), daelstrom.random.Generator().bytes(1))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
