# SPDX-License-Identifier: Apache-2.0
"""Threads, fork() in every order, what is opened and closed ten thousand times, drivers that are not there."""

import copy
import gc
import os
import pickle
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

import daelstrom
from daelstrom import AESGCM, Engine, Key, KeySet, NonceCounter, weights
from daelstrom.ciphers import Cipher, algorithms, modes
from daelstrom.exceptions import LimitError

KEY, NONCE = bytes(range(32)), bytes(12)


def test_threads_share_keys_and_the_lock_is_let_go():
    ready, plain = AESGCM(KEY), os.urandom(1 << 20)
    sealed = ready.encrypt(NONCE, plain)
    faults = []

    def work():
        try:
            for _ in range(20):
                assert ready.decrypt(NONCE, sealed) == plain
                assert ready.encrypt(NONCE, plain[:1000]) == ready.encrypt(NONCE, plain[:1000])
        except BaseException as fault:
            faults.append(fault)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not faults


def test_other_threads_run_meanwhile():
    """While one thread encrypts for long, another one counts: with the lock held it would wait for the end."""
    engine = Engine("reference", threads=1)  # slow
    stop, counted = threading.Event(), [0]

    def count():
        while not stop.is_set():
            counted[0] += 1
            time.sleep(0.001)

    thread = threading.Thread(target=count)
    thread.start()
    started = time.perf_counter()
    daelstrom.ctr(KEY, bytes(16), bytes(1 << 19), engine=engine)
    took = time.perf_counter() - started
    stop.set()
    thread.join()
    assert counted[0] > took / 0.1  # on a busy machine too


def test_a_context_in_pieces_is_one_threads_at_a_time():
    context = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16)), engine=Engine("reference", threads=1)).encryptor()
    data, faults = bytes(1 << 19), []

    def update():
        try:
            context.update(data)
        except RuntimeError as fault:
            faults.append(str(fault))

    threads = [threading.Thread(target=update) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(faults) == 2 and all("one at a time" in fault for fault in faults)


IN_CHILD = {
    "nothing before": "pass",
    "the usual engine before": "daelstrom.ctr(key, bytes(16), b'x')",
    "a key before": "ready = AESGCM(key)",
    "a key that was used before": "ready = AESGCM(key); ready.encrypt(nonce, bytes(1 << 21))",
    "a context before": "context = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor(); context.update(b'x')",
    "an engine and a set before": "engine = daelstrom.Engine(); keys = daelstrom.KeySet([key], engine=engine)",
    "threads that open the usual engine": """
for _ in range(3):
    threading.Thread(target=lambda: AESGCM(key), daemon=True).start()
""",
    "threads at work": """
ready = AESGCM(key)
for _ in range(3):
    threading.Thread(target=lambda: [ready.encrypt(nonce, bytes(1 << 18)) for _ in range(400)], daemon=True).start()
""",
}
FORK = """
import faulthandler, os, sys, threading
faulthandler.dump_traceback_later(50, exit=True)
import daelstrom
from daelstrom import AESGCM
from daelstrom.ciphers import Cipher, algorithms, modes
key, nonce = bytes(range(32)), bytes(12)
ready = context = None
{before}
def work():
    mine = ready or AESGCM(key)
    for size in (0, 100, 5000, 1 << 21):
        data = os.urandom(size)
        sealed = mine.encrypt(nonce, data, b'aad')
        assert mine.decrypt(nonce, sealed, b'aad') == data
        assert AESGCM(key).encrypt(nonce, data, b'aad') == sealed
    daelstrom.seal_batch(key, [bytes(11) + bytes([i]) for i in range(20)], [bytes(20000)] * 20)
    if context:
        context.update(bytes(5000))
for generation in range(3):
    pid = os.fork()
    if pid:
        work()
        got, status = os.waitpid(pid, 0)
        os._exit(0 if status == 0 else 1)
    work()
os._exit(0)
"""


@pytest.mark.parametrize("when", IN_CHILD)
def test_fork(when):
    """Parent, child and grandchild all go on."""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", FORK.format(before=IN_CHILD[when])], timeout=100,
                         capture_output=True, text=True)  # fmt: skip
    assert ran.returncode == 0, ran.stderr


