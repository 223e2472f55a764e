# SPDX-License-Identifier: Apache-2.0
"""daelstrom.dist on Dask clusters of this machine: what comes out, who is lost meanwhile, and who learns no keys."""

import base64
import contextlib
import json
import os
import pathlib
import pickle
import random
import re
import signal
import subprocess
import sys
import threading
import time

import pytest

pytest.importorskip("fsspec", reason="no fsspec")
distributed = pytest.importorskip("distributed", reason="no dask.distributed")

import flexa_servers  # noqa: E402
import fsspec  # noqa: E402

import daelstrom  # noqa: E402
from daelstrom import dist  # noqa: E402
from daelstrom.dist import _held, _ranges, _secrets, _worker  # noqa: E402
from daelstrom.keysets import Keyset  # noqa: E402

KEY, OTHER = bytes(range(32)), bytes(range(50, 66))
PART = 5 << 20


@pytest.fixture(scope="module")
def client():
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        with distributed.Client(cluster) as made:
            yield made


def data(size, seed=0):
    return random.Random(size * 31 + seed).randbytes(size)


@pytest.fixture
def folder(tmp_path):
    """Small objects, empty ones, some in folders, and one that is cut."""
    for i in range(40):
        path = tmp_path / "in" / f"{i % 3}" / f"f{i}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data(i * 200))
    (tmp_path / "in" / "large").write_bytes(data(13_000_001))
    return tmp_path


def same(a, b):
    names = [sorted(str(p.relative_to(x)) for p in x.rglob("*")) for x in (a, b)]
    assert names[0] == names[1]
    for name in names[0]:
        if (a / name).is_file():
            assert (a / name).read_bytes() == (b / name).read_bytes(), name


def outcomes(report):
    return {one.outcome for one in report.objects}


def test_there_and_back(client, folder):
    told = []
    planned = dist.encrypt(str(folder / "in"), str(folder / "out"), client=client, key=KEY, dry_run=True)
    assert len(planned.objects) == 41 and outcomes(planned) == {"planned"} and not (folder / "out").exists()
    how = {"client": client, "part": PART}
    made = dist.encrypt(str(folder / "in"), str(folder / "out"), key=KEY, progress=lambda *of: told.append(of), **how).check()
    assert outcomes(made) == {"encrypted"} and made.size == sum(one.size for one in planned.objects) == told[-1][0] == told[-1][1]
    large = next(one for one in made.objects if one.source.endswith("large"))
    assert large.parts == 3 and large.attempts == 4 and set(large.workers) <= set(made.workers)
    # What others open: the usual stream.
    assert daelstrom.open(folder / "out" / "large", key=KEY).read() == data(13_000_001)
    assert daelstrom.open(folder / "out" / "1" / "f4", key=KEY).read() == data(800)
    assert json.loads(made.json())["objects"][0]["outcome"] == "encrypted" and "41 encrypted" in str(made)

    assert outcomes(dist.encrypt(str(folder / "in"), str(folder / "out"), key=KEY, **how).check()) == {"there"}
    skipped = dist.encrypt(str(folder / "in"), str(folder / "out"), key=KEY, existing="skip", **how).check()
    assert outcomes(skipped) == {"skipped"} and skipped.size == 0
    assert outcomes(dist.verify(str(folder / "out"), key=KEY, **how).check()) == {"verified"}
    for outcome in ("rekeyed", "there"):  # the second time they open with the new key alone
        assert outcomes(dist.rekey(str(folder / "out"), key=KEY, new_key=OTHER, new_segment="4K", **how).check()) == {outcome}
    back = dist.decrypt(str(folder / "out"), str(folder / "back"), key=OTHER, segment="4K", **how).check()
    assert outcomes(back) == {"decrypted"}
    same(folder / "in", folder / "back")
    assert not [p for p in folder.rglob("*") if _worker.SCATTERED in p.name]


