# SPDX-License-Identifier: Apache-2.0
"""daelstrom.dist over a store that does all that stores should not: replaces what is read, answers less, keeps other bytes
than were written, tells no versions apart; with devices that seal what does not open, and clients that go."""

import os
import random
import threading
import time

import pytest

pytest.importorskip("fsspec", reason="no fsspec")
distributed = pytest.importorskip("distributed", reason="no dask.distributed")

import fsspec  # noqa: E402
from fsspec.implementations.local import LocalFileSystem  # noqa: E402

import daelstrom  # noqa: E402
from daelstrom import _writer, dist  # noqa: E402
from daelstrom.dist import _held, _ranges, _run, _secrets, _worker  # noqa: E402

KEY, OTHER = bytes(range(32)), bytes(range(50, 66))
PART = 5 << 20
LARGE = 20_000_000


class Odd(LocalFileSystem):
    """A folder of this machine, with manners that tests set. Workers are threads here."""

    protocol = "odd"
    marks = True
    written = read = shown = None

    @classmethod
    def _strip_protocol(cls, path):
        return LocalFileSystem._strip_protocol(str(path).removeprefix("odd://"))

    def __init__(self, *args, secret=None, **kwargs):
        super().__init__(*args, **{"auto_mkdir": True, **kwargs})
        self.secret = secret

    def unstrip_protocol(self, name):
        return "odd://" + self._strip_protocol(name)

    def info(self, path, **kwargs):
        if Odd.shown and str(path).endswith(Odd.shown):
            raise OSError(5, f"no answer for secret={self.secret}")
        told = super().info(path, **kwargs)
        return told if Odd.marks else {name: told[name] for name in ("name", "size", "type")}

    def pipe_file(self, path, value, **kwargs):
        super().pipe_file(path, value, **kwargs)
        if Odd.written:
            Odd.written(path)

    def cat_file(self, path, start=None, end=None, **kwargs):
        if Odd.read:
            Odd.read(path)
        return super().cat_file(path, start, end, **kwargs)

    def open(self, path, mode="rb", **kwargs):
        if Odd.read:
            Odd.read(path)
        return super().open(path, mode, **kwargs)


@pytest.fixture(scope="module")
def client():
    fsspec.register_implementation("odd", Odd, clobber=True)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as made,
    ):
        yield made


@pytest.fixture(autouse=True)
def usual():
    yield
    Odd.marks, Odd.written, Odd.read, Odd.shown = True, None, None, None


def data(size, seed=0):
    return random.Random(size * 31 + seed).randbytes(size)


def seal(path, plain, key=KEY):
    with daelstrom.open(path, "wb", key=key) as file:
        file.write(plain)


def opened(path, key=KEY, **how):
    with daelstrom.open(path, key=key, **how) as file:
        return file.read()


def once(does, part):
    """Done when the first name comes by that has `part` in it."""
    lock, done = threading.Lock(), []

    def hook(path):
        if part in str(path):
            with lock:
                if not done:
                    done.append(path)
                    does(path)

    return hook


def left(folder):
    return [path for path in folder.rglob("*") if _worker.SCATTERED in path.name]


@pytest.mark.parametrize("verb", ["decrypt", "rekey", "verify"])
def test_ranges_are_of_one_version(client, tmp_path, verb):
    """Where the store's marks do not tell versions apart, as those of one that is against us: each authentic, of one
    size, under one key."""
    versions, source = [data(LARGE), data(LARGE, 1)], tmp_path / "in"
    seal(source, versions[0])
    seal(tmp_path / "next", versions[1])
    Odd.marks = False
    replaced = []

    def replace(path):
        replaced.append(path)
        (tmp_path / "next").rename(source)

    Odd.written, Odd.read = once(replace, "/part-"), None
    to, keys = () if verb == "verify" else (f"odd://{tmp_path}/out",), {"new_key": OTHER} if verb == "rekey" else {}
    progress = (lambda *of: replaced or replace(of)) if verb == "verify" else None
    report = getattr(dist, verb)(f"odd://{source}", *to, client=client, key=KEY, part=PART, progress=progress, **keys).check()
    assert report.objects[0].parts > 2 and replaced
    if verb == "decrypt":
        assert (tmp_path / "out").read_bytes() == versions[1]
    elif verb == "rekey":
        assert opened(tmp_path / "out", OTHER) == versions[1]
    assert not left(tmp_path)