def test_a_nonce_counter_refuses_after_fork():
    counter = NonceCounter(b"abcd")
    pid = os.fork()
    if pid == 0:
        try:
            counter.next()
        except LimitError as refused:
            os._exit(0 if "fork" in str(refused) else 2)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    assert counter.next() == b"abcd" + bytes(8)


def test_multiprocessing_by_spawn_and_by_fork():
    import concurrent.futures
    import multiprocessing

    expected = AESGCM(KEY).encrypt(NONCE, b"from a process")
    for method in ("fork", "spawn"):
        with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context(method)) as pool:
            assert list(pool.map(seal, [b"from a process"] * 4)) == [expected] * 4


def seal(data):
    return AESGCM(KEY).encrypt(NONCE, data)


def resident():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * resource.getpagesize()


def cycle():
    AESGCM(KEY).encrypt(NONCE, b"data", b"aad")
    KeySet([KEY, KEY])
    Key(KEY)
    NonceCounter(b"abcd").next()
    context = Cipher(algorithms.AES(KEY), modes.GCM(NONCE)).decryptor()
    context.update(b"data")
    try:
        AESGCM(KEY).decrypt(NONCE, bytes(20))
    except daelstrom.exceptions.InvalidTag:
        pass


def test_ten_thousand_are_opened_and_closed_without_a_leak():
    for _ in range(500):
        cycle()
    gc.collect()
    handles, threads, before = len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task")), resident()
    for _ in range(10_000):
        cycle()
    gc.collect()
    assert resident() - before < 4 << 20
    before = resident()
    for _ in range(10_000):
        Engine("openssl")
    for _ in range(100):
        assert len(daelstrom.ctr(KEY, bytes(16), bytes(1 << 20), engine=Engine(threads=2))) == 1 << 20
    gc.collect()
    assert resident() - before < 8 << 20
    assert len(os.listdir("/proc/self/fd")) == handles
    assert len(os.listdir("/proc/self/task")) < threads + 20  # the usual engine's threads alone


def test_without_a_driver():
    """No CUDA, no OpenCL, no EGL: whatever is asked for by name says what is missing, and the rest works."""
    program = """
import daelstrom
rows = {str(row["name"]).partition(":")[0]: row for row in daelstrom.list_backends()}
assert rows["openssl"]["present"] and rows["reference"]["present"]
try:
    daelstrom.Engine("cuda")
except daelstrom.exceptions.BackendError as absent:
    print("absent:", absent)
assert daelstrom.AESGCM(bytes(16)).encrypt(bytes(12), bytes(1 << 22))
"""
    environment = dict(os.environ, CUDA_VISIBLE_DEVICES="", OCL_ICD_VENDORS="/nonexistent", OCL_ICD_FILENAMES="")
    ran = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, timeout=100)
    assert ran.returncode == 0, ran.stderr
    assert "absent: " in ran.stdout and "cuda" in ran.stdout


def test_an_interrupt_is_not_lost():
    signal.signal(signal.SIGALRM, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        with pytest.raises(KeyboardInterrupt):
            for _ in range(10_000):
                daelstrom.ctr(KEY, bytes(16), bytes(1 << 20))
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)


def test_secrets_are_not_said():
    for text in (repr(AESGCM(KEY)), str(Key(KEY)), repr(Cipher(algorithms.AES(KEY), modes.ECB()))):
        assert KEY.hex() not in text and repr(KEY)[2:10] not in text
    with pytest.raises(ValueError) as refused:
        Key(KEY + b"secret")
    assert "secret" not in str(refused.value)