@pytest.mark.parametrize("template", ["AES256_GCM_HKDF_1MB", "AES128_GCM_HKDF_4KB"])
def test_keysets_and_what_is_bound(client, folder, template):
    old = Keyset.generate(template)
    keyset = Keyset(old.json())
    keyset.promote(keyset.add(template))
    how = {"client": client, "part": PART, "aad": b"v1", "bind_names": True}
    dist.encrypt({str(folder / "in" / "large"): str(folder / "a"), str(folder / "in" / "1" / "f1"): str(folder / "b")},
                 keyset=old.json(), **how).check()  # fmt: skip
    dist.rekey(str(folder / "[ab]"), keyset=old.json(), new_keyset=keyset.json(), **how).check()
    assert {one.error.partition(":")[0] for one in dist.verify(str(folder / "[ab]"), keyset=old.json(), **how).failed} == {"InvalidTag"}
    fs = fsspec.filesystem("daelstrom", target_protocol="file", keyset=keyset.json(), aad=b"v1", bind_names=True)
    assert fs.cat_file(str(folder / "a")) == data(13_000_001) and fs.cat_file(str(folder / "b")) == data(200)
    os.rename(folder / "a", folder / "c")
    assert len(dist.verify(str(folder / "c"), keyset=keyset.json(), **how).failed) == 1


def test_what_fails_is_told_and_the_rest_is_done(client, folder):
    out = folder / "out"
    how = {"client": client, "part": PART, "retries": 1}
    dist.encrypt(str(folder / "in"), str(out), key=KEY, **how).check()
    for name, at in (("large", 7_000_000), ("2/f5", -1), ("1/f7", 0)):
        sealed = bytearray((out / name).read_bytes())
        sealed[at] ^= 1
        (out / name).write_bytes(sealed)
    (out / "0" / "stray").write_bytes(b"x")
    for verb, target in (("verify", ()), ("decrypt", (str(folder / "back"),))):
        report = getattr(dist, verb)(str(out), *target, key=KEY, **how)
        assert sorted(os.path.basename(one.source) for one in report.failed) == ["f5", "f7", "large", "stray"]
        assert all(re.match("(InvalidTag|FormatError): ", one.error) for one in report.failed)
        assert len(report.objects) == 42
        with pytest.raises(dist.DistError, match="4 of 42 objects failed") as raised:
            report.check()
        assert len(pickle.loads(pickle.dumps(raised.value)).report.objects) == 42
    assert not (folder / "back" / "large").exists() and len([p for p in (folder / "back").rglob("*") if p.is_file()]) == 38
    # Something else is there: it stays.
    (folder / "other").mkdir()
    (folder / "other" / "large").write_bytes(b"precious")
    (folder / "other" / "f1").write_bytes(b"precious")
    sources = [str(folder / "in" / "large"), str(folder / "in" / "1" / "f1")]
    assert {one.error.partition(":")[0] for one in dist.encrypt(sources, str(folder / "other") + "/", key=KEY, **how).failed} == {"FileExistsError"}
    assert (folder / "other" / "large").read_bytes() == (folder / "other" / "f1").read_bytes() == b"precious"
    dist.encrypt(sources, str(folder / "other") + "/", key=KEY, existing="replace", **how).check()
    assert daelstrom.open(folder / "other" / "large", key=KEY).read() == data(13_000_001)


def test_bad_arguments(client, tmp_path):
    (tmp_path / "a").write_bytes(b"x")
    a, b = str(tmp_path / "a"), str(tmp_path / "b")
    for error, words, call in (
        (TypeError, "one of key=", lambda: dist.encrypt(a, b, client=client)),
        (TypeError, "one of key=", lambda: dist.encrypt(a, b, client=client, key=KEY, key_file="x")),
        (ValueError, "16", lambda: dist.encrypt(a, b, client=client, key=b"short")),
        (ValueError, "target=", lambda: dist.encrypt(a, client=client, key=KEY)),
        (ValueError, "target=", lambda: dist.decrypt(a, a, client=client, key=KEY)),
        (ValueError, "more than once", lambda: dist.encrypt([a, a], str(tmp_path) + "/c/", client=client, key=KEY)),
        (ValueError, "chained", lambda: dist.encrypt("daelstrom::file:///x", b, client=client, key=KEY)),
        (ValueError, "5 MiB", lambda: dist.encrypt(a, b, client=client, key=KEY, part=1000)),
        (ValueError, "existing", lambda: dist.encrypt(a, b, client=client, key=KEY, existing="merge")),
        (TypeError, "mapping of options", lambda: dist.encrypt(a, b, client=client, key=KEY, storage_options={"anon": True})),
        (TypeError, "JSON", lambda: dist.encrypt(a, b, client=client, key=KEY, storage_options={"s3": {"session": object()}})),
        (FileNotFoundError, "none", lambda: dist.encrypt(str(tmp_path / "none"), b, client=client, key=KEY)),
    ):
        with pytest.raises(error, match=words):
            call()
    assert not (tmp_path / "b").exists()


