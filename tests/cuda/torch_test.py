# SPDX-License-Identifier: Apache-2.0
"""The library in one process with PyTorch: its streams, its graphs, its contexts. Exit status 77 where PyTorch or
a GPU is absent.

    torch_test.py libdael_torch_calls.so
"""
import ctypes
import sys
import threading
import time
import unittest

try:
    import torch
except ImportError:
    print("SKIPPED: needs PyTorch (pip install torch)")
    sys.exit(77)
if not torch.cuda.is_available():
    print("SKIPPED: PyTorch finds no GPU")
    sys.exit(77)

SIZE = 5_000_016  # bytes: the kernel for long messages, and its edges


class Library:
    def __init__(self, path):
        self.calls = ctypes.CDLL(path)
        for name in ("open", "ctr", "gcm", "prepare"):
            getattr(self.calls, "dael_torch_" + name).restype = ctypes.c_char_p

    def call(self, name, *arguments):
        fault = getattr(self.calls, "dael_torch_" + name)(*arguments)
        if fault:
            raise RuntimeError(fault.decode())

    def open(self, backend):
        state = ctypes.c_void_p()
        self.call("open", backend.encode(), ctypes.byref(state))
        return state

    def ctr(self, state, source, target, counter, stream):
        self.call("ctr", state, ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(target.data_ptr()),
                  ctypes.c_uint64(source.numel()), ctypes.c_uint8(counter), ctypes.c_void_p(stream.cuda_stream))

    def gcm(self, state, opens, source, target, tag, stream):
        self.call("gcm", state, int(opens), ctypes.c_void_p(source.data_ptr()), ctypes.c_void_p(target.data_ptr()),
                  ctypes.c_void_p(tag.data_ptr()), ctypes.c_uint64(source.numel()),
                  ctypes.c_void_p(stream.cuda_stream))

    def prepare(self, state, memory):
        self.call("prepare", state, ctypes.c_void_p(memory.data_ptr()))

    def has_context(self, device):
        return bool(self.calls.dael_torch_has_context(device))


class BesidePyTorch(unittest.TestCase):
    library = None

    def setUp(self):
        torch.cuda.set_device(0)
        self.state = self.library.open("cuda:0")

    def tearDown(self):
        self.library.calls.dael_torch_close(self.state)

    def random(self, device="cuda:0"):
        return torch.randint(0, 256, (SIZE,), dtype=torch.uint8, device=device)

    def test_work_is_in_the_order_of_its_streams(self):
        plain = self.random()
        torch.cuda.synchronize()
        for stream in (torch.cuda.Stream(), torch.cuda.default_stream()):
            with torch.cuda.stream(stream):
                moving = torch.empty_like(plain)
                for _ in range(20):  # what comes before and after is PyTorch's own
                    moving.copy_(plain)
                    self.library.ctr(self.state, moving, moving, 1, stream)
                    sealed = moving.clone()
                    self.library.ctr(self.state, moving, moving, 1, stream)
                    self.assertFalse(torch.equal(sealed, plain))
                    self.assertTrue(torch.equal(moving, plain))

    def test_batches_go_before_they_have_ended(self):
        stream = torch.cuda.Stream()
        plain = self.random()
        torch.cuda.synchronize()
        with torch.cuda.stream(stream):
            sealed, opened = torch.empty_like(plain), torch.empty_like(plain)
            tag = torch.empty(16, dtype=torch.uint8, device="cuda:0")
            for _ in range(10):
                self.library.gcm(self.state, False, plain, sealed, tag, stream)
                self.library.gcm(self.state, True, sealed, opened, tag, stream)
                self.assertTrue(torch.equal(opened, plain))
                opened.zero_()

    def test_another_threads_graph_survives_what_is_prepared_and_destroyed(self):
        memory = torch.zeros(4096, dtype=torch.uint8, device="cuda:0")
        self.library.prepare(self.state, memory)
        static = torch.zeros(1000, device="cuda:0")
        torch.cuda.synchronize()
        stop, rounds, faults = threading.Event(), [0], []

        def prepare():
            try:
                while not stop.is_set():
                    self.library.prepare(self.state, memory)
                    rounds[0] += 1
            except RuntimeError as fault:
                faults.append(str(fault))

        thread = threading.Thread(target=prepare)
        thread.start()
        try:
            for _ in range(5):
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):  # in the mode that it has by default
                    for _ in range(20):
                        static += 1
                        time.sleep(0.005)
                before = static.clone()
                graph.replay()
                torch.cuda.synchronize()
                self.assertTrue(torch.equal(static, before + 20))
        finally:
            stop.set()
            thread.join()
        self.assertEqual(faults, [])
        self.assertGreater(rounds[0], 5)

    def test_what_repeats_nothing_is_captured_and_replayed(self):
        plain = self.random()
        stream = torch.cuda.current_stream()
        sealed = torch.empty_like(plain)
        self.library.ctr(self.state, plain, sealed, 5, stream)
        source, target = torch.empty_like(plain), torch.empty_like(plain)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):  # decryption
            self.library.ctr(self.state, source, target, 5, torch.cuda.current_stream())
        for shift in range(3):
            source.copy_(sealed)
            target.fill_(shift)
            graph.replay()
            torch.cuda.synchronize()
            self.assertTrue(torch.equal(target, plain))

    def test_sealing_a_fixed_nonce_is_refused_in_a_capture(self):
        plain = self.random()
        sealed, tag = torch.empty_like(plain), torch.empty(16, dtype=torch.uint8, device="cuda:0")
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            sealed.fill_(7)  # a graph of something
            with self.assertRaisesRegex(RuntimeError, "captured"):
                self.library.gcm(self.state, False, plain, sealed, tag, torch.cuda.current_stream())
        graph.replay()
        torch.cuda.synchronize()

    def test_the_current_device_and_other_gpus_are_left_alone(self):
        if torch.cuda.device_count() < 2:
            self.skipTest("needs 2 GPUs")
        other = self.library.open("cuda:1")
        plain = self.random("cuda:1")
        sealed, opened = torch.empty_like(plain), torch.empty_like(plain)
        torch.cuda.synchronize(1)
        self.assertEqual(torch.cuda.current_device(), 0)
        self.library.ctr(other, plain, sealed, 3, torch.cuda.default_stream(1))
        self.library.ctr(other, sealed, opened, 3, torch.cuda.default_stream(1))
        torch.cuda.synchronize(1)
        self.assertTrue(torch.equal(opened, plain))
        self.assertEqual(torch.cuda.current_device(), 0)
        self.library.calls.dael_torch_close(other)
        for device in range(2, torch.cuda.device_count()):
            self.assertFalse(self.library.has_context(device), f"a context on GPU {device}")


if __name__ == "__main__":
    BesidePyTorch.library = Library(sys.argv.pop())
    unittest.main(argv=sys.argv, verbosity=2)
