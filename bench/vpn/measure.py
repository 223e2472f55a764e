#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`daelstrom vpn` beside wireguard-go, its own data path without encryption (the roof), and itself packet by packet.

    bench/vpn/measure.py --build build/dev [--wireguard FILE] [--json FILE] [--turns 5] [--seconds 3]
                         [--only tcp|udp|handshakes|garbage|profile ...] [--go FILE]

Two network namespaces on this machine, and all tunnels side by side between them, each with an MTU of 1,420; one works at
a time. A turn goes through all of them, the next one in reversed order. What is counted is the time that both ends'
processes have of the processors, by their own clocks, over what arrived: on a machine where others work too it tells
more than the rate, which is what was left over.

tcp         iperf3, 1 and 8 flows, both ways, over both kinds of link (LINKS in contenders.py)
keystream   iperf3, 1 flow: with keystream made ahead of packets, by each --keystream (cpu)
udp         iperf3, inner packets of 64, 512 and 1,400 bytes, at a rate that all can take
handshakes  both ends in one process, without a network; wireguard-go's code by handshakes.go where there is --go
garbage     TCP, and datagrams that are nobody's at the receiver's port meanwhile; takes three minutes more
profile     TCP of one flow: where the time of both ends goes, by perf

Takes root, iperf3, ethtool, wg (wireguard-tools), and wireguard-go as `go install golang.zx2c4.com/wireguard@latest`
makes it; what is missing is left out. Leave the machine alone meanwhile.
"""
import argparse
import contextlib
import json
import os
import pathlib
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "provider")]
from contenders import LINKS, MTU, Bed, Daelstrom, Roof, WireguardGo, run  # noqa: E402
from results import begun, keep  # noqa: E402

BURSTS = "tun_offloads", "udp_gso", "udp_gro"  # the switches
SIZES = 64, 512, 1400                          # of inner packets, with their headers of IP and UDP
RATE = 40_000                                  # of these, a second
FLOOD = 300                                    # bytes of a datagram of garbage
OURS, THEIRS, ROOF = "daelstrom", "wireguard-go", "roof"
SINGLE, NO_GSO = "daelstrom, packet by packet", "daelstrom, sent without GSO"


def of(samples, digits=3):
    return {"median": round(statistics.median(samples), digits), "min": round(min(samples), digits),
            "max": round(max(samples), digits), "all": [round(x, digits) for x in samples]}


def versions(options):
    told = {"daelstrom": run(options.program, "--version").split("\n")[0]}
    if options.wireguard:
        if options.go:
            text = run(options.go, "version", "-m", options.wireguard)
            told["wireguard-go"] = re.search(r"mod\s+golang.zx2c4.com/wireguard\s+(\S+)", text)[1]
            told["go"] = re.search(r"go(\d\S+)", text)[1]
    told["iperf3"] = run("iperf3", "--version").split()[1]
    return told


def about(options):
    commit = run("git", "-C", HERE, "rev-parse", "--short=12", "HEAD").strip()
    return begun() | {"kernel": os.uname().release, "versions": versions(options), "commit": commit, "mtu": MTU,
                      "turns": options.turns, "seconds": options.seconds}


def iperf3(bed, to, *words):
    """The client's report. The server may still be busy with the end of the last one."""
    for _ in range(20):
        ran = subprocess.run(["ip", "netns", "exec", bed.spaces[0], "iperf3", "-J", "-c", to.address(1), *map(str, words)],
                             capture_output=True, text=True, timeout=60)
        told = json.loads(ran.stdout)
        if "error" not in told:
            return told["end"]
        if "busy" not in told["error"]:
            break
    raise SystemExit(f"iperf3 through {to.name}: {told['error']}")


def spent_on(contender, work):
    before = contender.spent()
    result = work()
    return result, [after - b for after, b in zip(contender.spent(), before)]


def contenders(bed, options, *more):  # a name, switches that are off, and who makes keystream ahead
    """Each has worked once when they are given back: buffers are there, connections' peers are known."""
    made = [Daelstrom(bed, OURS, options.program), Roof(bed, ROOF, options.build / "bench/vpn/vpn_roof")]
    if options.wireguard:
        made.insert(1, WireguardGo(bed, THEIRS, options.wireguard))
    made += [Daelstrom(bed, name, options.program, *how) for name, *how in more]
    for each in made:
        for back in (False, True):
            iperf3(bed, each, "-t", 1, *["-R"][:back])
    return made