@pytest.mark.parametrize("name", ["../../home/x", "a/../../x", "a//b", "./x"])
def test_no_name_leads_out_of_the_target(client, name, tmp_path):
    memory = fsspec.filesystem("memory")
    memory.store.clear()
    with memory.open("/store/placeholder", "wb") as file:
        file.write(b"x")
    memory.store["/store/" + name] = memory.store["/store/placeholder"]
    try:
        for sources in ("memory://store/", "memory://store/**"):
            with pytest.raises(ValueError, match="goes to no folder"):
                dist.encrypt(sources, str(tmp_path / "out"), client=client, key=KEY)
    finally:
        memory.store.clear()
    assert not (tmp_path / "out").exists()


def test_workers_are_killed(folder):
    """Both, amid the parts of large objects and small ones, of a job that opens and seals; those that come in their places
    have no keys at first."""
    (folder / "in" / "larger").write_bytes(data(30_000_003))
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):

        def killing(killed):
            def progress(done, total):
                if killed or done <= 8_000_000:
                    return
                killed.extend(client.run(os.getpid).values())
                for pid in killed:
                    os.kill(pid, signal.SIGKILL)
                deadline = time.monotonic() + 60
                while time.monotonic() < deadline:
                    with contextlib.suppress(OSError, distributed.comm.CommClosedError):
                        now = client.run(os.getpid)
                        if len(now) == 2 and not set(killed) & set(now.values()):
                            break
                    time.sleep(0.1)
                else:  # who has none waits for ever, as Dask does
                    pytest.skip("Dask started no two workers anew in a minute")

            return progress

        dist.encrypt(str(folder / "in"), str(folder / "sealed"), client=client, key=KEY, part=PART).check()
        killed = []
        report = dist.rekey(str(folder / "sealed"), str(folder / "out"), key=KEY, new_key=OTHER, progress=killing(killed), client=client, part=PART)
        report.check()
        assert len(killed) == 2 and len(report.workers) >= 3  # new ones have been given keys
        assert outcomes(report) <= {"rekeyed", "there"}
        for path in (folder / "in").rglob("*"):
            if path.is_file():
                assert daelstrom.open(folder / "out" / path.relative_to(folder / "in"), key=OTHER).read() == path.read_bytes()
    assert not [p for p in folder.rglob("*") if _worker.SCATTERED in p.name]


def held(settings=None, **specs):
    """What a worker has of a job."""
    keys = {name: None if spec is None else _secrets.Keys(*spec) for name, spec in specs.items()}
    return _held.Held(keys.get("old"), keys.get("new"), settings or _secrets.Settings({}, b"", False, "fail", "cpu"), 0, 1)


def test_no_nonce_for_two_plaintexts(tmp_path, monkeypatch):
    """A part that is tried again and reads otherwise is never sealed: by claims, whatever the store's marks say."""
    spec = _secrets.read(KEY, None, None, None, None)
    job, url, to = held(old=spec), f"file://{tmp_path}/in", f"file://{tmp_path}/out"
    keys = _secrets.Keys(*spec)
    monkeypatch.setattr(_worker, "_still", lambda *of: None)
    plain = data(12_000_000)
    header = _ranges.new_header(keys.size)
    parts = [_worker.Part("encrypt", url, to, (), b"", header, i, begin, end, len(plain))
             for i, (begin, end) in enumerate(_ranges.cuts(keys.keys, len(plain), PART, 100))]  # fmt: skip
    (tmp_path / "in").write_bytes(plain)
    _, _, first = _worker._part(job, "j", parts[1])
    _, _, again = _worker._part(job, "j", parts[1])
    first, again = (told.partition(" ")[2] for told in (first, again))
    assert first != again and pathlib.Path(first).read_bytes() == pathlib.Path(again).read_bytes()
    other = bytearray(plain)
    other[parts[1].begin + 5] ^= 1
    (tmp_path / "in").write_bytes(other)
    before = {p for p in tmp_path.rglob("part-*")}
    with pytest.raises(_worker.Changed):
        _worker._part(job, "j", parts[1])
    assert {p for p in tmp_path.rglob("part-*")} == before
    # Under another header all begins anew.
    _worker._part(job, "j", parts[1]._replace(header=_ranges.new_header(keys.size)))


def test_a_source_that_changes_amid_the_job(client, tmp_path):
    source, target = tmp_path / "in", tmp_path / "out"
    versions = [data(16_000_000), data(16_000_000, 1)]
    source.write_bytes(versions[0])

    def progress(done, total):
        if source.stat().st_ino != changed[0]:
            return
        (tmp_path / "next").write_bytes(versions[1])
        os.replace(tmp_path / "next", source)

    changed = [source.stat().st_ino]
    report = dist.encrypt(str(source), str(target), client=client, key=KEY, part=PART, progress=progress).check()
    assert daelstrom.open(target, key=KEY).read() == versions[1] and report.objects[0].attempts > 5


