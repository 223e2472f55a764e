# SPDX-License-Identifier: Apache-2.0
"""One store: its threads, its deadline, what it does where a server is busy, gone or another, and what S3 is told."""

from __future__ import annotations

import http.server
import os
import random
import shutil
import socket
import threading
import time

import pytest

pytest.importorskip("fsspec")
from flexa_faults import FaultyFileSystem, Host

from daelstrom.flexa.errors import Lost
from daelstrom.flexa.group import Background, Group
from daelstrom.flexa.store import Objects, Store, StoreError


@pytest.fixture
def host():
    made = Host(f"alone{time.monotonic_ns()}")
    yield made
    made.heal()
    del Host.all[made.name]


def store_at(host, deadline=5.0, marker="flexa-mine"):
    """Marked, whatever its deadline."""
    store = Store(f"faulty://{host.name}/place", deadline=60.0, marker=marker)
    store.wait(store.begin())
    store.deadline = deadline
    return store


def once(host, error, act=lambda: None):
    """Has its next call fail."""
    call = host.call

    def fails(kind, do):
        host.call = call
        act()
        raise error

    host.call = fails


def error_of(*names):
    """Of a class like that of a package that need not be here."""
    made = Exception
    for name in names:
        made = type(name, (made,), {})
    return made("gone")


@pytest.mark.parametrize("error", [
    error_of("SFTPConnectionLost"), error_of("DisconnectError", "MACError"), error_of("ChannelOpenError"), EOFError(),
    ValueError("Can't create any SFTP connections!"), ConnectionResetError(), error_of("RemoteProtocolError"), OSError("Socket is closed"),
], ids=repr)  # fmt: skip
def test_a_lost_connection_is_made_anew(host, error):
    store = store_at(host)
    store.wait(store.put("a", "x", b"1"))
    before = store._objects
    once(host, error)
    assert store.wait(store.get("a", "x")) == b"1" and store._objects is not before
    store.close()


def test_behind_a_new_connection_may_be_another_place(host):
    store = store_at(host)
    once(host, error_of("ConnectionLost"), host.lose)  # its server is back, and the disk is not
    with pytest.raises(StoreError, match="has not the mark"):
        store.wait(store.put("a", "x", b"1"))
    assert not host.objects and store.state == "failing"
    store.wait(store.begin(again=True))
    store.wait(store.put("a", "x", b"1"))
    assert store.state == "ok"
    store.close()


def test_a_call_that_failed_has_the_mark_looked_for(host):
    store = store_at(host)
    host.fail("down")
    with pytest.raises(StoreError, match="is down"):
        store.wait(store.ls("a"))
    host.heal()
    host.lose()
    with pytest.raises(StoreError, match="has not the mark"):
        store.wait(store.put("a", "x", b"1"))
    assert not host.objects
    store.close()


def test_the_mark_is_looked_for_now_and_then(host, monkeypatch):
    store = store_at(host)
    host.lose()
    monkeypatch.setattr("daelstrom.flexa.store._MARKED", 0.0)
    with pytest.raises(StoreError, match="has not the mark"):
        store.wait(store.put("a", "x", b"1"))
    assert not host.objects
    store.close()


def test_a_store_that_was_emptied_has_no_empty_listings(host, tmp_path):
    store = store_at(host)
    assert store.wait(store.ls("a")) == {}
    with pytest.raises(FileNotFoundError):
        store.wait(store.get("a", "x"))
    host.lose()
    with pytest.raises(StoreError, match="has not the mark"):
        store.wait(store.ls("a"))
    store.wait(store.begin())
    host.lose()
    with pytest.raises(StoreError, match="has not the mark"):
        store.wait(store.get("a", "x"))
    store.close()
    store = Store(str(tmp_path / "place"), marker="flexa-mine")
    store.wait(store.begin())
    assert store.wait(store.ls("a")) == {}
    os.unlink(tmp_path / "place" / "flexa-mine")
    with pytest.raises(StoreError, match="has not the mark"):
        store.wait(store.ls("a"))
    shutil.rmtree(tmp_path / "place")
    for job in (store.ls("a"), store.get("a", "x"), store.rm("a", "x"), store.put("a", "x", b"")):
        with pytest.raises(StoreError, match="lost, or not mounted"):
            store.wait(job)
    store.close()