ENDS = """
import os, sys, tempfile, threading, time
import numpy
import daelstrom
from daelstrom import AESGCM
from daelstrom.random import Generator
from daelstrom.ciphers import Cipher, algorithms, modes
key, nonce, data = bytes(16), bytes(12), bytes(5000)
ready, generator = AESGCM(key), Generator(key)
class Tensor:  # of which code of Python's is asked
    def __init__(self, array): self.array = array
    def __dlpack_device__(self): return self.array.__dlpack_device__()
    def __dlpack__(self, **how): return self.array.__dlpack__(**how)
class Ends(Exception): pass
tensor, out = Tensor(numpy.zeros(5000, numpy.uint8)), bytearray(5016)
ways = [
    lambda: ready.encrypt(nonce, data, None),
    lambda: daelstrom.ctr(key, bytes(16), data),
    lambda: daelstrom.seal_batch(ready, [nonce], [data]),
    lambda: ready.encrypt(nonce, tensor, out=out),
    lambda: generator.bytes(5000),
    lambda: Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(data),
    lambda: daelstrom.crypt("xts", "encrypt", bytes(range(64)), data, sector=5000),
]
started = threading.Barrier(len(ways) + 1)
def work(way):
    way()
    started.wait()
    while True:
        way()
for way in ways:
    threading.Thread(target=work, args=(way,), daemon=True).start()
started.wait()
how = sys.argv[1]
if how == "exit": sys.exit(3)
if how == "exception": raise Ends("of the program")
"""


@pytest.mark.parametrize("how, status", [("end", 0), ("exit", 3), ("exception", 1)])
def test_daemon_threads_in_calls_when_the_program_ends(how, status):
    for _ in range(2):
        ran = subprocess.run([sys.executable, "-c", ENDS, how], capture_output=True, text=True, timeout=100)
        assert ran.returncode == status, ran.stderr
        assert "terminate" not in ran.stderr and "FATAL" not in ran.stderr


SECOND = """
try:
    import _xxsubinterpreters as interpreters
    other = interpreters.create()
except ImportError:
    try:
        import _interpreters as interpreters
    except ImportError:
        raise SystemExit(77)
    other = interpreters.create("legacy")
in_other = '''
try:
    import daelstrom
    said = "imported"
except ImportError as refused:
    said = str(refused)
assert "{expected}" in said, said
'''
def there(expected):
    fault = interpreters.run_string(other, in_other.format(expected=expected))
    assert not fault, fault
def here():
    import daelstrom
    ready = daelstrom.AESGCM(bytes(16))
    sealed = ready.encrypt(bytes(12), b"data")
    assert ready.decrypt(bytes(12), sealed) == b"data" == daelstrom.open_batch(ready, [bytes(12)], [sealed])[0]
    try:
        ready.decrypt(bytes(12), bytes(20))
    except daelstrom.InvalidTag:
        pass
"""


@pytest.mark.parametrize("first", ["here(); there('one interpreter of a process')",
                                   "there('imported'); there('imported')"])  # fmt: skip
def test_a_second_interpreter_is_refused(first):
    """And takes nothing away from the one that came first."""
    program = SECOND + first + "\n"
    if first.startswith("here"):
        program += "here(); interpreters.destroy(other); here()\n"
    else:
        program += """
try:
    import daelstrom
except ImportError as refused:
    assert "another one has it already" in str(refused), refused
else:
    raise SystemExit("imported twice")
there('imported')
"""
    ran = subprocess.run([sys.executable, "-W", "ignore", "-c", program], capture_output=True, text=True, timeout=100)
    if ran.returncode == 77:
        pytest.skip("this Python shows no interpreters")
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("make", [lambda: AESGCM(KEY), lambda: Key(KEY), lambda: KeySet([KEY]), lambda: NonceCounter(b"abcd"),
                                  lambda: Engine("openssl"), lambda: AESGCM(KEY).keys,
                                  lambda: Cipher(algorithms.AES(KEY), modes.GCM(NONCE)).encryptor()])  # fmt: skip
def test_what_holds_a_secret_or_a_place_is_not_copied_or_pickled(make):
    """By accident: a process pool would write keys to a pipe, a cache to a disk; a copy would repeat nonces."""
    for way in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="is not pickled or copied: .*([Mm]ake|keystream)"):
            way(make())


