#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures FlexA over three local S3 servers beside plain s3fs and `rclone crypt` over one of them, and its mount beside
gocryptfs, all on this machine.

    PYTHONPATH=build/dev/python .venv/bin/python bench/python/flexa.py [--size MiB] [--turns N] [--files N] [--part NAME]
                                                                       [--json bench/results/flexa.json]

Parts: files (put, get, a store gone, repair), small, mount; with --json, rows of those that did not run stay. Servers
are started as tests/python/flexa_servers.py starts them: they keep connections, as S3's do. In each turn everything is measured once; rows have the median, the least and the most. What comes back is
compared. FlexA sends each byte to two of three stores: where client and servers share a machine, that counts twice.
What the machine lacks is left out, with a line under "skipped".
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import filecmp
import json
import os
import pathlib
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "python"))

import flexa_servers
import fsspec

import daelstrom
from daelstrom._writer import Chunks
from daelstrom.flexa import FlexA, Keyring
from daelstrom.flexa.fs import FlexaFileSystem
from daelstrom.flexa.keys import FileKeys
from daelstrom.flexa.portions import aad_of
from daelstrom.flexa.writing import _CHUNK

ROWS, SKIPPED, PART = [], [], [""]


def row(what, by, amount, seconds, unit="MB/s", **more):
    rates = [amount / one for one in seconds]
    ROWS.append({"part": PART[0], "what": what, "by": by, "unit": unit, "amount": amount, "rate": {
        "median": round(statistics.median(rates), 2), "min": round(min(rates), 2), "max": round(max(rates), 2)},
        "seconds": round(statistics.median(seconds), 4), "samples": len(seconds), **more})  # fmt: skip
    print(f"{what:32} {by:28} {ROWS[-1]['rate']['median']:10} {unit}", file=sys.stderr)
    return statistics.median(rates)


def took(call):
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin


def sealed(data):
    """As a put seals it, with nobody to put it to."""
    keys = FileKeys.of_number(FileKeys.new_number())
    chunks = Chunks(keys.sealed, aad_of(keys, 1, bytes(16)), None)
    with memoryview(data) as view:
        for at in range(0, len(view), _CHUNK):
            chunks.write(view[at : at + _CHUNK], len)
    chunks.finish(len)


def same(a, b):
    if not filecmp.cmp(a, b, shallow=False):
        raise SystemExit(f"{b} is not {a}")
    os.unlink(b)


def keyring(folder, stores):
    made = Keyring.create(folder / "keyring", primaries=[one.url for one in stores],
                          options={one.url: one.options for one in stores}, passphrase="x", work=4)  # fmt: skip
    FlexA.init(made)
    return FlexA(keyring=str(folder / "keyring"), passphrase="x", deadline=60.0)


def rclone_crypt(server):
    hidden = subprocess.run(["rclone", "obscure", "a passphrase"], capture_output=True, text=True, check=True).stdout.strip()
    mine = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    return {**mine, "RCLONE_CONFIG": os.devnull, "RCLONE_CONFIG_S_TYPE": "s3", "RCLONE_CONFIG_S_PROVIDER": "Other", "RCLONE_CONFIG_S_NO_CHECK_BUCKET": "true",
            "RCLONE_CONFIG_S_ACCESS_KEY_ID": server.options["key"], "RCLONE_CONFIG_S_SECRET_ACCESS_KEY": server.options["secret"],
            "RCLONE_CONFIG_S_ENDPOINT": server.options["client_kwargs"]["endpoint_url"],
            "RCLONE_CONFIG_C_TYPE": "crypt", "RCLONE_CONFIG_C_REMOTE": f"s:{server.bucket}/crypt",
            "RCLONE_CONFIG_C_PASSWORD": hidden}  # fmt: skip


def files(folder, source, size, turns):
    with flexa_servers.servers(folder, "s3", "s3", "s3") as stores, keyring(folder, stores) as flexa:
        plain = fsspec.filesystem("s3", **stores[0].options)
        back, name = str(folder / "back"), f"{stores[0].bucket}/plain"
        calls = {"flexa": (lambda: flexa.put("file", source), lambda: flexa.get("file", back)),
                 "s3fs": (lambda: plain.put_file(source, name), lambda: plain.get_file(name, back))}  # fmt: skip
        if shutil.which("rclone"):
            env = rclone_crypt(stores[0])

            def rclone(*words):
                subprocess.run(["rclone", "--retries", "1", "--ignore-times", "copyto", *words], env=env, check=True, stdout=subprocess.DEVNULL)

            calls["rclone crypt"] = (lambda: rclone(source, "c:file"), lambda: rclone("c:file", back))
        else:
            SKIPPED.append("no rclone")
        seconds = {by: ([], []) for by in calls}
        sealing = []
        for _ in range(turns):
            for by, (put, get) in calls.items():
                seconds[by][0].append(took(put))
                seconds[by][1].append(took(get))
                same(source, back)
            data = pathlib.Path(source).read_bytes()
            sealing.append(took(lambda: sealed(data)))
            del data
        mega = size / 1e6
        for number, what in enumerate(("put", "get")):
            for by in calls:
                row(f"1 file, {what}", by, mega, seconds[by][number])
        row("sealing alone, in memory", "flexa", mega, sealing,
            share_of_put=round(statistics.median(sealing) / statistics.median(seconds["flexa"][0]), 4))  # fmt: skip
        stores[1].kill()
        gone = []
        for _ in range(turns):
            gone.append(took(lambda: flexa.get("file", back)))
            same(source, back)
        row("1 file, get, one store gone", "flexa", mega, gone,
            of_all=round(statistics.median(seconds["flexa"][1]) / statistics.median(gone), 3))  # fmt: skip
        stores[1].start()
        repaired = []
        for _ in range(turns):
            shutil.rmtree(stores[1].objects) if stores[1].objects else None
            with FlexA(keyring=str(folder / "keyring"), passphrase="x", deadline=60.0) as again:
                repaired.append(took(lambda: again.repair(grace=None)))
        with FlexA(keyring=str(folder / "keyring"), passphrase="x", deadline=60.0) as again:
            if not again.verify().ok:
                raise SystemExit("repair left something out")
        row("a lost store, repaired", "flexa", mega * 2 / 3, repaired)