def test_a_connection_is_lost_amid_begin(host):
    """What it has put before that is nobody else's."""
    store, call = Store(f"faulty://{host.name}/place", marker="flexa-mine"), host.call

    def loses(kind, do):
        if kind == "ls" and host.objects:
            host.call = call
            raise error_of("ConnectionLost")
        return call(kind, do)

    host.call = loses
    store.wait(store.begin())
    assert list(host.objects) == [f"{host.name}/place/flexa-mine"]
    with pytest.raises(StoreError, match="something else"):
        store.wait(store.begin())
    store.close()


def test_two_begin_in_one_place_at_once(host):
    """They cannot both have it."""
    def other():
        host.objects[f"{host.name}/place/flexa-other"] = (b"", 1.0)

    call = host.call
    host.call = lambda kind, do: (other() if kind == "put" else None, call(kind, do))[1]
    store = Store(f"faulty://{host.name}/place", marker="flexa-mine")
    with pytest.raises(StoreError, match="another FlexA"):
        store.wait(store.begin())
    assert list(host.objects) == [f"{host.name}/place/flexa-other"]
    store.close()


# A server that does not rename over what is there.
class Grudging(FaultyFileSystem):
    moves = 100  # of which the last ones fail
    cut = 0  # reads that lack their end

    def mv(self, path1, path2, **kwargs):
        self.moves -= 1
        if self.moves < 0 or self._strip_protocol(path2) in self._host(path2).objects:
            raise OSError("no")
        super().mv(path1, path2)

    def cat_file(self, path, start=None, end=None, **kwargs):
        self.cut -= 1
        data = super().cat_file(path, start, end)
        return data[:-1] if self.cut >= 0 else data


@pytest.fixture
def grudging(host, monkeypatch):
    objects = Objects(f"faulty://{host.name}/place", {})
    objects.fs = Grudging()
    return objects, f"{host.name}/place/a/x"


def test_the_same_object_is_put_again(host, grudging):
    objects, path = grudging
    objects.put("a", "x", b"good")
    objects.put("a", "x", b"good")
    assert list(host.objects) == [path] and host.calls["rm"] == 1  # what was on its way


def test_another_object_is_replaced_or_stays(host, grudging):
    objects, path = grudging
    host.objects[path] = (b"worse", 1.0)
    objects.fs.moves = 1  # the one that is refused
    with pytest.raises(OSError):
        objects.put("a", "x", b"good")
    assert host.objects[path][0] == b"worse" and list(host.objects) == [path]
    objects.fs.moves = 2
    objects.put("a", "x", b"good")
    assert host.objects[path][0] == b"good" and list(host.objects) == [path]


def test_what_somebody_else_puts_meanwhile_stays(host, grudging, monkeypatch):
    objects, path = grudging
    host.objects[path] = (b"worse", 1.0)
    remove = objects.fs.rm_file

    def removed(name):
        remove(name)
        if name == path:
            host.objects[path] = (b"good", 2.0)

    monkeypatch.setattr(objects.fs, "rm_file", removed)
    with pytest.raises(OSError):
        objects.put("a", "x", b"good")
    assert host.objects == {path: (b"good", 2.0)}


@pytest.mark.parametrize("cut", [1, 2])
def test_a_good_object_that_reads_badly_is_not_removed(host, grudging, cut):
    objects, path = grudging
    host.objects[path] = (b"good", 1.0)
    objects.fs.cut, objects.fs.moves = cut, 1
    with pytest.raises(OSError):
        objects.put("a", "x", b"good")
    assert host.objects[path] == (b"good", 1.0) and list(host.objects) == [path] and host.calls["rm"] == 1


def test_who_was_given_up_by_somebody_else_is_not_waited_for(host):
    stores = [store_at(host, deadline=0.2, marker="")] + [Store(f"faulty://{host.name}/{n}") for n in "bc"]
    group = Group(stores, [], 0.05)

    def call(store):
        host.fail("hang")
        job = store.ls("a")
        while job.left() > 0:
            time.sleep(0.01)
        store.reap()  # somebody else, who comes by
        host.heal()
        assert job.done.wait(10)
        return job

    with pytest.raises(Lost, match="no answer within 0.2 s"):
        group.fetch("a", "it", stores[:1], call, lambda answer: answer)
    assert stores[0]._stuck == 0 and stores[0].state == "ok"
    told = []
    store, job = stores[0], call(stores[0])
    store.tell(job, told.append)
    assert told == [job]
    with pytest.raises(StoreError, match="no answer"):
        store.answer(job)
    group.close()


def test_told_once_of_a_job_that_is_given_up(host):
    store, told = store_at(host, deadline=0.2), []
    host.fail("hang")
    job = store.ls("a")
    store.tell(job, told.append)
    while job.left() > 0:
        time.sleep(0.01)
    store.reap()
    assert told == [job] and not job.done.is_set()
    host.heal()
    assert job.done.wait(10)
    time.sleep(0.05)
    assert told == [job]
    store.close()


