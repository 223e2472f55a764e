# SPDX-License-Identifier: Apache-2.0
"""The provider in programs that people use, unchanged: openssl, nginx and curl, Python, ssh, PostgreSQL. Each against the
same program without it. What is not installed is skipped, with the reason."""
import hashlib
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest

MODULE = pathlib.Path(os.environ["DAELSTROM_PROVIDER_MODULE"])
PROGRAM = os.environ["DAELSTROM"]
KEYS = {bits: bytes(range(bits // 8)).hex() for bits in (128, 192, 256)}
IV = "00ffffffffffffffffffffffffffff0f"


def configuration(provider="", default="activate = 1", module=MODULE, properties="?provider=daelstrom", more=""):
    return f"""openssl_conf = openssl_init
[openssl_init]
providers = provider_sect
alg_section = algorithm_sect
{more}
[provider_sect]
default = default_sect
daelstrom = daelstrom_sect
[default_sect]
{default}
[daelstrom_sect]
module = {module}
activate = 1
{provider}
[algorithm_sect]
default_properties = {properties}
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process=None):
    for _ in range(1200):
        if process and process.poll() is not None:
            raise AssertionError(f"the server ended: {process.communicate()}")
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.05)
    raise AssertionError("nobody listens")


class ProviderTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.dir = pathlib.Path(tempfile.mkdtemp(prefix="daelstrom-provider-"))
        cls.addClassCleanup(shutil.rmtree, cls.dir, ignore_errors=True)
        os.chmod(cls.dir, 0o755)
        cls.config = cls.write("ours.cnf", configuration())
        cls.plain = cls.write("plain", (bytes(range(251)) * 13000)[:3_000_017])
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", cls.dir / "tls.key",
                        "-out", cls.dir / "tls.pem", "-subj", "/CN=localhost", "-days", "2"],
                       check=True, capture_output=True)

    @classmethod
    def write(cls, name, content):
        path = cls.dir / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def env(self, ours=True, **more):
        env = {name: value for name, value in os.environ.items() if not name.startswith("DAELSTROM_PROVIDER")}
        env.pop("OPENSSL_CONF", None)
        if ours:
            env["OPENSSL_CONF"] = str(self.config)
            env["DAELSTROM_PROVIDER_WARMUP"] = "0"
        return env | more

    def openssl(self, *arguments, ours=True, check=True, **more):
        return subprocess.run(["openssl", *map(str, arguments)], env=self.env(ours, **more), check=check,
                              capture_output=True, timeout=60)

    def start(self, arguments, **options):
        process = subprocess.Popen(list(map(str, arguments)), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT, **options)

        def end():
            process.terminate()
            process.communicate(timeout=60)
        self.addCleanup(end)
        return process


class OpenSsl(ProviderTest):
    def test_enc_both_ways_in_every_mode(self):
        for bits in KEYS:
            for mode in ("ecb", "cbc", "cfb", "ofb", "ctr"):
                with self.subTest(mode=mode, bits=bits):
                    options = ["enc", f"-aes-{bits}-{mode}", "-K", KEYS[bits], *([] if mode == "ecb" else ["-iv", IV])]
                    theirs = self.openssl(*options, "-in", self.plain, ours=False).stdout
                    mine = self.openssl(*options, "-in", self.plain).stdout
                    self.assertEqual(hashlib.sha256(mine).digest(), hashlib.sha256(theirs).digest())
                    secret = self.write("secret", theirs)
                    back = self.openssl(*options, "-d", "-in", secret).stdout
                    self.assertEqual(back == self.plain.read_bytes(), True)

    def test_list_tells_what_it_is(self):
        told = self.openssl("list", "-providers", "-verbose").stdout.decode()
        self.assertRegex(told, r"name: daelstrom: AES by vector units and GPUs\n\s+version: \d+\.\d+\.\d+\n\s+status: active")
        self.assertRegex(told, r"build info: daelstrom .*; backend auto, vectors (on|off)\n")
        ciphers = self.openssl("list", "-cipher-algorithms", "-propquery", "provider=daelstrom").stdout.decode()
        for name in ("AES-256-GCM", "AES-128-XTS", "AES-192-CBC-CTS"):
            self.assertRegex(ciphers, rf"(?i){name}.* @ daelstrom")

    def test_speed_runs(self):
        for cipher in ("aes-256-gcm", "aes-128-ctr", "aes-128-xts"):
            told = self.openssl("speed", "-seconds", "1", "-bytes", "65536", "-evp", cipher).stdout.decode()
            self.assertRegex(told, r"AES|aes")

    def test_everything_from_it_and_no_recursion(self):
        # The engine, and OpenSSL's generator, whose cipher is ours then too.
        config = self.write("all.cnf", configuration(properties="provider=daelstrom"))
        made = self.openssl("enc", "-aes-128-ctr", "-K", KEYS[128], "-iv", IV, "-in", self.plain,
                            OPENSSL_CONF=str(config)).stdout
        self.assertEqual(len(made), self.plain.stat().st_size)
        config = self.write("random.cnf", configuration())
        self.assertEqual(len(self.openssl("rand", "100000", OPENSSL_CONF=str(config)).stdout), 100000)

    def test_log_and_environment(self):
        options = ("enc", "-aes-128-ctr", "-K", KEYS[128], "-iv", IV, "-in", self.plain, "-out", self.dir / "out")
        told = self.openssl(*options, DAELSTROM_PROVIDER_LOG="stderr").stderr.decode()
        self.assertIn("engine opened: auto", told)
        # What was done is said when the program ends: all of it, where the vector units do updates of 4096 bytes.
        done = re.search(r"done when it was given up: (\d+) updates of (\d+) bytes on calling threads, (\d+) of (\d+) by all "
                         r"cores and devices, (\d+) failures\n$", told)
        self.assertTrue(done, told)
        if {"avx512bw", "vaes", "vpclmulqdq"} <= set(pathlib.Path("/proc/cpuinfo").read_text().split()):
            self.assertEqual([int(count) for count in done.groups()], [733, 3_000_017, 0, 0, 0])
        told = self.openssl(*options, DAELSTROM_PROVIDER_LOG="stderr", DAELSTROM_PROVIDER_BACKEND="cpu").stderr.decode()
        self.assertRegex(told, "engine opened: cpu|no engine, so OpenSSL's own code does everything")
        log = self.dir / "log"
        self.openssl(*options, DAELSTROM_PROVIDER_LOG=str(log), DAELSTROM_PROVIDER_THRESHOLD="lots")
        self.assertIn("threshold = lots makes no sense and is left out", log.read_text())
        self.openssl(*options, DAELSTROM_PROVIDER_LOG=str(log), DAELSTROM_PROVIDER_LOOKAHEAD="on")
        self.assertIn("lookahead = on is left out", log.read_text())
        # A backend that there is not: all is done by OpenSSL's code, and the log says why.
        failed = self.openssl(*options, DAELSTROM_PROVIDER_LOG="stderr", DAELSTROM_PROVIDER_BACKEND="nonesuch")
        self.assertIn("no engine, so OpenSSL's own code does everything: ", failed.stderr.decode())
        self.assertEqual(failed.stderr.decode().count("no engine"), 1)

    def test_a_configuration_is_read_from_its_section(self):
        log = self.dir / "section.log"
        config = self.write("section.cnf", configuration(provider=f"backend = openssl\nwarmup = 0\nlog = {log}"))
        self.openssl("enc", "-aes-128-ctr", "-K", KEYS[128], "-iv", IV, "-in", self.plain, "-out", self.dir / "out",
                     OPENSSL_CONF=str(config), DAELSTROM_PROVIDER_WARMUP="1")
        self.assertIn("engine opened: openssl", log.read_text())

    def test_half_configured(self):
        # The commonest mistake: `default` is not activated, so nothing but AES is there.
        config = self.write("half.cnf", configuration(default=""))
        told = self.openssl("dgst", "-sha256", self.plain, check=False, OPENSSL_CONF=str(config))
        self.assertNotEqual(told.returncode, 0)
        # And the module is not where it is said to be.
        config = self.write("absent.cnf", configuration(module=self.dir / "nowhere.so"))
        self.openssl("list", "-providers", OPENSSL_CONF=str(config))  # OpenSSL itself says nothing
        told = self.doctor("--config", config)
        self.assertEqual(told.returncode, 1)
        self.assertRegex(told.stdout, r"no    OpenSSL cannot follow it.*nowhere\.so")
        self.assertIn("no    it does not activate daelstrom", told.stdout)

    def doctor(self, *arguments):
        return subprocess.run([PROGRAM, "provider", "doctor", "--module", MODULE, *map(str, arguments)],
                              env=self.env(False), capture_output=True, text=True, timeout=60)

    def test_doctor_explains(self):
        told = self.doctor("--config", self.config, shutil.which("openssl"))
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)
        self.assertIn("AES-256-GCM comes from daelstrom, SHA-256 from 'default'", told.stdout)
        self.assertIn("openssl is linked to OpenSSL 3", told.stdout)
        for name, text, says in (
                ("alone.cnf", configuration(default=""), "activates daelstrom and nothing else"),
                ("last.cnf", configuration(properties="?provider=default"), "still comes from 'default'"),
                ("not.cnf", "# nothing", "does not activate daelstrom")):
            told = self.doctor("--config", self.write(name, text))
            self.assertEqual(told.returncode, 1, told.stdout)
            self.assertIn(says, told.stdout)
        told = self.doctor("--config", self.config, "/nonesuch")
        self.assertIn("/nonesuch is no program that can be read", told.stdout)

    def test_install_and_uninstall(self):
        config = self.dir / "folder" / "installed.cnf"

        def program(*arguments):
            return subprocess.run([PROGRAM, "provider", *map(str, arguments)], env=self.env(False),
                                  capture_output=True, text=True, timeout=60)
        made = program("install", "--module", MODULE, "--config", config)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assertIn(f"OPENSSL_CONF={config} PROGRAM", made.stdout)
        self.assertEqual(self.doctor("--config", config).returncode, 0)
        victim = self.write("victim", "precious")
        config.with_name(config.name + ".part").symlink_to(victim)  # which somebody else may have made
        self.assertEqual(program("install", "--module", MODULE, "--config", config).returncode, 0)
        self.assertEqual((victim.read_text(), config.is_symlink()), ("precious", False))
        self.assertEqual(program("uninstall", "--config", config).returncode, 0)
        self.assertFalse(config.exists())
        foreign = self.write("foreign.cnf", "# mine")
        for action in ("install", "uninstall"):
            refused = program(action, *(["--module", MODULE] if action == "install" else []), "--config", foreign)
            self.assertEqual(refused.returncode, 1, action)
            self.assertEqual(foreign.read_text(), "# mine")
        status = program("status", "--module", MODULE)
        self.assertRegex(status.stdout, r"engine +not needed yet\n(?s:.*)threshold +262144\n")
        absent = program("status", "--module", self.dir / "nowhere.so")
        self.assertEqual(absent.returncode, 1)
        self.assertIn("no daelstrom.so; looked for", absent.stderr)

    def test_shows_nothing_but_its_way_in(self):
        if not shutil.which("nm"):
            self.skipTest("no nm")
        shown = subprocess.run(["nm", "-D", "--defined-only", MODULE], check=True, capture_output=True, text=True).stdout
        self.assertEqual([line.split()[-1] for line in shown.splitlines()], ["OSSL_provider_init"])

    def test_beside_another_libipsec_mb(self):
        # In the whole program's sight, with the names that ours is linked to.
        others = sorted(pathlib.Path("/usr/lib").glob("*/libIPSec_MB.so.*"))
        if not others:
            self.skipTest("no shared libIPSec_MB")
        options = ("enc", "-aes-256-ctr", "-K", KEYS[256], "-iv", IV, "-in", self.plain)
        made = self.openssl(*options, LD_PRELOAD=str(others[0])).stdout
        self.assertTrue(made == self.openssl(*options, ours=False).stdout)

    def test_memory_is_clean(self):
        if not shutil.which("valgrind"):
            self.skipTest("no valgrind")
        # libipsec-mb asks the processor, which valgrind hides: the engine is OpenSSL's there.
        ran = subprocess.run(["valgrind", "-q", "--error-exitcode=99", "--leak-check=full",
                              "--errors-for-leak-kinds=definite", "openssl", "enc", "-aes-256-ctr", "-K", KEYS[256],
                              "-iv", IV, "-in", str(self.plain), "-out", str(self.dir / "out")],
                             env=self.env(DAELSTROM_PROVIDER_BACKEND="openssl"), capture_output=True, timeout=600)
        self.assertEqual(ran.returncode, 0, ran.stderr.decode()[-2000:])


class Tls(ProviderTest):
    SUITES = (("-tls1_3", "TLS_AES_256_GCM_SHA384"), ("-tls1_3", "TLS_AES_128_GCM_SHA256"),
              ("-tls1_2", "ECDHE-RSA-AES256-GCM-SHA384"), ("-tls1_2", "ECDHE-RSA-AES128-GCM-SHA256"),
              ("-tls1_2", "ECDHE-RSA-AES256-SHA384"), ("-tls1_2", "ECDHE-RSA-AES128-SHA"))

    def test_s_server_and_s_client(self):
        name, right = self.plain.name, hashlib.sha256(self.plain.read_bytes()).hexdigest()
        for ours_serves in (True, False):
            port = free_port()
            server = self.start(["openssl", "s_server", "-accept", port, "-WWW", "-quiet", "-key", self.dir / "tls.key",
                                 "-cert", self.dir / "tls.pem"], env=self.env(ours_serves), cwd=self.dir)
            wait_for(port, server)
            for version, suite in self.SUITES:
                with self.subTest(suite=suite, ours="serves" if ours_serves else "reads"):
                    chosen = ["-ciphersuites" if version == "-tls1_3" else "-cipher", suite]
                    got = subprocess.run(["openssl", "s_client", "-connect", f"127.0.0.1:{port}", version, *chosen,
                                          "-quiet", "-no_ign_eof"],
                                         input=f"GET /{name} HTTP/1.0\r\n\r\n".encode(), env=self.env(not ours_serves),
                                         capture_output=True, timeout=60)
                    # -no_ign_eof ends at the end of input: so the answer is read by Python's client below.
                    self.assertEqual(got.returncode, 0, got.stderr[-500:])
                    fetched = self.fetch(port, name, suite, version, ours=not ours_serves)
                    self.assertEqual(fetched.splitlines(), [f"{suite} {right}"])

    FETCH = """
import hashlib, socket, ssl, sys
port, name, suite, version = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
context.minimum_version = context.maximum_version = \\
    ssl.TLSVersion.TLSv1_3 if version == "-tls1_3" else ssl.TLSVersion.TLSv1_2
if version == "-tls1_2":
    context.set_ciphers(suite + ":@SECLEVEL=0")
with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as s:
    s.sendall(b"GET /" + name.encode() + b" HTTP/1.0\\r\\n\\r\\n")
    data = b""
    while True:
        try:
            some = s.recv(1 << 16)
        except ssl.SSLError:
            break
        if not some:
            break
        data += some
    used = s.cipher()[0]
    print(used if version == "-tls1_2" else suite, hashlib.sha256(data.split(b"\\r\\n\\r\\n", 1)[1]).hexdigest())
"""

    def fetch(self, port, name, suite, version, ours):
        ran = subprocess.run([sys.executable, "-c", self.FETCH, str(port), name, suite, version],
                             env=self.env(ours), capture_output=True, timeout=60)
        self.assertEqual(ran.returncode, 0, ran.stderr.decode())
        return ran.stdout.decode()

    def test_python_ssl_and_hashlib(self):
        script = ("import hashlib, ssl; print(hashlib.sha256(b'abc').hexdigest()[:8], "
                  "len(ssl.create_default_context().get_ciphers()) > 3)")
        told = subprocess.run([sys.executable, "-c", script], env=self.env(), check=True, capture_output=True).stdout
        self.assertEqual(told, b"ba7816bf True\n")

    def test_nginx_and_curl(self):
        for program in ("nginx", "curl"):
            if not shutil.which(program, path=os.environ["PATH"] + ":/usr/sbin"):
                self.skipTest(f"no {program}")
        port = free_port()
        folder = self.dir / "nginx"
        (folder / "tmp").mkdir(parents=True)
        (folder / "www").mkdir()
        big = folder / "www" / "big"
        big.write_bytes(self.plain.read_bytes() * 32)
        right = hashlib.sha256(big.read_bytes()).hexdigest()
        user = "user root;" if os.geteuid() == 0 else ""
        temporary = "".join(f"{kind}_temp_path {folder}/tmp;" for kind in
                            ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
        config = self.write("nginx.conf", f"""{user} worker_processes 3; daemon off; pid {folder}/pid;
error_log {folder}/error.log; env OPENSSL_CONF; env DAELSTROM_PROVIDER_WARMUP; env DAELSTROM_PROVIDER_LOG;
events {{ worker_connections 512; }}
http {{ access_log off; {temporary}
  server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {self.dir}/tls.pem; ssl_certificate_key {self.dir}/tls.key;
    ssl_protocols TLSv1.2 TLSv1.3; ssl_ciphers HIGH:@SECLEVEL=0; root {folder}/www; }} }}
""")
        log = folder / "provider.log"
        server = self.start([shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin"), "-c", config, "-e",
                             folder / "error.log"], env=self.env(DAELSTROM_PROVIDER_LOG=str(log)))
        wait_for(port, server)

        def curl(*options):
            ran = subprocess.run(["curl", "-sk", *options, f"https://127.0.0.1:{port}/big"], env=self.env(False),
                                 stdout=subprocess.PIPE, timeout=60)
            return ran.returncode, hashlib.sha256(ran.stdout).hexdigest()

        for options in (("--tlsv1.3",), ("--tls-max", "1.2", "--ciphers", "ECDHE-RSA-AES128-GCM-SHA256"),
                        ("--tls-max", "1.2", "--ciphers", "ECDHE-RSA-AES256-SHA384")):
            with self.subTest(options=options):
                self.assertEqual(curl(*options), (0, right))
        # The workers opened engines of their own, the process that forked them none.
        opened = {int(pid) for pid in re.findall(r"\[(\d+)\]: engine opened", log.read_text())}
        self.assertTrue(opened)
        self.assertNotIn(server.pid, opened)
        self.assertEqual(len(list(pathlib.Path(f"/proc/{server.pid}/task").iterdir())), 1)
        # Two hundred connections at once, through Python's client, each of which reads a part.
        self.many(port, 200)
        server.send_signal(1)  # reload: new workers, the old ones end
        time.sleep(0.5)
        self.assertEqual(curl("--tlsv1.3"), (0, right))
        error_log = (folder / "error.log").read_text()
        self.assertNotRegex(error_log, "exited on signal|\\[alert\\]|\\[emerg\\]")

    def many(self, port, count):
        import ssl
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        expected = self.plain.read_bytes()
        failures = []

        def one(number):
            try:
                at = number * 1000
                with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as s:
                    s.sendall(f"GET /big HTTP/1.0\r\nRange: bytes={at}-{at + 99999}\r\n\r\n".encode())
                    data = b""
                    while some := s.recv(1 << 16):
                        data += some
                if data.split(b"\r\n\r\n", 1)[1] != expected[at:at + 100000]:
                    failures.append(number)
            except Exception as fault:  # whatever it is, it is told
                failures.append((number, repr(fault)))
        threads = [threading.Thread(target=one, args=(i,)) for i in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(failures, [])


class Ssh(ProviderTest):
    def test_a_session(self):
        sshd = shutil.which("sshd", path=os.environ["PATH"] + ":/usr/sbin")
        for program, there in (("sshd", sshd), ("ssh", shutil.which("ssh")), ("ssh-keygen", shutil.which("ssh-keygen"))):
            if not there:
                self.skipTest(f"no {program}")
        if os.geteuid() != 0:
            self.skipTest("sshd for another user than oneself takes root")
        os.makedirs("/run/sshd", exist_ok=True)
        folder = self.dir / "ssh"
        folder.mkdir(mode=0o700)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", folder / name], check=True)
        (folder / "authorized").write_bytes((folder / "user.pub").read_bytes())
        for cipher in ("aes256-gcm@openssh.com", "aes128-gcm@openssh.com", "aes256-ctr"):
            for ours in ((True, True), (True, False), (False, True)):
                with self.subTest(cipher=cipher, server=ours[0], client=ours[1]):
                    port = free_port()
                    server = self.start([sshd, "-D", "-e", "-f", "/dev/null", "-p", port, "-h", folder / "host", "-o",
                                         "ListenAddress=127.0.0.1", "-o", f"AuthorizedKeysFile={folder}/authorized",
                                         "-o", "StrictModes=no", "-o", "UsePAM=no", "-o", "PidFile=none",
                                         "-o", "PermitRootLogin=yes", "-o", f"Ciphers={cipher}"],
                                        env=self.env(ours[0]))
                    wait_for(port, server)
                    got = subprocess.run(["ssh", "-F", "/dev/null", "-p", str(port), "-i", str(folder / "user"), "-o",
                                          "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder}/known",
                                          "-o", "GlobalKnownHostsFile=/dev/null", "-o", "LogLevel=ERROR",
                                          "-c", cipher, "127.0.0.1", f"cat {self.plain}"], env=self.env(ours[1]),
                                         stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
                    if got.returncode != 0 and b"Permission denied" in got.stderr:
                        self.skipTest("this account may not log in by a key")
                    self.assertEqual(got.returncode, 0, got.stderr[-800:])
                    self.assertTrue(got.stdout == self.plain.read_bytes())


class Postgres(ProviderTest):
    """A server of its own, whose backends fork from a process that has loaded the provider."""
    KEY = "sixteen-byte-key"

    def test_pgcrypto_and_tls(self):
        sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "bench" / "provider"))
        import servers
        programs = servers.postgres_programs()
        if not programs:
            self.skipTest("no PostgreSQL")
        folder = self.dir / "postgres"
        folder.mkdir(mode=0o755)
        # The server is another user, who may not come to where this was built.
        place = servers.Place(folder, shutil.copy(MODULE, folder))
        log = folder / "provider.log"
        log.touch()
        log.chmod(0o666)
        settings = {"DAELSTROM_PROVIDER_WARMUP": "0", "DAELSTROM_PROVIDER_LOG": str(log)}
        forked_from = set()
        for suite in (None, "ECDHE-RSA-AES128-GCM-SHA256"):
            with (self.subTest(suite=suite or "TLS 1.3"),
                  servers.cluster(place, suite or "tls13", place.environments[1] | settings, suite) as (port, server)):
                def sql(*commands):
                    ran = servers.psql(place, port, *commands, output=subprocess.PIPE)
                    told, _ = ran.communicate(timeout=60)
                    self.assertEqual(ran.returncode, 0)
                    return told
                version, used = sql("select version, cipher from pg_stat_ssl where pid = pg_backend_pid()").strip().split("|")
                self.assertEqual((version, used), ("TLSv1.2", suite) if suite else ("TLSv1.3", "TLS_AES_256_GCM_SHA384"))
                # 16 MiB through libpq, in rows of 100000 bytes.
                right = "".join(f"{chr(97 + n % 26) * 100000}\n" for n in range(168))
                self.assertTrue(sql("select repeat(chr(97 + n % 26), 100000) from generate_series(0, 167) n") == right)
                if not suite:
                    self.crypto(sql)
                    self.connections(programs, folder, port, place.environments[0])
                self.assertEqual(len(list(pathlib.Path(f"/proc/{server.pid}/task").iterdir())), 1)
                forked_from.add(server.pid)
        # The backends opened engines of their own, the process that forked them none.
        opened = {int(pid) for pid in re.findall(r"\[(\d+)\]: engine opened", log.read_text())}
        self.assertTrue(opened)
        self.assertFalse(opened & forked_from)

    def crypto(self, sql):
        """What the server encrypts, OpenSSL without the provider decrypts, and the other way round."""
        sql("create extension pgcrypto")
        key = self.KEY.encode().hex()
        for kind in ("cbc", "ecb"):
            iv = ["-iv", "0" * 32] if kind == "cbc" else []
            told = sql(f"select encode(encrypt(convert_to(repeat('daelstrom ', 100000), 'UTF8'), '{self.KEY}',"
                       f" 'aes-{kind}/pad:pkcs'), 'hex')")
            secret = self.write("pg.secret", bytes.fromhex(told.strip()))
            back = self.openssl("enc", "-d", f"-aes-128-{kind}", "-K", key, *iv, "-in", secret, ours=False)
            self.assertTrue(back.stdout == b"daelstrom " * 100000)
            length, digest = sql(f"select length(d), encode(sha256(d), 'hex') from (select decrypt(decode('{told.strip()[:32000]}',"
                                 f" 'hex'), '{self.KEY}', 'aes-{kind}/pad:none') d) x").strip().split("|")
            self.assertEqual((int(length), digest),
                             (16000, hashlib.sha256((b"daelstrom " * 1600)).hexdigest()))

    def connections(self, programs, folder, port, environment):
        (folder / "query.sql").write_text("select repeat('x', 50000);\n")
        ran = subprocess.run([programs / "pgbench", "-n", "-c", "200", "-j", "2", "-t", "1", "-f", folder / "query.sql",
                              f"host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require"],
                             env=environment, capture_output=True, text=True, timeout=120)
        self.assertEqual(ran.returncode, 0, ran.stderr[-800:])
        self.assertRegex(ran.stdout, r"transactions actually processed: 200/200")


if __name__ == "__main__":
    unittest.main()
