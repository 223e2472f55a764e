# SPDX-License-Identifier: Apache-2.0
"""Byte for byte what openssl makes, and the other way round."""
from harness import CHUNK, IV, MODES, CliTest, data, iv_options, key, openssl, openssl_enc

SMALL = (0, 1, 15, 16, 17, 4095, 4096, (1 << 20) + 3)
EDGES = tuple(CHUNK + delta for delta in (-17, -16, -1, 0, 1, 16)) + (2 * CHUNK, 3 * CHUNK + 5)


class WithIv(CliTest):
    """--iv: exactly openssl enc -K -iv."""

    def both_ways(self, mode, bits, plain):
        expected = openssl_enc(mode, bits, plain)
        self.write("plain", plain)
        options = ["--mode", mode, "--key-file", f"key{bits}", *iv_options(mode)[0]]
        self.ok("encrypt", *options, "plain", "-o", "cipher", "-f")
        self.assertTrue(self.read("cipher") == expected, (mode, bits, len(plain), "encrypt"))
        self.ok("decrypt", *options, "cipher", "-o", "again", "-f")
        self.assertTrue(self.read("again") == plain, (mode, bits, len(plain), "decrypt"))

    def test_every_mode_and_small_size_and_every_key(self):
        for mode in MODES:
            for bits in (128, 192, 256):
                for size in SMALL if bits == 128 else (0, 17, 4095):
                    self.both_ways(mode, bits, data(size))

    def test_around_the_edges_of_chunks(self):
        for mode in MODES:
            for size in EDGES:
                self.both_ways(mode, 128, data(size))

    def test_through_pipes(self):
        for mode in MODES:
            for size in (0, 5, CHUNK, CHUNK + 16, 2 * CHUNK + 7):
                plain, options = data(size), ["--mode", mode, "--key-file", "key256", *iv_options(mode)[0]]
                cipher = self.ok("encrypt", *options, given=plain)
                self.assertTrue(cipher == openssl_enc(mode, 256, plain), (mode, size))
                self.assertTrue(self.ok("decrypt", *options, "-", "-o", "-", given=cipher) == plain, (mode, size))

    def test_without_padding(self):
        plain = data(CHUNK + 32)
        for mode in ("ecb", "cbc"):
            options = ["--no-padding", "--mode", mode, "--key-file", "key128", *iv_options(mode)[0]]
            cipher = self.ok("encrypt", *options, given=plain)
            self.assertTrue(cipher == openssl_enc(mode, 128, plain, padding=False), mode)
            self.assertTrue(self.ok("decrypt", *options, given=cipher) == plain, mode)
            self.assertEqual(self.ok("encrypt", *options, given=b""), b"")

    def test_padding_of_every_length(self):
        for size in range(48):
            cipher = openssl_enc("cbc", 192, data(size))
            self.assertEqual(self.ok("decrypt", "-m", "cbc", "--key-file", "key192", "--iv", IV, given=cipher),
                             data(size))

    def test_every_backend_here(self):
        plain = data(CHUNK // 8 + 3)
        expected = openssl_enc("ctr", 256, plain)
        for backend in ("reference", "openssl", "auto"):
            self.assertTrue(self.ok("encrypt", "--backend", backend, "--key-file", "key256", "--iv", IV,
                                    given=plain) == expected, backend)

    def test_offset(self):
        whole = openssl_enc("ctr", 128, data(2 * CHUNK))
        for offset, text in ((0, "0"), (1, "1"), (16, "16"), (1024, "1K"), (1 << 20, "1M"), (1536, "1.5K"),
                             (CHUNK - 5, str(CHUNK - 5))):
            part = self.ok("encrypt", "--key-file", "key128", "--iv", IV, "--offset", text,
                           given=data(2 * CHUNK)[offset:])
            self.assertTrue(part == whole[offset:], text)

    def test_hexadecimal_key(self):
        expected = openssl_enc("ctr", 192, data(100))
        for text in (key(192).hex(), key(192).hex().upper() + "\n", key(192).hex() + " \r\n"):
            self.write("key.hex", text.encode())
            self.assertEqual(self.ok("encrypt", "--key-file", "key.hex", "--iv", IV, given=data(100)), expected)


class StoredIv(CliTest):
    """No --iv: a new IV each time, in front."""

    def test_openssl_reads_it(self):
        for mode in MODES[1:]:
            cipher = self.ok("encrypt", "-m", mode, "--key-file", "key128", given=data(1000))
            plain = openssl("enc", "-d", f"-aes-128-{mode}", "-K", key(128).hex(), "-iv", cipher[:16].hex(),
                            given=cipher[16:])
            self.assertEqual(plain, data(1000), mode)

    def test_round_trip(self):
        for mode in MODES:
            for size in (0, 1, 16, CHUNK - 16, CHUNK, CHUNK + 1):
                options = ["-m", mode, "--key-file", "key192"]
                cipher = self.ok("encrypt", *options, given=data(size))
                self.assertTrue(self.ok("decrypt", *options, given=cipher) == data(size), (mode, size))

    def test_a_new_one_each_time(self):
        ivs = {self.ok("encrypt", "--key-file", "key128") for _ in range(8)}
        self.assertEqual(len(ivs), 8)
        self.assertEqual({len(iv) for iv in ivs}, {16})

    def test_ecb_has_none(self):
        self.assertEqual(self.ok("encrypt", "-m", "ecb", "--key-file", "key128", given=data(100)),
                         openssl_enc("ecb", 128, data(100)))


class Salted(CliTest):
    """--openssl: what openssl enc -pbkdf2 reads and writes."""

    def setUp(self):
        super().setUp()
        self.write("password", b"correct horse battery staple\nnot this line\n")
        self.openssl_password = ["-pbkdf2", "-pass", f"file:{self.dir / 'password'}"]

    def test_openssl_reads_ours(self):
        for mode in MODES:
            for bits in (128, 192, 256):
                cipher = self.ok("encrypt", "--openssl", "--mode", mode, "--bits", bits, "--password-file",
                                 "password", given=data(777))
                self.assertEqual(cipher[:8], b"Salted__")
                plain = openssl("enc", "-d", f"-aes-{bits}-{mode}", *self.openssl_password, given=cipher)
                self.assertEqual(plain, data(777), (mode, bits))

    def test_we_read_openssls(self):
        for mode in MODES:
            for bits in (128, 192, 256):
                cipher = openssl("enc", f"-aes-{bits}-{mode}", "-iter", "777", *self.openssl_password,
                                 given=data(CHUNK + 9))
                plain = self.ok("decrypt", "--openssl", "-m", mode, "--bits", bits, "--iterations", 777,
                                "--password-file", "password", given=cipher)
                self.assertTrue(plain == data(CHUNK + 9), (mode, bits))

    def test_default_is_256_bits_and_10000_rounds(self):
        cipher = openssl("enc", "-aes-256-ctr", "-iter", "10000", *self.openssl_password, given=data(50))
        self.assertEqual(self.ok("decrypt", "--openssl", "--password-file", "password", given=cipher), data(50))

    def test_a_new_salt_each_time(self):
        salts = {self.ok("encrypt", "--openssl", "--iterations", 1, "--password-file", "password")[8:16]
                 for _ in range(8)}
        self.assertEqual(len(salts), 8)