def test_no_ranges_where_versions_are_not_told_apart(client, tmp_path):
    """Plaintexts have nothing else."""
    (tmp_path / "in").write_bytes(data(LARGE))
    Odd.marks = False
    report = dist.encrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART).check()
    assert report.objects[0].parts == 1 and opened(tmp_path / "out") == data(LARGE)


def wrong(data):
    if threading.current_thread() is threading.main_thread():  # which seals keys for the workers
        return data
    made = bytearray(data)
    made[len(made) // 2] ^= 4
    return memoryview(made)


@pytest.mark.parametrize("size", [3000, 9_000_000, LARGE])
def test_what_does_not_open_takes_nobodys_place(client, tmp_path, monkeypatch, size):
    """A device that seals wrong, once: the only copy is still there."""
    source = tmp_path / "in"
    seal(source, data(size))
    before = source.read_bytes()
    finish, write, ranges = _writer.Chunks.finish, _writer.Chunks.write, _ranges.SharedStream.seal
    monkeypatch.setattr(_writer.Chunks, "finish", lambda self, sink: finish(self, lambda made: sink(wrong(made))))
    monkeypatch.setattr(_writer.Chunks, "write", lambda self, view, sink: write(self, view, lambda made: sink(wrong(made))))
    monkeypatch.setattr(_ranges.SharedStream, "seal", lambda self, at, plain, last:
                        ranges(self, at, plain, last) if not plain else bytearray(wrong(ranges(self, at, plain, last))))  # fmt: skip
    report = dist.rekey(str(source), client=client, key=KEY, new_key=OTHER, part=PART, retries=1)
    assert [one.error.partition(":")[0] for one in report.failed] == ["InternalError"]
    assert source.read_bytes() == before
    assert not left(tmp_path)


def test_parts_that_are_not_as_they_were_written(client, tmp_path):
    source = tmp_path / "in"
    seal(source, data(LARGE))

    def spoil(path):
        with open(path, "r+b") as file:
            file.seek(1_000_000)
            file.write(b"spoilt")

    Odd.written = lambda path: spoil(path) if "/part-" in path else None
    for target in (None, f"odd://{tmp_path}/out"):
        report = dist.rekey(f"odd://{source}", target, client=client, key=KEY, new_key=OTHER, part=PART, retries=1)
        assert [one.error.partition(":")[0] for one in report.failed] == ["Changed"]
        assert opened(source) == data(LARGE) and not (tmp_path / "out").exists() and not left(tmp_path)
    Odd.written = once(spoil, "/part-")
    dist.rekey(f"odd://{source}", client=client, key=KEY, new_key=OTHER, part=PART).check()
    assert opened(source, OTHER) == data(LARGE)


def test_what_comes_amid_a_rekey_stays(client, tmp_path):
    """Somebody writes the object while its parts are put together."""
    source = tmp_path / "in"
    seal(source, data(LARGE))
    seal(tmp_path / "next", b"what they wrote")
    Odd.read = once(lambda _: (tmp_path / "next").rename(source), "/part-")
    dist.rekey(f"odd://{source}", client=client, key=KEY, new_key=OTHER, part=PART).check()
    assert opened(source, OTHER) == b"what they wrote"


def test_a_rekey_that_was_done_before_its_worker_was_lost(client, tmp_path, monkeypatch):
    """It is begun anew, opens with the new key by now, and is done."""
    source = tmp_path / "in"
    seal(source, data(LARGE))
    join, told = _worker._join, []

    def lost(held, unit, *of):
        made = join(held, unit, *of)
        if not told:
            told.append(made)
            raise OSError("the worker is gone")
        return made

    monkeypatch.setattr(_worker, "_join", lost)
    report = dist.rekey(str(source), client=client, key=KEY, new_key=OTHER, new_segment="4K", part=PART).check()
    assert told and report.objects[0].outcome == "there" and opened(source, OTHER, segment="4K") == data(LARGE)


def test_less_than_the_store_says(client, tmp_path, monkeypatch):
    """A read that ends too early is no end of the object."""
    (tmp_path / "in").write_bytes(data(50_000))

    class Short:
        def __init__(self, file):
            self.file, self.left = file, 20_000

        def readinto(self, block):
            with memoryview(block) as view:
                got = self.file.readinto(view[: min(len(view), self.left)])
            self.left -= got
            return got

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

    usual = Odd.open
    monkeypatch.setattr(Odd, "open", lambda self, path, mode="rb", **how: Short(usual(self, path, mode, **how)) if path.endswith("/in") else usual(self, path, mode, **how))
    report = dist.encrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, retries=1)
    assert "of which 20000 could be read" in report.failed[0].error and not (tmp_path / "out").exists()