def rounds(options, some):
    for turn in range(options.turns):
        yield from ((turn, each) for each in (some if turn % 2 == 0 else some[::-1]))


def ratios(table, key):
    """Of each contender's cost to ours, by pairs of one case and turn."""
    found = []
    for name in {row["contender"] for row in table} - {OURS}:
        ours = {(row["case"], turn): x for row in table if row["contender"] == OURS
                for turn, x in enumerate(row[key]["all"])}
        pairs = [(row["case"], x / ours[row["case"], turn]) for row in table if row["contender"] == name
                 for turn, x in enumerate(row[key]["all"]) if (row["case"], turn) in ours]
        for case in [None, *sorted({case for case, _ in pairs})]:
            some = [x for c, x in pairs if case in (None, c)]
            found.append({"contender": name, "case": case or "all"} | of(some, 2) | {"pairs": len(some)})
            del found[-1]["all"]
    return sorted(found, key=lambda row: (row["contender"], row["case"]))


def tcp(options, link):
    # Packet by packet one link is as the other.
    more = [(SINGLE, (BURSTS, BURSTS)), (NO_GSO, (("udp_gso",), ()))] * (link == "whole")
    return transfers(options, link, (1, 8), more)


def keystream(options):
    """What keystream that is made ahead of packets is worth: by other cores, and by a device. Its makers' time counts."""
    return transfers(options, "whole", (1,), [(f"daelstrom, keystream by {by}", ((), ()), by) for by in options.keystream or ["cpu"]])


def transfers(options, link, flows_of, more):
    cases = [(flows, back) for flows in flows_of for back in (False, True)]
    samples = {}
    told = about(options) | {"link": LINKS[link]}
    with contextlib.closing(Bed(link)) as bed:
        some = contenders(bed, options, *more)
        for turn in range(options.turns):
            for flows, back in cases:
                for each in some if turn % 2 == 0 else some[::-1]:
                    if each.name == NO_GSO and (back or flows == 8):
                        continue
                    end, (a, b) = spent_on(each, lambda: iperf3(bed, each, "-P", flows, "-t", options.seconds, *["-R"][:back]))
                    gb = end["sum_received"]["bytes"] / 1e9
                    out, into = ((b, a) if back else (a, b))
                    case = f"{flows} flow{'s' if flows > 1 else ''}, {'from b' if back else 'from a'}"
                    row = samples.setdefault((each.name, case), {"total": [], "out": [], "in": [], "gbit": []})
                    for key, value in (("total", (a + b) / gb), ("out", out / gb), ("in", into / gb),
                                       ("gbit", end["sum_received"]["bits_per_second"] / 1e9)):
                        row[key].append(value)
                    print(f"{link:6} {turn} {case:16} {each.name:28} {(a + b) / gb:6.3f} s/GB ({out / gb:.3f} + {into / gb:.3f})"
                          f" {row['gbit'][-1]:6.2f} Gbit/s", flush=True)
    rows = [{"contender": name, "case": case, "s_per_gb": of(row["total"]), "sender_s_per_gb": of(row["out"]),
             "receiver_s_per_gb": of(row["in"]), "gbit_per_s": of(row["gbit"], 2)} for (name, case), row in samples.items()]
    return told | {"ratios": ratios(rows, "s_per_gb")}, rows


def udp(options, link):
    samples = {}
    told = about(options) | {"link": LINKS[link], "rate": RATE}
    with contextlib.closing(Bed(link)) as bed:
        some = contenders(bed, options, (SINGLE, (BURSTS, BURSTS)))
        for turn in range(options.turns):
            for size in SIZES:
                for each in some if turn % 2 == 0 else some[::-1]:
                    payload = size - 28
                    end, (a, b) = spent_on(each, lambda: iperf3(
                        bed, each, "-u", "-l", payload, "-b", payload * 8 * RATE, "-t", options.seconds, "-w", "4M"))
                    told_all = end["sum"]
                    came = told_all["packets"] - told_all["lost_packets"]
                    row = samples.setdefault((each.name, f"{size} bytes"), {"us": [], "lost": []})
                    row["us"].append((a + b) / came * 1e6)
                    row["lost"].append(told_all["lost_packets"] / told_all["packets"])
                    print(f"{link:6} {turn} {size:4} bytes       {each.name:28} {row['us'][-1]:6.2f} us a packet,"
                          f" {row['lost'][-1]:.1%} of {told_all['packets']} lost", flush=True)
    rows = [{"contender": name, "case": case, "us_per_packet": of(row["us"], 2), "lost": of(row["lost"], 4)}
            for (name, case), row in samples.items()]
    return told | {"ratios": ratios(rows, "us_per_packet")}, rows


