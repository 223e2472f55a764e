# SPDX-License-Identifier: Apache-2.0
"""daelstrom.dist on a GPU that two workers share: what comes out, one of them killed, and its rates beside the host's
cores. DAELSTROM_DIST_DEVICE=cpu tries the same without a GPU."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import tempfile
import time

import pytest

import daelstrom
from daelstrom import Engine

DEVICE = os.environ.get("DAELSTROM_DIST_DEVICE", "cuda")
HERE = {str(row["name"]).partition(":")[0] for row in daelstrom.list_backends() if row["present"]}
if DEVICE.partition(":")[0] not in HERE:
    pytest.skip("needs an NVIDIA GPU and a build with CUDA", allow_module_level=True)
pytest.importorskip("fsspec", reason="no fsspec")
distributed = pytest.importorskip("distributed", reason="no dask.distributed")

from daelstrom import dist  # noqa: E402
from daelstrom.dist import _ranges, _secrets, _worker  # noqa: E402

HOST = "cpu" if "cpu" in HERE else "openssl"
KEY, OTHER = bytes(range(32)), bytes(range(50, 66))
MIB = 1 << 20
PART = 12 * MIB  # larger than 24 MiB is cut
SEGMENT = MIB - 16  # of plaintext; 40 bytes less in the first one
SIZES = [0, 1, 15, 16, 17, 255, 4096, 65_537, *(SEGMENT - 40 + d for d in (-1, 0, 1)), *(2 * SEGMENT - 40 + d for d in (-1, 0, 1)),
         *(random.Random(1).randrange(4 * MIB) for _ in range(20)), 16 * MIB, 24 * MIB, 24 * MIB + 1, 33 * MIB + 5, 48 * MIB - 1,
         64 * MIB - 1, 64 * MIB, 64 * MIB]  # fmt: skip


@contextlib.contextmanager
def cluster():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as made:
        with distributed.Client(made) as client:
            yield client


@pytest.fixture(scope="module")
def client():
    with cluster() as made:
        yield made


@pytest.fixture(scope="module")
def folder():
    """In memory, where there is room: it is not the disk that is measured."""
    room = "/dev/shm" if os.path.isdir("/dev/shm") and shutil.disk_usage("/dev/shm").free > 8 * sum(SIZES) else None
    with tempfile.TemporaryDirectory(prefix="daelstrom-dist-", dir=room) as name:
        made = pathlib.Path(name)
        for i, size in enumerate(SIZES):
            path = made / "in" / f"{i % 3}" / f"f{i}"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(random.Random(i).randbytes(size))
        yield made


@pytest.fixture
def place(folder):
    """For what one test makes."""
    made = folder / "made"
    made.mkdir()
    yield made
    shutil.rmtree(made)


def names(folder):
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def opens(sealed, folder, key, **how):
    """Each, by the host, to what it was; and nothing lies beside them."""
    assert names(sealed) == names(folder)
    for name in names(folder):
        with daelstrom.open(sealed / name, key=key, engine=Engine(HOST), **how) as file:
            assert file.read() == (folder / name).read_bytes(), name


def outcomes(report):
    return {one.outcome for one in report.objects}


def by(report, device=DEVICE):
    assert report.workers
    return all(one.partition(":")[0] == device.partition(":")[0] for used in report.workers.values() for one in used)


def test_there_and_back(client, folder, place):
    how = {"client": client, "part": PART, "device": DEVICE}
    made = dist.encrypt(str(folder / "in"), str(place / "out"), key=KEY, **how).check()
    assert outcomes(made) == {"encrypted"} and by(made) and len(made.workers) == 2 and made.size == sum(SIZES)
    assert {one.parts > 1 for one in made.objects if one.size > 2 * PART} == {True}
    opens(place / "out", folder / "in", KEY)
    assert outcomes(dist.encrypt(str(folder / "in"), str(place / "out"), key=KEY, **how).check()) == {"there"}
    assert outcomes(dist.verify(str(place / "out"), key=KEY, **how).check()) == {"verified"}
    for outcome in ("rekeyed", "there"):
        anew = dist.rekey(str(place / "out"), key=KEY, new_key=OTHER, new_segment="4K", **how).check()
        assert outcomes(anew) == {outcome} and by(anew)
    opens(place / "out", folder / "in", OTHER, segment="4K")
    back = dist.decrypt(str(place / "out"), str(place / "back"), key=OTHER, segment="4K", **how).check()
    assert outcomes(back) == {"decrypted"} and by(back) and names(place / "back") == names(folder / "in")
    for name in names(folder / "in"):
        assert (place / "back" / name).read_bytes() == (folder / "in" / name).read_bytes(), name


def test_what_the_host_sealed(client, folder, place):
    how = {"client": client, "part": PART}
    made = dist.encrypt(str(folder / "in"), str(place / "out"), key=KEY, device=HOST, **how).check()
    assert by(made, HOST)
    dist.decrypt(str(place / "out"), str(place / "back"), key=KEY, device=DEVICE, **how).check()
    for name in names(folder / "in"):
        assert (place / "back" / name).read_bytes() == (folder / "in" / name).read_bytes(), name
    # A bit amid an object, small or cut, and bytes at its end.
    wrong = {SIZES.index(size) for size in (17, 65_537, 33 * MIB + 5, 64 * MIB - 1)}
    for i in wrong:
        path = place / "out" / f"{i % 3}" / f"f{i}"
        sealed = bytearray(path.read_bytes())
        sealed[len(sealed) // 2] ^= 1
        path.write_bytes(sealed)
    cut = SIZES.index(64 * MIB)
    os.truncate(place / "out" / f"{cut % 3}" / f"f{cut}", 40 * MIB)
    for verb, to in (("verify", ()), ("decrypt", (str(place / "other"),))):
        report = getattr(dist, verb)(str(place / "out"), *to, key=KEY, device=DEVICE, **how)
        assert {os.path.basename(one.source) for one in report.failed} == {f"f{i}" for i in (*wrong, cut)}
        assert all(one.error.startswith(("InvalidTag: ", "FormatError: ")) for one in report.failed)
    assert len(names(place / "other")) == len(SIZES) - 5


def test_ranges_are_the_same_by_both():
    keys = _secrets.Keys(*_secrets.read(KEY, None, None, None, None))
    header, plain = _ranges.new_header(keys.size), random.Random(7).randbytes(9 * MIB + 77)
    made = []
    for device in (DEVICE, HOST):
        stream = _ranges.SharedStream(keys, b"aad", header, Engine(device))
        made.append([stream.seal(begin, plain[begin:end], end == len(plain)) for begin, end in _ranges.cuts(keys.keys, len(plain), MIB, 100)])
    assert made[0] == made[1]
    assert daelstrom.open_bytes(b"".join(made[0]), key=KEY, aad=b"aad") == plain


@pytest.mark.parametrize("verb", ["encrypt", "rekey", "decrypt"])
def test_a_worker_is_killed(folder, place, verb):
    """Amid its work on the GPU; the one that comes in its place is given keys, and the device."""
    source, keys, killed = folder / "in", {"key": KEY}, []
    with cluster() as client:
        how = {"client": client, "part": PART, "device": DEVICE}
        if verb != "encrypt":
            source = place / "sealed"
            dist.encrypt(str(folder / "in"), str(source), key=KEY, **how).check()
        if verb == "rekey":
            keys["new_key"] = OTHER

        def progress(done, total):
            if killed or done < total // 4:
                return
            killed.append(next(iter(client.run(os.getpid).values())))
            os.kill(killed[0], signal.SIGKILL)
            deadline = time.monotonic() + 60
            while time.monotonic() < deadline:  # for its successor
                with contextlib.suppress(OSError, distributed.comm.CommClosedError):
                    now = client.run(os.getpid)
                    if len(now) == 2 and killed[0] not in now.values():
                        return
                time.sleep(0.1)

        report = getattr(dist, verb)(str(source), str(place / "out"), progress=progress, **keys, **how).check()
    assert killed and len(report.workers) >= 3 and by(report)
    if verb == "decrypt":
        for name in names(folder / "in"):
            assert (place / "out" / name).read_bytes() == (folder / "in" / name).read_bytes(), name
    else:
        opens(place / "out", folder / "in", keys.get("new_key", KEY))
    assert not [path for path in place.rglob("*") if _worker.SCATTERED in path.name]


def test_threads_of_one_worker(folder, place):
    """They share its engine."""
    with distributed.LocalCluster(n_workers=1, threads_per_worker=4, dashboard_address=":0") as made, distributed.Client(made) as client:
        how = {"client": client, "part": PART, "device": DEVICE}
        assert by(dist.encrypt(str(folder / "in"), str(place / "out"), key=KEY, **how).check())
        dist.verify(str(place / "out"), key=KEY, **how).check()
    opens(place / "out", folder / "in", KEY)


def test_rates(client, folder, place, capsys):
    """Of the objects above, and of one in 64 parts; by the device and beside it by the host."""
    large = place / "large"
    with open(large, "wb") as file:
        block = os.urandom(8 * MIB)
        for _ in range(32 if DEVICE == HOST else 128):
            file.write(block)
    rows = []
    for device in dict.fromkeys((DEVICE, HOST)):
        for what, source in (("mixed", folder / "in"), ("large", large)):
            out, back = place / f"{what}-{device}", place / f"{what}-{device}-back"
            how = {"client": client, "part": 16 * MIB, "device": device}
            for report in (
                dist.encrypt(str(source), str(out), key=KEY, **how),
                dist.verify(str(out), key=KEY, **how),
                dist.rekey(str(out), key=KEY, new_key=OTHER, **how),
                dist.decrypt(str(out), str(back), key=OTHER, **how),
            ):
                report.check()
                assert by(report, device)
                rows.append(f"dist {report.verb:8} {what} {device:6} {report.size / report.seconds / 1e6:8.0f} MB/s  {report.seconds:6.2f} s")
            for one in (out, back):
                shutil.rmtree(one) if one.is_dir() else one.unlink()
    with capsys.disabled():
        print("", *rows, sep="\n")