@pytest.mark.parametrize("verb", ["encrypt", "decrypt"])
def test_a_call_that_is_broken_off_leaves_nothing(client, tmp_path, verb):
    """What runs in workers ends before what it left is removed."""
    source = tmp_path / "in"
    source.write_bytes(data(LARGE)) if verb == "encrypt" else seal(source, data(LARGE))
    seen = []

    def slow(path):
        time.sleep(0.2 * len(seen))
        seen.append(path)

    Odd.written = slow

    def progress(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        getattr(dist, verb)(f"odd://{source}", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART, progress=progress)
    for _ in range(20):
        assert not left(tmp_path) and not (tmp_path / "out").exists()
        time.sleep(0.1)


def test_plaintext_in_parts_is_its_owners(client, tmp_path):
    seal(tmp_path / "in", data(LARGE))
    modes = []
    Odd.written = lambda path: modes.extend(one.stat().st_mode & 0o777 for one in left(tmp_path))
    dist.decrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART).check()
    assert modes and set(modes) == {0o700}


def handed_out(client):
    """A job whose workers have their keys."""
    spec = _secrets.read(KEY, None, None, None, None)
    job = _run.Job(client, "encrypt", [], spec, None, _secrets.Settings({}, b"", False, "fail", "cpu"),
                   part=PART, retries=0, progress=None)  # fmt: skip
    job._hand_out()
    return job


def test_a_client_that_went_is_forgotten(client, monkeypatch):
    monkeypatch.setattr(_held, "LEASE", 0.3)
    made, init = [], _held.Held.__init__

    def noted(self, old, *of):
        made.append((old, bytes(old.secret)))
        init(self, old, *of)

    monkeypatch.setattr(_held.Held, "__init__", noted)
    job = handed_out(client)
    assert [secret for _, secret in made] == [KEY, KEY]
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and True in client.run(_held.has, job.name).values():
        time.sleep(0.05)
    assert set(client.run(_held.has, job.name).values()) == {False}
    assert all(bytes(old.secret) == bytes(32) for old, _ in made)
    job.close()


def _expire(job, dask_worker):
    _held._expire(dask_worker, job)


def test_a_client_that_is_there_is_not_forgotten(client, monkeypatch):
    monkeypatch.setattr(_held, "RENEWED", 0.05)
    job = handed_out(client)
    held = [worker.jobs[job.name] for worker in _held._workers.values() if job.name in worker.jobs]
    assert len(held) == 2
    for one in held:
        one.renewed = long_ago = time.monotonic() - 2 * _held.LEASE
    thread = threading.Thread(target=job._renew)
    thread.start()
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and long_ago in [one.renewed for one in held]:
        time.sleep(0.05)
    client.run(_expire, job.name)
    assert set(client.run(_held.has, job.name).values()) == {True}
    job._end()
    thread.join()
    assert set(client.run(_held.has, job.name).values()) == {False}


def test_a_client_that_slept(client, tmp_path):
    """Its workers have forgotten the keys meanwhile, and get them again, at the cost of no attempt."""
    (tmp_path / "in").write_bytes(data(LARGE))
    forgotten = []

    def progress(done, total):
        if not forgotten:
            forgotten.extend({job for worker in _held._workers.values() for job in worker.jobs})
            client.run(_held.forget, forgotten[0])

    report = dist.encrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART, retries=0, progress=progress)
    report.check()
    assert forgotten == [report.job] and opened(tmp_path / "out") == data(LARGE)


