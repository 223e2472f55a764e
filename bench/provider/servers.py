#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What servers gain from the provider: nginx and PostgreSQL, as they are, with OpenSSL's default provider and
with daelstrom, in turns.

    bench/provider/servers.py --module build/dev/provider/daelstrom.so [--json FILE] [--turns 3] [--mib 1024]
                              [--only nginx|postgres|connections]

nginx     a file of --mib MiB over HTTPS by curl, which throws it away: TLS 1.2 and 1.3, AES-128 and -256-GCM.
          What curl got is hashed once for each of them. curl is without the provider: the server is measured.
postgres  a table read through libpq's TLS, and pgcrypto's encrypt() and decrypt() of messages in the server.
connections  200 TLS connections at once to PostgreSQL by pgbench, five queries of 100 kB on each.

Prints a line for each: the best of the turns by the clock, and the seconds of processor time that the server took
(nginx's worker or PostgreSQL's backend, from /proc/PID/stat) for it, least of the turns. All on one machine over
loopback: client and server share its cores, so of the two the processor time is what tells. What is not installed is left
out. Leave the machine alone meanwhile.
"""
import argparse
import contextlib
import hashlib
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from speed import configuration  # noqa: E402
from results import begun, keep  # noqa: E402

SUITES = (("1.3", "TLS_AES_128_GCM_SHA256"), ("1.3", "TLS_AES_256_GCM_SHA384"),
          ("1.2", "ECDHE-RSA-AES128-GCM-SHA256"), ("1.2", "ECDHE-RSA-AES256-GCM-SHA384"))
SBIN = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def wait_for(port, process):
    for _ in range(200):
        if process.poll() is not None:
            raise SystemExit(f"the server ended with {process.returncode}")
        with contextlib.suppress(OSError):
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        time.sleep(0.05)
    raise SystemExit("nobody listens")


def processor_seconds(pid):
    """User and kernel time of a process so far."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def children(pid):
    return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class Place:
    """A folder with certificates, and the two environments."""
    def __init__(self, folder, module):
        self.folder = folder
        subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", folder / "tls.key",
                        "-out", folder / "tls.pem", "-subj", "/CN=localhost", "-days", "2"],
                       check=True, capture_output=True)
        (folder / "openssl.cnf").write_text(configuration(module))
        theirs = {n: v for n, v in os.environ.items()
                  if n != "OPENSSL_CONF" and not n.startswith("DAELSTROM_PROVIDER") and not n.startswith("PG")}
        # With the settings as they come: the engine opens after 32 MiB.
        self.environments = (theirs, theirs | {"OPENSSL_CONF": str(folder / "openssl.cnf")})