def small(folder, count, turns):
    with flexa_servers.servers(folder, "s3", "s3", "s3") as stores, keyring(folder, stores) as flexa:
        put, get = [], []
        fs = FlexaFileSystem(fo=flexa, skip_instance_cache=True)
        for turn in range(turns):
            given = {f"turn{turn}/{number:05}": number.to_bytes(4, "big") * 256 for number in range(count)}
            put.append(took(lambda: fs.pipe(given)))
            found = {}
            get.append(took(lambda: found.update(fs.cat(list(given)))))
            if found != given:
                raise SystemExit("small files came back otherwise")
        row("files of 1 KiB, put", "flexa", count, put, "files/s")
        row("files of 1 KiB, got", "flexa", count, get, "files/s")


@contextlib.contextmanager
def mounted(command, folder, unmount):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 30
        while not os.path.ismount(folder):
            if time.monotonic() > deadline:
                raise SystemExit(f"{command[0]} does not mount")
            time.sleep(0.05)
        yield
    finally:
        subprocess.run([unmount, "-u", str(folder)], check=True)
        process.wait(30)


def sequential(path, source, write, read):
    def copy(a, b):
        with open(a, "rb", buffering=0) as one, open(b, "wb", buffering=0) as other:
            while block := one.read(1 << 20):
                other.write(block)

    def drain():
        with open(path, "rb", buffering=0) as one:
            os.posix_fadvise(one.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
            while one.read(1 << 20):
                pass

    write.append(took(lambda: copy(source, path)))
    read.append(took(drain))
    if not filecmp.cmp(source, path, shallow=False):
        raise SystemExit(f"{path} came back otherwise")
    os.unlink(path)


def mount(folder, source, size, turns):
    unmount = shutil.which("fusermount3") or shutil.which("fusermount")
    if not unmount or not os.access("/dev/fuse", os.W_OK):
        SKIPPED.append("no FUSE")
        return
    stores = [flexa_servers.Local(folder, number) for number in range(3)]
    keyring(folder, stores).close()
    (folder / "words").write_text("x\n")
    here, there, sealed = (folder / name for name in ("mounted", "gocryptfs", "sealed"))
    for one in (here, there, sealed):
        one.mkdir()
    seconds = {"flexa mount": ([], []), "gocryptfs": ([], []), "the folder itself": ([], [])}
    gocryptfs = shutil.which("gocryptfs")
    with contextlib.ExitStack() as stack:
        stack.enter_context(mounted([sys.executable, "-m", "daelstrom.flexa", "-k", str(folder / "keyring"), "--passphrase-file",
                                     str(folder / "words"), "mount", str(here)], here, unmount))  # fmt: skip
        if gocryptfs:
            subprocess.run([gocryptfs, "-q", "-init", "-scryptn", "10", "-passfile", str(folder / "words"), str(sealed)], check=True)
            stack.enter_context(mounted([gocryptfs, "-q", "-fg", "-passfile", str(folder / "words"), str(sealed), str(there)], there, unmount))
        else:
            SKIPPED.append("no gocryptfs")
            del seconds["gocryptfs"]
        places = {"flexa mount": here, "gocryptfs": there, "the folder itself": folder}
        for _ in range(turns):
            for by, (write, read) in seconds.items():
                sequential(places[by] / "file", source, write, read)
    for number, what in enumerate(("written", "read")):
        for by in seconds:
            row(f"1 file, {what} in order", by, size / 1e6, seconds[by][number])


def main() -> None:
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("--size", type=int, default=1024, metavar="MiB")
    ask.add_argument("--turns", type=int, default=3)
    ask.add_argument("--files", type=int, default=10_000)
    ask.add_argument("--json", metavar="FILE")
    ask.add_argument("--part", choices=("files", "small", "mount"), action="append")
    given = ask.parse_args()
    size = given.size << 20
    with tempfile.TemporaryDirectory() as name:
        source = f"{name}/source"
        with open(source, "wb") as file:
            for _ in range(given.size):
                file.write(os.urandom(1 << 20))
        for part in given.part or ("files", "small", "mount"):
            PART[0] = part
            folder = pathlib.Path(name) / part
            folder.mkdir()
            if part == "files":
                files(folder, source, size, given.turns)
            elif part == "small":
                small(folder, given.files, given.turns)
            else:
                mount(folder, source, size, given.turns)
            shutil.rmtree(folder, ignore_errors=True)
    machine = {"cpu": next((line.partition(":")[2].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")), ""),
               "cores": len(os.sched_getaffinity(0)), "python": platform.python_version()}  # fmt: skip
    now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC")
    server = "versitygw" if flexa_servers.VERSITYGW else "moto"
    rows = ROWS
    if given.json and os.path.exists(given.json):
        done = {one["part"] for one in ROWS}
        rows = [one for one in json.loads(pathlib.Path(given.json).read_text())["rows"] if one["part"] not in done] + ROWS
    told = json.dumps({"machine": machine, "date": now, "version": daelstrom.__version__,
                       "servers": f"three of {server}, on this machine", "skipped": SKIPPED, "rows": rows}, indent=1)  # fmt: skip
    if given.json:
        pathlib.Path(given.json).write_text(told + "\n")
    else:
        print(told)


if __name__ == "__main__":
    main()