def test_names_that_look_like_chains(client, tmp_path):
    names = ["a::b", "memory::x", "x::memory", "simplecache::file:", "k=v;w"]
    (tmp_path / "in").mkdir()
    for name in names:
        (tmp_path / "in" / name).write_bytes(name.encode())
    (tmp_path / "in" / "large::file").write_bytes(data(LARGE))
    how = {"client": client, "key": KEY, "part": PART}
    dist.encrypt(str(tmp_path / "in"), str(tmp_path / "out"), **how).check()
    for name in names:
        assert opened(tmp_path / "out" / name) == name.encode()
    dist.decrypt(str(tmp_path / "out"), str(tmp_path / "back"), **how).check()
    assert sorted(path.name for path in (tmp_path / "back").iterdir()) == sorted([*names, "large::file"])


def test_what_is_called_like_parts_is_no_part(client, tmp_path):
    (tmp_path / "in").mkdir()
    for name in (f"a{_worker.SCATTERED}mine", f"b{_worker.SCATTERED}0123456789abcde.txt"):
        (tmp_path / "in" / name).write_bytes(b"x")
    (tmp_path / "in" / f"c{_worker.SCATTERED}0123456789abcde").mkdir()
    (tmp_path / "in" / f"c{_worker.SCATTERED}0123456789abcde" / "part").write_bytes(b"x")
    report = dist.encrypt(str(tmp_path / "in"), str(tmp_path / "out"), client=client, key=KEY).check()
    assert len(report.objects) == 2


def test_errors_do_not_show_what_stores_were_told(client, tmp_path):
    (tmp_path / "in").write_bytes(b"x")
    planned, Odd.shown = dist._plan.find, None

    def find(*of):
        found = planned(*of)
        Odd.shown = "/in"
        return found

    dist._plan.find = find
    try:
        report = dist.encrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, retries=0,
                              storage_options={"odd": {"secret": "sesame"}})  # fmt: skip
    finally:
        dist._plan.find = planned
    assert "no answer for secret=***" in report.failed[0].error and "sesame" not in report.json()
    with pytest.raises(ValueError, match="password") as raised:
        dist.verify("sftp://user:sesame@host/x", client=client, key=KEY)
    assert "sesame" not in str(raised.value)


def test_stores_are_forgotten_with_the_job(client, tmp_path):
    (tmp_path / "in").write_bytes(b"x")
    before = set(Odd._cache)
    made, init = [], Odd.__init__

    def noted(self, *args, **kwargs):
        made.append(threading.current_thread() is threading.main_thread())
        init(self, *args, **kwargs)

    Odd.__init__ = noted
    try:
        dist.encrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY,
                     storage_options={"odd": {"secret": os.urandom(8).hex()}}).check()  # fmt: skip
    finally:
        Odd.__init__ = init
    assert False in made and len(set(Odd._cache) - before) == 1  # the client's own


def test_parts_have_the_size_that_stores_ask_for():
    for segment in ("4K", None):
        keys = _secrets.Keys(*_secrets.read(KEY, None, None, None, segment))
        for part in (PART, PART + 1, 6_000_000, 64 << 20):
            for total in (2 * part + 1, 7 * part + 5, 10 * part):
                made = _ranges.cuts(keys.keys, total, part, 9000)
                assert made[0][0] == 0 and made[-1][1] == total and all(a[1] == b[0] for a, b in zip(made, made[1:]))
                assert all(end - begin >= part for begin, end in made[:-1])
    assert len(_ranges.cuts(keys.keys, 1 << 40, PART, 9000)) <= 9000


def test_earlier_beginnings_stay_until_the_end(client, tmp_path, monkeypatch):
    """Some may still go on with one: their claims are there. And no error of what removes them ends the job."""
    source, versions = tmp_path / "in", [data(LARGE), data(LARGE, 1)]
    source.write_bytes(versions[0])
    (tmp_path / "next").write_bytes(versions[1])
    Odd.written = once(lambda _: (tmp_path / "next").rename(source), "/claim-")
    beginnings = []

    def rm(self, path, **how):
        beginnings.append(len(os.listdir(path)))
        LocalFileSystem.rm(self, path, **how)
        raise OSError(5, "something came into the folder meanwhile")

    monkeypatch.setattr(Odd, "rm", rm)
    dist.encrypt(f"odd://{source}", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART).check()
    assert opened(tmp_path / "out") == versions[1] and beginnings == [2] and not left(tmp_path)