def test_parts_of_one_stream():
    """Against the library's own opening, at every kind of border."""
    for spec in (_secrets.read(KEY, None, None, None, "4K"), _secrets.read(OTHER, None, None, None, None)):
        keys = _secrets.Keys(*spec)
        for total in (1, 4000, 4040, 4041, 100_000, 3_000_001):
            stream = _ranges.SharedStream(keys, b"aad", _ranges.new_header(keys.size))
            plain = data(total)
            parts = _ranges.cuts(keys.keys, total, 4096, 50)
            assert len(parts) <= 51
            sealed = [stream.seal(begin, plain[begin:end], end == total) for begin, end in reversed(parts)]
            assert daelstrom.open_bytes(b"".join(reversed(sealed)), key=spec.secret, aad=b"aad") == plain
        with pytest.raises(ValueError, match="no segment begins"):
            stream.seal(5, b"x", True)
        with pytest.raises(ValueError, match="no segment ends"):
            stream.seal(0, b"x", False)


def test_from_and_to_a_store(client, tmp_path):
    """S3, which joins the parts of a large object by itself; an object is there whole or not at all."""
    pytest.importorskip("s3fs", reason="no s3fs")
    folder = tmp_path
    (folder / "in" / "a").mkdir(parents=True)
    for name, size in (("large", 13_000_001), ("empty", 0), ("a/small", 5000)):
        (folder / "in" / name).write_bytes(data(size))
    with flexa_servers.servers(folder, "s3") as (store,):
        to = f"s3://{store.bucket}"
        how = {"client": client, "part": PART, "storage_options": {"s3": store.options}}
        made = dist.encrypt(str(folder / "in"), f"{to}/out/", key=KEY, **how).check()
        assert max(one.parts for one in made.objects) == 3
        dist.rekey(f"{to}/out/", key=KEY, new_key=OTHER, **how).check()
        dist.decrypt(f"{to}/out/", str(folder / "back"), key=OTHER, **how).check()
        # From a store too, by ranges.
        dist.decrypt(f"{to}/out/large", f"{to}/plain", key=OTHER, **how).check()
        dist.encrypt(f"{to}/plain", str(folder / "again"), key=KEY, **how).check()
        assert daelstrom.open(folder / "again", key=KEY).read() == data(13_000_001)
        fsspec.filesystem("s3", skip_instance_cache=True, **store.options).rm(f"{store.bucket}/plain")
        same(folder / "in", folder / "back")
        fs = fsspec.filesystem("s3", skip_instance_cache=True, use_listings_cache=False, **store.options)
        assert len(fs.find(f"{store.bucket}/")) == 3
        fs.pipe_file(f"{store.bucket}/out/large", fs.cat_file(f"{store.bucket}/out/large")[:-1])
        assert len(dist.decrypt(f"{to}/out/large", f"{to}/plain", key=OTHER, **how).failed) == 1
        assert len(fs.find(f"{store.bucket}/")) == 3


def spellings(key):
    return [key, key.hex().encode(), base64.b64encode(key), base64.b64encode(key)[:-4], repr(key).encode()[2:-1]]


def memory_of(pid):
    """All that a process has in memory that it may write."""
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb") as memory:
        for line in maps:
            found = re.match(r"([0-9a-f]+)-([0-9a-f]+) rw", line)
            if found and "[vvar]" not in line:
                begin, end = (int(one, 16) for one in found.groups())
                with contextlib.suppress(OSError, ValueError):
                    memory.seek(begin)
                    yield memory.read(end - begin)