def test_no_thread_is_to_be_had(host, monkeypatch):
    store = store_at(host)
    held = threading.Event()
    store.wait(store.submit(lambda: None))

    def refused(self):
        raise RuntimeError("can't start new thread")

    busy = store.submit(lambda: held.wait(30))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refused)
        waits = store.ls("a")  # for the one that there is
        none = Store(f"faulty://{host.name}/place")
        with pytest.raises(StoreError, match="no thread"):
            none.wait(none.ls("a"))
        background = Background()
        background.add(1, held.set)
        background.drain()
    held.set()
    assert store.wait(waits) == {} and store.wait(busy) and (store._threads, store._idle) == (1, 1)
    assert none.wait(none.ls("a")) == {} and none._threads == 1
    store.close()


def test_background_goes_on_after_whatever_happens():
    background, done = Background(), []

    def leave():
        raise SystemExit

    background.add("a", leave)
    background.add("b", lambda: done.append(1))
    background.drain()
    background.close()
    background.add("c", lambda: done.append(2))
    background.drain()
    assert done == [1] and background.waiting == 0


def walk(store, hosts, seed, until, spent):
    """One caller among several: waits for calls, has them told, or leaves them alone as those do who were served elsewhere."""
    by = random.Random(seed)
    while time.monotonic() < until:
        begun, what = time.monotonic(), by.randrange(6)
        try:
            if what == 0:
                store.wait(store.put("a", f"{by.randrange(9)}", b"x"))
            elif what == 1:
                store.ls("a")
            elif what == 2:
                store.tell(store.get("a", "0"), lambda job: None)
            elif what == 3:
                store.reap()
            elif what == 4:
                group = Group([store] + [Store(f"faulty://{hosts[n].name}/place") for n in (1, 2)], [], 0.02)
                group.fetch("a", "it", group.primaries, lambda one: one.get("a", "0"), lambda answer: answer)
                for one in group.primaries[1:]:
                    one.close()
            else:
                store.wait(store.ls("a"))
        except (StoreError, FileNotFoundError, Lost):
            pass
        spent.append(time.monotonic() - begun)
        time.sleep(0.001)


@pytest.mark.parametrize("seed", range(3))
def test_threads_of_a_store_that_comes_and_goes(seed):
    """Whatever happens, calls come back in time, and its counts are right when all is over."""
    by = random.Random(seed)
    hosts = [Host(f"walk{seed}x{number}") for number in range(3)]
    store, spent = Store(f"faulty://{hosts[0].name}/place", deadline=0.1), []
    until = time.monotonic() + 2
    threads = [threading.Thread(target=walk, args=(store, hosts, seed * 100 + n, until, spent), daemon=True) for n in range(6)]
    for thread in threads:
        thread.start()
    while time.monotonic() < until:
        hosts[0].fail(by.choice(["hang", "hang", "slow", "down", "flaky"]))
        store._until = min(store._until, time.monotonic() + 0.02)  # asked again sooner than it would be
        time.sleep(by.uniform(0.0, 0.25))
        hosts[0].heal()
        time.sleep(by.uniform(0.0, 0.1))
    hosts[0].heal()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    # A machine of two cores that is busy is slow; a waiter that nobody wakes would be slower.
    assert len(spent) > 20 and max(spent) < 10
    until = time.monotonic() + 20
    while (store._idle != store._threads or store._running) and time.monotonic() < until:
        time.sleep(0.02)
    with store._lock:
        assert (store._idle, store._stuck, store._running) == (store._threads, 0, set()) and store._queue.empty()
        store._until, store.deadline = 0.0, 60.0
    jobs = [store.ls("") for _ in range(100)]
    for job in jobs:
        store.wait(job)
    store.close()
    for host in hosts:
        del Host.all[host.name]


def test_more_calls_than_threads_on_a_store_that_hangs(stores):
    store = Store(f"faulty://{stores.hosts[0].name}/place", deadline=0.3, marker=stores.ring.marker)
    stores.hosts[0].fail("hang")
    jobs = [store.ls("") for _ in range(100)]
    begun = time.monotonic()
    for job in jobs:
        with pytest.raises(StoreError):
            store.wait(job)
    assert time.monotonic() - begun < 15  # in turn it were 30
    stores.heal()
    until = time.monotonic() + 10
    while store.state == "hung" and time.monotonic() < until:
        time.sleep(0.02)
    assert len([store.wait(job) for job in [store.ls("") for _ in range(100)]]) == 100
    store.close()