def test_no_part_of_an_earlier_beginning(client, tmp_path, monkeypatch):
    """Where the object is the same one as then."""
    seal(tmp_path / "in", data(LARGE))
    read, join, begun, joined = _worker._read, _worker._join, [], []

    def once_changed(reads, path, unit):
        if not begun:
            begun.append(unit.header)
        if unit.header == begun[0] and unit.number == 0:
            raise _worker.Changed("for a moment")
        if unit.header == begun[0]:
            time.sleep(0.2)
        return read(reads, path, unit)

    monkeypatch.setattr(_worker, "_read", once_changed)
    monkeypatch.setattr(_worker, "_join", lambda held, unit, *of: joined.append(unit.names) or join(held, unit, *of))
    report = dist.decrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART).check()
    assert (tmp_path / "out").read_bytes() == data(LARGE) and report.objects[0].outcome == "decrypted"
    assert len(joined) == 1 and not any(begun[0][1:9].hex() in name for name in joined[0])


def test_a_store_that_does_not_answer_the_client(client, tmp_path, monkeypatch):
    """Ends no job: workers try it."""
    (tmp_path / "in").write_bytes(data(LARGE))

    def exists(self, path, **how):
        if threading.current_thread() is threading.main_thread():
            raise OSError(5, "no answer")
        return LocalFileSystem.exists(self, path, **how)

    monkeypatch.setattr(Odd, "exists", exists)
    dist.encrypt(f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", client=client, key=KEY, part=PART).check()
    assert opened(tmp_path / "out") == data(LARGE)


def test_parts_under_names_like_patterns(client, tmp_path):
    (tmp_path / "in").write_bytes(data(LARGE))
    memory = fsspec.filesystem("memory")
    try:
        dist.encrypt({f"file://{tmp_path}/in": "memory://dist/a[1]"}, client=client, key=KEY, part=PART).check()
        assert memory.find("/dist") == ["/dist/a[1]"]
    finally:
        memory.rm("/dist", recursive=True)


def test_a_part_that_comes_too_late(client, tmp_path):
    """The job ends while it is written, and what lay there has been removed."""
    spec = _secrets.read(KEY, None, None, None, None)
    job = _held.Held(_secrets.Keys(*spec), None, _secrets.Settings({}, b"", False, "fail", "cpu"), 0, 1)
    seal(tmp_path / "in", b"x" * 1000)
    fs, path = _held.filesystem(f"odd://{tmp_path}/in", {})
    keys = job.old
    _, head = _worker.head_of(fs, path, keys.keys.sealing(), fs.info(path)["size"])
    Odd.written = lambda _: job.close()
    part = _worker.Part("decrypt", f"odd://{tmp_path}/in", f"odd://{tmp_path}/out", _run.mark_of(fs.info(path)), head,
                        _ranges.new_header(keys.size), 0, 0, 1000, 1000)  # fmt: skip
    with pytest.raises(_held.NeedsKeys), job:
        _worker._part(job, "j", part)
    assert not list(tmp_path.rglob("part-*"))


def test_what_is_read_is_not_replaced(client, tmp_path):
    for name in "abc":
        seal(tmp_path / name, name.encode())
    a, b, c = (f"file://{tmp_path}/{name}" for name in "abc")
    with pytest.raises(ValueError, match="is read too"):
        dist.rekey({a: b, b: c}, client=client, key=KEY, new_key=OTHER, existing="replace")
    assert [opened(tmp_path / name) for name in "abc"] == [b"a", b"b", b"c"]


def test_the_longest_secret_is_hidden_first():
    storage = {"s3": {f"key{i}": "sesame"[: 4 + i % 3] + "-long" * (i % 2) for i in range(6)}}
    for secret in storage["s3"].values():
        assert _held.words(OSError(f"no answer for {secret}."), storage) == "OSError: no answer for ***."