@contextlib.contextmanager
def running(arguments, stop=signal.SIGTERM, **options):
    process = subprocess.Popen([str(a) for a in arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, **options)
    try:
        yield process
    finally:
        process.send_signal(stop)
        process.wait(timeout=30)


def nginx(place, options):
    program = shutil.which("nginx", path=SBIN)
    if not program or not shutil.which("curl"):
        return print("nginx or curl is not installed") or []
    folder = place.folder / "nginx"
    (folder / "www").mkdir(parents=True)
    (folder / "tmp").mkdir()
    size = options.mib << 20
    with open(folder / "www" / "file", "wb") as file:
        block, sha = os.urandom(1 << 20), hashlib.sha256()
        for number in range(options.mib):
            some = number.to_bytes(8, "big") + block[8:]
            file.write(some)
            sha.update(some)
    temporary = "".join(f"{kind}_temp_path {folder}/tmp;" for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    rows = []
    for version, suite in SUITES:
        best, least = [0.0, 0.0], [1e9, 1e9]
        for turn in range(options.turns):
            for side, environment in enumerate(place.environments):
                port = free_port()
                ciphers = f"ssl_ciphers {suite};" if version == "1.2" else f"ssl_conf_command Ciphersuites {suite};"
                (folder / "nginx.conf").write_text(f"""{"user root;" if os.geteuid() == 0 else ""}
worker_processes 1; daemon off; pid {folder}/pid; error_log {folder}/error.log; env OPENSSL_CONF;
events {{ worker_connections 512; }}
http {{ access_log off; {temporary} sendfile on;
  server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {place.folder}/tls.pem;
    ssl_certificate_key {place.folder}/tls.key; ssl_protocols TLSv{version}; {ciphers} root {folder}/www; }} }}
""")
                with running([program, "-c", folder / "nginx.conf", "-e", folder / "error.log"],
                             env=environment) as server:
                    wait_for(port, server)
                    while not children(server.pid):  # the port is there before the worker is
                        time.sleep(0.01)
                    worker, = children(server.pid)
                    curl = ["curl", "-sk", "--fail", f"https://127.0.0.1:{port}/file"]
                    if turn == 0:
                        with subprocess.Popen(curl, stdout=subprocess.PIPE, env=place.environments[0]) as reader:
                            got = hashlib.sha256()
                            while some := reader.stdout.read(1 << 20):
                                got.update(some)
                        if got.digest() != sha.digest():
                            raise SystemExit(f"{suite}: not the file's bytes")
                    before, began = processor_seconds(worker), time.monotonic()
                    subprocess.run([*curl, "-o", "/dev/null"], check=True, env=place.environments[0])
                    best[side] = max(best[side], size / (time.monotonic() - began) / 1e9)
                    least[side] = min(least[side], processor_seconds(worker) - before)
        rows.append(row(f"nginx TLS {version} {suite}", options.mib, best, least))
    return rows


def row(what, mib, best, least):
    print(f"{what:46} default {best[0]:7.3f} GB/s {least[0]:6.2f} s   daelstrom {best[1]:7.3f} GB/s {least[1]:6.2f} s"
          f"   processor time {least[1] / least[0]:.2f}x" if least[0] else what, flush=True)
    return {"what": what, "mib": mib, "default": best[0], "daelstrom": best[1],
            "default_cpu_s": least[0], "daelstrom_cpu_s": least[1]}


def postgres_programs():
    """The folder with initdb and postgres, the newest, or none."""
    found = sorted(pathlib.Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda p: int(p.parts[4]))
    return found[-1].parent if found and shutil.which("psql") else None


@contextlib.contextmanager
def cluster(place, name, environment, suite=None):
    """A server of one's own, on a port of its own, with TLS; the port and the process."""
    programs = postgres_programs()
    folder = place.folder / name
    user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups"] if os.geteuid() == 0 else []
    folder.mkdir()
    for file in ("tls.key", "tls.pem"):
        shutil.copy(place.folder / file, folder / file)
    (folder / "tls.key").chmod(0o600)
    if user:
        for path in (folder, folder / "tls.key", folder / "tls.pem"):
            shutil.chown(path, "postgres", "postgres")
    data = folder / "data"
    subprocess.run([*user, programs / "initdb", "-D", data, "-U", "postgres", "-A", "trust", "--no-sync",
                    "-E", "UTF8", "--locale=C"], check=True, capture_output=True, cwd="/", env=place.environments[0])
    port = free_port()
    settings = {"port": port, "listen_addresses": "127.0.0.1", "unix_socket_directories": folder, "ssl": "on",
                "ssl_cert_file": folder / "tls.pem", "ssl_key_file": folder / "tls.key", "max_connections": 250,
                "fsync": "off", "shared_buffers": "64MB", **({"ssl_max_protocol_version": "TLSv1.2",
                                                              "ssl_ciphers": suite} if suite else {})}
    with running([*user, programs / "postgres", "-D", data,
                  *(word for key, value in settings.items() for word in ("-c", f"{key}={value}"))],
                 stop=signal.SIGINT, cwd="/", env=environment) as server:
        wait_for(port, server)
        # It listens before it takes connections.
        for _ in range(400):
            if subprocess.run([programs / "pg_isready", "-q", "-h", "127.0.0.1", "-p", str(port)],
                              env=place.environments[0]).returncode == 0:
                break
            time.sleep(0.05)
        yield port, server


def psql(place, port, *commands, output=subprocess.DEVNULL):
    return subprocess.Popen(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *(w for c in commands for w in ("-c", c)),
                             f"host=127.0.0.1 port={port} user=postgres dbname=postgres sslmode=require"],
                            stdin=subprocess.DEVNULL, stdout=output, env=place.environments[0], text=True)


CRYPTO = {  # kind: (what runs it, MiB that AES does)
    "encrypt() of 1 MiB, CBC":
        ("select sum(length(encrypt(m, 'sixteen-byte-key', 'aes-cbc/pad:pkcs'))) from secret, generate_series(1, 512)", 512),
    "decrypt() of 1 MiB, CBC":
        ("select sum(length(decrypt(c, 'sixteen-byte-key', 'aes-cbc/pad:pkcs'))) from secret, generate_series(1, 512)", 512),
    "encrypt() of 1 KiB, CBC":
        ("select sum(length(encrypt(substr(m, 1 + n, 1024), 'sixteen-byte-key', 'aes-cbc/pad:pkcs')))"
         " from secret, generate_series(1, 65536) n", 64),
}


def postgres(place, options):
    if not postgres_programs():
        return print("PostgreSQL is not installed") or []
    best, least = {}, {}

    def note(what, mib, side, clock, processor):
        best.setdefault((what, mib), [0.0, 0.0])[side] = max(best.get((what, mib), [0, 0])[side], (mib << 20) / clock / 1e9)
        least.setdefault((what, mib), [1e9, 1e9])[side] = min(least.get((what, mib), [1e9, 1e9])[side], processor)

    # An in-process count: the backend tells its own processor time before it goes.
    own = "select rtrim(pg_read_file('/proc/self/stat'), E'\\n')"

    def run(port, what, mib, side, command):
        began = time.monotonic()
        ran = psql(place, port, own, command, own, output=subprocess.PIPE)
        told = ran.communicate()[0].splitlines()
        took = time.monotonic() - began
        if ran.returncode != 0:
            raise SystemExit(f"{what}: psql failed")
        times = [sum(map(int, line.rpartition(")")[2].split()[11:13])) / os.sysconf("SC_CLK_TCK")
                 for line in (told[0], told[-1])]
        note(what, mib, side, took, times[1] - times[0])
        return told[1:-1]

    for turn in range(options.turns):
        sums = []
        for side, environment in enumerate(place.environments):
            for suite in (None, "ECDHE-RSA-AES256-GCM-SHA384"):
                with cluster(place, f"pg{turn}{side}{'12' if suite else ''}", environment, suite) as (port, _):
                    made = psql(place, port, "create extension pgcrypto", "create unlogged table secret as select m,"
                                " encrypt(m, 'sixteen-byte-key', 'aes-cbc/pad:pkcs') c from (select"
                                " decode(repeat('00ff17a5', 262144), 'hex') m) x", "create unlogged table big as select"
                                " repeat(md5(n::text), 2048) data from generate_series(1, 512) n",
                                "alter table big alter data set storage external")
                    if made.wait() != 0:
                        raise SystemExit("PostgreSQL: no tables")
                    name = "PostgreSQL libpq, TLS " + ("1.2 AES-256-GCM" if suite else "1.3 AES-256-GCM")
                    times = max(1, options.mib // 32)
                    run(port, name, times * 32, side, "\\copy (select b.data from big b, generate_series(1, "
                        f"{times})) to /dev/null")
                    if not suite:
                        for kind, (query, mib) in CRYPTO.items():
                            sums.append((side, kind, run(port, f"PostgreSQL pgcrypto, {kind}", mib, side, query)))
        if [s[1:] for s in sums if s[0] == 0] != [s[1:] for s in sums if s[0] == 1]:
            raise SystemExit(f"pgcrypto's results differ: {sums}")
    return [row(what, mib, best[what, mib], least[what, mib]) for what, mib in best]


def connections(place, options):
    if not postgres_programs():
        return print("PostgreSQL is not installed") or []
    best, least = [0.0, 0.0], [1e9, 1e9]
    for turn in range(options.turns):
        for side, environment in enumerate(place.environments):
            with cluster(place, f"many{turn}{side}", environment) as (port, server):
                (place.folder / "query.sql").write_text("select repeat('x', 100000);\n")
                began = time.monotonic()
                subprocess.run([postgres_programs() / "pgbench", "-n", "-c", "200", "-j", "2", "-t", "5", "-f",
                                place.folder / "query.sql", f"host=127.0.0.1 port={port} user=postgres dbname=postgres"
                                " sslmode=require"], check=True, capture_output=True, env=place.environments[0])
                best[side] = max(best[side], 200 / (time.monotonic() - began))
                time.sleep(0.5)  # until the last of them has ended
                # What the children that have ended took is their parent's now.
                fields = pathlib.Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
                least[side] = min(least[side], (int(fields[13]) + int(fields[14])) / os.sysconf("SC_CLK_TCK"))
    print(f"{'PostgreSQL, 200 connections at once':46} default {best[0]:7.1f} a second {least[0]:5.2f} s"
          f"   daelstrom {best[1]:7.1f} a second {least[1]:5.2f} s", flush=True)
    return [{"what": "PostgreSQL, 200 connections at once", "default_per_s": best[0], "daelstrom_per_s": best[1],
             "default_cpu_s": least[0], "daelstrom_cpu_s": least[1]}]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", required=True, type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--mib", type=int, default=1024)
    parser.add_argument("--only", choices=("nginx", "postgres", "connections"))
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    about = begun()
    print(f"OpenSSL {about['openssl']}, {os.cpu_count()} processors", flush=True)
    with tempfile.TemporaryDirectory(prefix="daelstrom-servers-") as folder:
        os.chmod(folder, 0o755)
        place = Place(pathlib.Path(folder), options.module.resolve())
        for kind in (nginx, postgres, connections):
            if options.only in (None, kind.__name__):
                rows = kind(place, options)
                if options.json and rows:
                    keep(options.json, kind.__name__, about, rows)


if __name__ == "__main__":
    main()