@pytest.fixture
def endpoint():
    """What answers as S3 does, with what `answers` says in its turn, and the last of it from then on."""
    answers, asked = [], []

    class Answer(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_HEAD(self):
            self.send_response(404)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def do_GET(self):
            asked.append(self.path)
            status, text = answers[min(len(asked), len(answers)) - 1]
            self.send_response(status)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *words):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer) as server:
        server.daemon_threads, server.block_on_close = True, False
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", answers, asked
        server.shutdown()
        thread.join()


def s3_at(url, **more):
    pytest.importorskip("s3fs", reason="no s3fs")
    options = {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": url, "region_name": "us-east-1"}, **more}
    return Objects("s3://bucket/place", options)


def test_s3_that_is_busy_is_asked_again(endpoint):
    url, answers, asked = endpoint
    busy = (503, "<Error><Code>SlowDown</Code><Message>please</Message></Error>")
    found = "<Contents><Key>place/a/m</Key><Size>3</Size><LastModified>2026-01-01T00:00:00Z</LastModified></Contents>"
    answers += [busy, busy, (200, f"<ListBucketResult><Name>bucket</Name>{found}</ListBucketResult>")]
    objects = s3_at(url)
    assert objects.ls("a")["m"][0] == 3 and len(asked) == 3
    answers[:], asked[:] = [busy], []
    with pytest.raises(OSError):
        objects.ls("a")
    assert len(asked) == 3


def test_a_missing_bucket_is_no_empty_one(endpoint):
    url, answers, _ = endpoint
    answers.append((404, "<Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist</Message></Error>"))
    objects = s3_at(url)
    with pytest.raises(StoreError, match="no bucket bucket"):
        objects.ls("a")
    with pytest.raises(StoreError, match="no bucket bucket"):
        objects.has("a")


def test_s3_that_is_gone_is_told_at_once(endpoint):
    """By what FlexA sets where its user does not: s3fs and botocore try for some 20 seconds else."""
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        begun = time.monotonic()
        with pytest.raises(Exception, match="connect"):
            s3_at(url).ls("a")
        assert time.monotonic() - begun < 15
    theirs = s3_at(url, config_kwargs={"retries": {"max_attempts": 7}, "connect_timeout": 20}).fs
    assert theirs.config_kwargs["retries"] == {"max_attempts": 7} and theirs.config_kwargs["connect_timeout"] == 20
    assert theirs.retries == type(theirs).retries


def test_s3_is_told_what_its_botocore_knows(endpoint, monkeypatch):
    config = pytest.importorskip("botocore.config").Config
    known = {name: value for name, value in config.OPTION_DEFAULTS.items() if "checksum" not in name}
    url, answers, _ = endpoint
    answers.append((200, "<ListBucketResult><Name>bucket</Name></ListBucketResult>"))
    assert "response_checksum_validation" in s3_at(url).fs.config_kwargs
    monkeypatch.setattr(config, "OPTION_DEFAULTS", known)
    assert not {name for name in s3_at(url).fs.config_kwargs if "checksum" in name}


def test_a_server_that_says_nothing_is_left_in_time():
    pytest.importorskip("sshfs", reason="no sshfs")
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))
        silent.listen(100)
        url, options = f"sftp://127.0.0.1:{silent.getsockname()[1]}/x", {"username": "u", "known_hosts": None, "config": None}
        store = Store(url, options, deadline=1.0, marker="flexa-x")
        jobs = [store.ls("a") for _ in range(20)]
        for job in jobs:
            with pytest.raises(StoreError):
                store.wait(job)
        for job in jobs:
            assert job.done.wait(10)  # not each of them for as long again
        store.close()
        with pytest.raises(Exception):
            Objects(url, {**options, "connect_timeout": 0.1}, 60.0)


def test_webdav_has_the_deadline_unless_told_otherwise():
    pytest.importorskip("webdav4", reason="no webdav4")
    for more, seconds in (({}, 30.0), ({"timeout": 2.0}, 2.0)):
        objects = Objects("webdav://x", {"base_url": "http://127.0.0.1:1/", **more}, 30.0)
        assert objects.fs.client.http.timeout.read == seconds


def test_closing_beside_calls_and_twice(stores):
    files = stores.open()
    files.put("f", b"data")
    ends = []

    def read():
        try:
            while True:
                files.cat("f")
        except Exception as error:
            ends.append(error)

    threads = [threading.Thread(target=read, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    time.sleep(0.1)
    files.close()
    files.close()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert len(ends) == 4 and Host.all
