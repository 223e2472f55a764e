# SPDX-License-Identifier: Apache-2.0
"""Programs of other people's, of PyPI, with the import swapped and nothing else: jwcrypto passes its own tests, http-ece
and pypdf read what the unchanged ones write and the reverse."""

import importlib.util
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest

SWAPPED = re.compile(
    r"\b(from|import) cryptography\.(hazmat\.primitives\.ciphers|hazmat\.primitives\.padding"
    r"|hazmat\.decrepit\.ciphers|exceptions)\b(?!.*\b(InvalidSignature|ChaCha20|TripleDES)\b)"
)


@pytest.fixture
def swapped(tmp_path):
    """Puts a copy of a package in front of it, with the imports of its ciphers swapped."""

    def swap(name, at_least):
        found = importlib.util.find_spec(name)
        if found is None:
            pytest.skip(f"needs {name} (scripts/setup)")
        copy = tmp_path / name
        shutil.copytree(pathlib.Path(found.origin).parent, copy, ignore=shutil.ignore_patterns("__pycache__"))
        count = 0
        for path in copy.rglob("*.py"):
            text, changes = SWAPPED.subn(r"\1 daelstrom.\2", path.read_text())
            if changes:
                path.write_text(text)
                count += changes
        assert count >= at_least
        return tmp_path

    return swap


def run(program, folder=None, *arguments):
    environment = dict(os.environ)
    if folder:
        environment["PYTHONPATH"] = f"{folder}{os.pathsep}{environment.get('PYTHONPATH', '')}"
    return subprocess.run([sys.executable, "-W", "ignore", "-c", program, *map(str, arguments)], env=environment,
                          capture_output=True, text=True, timeout=300)  # fmt: skip


def test_jwcrypto_passes_its_own_tests(swapped):
    """JWE with AES-GCM, with AES-CBC and HMAC, RFC 7516's and 7520's examples among them."""
    ran = run(
        "import unittest, jwcrypto.jwa, jwcrypto.tests; assert jwcrypto.jwa.Cipher.__module__.startswith('daelstrom.')\n"
        "assert jwcrypto.jwa.PKCS7.__module__.startswith('daelstrom.')\n"
        "unittest.main(module='jwcrypto.tests', argv=['tests'])",
        swapped("jwcrypto", 2),
    )
    assert ran.returncode == 0, ran.stderr[-3000:]
    assert int(re.search(r"Ran (\d+) tests", ran.stderr)[1]) > 50


ECE = """
import base64, os, sys, http_ece
from daelstrom.exceptions import InvalidTag
if sys.argv[1] == "ours":
    assert http_ece.Cipher.__module__.startswith("daelstrom."), http_ece.Cipher
key, salt = bytes(range(16)), bytes(range(16, 32))
for version in ("aes128gcm", "aesgcm"):
    for size in (1, 16, 100, 5000):
        data = bytes(i % 251 for i in range(size))
        secret = http_ece.encrypt(data, salt=salt, key=key, version=version, rs=1000)
        assert http_ece.decrypt(secret, salt=salt, key=key, version=version, rs=1000) == data
        print(secret.hex())
        forged = secret[:-1] + bytes([secret[-1] ^ 1])
        try:
            http_ece.decrypt(forged, salt=salt, key=key, version=version, rs=1000)
        except (http_ece.ECEException, InvalidTag) as refused:
            pass
        else:
            if sys.argv[1] == "ours":
                raise SystemExit("a forgery was taken")
"""


def test_http_ece_makes_the_same_records(swapped):
    """RFC 8188's content encoding, for Web Push."""
    ours = run(ECE, swapped("http_ece", 2), "ours")
    assert ours.returncode == 0, ours.stderr
    theirs = run(ECE.replace("from daelstrom.exceptions", "from cryptography.exceptions"), None, "theirs")
    assert theirs.returncode == 0, theirs.stderr
    assert ours.stdout == theirs.stdout and len(ours.stdout) > 20_000


PDF = """
import sys, pypdf
from pypdf._crypt_providers import _cryptography as provider
do, path, algorithm, whose = sys.argv[1:]
assert provider.Cipher.__module__.startswith("daelstrom." if whose == "ours" else "cryptography."), provider.Cipher
if do == "write":
    writer = pypdf.PdfWriter()
    for width in range(100, 130):
        writer.add_blank_page(width, 200)
    writer.add_metadata({"/Title": "a title that is encrypted"})
    writer.encrypt("user", "owner", algorithm=algorithm)
    writer.write(path)
else:
    reader = pypdf.PdfReader(path)
    assert reader.is_encrypted and not reader.decrypt("wrong") and reader.decrypt("user")
    assert reader.metadata.title == "a title that is encrypted"
    assert [int(page.mediabox.width) for page in reader.pages] == list(range(100, 130))
"""


@pytest.mark.parametrize("algorithm", ["AES-256", "AES-256-R5"])
def test_pypdf_reads_and_writes_what_others_write_and_read(swapped, algorithm, tmp_path):
    """Of its algorithms those that need no RC4."""
    folder = swapped("pypdf", 2)
    for writer, reader in (("ours", "theirs"), ("theirs", "ours")):
        path = tmp_path / f"{writer}-{reader}.pdf"
        for do, whose in (("write", writer), ("read", reader)):
            ran = run(PDF, folder if whose == "ours" else None, do, path, algorithm, whose)
            assert ran.returncode == 0, ran.stderr
