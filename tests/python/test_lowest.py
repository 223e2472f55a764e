# SPDX-License-Identifier: Apache-2.0
"""The core of these tests once more with the lowest versions that pyproject.toml promises, which pip brings from PyPI into
the build folder, once."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
from conftest import SOURCE

from daelstrom import _core

HERE = pathlib.Path(__file__).parent
FILES = ["arguments", "batch", "buffers", "files", "files_as_io", "fsspec", "fsspec_state", "modes", "random", "streams"]
# Of today's versions, which need a later numpy. Their plugins of pytest do too.
OTHERS = ["pandas", "pyarrow", "zarr"]


def promised(text):
    """["numpy==1.24.*", ...] of the extras that the package itself has a use for."""
    extras = dict(re.findall(r'^(\w+) = \["\1>=([\d.]+)"\]', text, re.MULTILINE))
    return [f"{name}=={extras[name]}.*" for name in ("numpy", "fsspec")]


@pytest.fixture(scope="module")
def lowest():
    """A folder for PYTHONPATH."""
    if importlib.util.find_spec("pip") is None:
        pytest.skip("needs pip")
    pins = promised((SOURCE / "pyproject.toml").read_text())
    name = "-".join(["lowest", sys.implementation.cache_tag, *(re.sub(r"[=*]+|\.(?=\*)", "", pin) for pin in pins)])
    folder = pathlib.Path(_core.__file__).parents[2] / name
    if not folder.is_dir():
        made = folder.with_name(f"{name}.{os.getpid()}")
        ran = subprocess.run(
            [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--only-binary", ":all:",
             "--retries", "1", "--timeout", "10", "--target", str(made), *pins],
            capture_output=True, text=True, env={key: os.environ[key] for key in os.environ if key != "PYTHONPATH"},
        )  # fmt: skip
        if ran.returncode:
            shutil.rmtree(made, ignore_errors=True)
            pytest.skip(f"pip cannot bring {', '.join(pins)} here: {(ran.stderr.strip().splitlines() or ['no word'])[-1]}")
        made.rename(folder)
    return folder


def test_with_the_lowest_versions_promised(lowest):
    package = pathlib.Path(_core.__file__).parents[1]
    env = {key: os.environ[key] for key in os.environ if key != "DAELSTROM_CASES"}
    env.update(PYTHONPATH=f"{lowest}:{package}", PYTEST_DISABLE_PLUGIN_AUTOLOAD="1")
    said = subprocess.run([sys.executable, "-c", "import numpy, fsspec; print(f'numpy=={numpy.__version__} fsspec=={fsspec.__version__}')"],
                          env=env, capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    for pin, version in zip(promised((SOURCE / "pyproject.toml").read_text()), said):
        assert version.startswith(pin.removesuffix("*")), said
    ran = subprocess.run(
        [sys.executable, "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(HERE),
         "-k", " and ".join(f"not {one}" for one in OTHERS), *(str(HERE / f"test_{name}.py") for name in FILES)],
        env=env, capture_output=True, text=True,
    )  # fmt: skip
    assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-1000:]
    passed = re.search(r"(\d+) passed", ran.stdout)
    assert passed and int(passed[1]) > 200, ran.stdout[-500:]
