# SPDX-License-Identifier: Apache-2.0
"""The OpenCL kernels, compiled for GPUs that no test machine has: portable_test.py CLANG BACKEND_FOLDER.

clang compiles each unit of programs.cpp for AMD's GPUs, as their drivers do, and checks it for SPIR, which Intel's
take. There must be no error, and no call of a function of ours that has no body: a plain C99 `inline` leaves one
wherever a compiler does not inline it, which at -O0 is everywhere.
"""
import itertools
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

CLANG, BACKEND = sys.argv[1], pathlib.Path(sys.argv[2])
del sys.argv[1:]
TARGETS = (["-target", "amdgcn-amd-amdhsa", "-mcpu=gfx906", "-nogpulib", "-O0", "-S", "-emit-llvm"],
           ["-target", "spir64", "-fsyntax-only"])

UNITS = {name: re.findall(r"sources::(\w+)", parts)
         for name, parts in re.findall(r'\{"(\w+)",\s*\{([^}]*)\}\}', (BACKEND / "programs.cpp").read_text())}
# What a unit's macros may be, beside those that all take (kernels/aes.cl).
SHAPES = {
    "blocks": {"MODE": [0, 1, 2, 3], "CHAINED": [0, 1], "KEYSTREAM": [0, 1]},
    "serial": {"MODE": [4, 5, 6]},
    "serial_keyed": {"MODE": [4], "KEYED": [1]},
    "ctr_stream": {"HELD": [1, 4, 8], "KEYSTREAM": [0, 1]},
    "xts": {"WHOLE": [0, 1]},
    "xts_tweaks": {},
    "ghash": {"GHASH_TABLE": [0, 1]},
    "gcm_ctr": {"HELD": [0], "KEYED": [0, 1], "KEYSTREAM": [0, 1]},
    "gcm_ctr_cached": {"HELD": [4], "KEYED": [0, 1], "KEYSTREAM": [0, 1]},
    "gcm_tag": {"KEYED": [1], "AUTHENTICATION": [7]},
    "aegis": {"DEGREE": [1, 2, 4], "ROUNDS": [10, 14], "AUTHENTICATION": [7], "INTERNAL": [9]},
    "derived": {"KEYED": [2], "SIV": [0, 1], "WIDE": [0, 1], "AUTHENTICATION": [7], "INTERNAL": [9]},
}
TABLES = {"ctr_stream": [4, 2, 1], "gcm_ctr_cached": [4, 2, 1], "gcm_ctr": [0, -1], "ghash": [-1], "gcm_tag": [-1]}


def shapes(unit):
    further = SHAPES[unit]
    for tables in TABLES.get(unit, [4, 1, 0, -1]):
        for values in itertools.product(*further.values()):
            yield {"TABLES": tables, "ROUNDS": 14, "TEAMS": 8, "UNROLL": 4 if tables > 0 else 1,
                   "INVERSE": int(unit == "xts"), **dict(zip(further, values))}


class Portable(unittest.TestCase):
    def test_every_unit_is_known(self):
        self.assertEqual(UNITS.keys(), SHAPES.keys())

    def test_every_unit_compiles_and_links(self):
        with tempfile.TemporaryDirectory() as folder:
            for unit, files in UNITS.items():
                source = pathlib.Path(folder, f"{unit}.cl")
                source.write_text("".join((BACKEND / "kernels" / f"{name}.cl").read_text() for name in files))
                for shape, target in itertools.product(shapes(unit), TARGETS):
                    with self.subTest(unit=unit, target=target[1], **shape):
                        ran = subprocess.run(
                            [CLANG, "-x", "cl", "-cl-std=CL1.2", "-Xclang", "-finclude-default-header", *target,
                             "-o", "-", *(f"-DDAEL_{name}={value}" for name, value in shape.items()),
                             str(source)], capture_output=True, text=True, timeout=120)
                        self.assertEqual(ran.returncode, 0, ran.stderr)
                        # OpenCL's own functions have mangled names, ours have not.
                        self.assertEqual(re.findall(r"^declare .*@(?!_Z|llvm\.)(\w+)", ran.stdout, re.M), [])


if __name__ == "__main__":
    unittest.main()