def test_help_says_what_the_stub_file_says():
    for of, what in ((AESGCM, "Nonces must never repeat"), (AESGCM.encrypt, "ciphertext || tag"), (NonceCounter, "goes on at"),
                     (KeySet, "Any number of threads"), (Engine, "fork"), (Key.xts, "Two keys for XTS"),
                     (daelstrom.ctr, "No byte of it may be used twice"), (daelstrom.wipe, "zeros"),
                     (NonceCounter.unused, "first number")):  # fmt: skip
        assert what in of.__doc__, of
    assert AESGCM.encrypt.__doc__.startswith("encrypt(self, nonce: HostBuffer, data: Buffer, associated_data: ")
    for kind in (AESGCM, Engine, Key, KeySet, NonceCounter):
        for name in dir(kind):
            assert name.startswith("_") or getattr(kind, name).__doc__, f"{kind.__name__}.{name}"


def test_contexts_in_a_child():
    """A child has copies; one that another thread was amid a call of stays in use."""
    slow = Engine("reference", threads=1)
    context = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16)), engine=slow).encryptor()
    busy = Cipher(algorithms.AES(KEY), modes.CTR(bytes(16)), engine=slow).encryptor()
    context.update(b"before")
    thread = threading.Thread(target=lambda: busy.update(bytes(1 << 20)))
    thread.start()
    while True:  # until the thread is amid it
        try:
            busy.update(b"")
        except RuntimeError:
            break
    pid = os.fork()
    if pid == 0:
        try:
            busy.update(b"more")
        except RuntimeError as refused:
            os._exit(0 if "in use by another thread" in str(refused) and len(context.update(b"after")) == 5 else 2)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    thread.join()
    assert len(busy.update(b"more")) == 4


def test_a_set_in_a_child():
    """It seals and opens; whether keys may be replaced depends on what its parent was amid."""
    keys, used = KeySet([KEY], engine=Engine("reference", threads=1)), KeySet([KEY], engine=Engine("reference", threads=1))
    began = threading.Event()

    thread = threading.Thread(target=lambda: (began.set(), daelstrom.seal_batch(used, [NONCE], [bytes(1 << 20)])))
    thread.start()
    began.wait()
    while thread.is_alive():  # until the set is in use
        try:
            used.replace(0, KEY)
        except RuntimeError:
            break
    pid = os.fork()
    if pid == 0:
        keys.replace(0, KEY)
        fine = daelstrom.seal_batch(keys, [NONCE], [b"x"]) == daelstrom.seal_batch(used, [NONCE], [b"x"])
        try:
            used.replace(0, KEY)
        except RuntimeError as refused:
            os._exit(0 if fine and "when the process was forked" in str(refused) else 2)
        os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
    thread.join()
    used.replace(0, KEY)


THREADLESS = """
import os, resource, sys, threading
import daelstrom
from daelstrom import weights

folder, key, engine = sys.argv[1], bytes(range(32)), daelstrom.Engine("openssl", threads=1)
file = daelstrom.open(folder + "/sealed", key=key, engine=engine)
loaded = weights.WeightFile(folder + "/weights", folder + "/keys", engine=engine)
out = bytearray(24 << 20)
if os.getuid() == 0:
    os.setuid(65534)  # root has no such limit
resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
try:
    threading.Thread(target=print).start()
    raise SystemExit(77)
except RuntimeError:
    pass
assert file.read() == bytes(24 << 20)
loaded.load_into({"tensor": out})
assert out == bytes(24 << 20)
"""


def test_where_no_thread_can_be_started(tmp_path):
    with daelstrom.open(tmp_path / "sealed", "wb", key=bytes(range(32))) as file:
        file.write(bytes(24 << 20))
    keys = weights.Keys.generate()
    keys.save(tmp_path / "keys")
    weights.write_file({"tensor": ("U8", (24 << 20,), bytes(24 << 20))}, tmp_path / "weights", key=keys)
    ran = subprocess.run([sys.executable, "-c", THREADLESS, str(tmp_path)], capture_output=True, text=True, timeout=100)
    if ran.returncode == 77:
        pytest.skip("threads are not limited here")
    assert ran.returncode == 0, ran.stderr