def wireguard_handshakes(options, folder):
    """Builds handshakes.go with the wireguard-go that the program was made of."""
    version = versions(options)["wireguard-go"]
    shutil.copy(HERE / "handshakes.go", folder / "main.go")
    (folder / "go.mod").write_text(f"module handshakes\n\ngo 1.23\n\nrequire golang.zx2c4.com/wireguard {version}\n")
    environment = os.environ | {"GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    run(options.go, "mod", "tidy", cwd=folder, env=environment)
    run(options.go, "build", "-o", folder / "handshakes", ".", cwd=folder, env=environment)
    return folder / "handshakes"


def handshakes(options):
    told = about(options)
    with tempfile.TemporaryDirectory() as folder:
        programs = {OURS: options.build / "bench/vpn/vpn_handshakes"}
        if options.wireguard and options.go:
            programs[THEIRS] = wireguard_handshakes(options, pathlib.Path(folder))
        samples = {}
        for turn, name in rounds(options, list(programs)):
            for line in run(programs[name]).splitlines():
                role, *us = line.split()
                samples.setdefault((name, role), []).append(float(us[1]))
            print(f"handshakes {turn} {name:28} " + ", ".join(f"{role} {all_of[-1]:.0f} us" for (n, role), all_of in samples.items() if n == name),
                  flush=True)
    rows = [{"contender": name, "case": role, "us": of(us, 1)} for (name, role), us in samples.items()]
    return told | {"ratios": ratios(rows, "us")}, rows


PEER, STRANGER = "192.0.2.1", "192.0.2.99"
HINTS = 185  # seconds after its start an end no longer asks who strangers are (docs/vpn.md), and 5
AT_START = {"none, in the first three minutes": None, "100,000/s, a stranger's, in the first three minutes": (100_000, STRANGER, False, True)}
GARBAGE = {  # datagrams a second (0: as many as go), from whom, of a session, to the tunnel's port
    "none": None,
    "100,000/s, a stranger's": (100_000, STRANGER, False, True),
    "100,000/s, from the peer's address": (100_000, PEER, False, True),
    "100,000/s, of a session": (100_000, STRANGER, True, True),
    "as many as go, to a port of nobody's": (0, STRANGER, False, False),
    "as many as go, a stranger's": (0, STRANGER, False, True),
    "as many as go, of a session": (0, STRANGER, True, True),
}


def garbage(options):
    """TCP from a to b; from a beside it datagrams to b's port. Of b: seconds per gigabyte; and of the flood's sender.

    What they would cost anyway, ends and flood sharing the processors, those to a port of nobody's show."""
    samples = {}
    told = about(options) | {"datagram": FLOOD}
    with contextlib.closing(Bed("whole")) as bed:
        bed.within(0, "ip", "addr", "add", STRANGER + "/24", "dev", "wire")
        began = time.monotonic()
        ours = Daelstrom(bed, OURS, options.program)

        def once(turn, kind, beside):
            flood, seen, sent, sender = None, 0, 0, 0.0
            before = json.loads(ours.status(1))
            if beside:
                rate, whose, known, here = beside
                spi = before["peers"][0]["receiving_spi"] if known else 1
                flood = bed.start(0, options.build / "bench/vpn/vpn_flood", f"192.0.2.2:{ours.port if here else 9}", FLOOD, rate, spi, whose,
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
            end, (_, b) = spent_on(ours, lambda: iperf3(bed, ours, "-t", options.seconds))
            after = json.loads(ours.status(1))
            if flood:
                sent, ns = map(int, flood.communicate()[0].split())
                sender = ns / 1e9
                seen = sum(after[of][key] - before[of][key] for of, key in (("verdicts", "bad_icv"), ("drops", "unknown_spi")))
            gb = end["sum_received"]["bytes"] / 1e9
            row = samples.setdefault(kind, {"in": [], "gbit": [], "sent": [], "seen": [], "sender": []})
            for name, value in (("in", b / gb), ("gbit", end["sum_received"]["bits_per_second"] / 1e9),
                                ("sent", sent), ("seen", seen), ("sender", sender)):
                row[name].append(value)
            print(f"garbage {turn} {kind:52} {b / gb:.3f} s/GB at the receiver, {row['gbit'][-1]:.2f} Gbit/s; {sent} sent, {seen} read,"
                  f" {sender:.2f} s of the sender", flush=True)

        for turn, kind in rounds(options, list(AT_START)):
            once(turn, kind, AT_START[kind])
        time.sleep(max(0, began + HINTS - time.monotonic()))
        for turn, kind in rounds(options, list(GARBAGE)):
            once(turn, kind, GARBAGE[kind])
    rows = []
    for kinds in (AT_START, GARBAGE):
        base = samples[next(iter(kinds))]
        for kind in kinds:
            row = samples[kind]
            rows.append({"contender": OURS, "case": kind, "receiver_s_per_gb": of(row["in"]), "gbit_per_s": of(row["gbit"], 2),
                         "sent": of(row["sent"], 0), "read": of(row["seen"], 0), "flood_s": of(row["sender"], 2),
                         "bytes_per_cpu_second_kept": of([x / y for x, y in zip(base["in"], row["in"])], 2),
                         "goodput_kept": of([y / x for x, y in zip(base["gbit"], row["gbit"])], 2)})
    return told, rows


PARTS = (("the kernel: copies", r"\[k\] .*(copy_|_copy|memcpy)"), ("the kernel: all else", r"\[k\]"), ("AES-GCM", r"gcm|ghash"),
         ("inner checksums, made and verified", r"inet::\(anonymous"), ("ESP and its table of keys", r"esp::|Sa[A-Z]\w+::|keystream::|cpu::"),
         ("cutting, joining, batches, UDP, TUN", r"path::|inet::"), ("policy, sessions, counters", r"vpn::"))


def profile(options):
    told = about(options)
    rows = []
    with contextlib.closing(Bed("whole")) as bed:
        for each in (Daelstrom(bed, OURS, options.program), Roof(bed, ROOF, options.build / "bench/vpn/vpn_roof")):
            seconds = max(options.seconds, 3)
            load = bed.start(0, "iperf3", "-c", each.address(1), "-t", seconds + 1)
            data = bed.dir / "perf"
            run("perf", "record", "-e", "cpu-clock", "-F", 4000, "-o", data, "-p", ",".join(str(p.pid) for p in each.processes),
                "--", "sleep", seconds)
            load.wait()
            shares = dict.fromkeys([part for part, _ in PARTS] + ["libc and all else"], 0.0)
            for line in run("perf", "report", "-i", data, "--stdio", "-s", "symbol").splitlines():
                if found := re.match(r"\s+([\d.]+)%\s+(.*)", line):
                    part = next((part for part, sign in PARTS if re.search(sign, found[2])), "libc and all else")
                    shares[part] += float(found[1])
            rows += [{"contender": each.name, "part": part, "percent": round(share, 1)} for part, share in shares.items()]
            print(f"profile of {each.name}: " + ", ".join(f"{part} {share:.1f}%" for part, share in shares.items()), flush=True)
    return told, rows


KINDS = {
    "tcp": [(f"tcp {link}", lambda o, link=link: tcp(o, link)) for link in LINKS],
    "keystream": [("keystream", keystream)],
    "udp": [(f"udp {link}", lambda o, link=link: udp(o, link)) for link in LINKS],
    "handshakes": [("handshakes", handshakes)],
    "garbage": [("garbage", garbage)],
    "profile": [("profile", profile)],
}


def main(arguments):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=HERE.parent.parent / "build/dev")
    parser.add_argument("--wireguard", type=pathlib.Path)
    parser.add_argument("--go", default=shutil.which("go"))
    parser.add_argument("--json", type=pathlib.Path)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--keystream", action="append", metavar="BACKEND", help="who makes it ahead: cpu, cuda, ...")
    parser.add_argument("--only", action="append", choices=list(KINDS))
    options = parser.parse_args(arguments)
    options.build = options.build.resolve()
    options.program = options.build / "bin/daelstrom"
    options.wireguard = options.wireguard and options.wireguard.resolve()
    for name in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(name, lambda *_: sys.exit(1))  # so that what was made is removed
    for kind in options.only or list(KINDS):
        for name, measure in KINDS[kind]:
            told, rows = measure(options)
            for row in told.get("ratios", ()):
                print(f"{name}: {row['contender']}, {row['case']}: {row['median']} times ours ({row['min']} to {row['max']})")
            if options.json:
                keep(options.json, name, told, rows)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