def test_the_scheduler_learns_no_key(folder):
    """Neither its memory nor anybody's log has keys or the stores' secrets, while a job runs and after it. That they would
    be found shows what was among a task's arguments."""
    key, new, secret, canary = os.urandom(32), os.urandom(32), "store-" + os.urandom(12).hex(), os.urandom(32)
    (folder / "in" / "larger").write_bytes(data(30_000_003))
    found, logs = {}, {name: open(folder / f"{name}.log", "wb") for name in ("scheduler", "worker")}
    run = [sys.executable, "-B", "-m"]
    file = str(folder / "scheduler.json")
    path = os.pathsep.join([str(pathlib.Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    env = dict(os.environ, DASK_LOGGING__DISTRIBUTED="debug", PYTHONPATH=path)
    with contextlib.ExitStack() as stack:
        for one in logs.values():
            stack.enter_context(one)

        def start(name, *args):
            process = subprocess.Popen([*run, *args], stdout=logs[name], stderr=logs[name], env=env, cwd=folder)
            stack.callback(process.wait)
            stack.callback(process.kill)
            return process

        scheduler = start("scheduler", "distributed.cli.dask_scheduler", "--port", "0", "--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", file)
        start("worker", "distributed.cli.dask_worker", "--scheduler-file", file, "--no-nanny", "--nthreads", "1", "--no-dashboard", "--host", "127.0.0.1")
        deadline = time.monotonic() + 60
        while not os.path.exists(file) and time.monotonic() < deadline:
            time.sleep(0.05)
        client = stack.enter_context(distributed.Client(scheduler_file=file))
        client.wait_for_workers(1, timeout=60)

        def look(when):
            try:
                parts = list(memory_of(scheduler.pid))
            except PermissionError:
                pytest.skip("this process may not look into another one's memory")
            assert sum(map(len, parts)) > 20 << 20
            for name, value in (("key", key), ("new key", new), ("secret", secret.encode()), ("canary", canary)):
                if any(one in part for part in parts for one in spellings(value)):
                    found.setdefault(when, set()).add(name)

        seen = []

        def progress(done, total):
            if not seen:
                seen.append(done)
                seen.append(str(client.run_on_scheduler(_graph)))
                assert "daelstrom-encrypt" in client.run_on_scheduler(_prefixes)  # as the dashboard shows them
                look("during")

        how = {"client": client, "part": PART, "storage_options": {"s3": {"secret": secret}}}
        client.submit(len, canary, key="canary", pure=False).result()
        kept = client.submit(_wait, canary, key="canary-that-stays", pure=False)
        dist.encrypt(str(folder / "in"), str(folder / "out"), key=key, progress=progress, **how).check()
        dist.rekey(str(folder / "out"), key=key, new_key=new, **how).check()
        # A failure is told, with its arguments, by the worker's log.
        (folder / "out" / "large").write_bytes(b"no sealed object")
        assert len(dist.verify(str(folder / "out"), key=new, **how).failed) == 1
        look("after")
        kept.result()
        assert found == {"during": {"canary"}, "after": {"canary"}}
        assert len(seen[1]) > 100
        told = [seen[1].encode(), json.dumps(client.get_scheduler_logs(), default=str).encode(), json.dumps(client.get_worker_logs(), default=str).encode()]
    told += [(folder / f"{name}.log").read_bytes() for name in logs]
    for text in told:
        assert not any(one in text for value in (key, new, secret.encode()) for one in spellings(value))


def _graph(dask_scheduler):
    return {key: (repr(task.run_spec), repr(task)) for key, task in dask_scheduler.tasks.items()}


def _prefixes(dask_scheduler):
    return list(dask_scheduler.task_prefixes)


def _wait(data):
    return len(data)


def test_secrets_are_not_shown():
    spec = _secrets.read(KEY, None, None, None, None)
    settings = _secrets.Settings({"s3": {"secret": "of the store"}}, b"", False, "fail", "auto")
    for text in (repr(spec), repr([spec]), f"{spec}", repr(settings), repr(_secrets.Keys(*spec))):
        assert not any(one.decode("latin-1") in text for one in spellings(KEY)) and "of the store" not in text


def test_a_worker_forgets(client, folder):
    dist.encrypt(str(folder / "in"), str(folder / "out"), client=client, key=KEY, part=PART).check()
    assert set(client.run(_jobs).values()) == {0}
    with pytest.raises(_worker.NeedsKeys):
        client.submit(_worker.do, "no job", [], pure=False).result()


def _jobs(dask_worker):
    return len(_held._of(dask_worker).jobs)


def test_a_job_is_used_by_threads_while_it_is_closed():
    job = held(old=_secrets.read(KEY, None, None, None, None))
    begun, go = threading.Event(), threading.Event()
    seen = []

    def use():
        with job:
            begun.set()
            go.wait(10)
            seen.append(bytes(job.old.secret))

    thread = threading.Thread(target=use)
    thread.start()
    begun.wait(10)
    job.close()
    with pytest.raises(_worker.NeedsKeys), job:
        pass
    go.set()
    thread.join()
    assert seen == [KEY] and bytes(job.old.secret) == bytes(32)
