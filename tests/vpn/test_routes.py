# SPDX-License-Identifier: Apache-2.0
"""Default routes through a tunnel, and other networks that hold a peer's endpoint: a and b are joined by a router,
and c is behind b."""
import base64
import json
import os
import pathlib
import signal
import socket
import threading

from bed import PROGRAM, BedTest, not_sanitized, sanitized, wait_for, within

MARK = 8410
FOUR, SIX = ["0.0.0.0/0"], ["::/0"]


class Routes(BedTest):
    def setUp(self):
        super().setUp()
        self.a, self.r = self.wire("a", "r", 1)
        _, self.b = self.wire("r", "b", 2)
        _, self.c = self.wire("b", "c", 9)
        for router in (self.r, self.b):
            self.sysctl(router, "net/ipv4/ip_forward", 1)
            self.sysctl(router, "net/ipv6/conf/all/forwarding", 1)
        for namespace, number, end in ((self.a, 1, 2), (self.b, 2, 1), (self.c, 9, 1)):
            self.ip("-n", namespace, "route", "add", "default", "via", f"192.0.{number}.{end}")
            self.ip("-n", namespace, "route", "add", "default", "via", f"2001:db8:{number}::{end}")
        self.ip("-n", self.r, "route", "add", "192.0.9.0/24", "via", "192.0.2.2")
        self.ip("-n", self.r, "route", "add", "2001:db8:9::/48", "via", "2001:db8:2::2")
        self.keys = {name: self.key(name) for name in "abc"}

    def hub(self):
        self.config("b", address=["10.1.0.2/24", "fd01::2/64"],
                    peers=[{"public_key": self.keys["a"], "allowed": ["10.1.0.1", "fd01::1"]}])
        return self.up(self.b, "up", "b.toml")

    def caller(self, allowed, endpoint="192.0.2.2:4500", **more):
        """a's configuration."""
        return self.config("a", address=["10.1.0.1/24", "fd01::1/64"],
                           peers=[{"public_key": self.keys["b"], "endpoint": endpoint, "allowed": allowed}], **more)

    def rules(self, namespace):
        """Those that are not the kernel's own."""
        return [rule for family in ("-4", "-6") for rule in json.loads(self.run(namespace, "ip", family, "-j", "rule").stdout)
                if rule["table"] not in ("local", "default") and rule["priority"] != 32766]

    def guardian(self, end):
        """The process beside an end's; 0: there is none."""
        return int(pathlib.Path(f"/proc/{end.pid}/task/{end.pid}/children").read_text().split()[0] or 0)

    def memory(self, process):
        """All that a process can write to."""
        parts = []
        with open(process / "mem", "rb") as memory:
            for line in (process / "maps").read_text().splitlines():
                places, mode = line.split()[:2]
                if mode.startswith("rw"):
                    first, end = (int(place, 16) for place in places.split("-"))
                    memory.seek(first)
                    parts.append(memory.read(end - first))
        return b"".join(parts)

    def seen_as(self, address):
        """With what source a connection of a's comes to an address of c."""
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        with within(self.c, lambda: socket.create_server((address, 0), family=family)) as server:
            server.settimeout(60)
            with within(self.a, lambda: socket.create_connection(server.getsockname()[:2], 60)):
                connection, source = server.accept()
                connection.close()
        return source[0]

    def assert_outside(self, source, *addresses):
        """Packets of a's to these go beside the tunnel."""
        for address in addresses:
            route = json.loads(self.run(self.a, "ip", "-j", "route", "get", address).stdout)[0]
            self.assertEqual(route["dev"], source, address)
            self.ping(self.a, address)

    def assert_as_before(self):
        self.assertEqual(self.rules(self.a), [])
        self.assert_outside("v1", "192.0.2.2", "2001:db8:2::2", "192.0.9.2", "2001:db8:9::2")
        self.assertEqual(self.seen_as("192.0.9.2"), "192.0.1.1")

    def test_a_default_route(self):
        """Everything goes through, by whichever family the endpoint is reached; the local network is where it was."""
        end_b = self.hub()
        for endpoint in ("192.0.2.2:4500", "[2001:db8:2::2]:4500"):
            end_a = self.up(self.a, "up", self.caller(FOUR + SIX, endpoint))
            self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
            self.assertEqual(self.seen_as("2001:db8:9::2"), "fd01::1")
            self.send_bytes(self.a, self.c, "192.0.9.2", 200_000)
            self.send_bytes(self.c, self.a, "fd01::1", 200_000)
            received = end_b.peer()["received_packets"]
            self.assert_outside("v1", "192.0.1.2", "2001:db8:1::2")
            self.assertEqual(end_b.peer()["received_packets"], received)
            # The endpoint's own address, too, for all but the tunnel.
            self.ping(self.a, "192.0.2.2"), self.ping(self.a, "2001:db8:2::2")
            self.assertEqual(end_b.peer()["received_packets"], received + 2)
            status = end_a.status()
            self.assertEqual((status["mark"], status["routes_aside"]), (MARK, FOUR + SIX))
            self.assertIn(f"mark: {MARK}\n", end_a.words_of_status())
            self.assertEqual(len(self.rules(self.a)), 4)
            self.assertEqual(status["drops"]["through_itself"] + status["drops"]["udp_lost"], 0, status)
            guardian = self.guardian(end_a)
            self.assertEqual(self.run(self.a, PROGRAM, "vpn", "down", "a.toml").stderr, "")
            self.assert_as_before()
            self.assertEqual(end_a.process.wait(60), 0)
            self.assertFalse(os.path.exists(f"/proc/{guardian}/fd/0"))

    @not_sanitized
    def test_the_families_that_need_it(self):
        self.hub()
        end_a = self.up(self.a, "up", self.caller(FOUR + ["fd01::2/128"]))
        self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
        self.assertEqual(self.seen_as("2001:db8:9::2"), "2001:db8:1::1")
        self.assertEqual([(rule["priority"], rule["table"]) for rule in self.rules(self.a)], [(32698, "main"), (32699, str(MARK))])
        end_a.stop()
        self.assert_as_before()

    @not_sanitized
    def test_a_network_with_the_endpoint_in_it(self):
        """The longest prefix counts, whichever table it stands in."""
        self.hub()
        for wide, router in (("192.0.0.0/8", "192.0.1.2"), ("2001:d00::/24", "2001:db8:1::2")):
            self.ip("-n", self.a, "route", "add", wide, "via", router)
        networks = ["192.0.0.0/16", "2001:db8::/32"]
        for endpoint, aside in (("192.0.2.2:4500", networks[:1]), ("[2001:db8:2::2]:4500", networks[1:])):
            end_a = self.up(self.a, "up", self.caller(networks, endpoint))
            self.assertEqual(end_a.status()["routes_aside"], aside)
            self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
            self.assertEqual(self.seen_as("2001:db8:9::2"), "fd01::1")
            self.assert_outside("v1", "192.0.1.2", "2001:db8:1::2")
            self.ip("-n", self.a, "route", "add", "192.0.9.0/25", "via", "192.0.1.2")
            self.assertEqual(self.seen_as("192.0.9.2"), "192.0.1.1")
            self.ip("-n", self.a, "route", "del", "192.0.9.0/25")
            end_a.stop()
        for wide in ("192.0.0.0/8", "2001:d00::/24"):
            self.ip("-n", self.a, "route", "del", wide)
        self.assert_as_before()

    def test_killed(self):
        """The rules go with the tunnel; where their guardian is killed too, they lead to nothing, and are used again."""
        self.hub()
        self.caller(FOUR + SIX)
        end_a = self.up(self.a, "up", "a.toml")
        self.ping(self.a, "192.0.9.2")
        end_a.kill()
        wait_for(lambda: not self.rules(self.a), "the rules to go")
        self.assert_as_before()
        for killed in range(3):
            end_a.process.stderr.close()
            end_a.start()
            self.assertEqual(len(self.rules(self.a)), 4, "never more than these")
            self.wait_for_ping(self.a, "192.0.9.2")
            self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
            if killed < 2:
                os.kill(self.guardian(end_a), signal.SIGKILL)
                end_a.kill()
                self.assertEqual(len(self.rules(self.a)), 4)
                self.assert_outside("v1", "192.0.2.2", "2001:db8:2::2", "192.0.9.2")
        end_a.stop()
        self.assert_as_before()

    def test_a_start_at_the_moment_of_an_end(self):
        """Whoever takes rules back sees that another has come to need them."""
        self.hub()
        self.caller(FOUR)
        end_a = self.up(self.a, "up", "a.toml")
        for _ in range(2 if sanitized() else 10):
            end_a.kill()
            end_a.process.stderr.close()
            end_a.start()
            self.wait_for_ping(self.a, "192.0.9.2")
            self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
            wait_for(lambda: len(self.rules(self.a)) == 2, "two rules")

    def test_what_cannot_start_leaves_nothing(self):
        self.caller(FOUR + SIX, user="nobody-of-this-name")
        ran = self.run(self.a, PROGRAM, "vpn", "up", "a.toml", check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn("no user", ran.stderr)
        self.assert_as_before()

    def test_several_tunnels(self):
        """They share the rules, none sends the other's packets, and the longest of their prefixes counts."""
        self.hub()
        self.config("c", address=["10.2.0.2/24"], peers=[{"public_key": self.keys["a"], "allowed": "10.2.0.1"}])
        self.up(self.c, "up", "c.toml")
        end_a = self.up(self.a, "up", self.caller(FOUR))
        self.key("a2")
        (self.dir / "a2.key").write_text((self.dir / "a.key").read_text())
        second = {"address": ["10.2.0.1/24"], "interface": "dael1", "port": 4501}
        to_c = {"public_key": self.keys["c"], "endpoint": "192.0.9.2:4500", "allowed": ["192.0.9.0/24", "10.2.0.2"]}
        for order in (0, 1):
            other = self.up(self.a, "up", self.config("a2", peers=[to_c], **second), interface="dael1")
            self.assertEqual(len(self.rules(self.a)), 4)
            self.assertEqual(self.seen_as("192.0.9.2"), "10.2.0.1")
            self.ping(self.a, "192.0.2.2")
            one, left = (end_a, "10.2.0.1") if order else (other, "10.1.0.1")
            one.stop()
            self.assertEqual(len(self.rules(self.a)), 2, self.rules(self.a))
            self.assertEqual(self.seen_as("192.0.9.2"), left)
            if order:
                other.stop()
        self.assert_as_before()
        # Killed at one moment: whose guardian is last takes the rules back, though the other's came first.
        self.caller(["192.0.2.0/24"])
        self.config("a2", peers=[to_c], **second)
        for _ in range(2 if sanitized() else 8):
            killed = self.up(self.a, "up", "a.toml"), self.up(self.a, "up", "a2.toml", interface="dael1")
            self.assertEqual(len(self.rules(self.a)), 2)
            for end in killed:
                end.process.kill()
            for end in killed:
                end.process.wait()
            wait_for(lambda: not self.rules(self.a), "the rules to go")
        self.assert_as_before()
        # A network is one tunnel's.
        end_a = self.up(self.a, "up", self.caller(FOUR))
        for mark in (MARK, 77):
            self.config("a2", peers=[{**to_c, "allowed": FOUR}], mark=mark, **second)
            ran = self.run(self.a, PROGRAM, "vpn", "up", "a2.toml", check=False)
            self.assertEqual(ran.returncode, 1)
            self.assertIn("0.0.0.0/0 goes into another tunnel already, by the interface dael0", ran.stderr)
            self.assertEqual(len(self.rules(self.a)), 2)
        self.ping(self.a, "192.0.9.2")

    @not_sanitized
    def test_rules_of_ones_own(self):
        """Sealed packets carry the mark that is given, whoever sets the routes."""
        self.hub()
        end_a = self.up(self.a, "up", self.caller(FOUR, mark=77, routes=False))
        self.assertEqual(self.rules(self.a), [])
        self.ip("-n", self.a, "route", "add", "default", "dev", "dael0", "table", "99")
        self.ip("-n", self.a, "rule", "add", "not", "fwmark", "77", "table", "99")
        self.wait_for_ping(self.a, "192.0.9.2")
        self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
        self.assertEqual(end_a.status()["drops"]["through_itself"], 0)

    @not_sanitized
    def test_a_number_that_is_taken(self):
        self.hub()
        self.ip("-n", self.a, "rule", "add", "fwmark", str(MARK), "table", "100", "priority", "99")
        self.caller(FOUR)
        ran = self.run(self.a, PROGRAM, "vpn", "up", "a.toml", check=False)
        self.assertEqual(ran.returncode, 1)
        self.assertIn(f"the number {MARK} is used by somebody else's rule for routes (priority 99", ran.stderr)
        self.assertEqual(len(self.rules(self.a)), 1)
        end_a = self.up(self.a, "up", self.caller(FOUR, mark=123456))
        self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
        self.assertEqual(self.rules(self.a)[-1]["table"], "123456")
        end_a.stop()
        self.ip("-n", self.a, "rule", "del", "priority", "99")
        self.assert_as_before()

    def test_the_guardians_rights(self):
        self.hub()
        end_a = self.up(self.a, "up", self.caller(FOUR))
        guardian = pathlib.Path(f"/proc/{self.guardian(end_a)}")
        fields = dict(line.split(":", 1) for line in (guardian / "status").read_text().splitlines())
        for capabilities, expected in (("CapInh", 0), ("CapPrm", 1 << 12), ("CapEff", 1 << 12), ("CapBnd", 0), ("CapAmb", 0)):
            self.assertEqual(int(fields[capabilities], 16), expected, capabilities)  # 12 is CAP_NET_ADMIN
        self.assertNotIn("0", fields["Uid"].split() + fields["Gid"].split())
        self.assertEqual((fields["Groups"].strip(), fields["NoNewPrivs"].strip()), ("", "1"))
        if not sanitized() and "seccomp" not in str(end_a.status()["fallbacks"]):
            self.assertEqual(fields["Seccomp"].strip(), "2")
        self.assertEqual([os.readlink(fd).split(":")[0] for fd in (guardian / "fd").iterdir()], ["socket", "socket"])
        # It has no copy of the tunnel's key.
        if not sanitized():  # whose memory is terabytes
            memory = self.memory(guardian)
            self.assertIn(base64.b64decode(self.keys["b"]), memory)
            for secret in (text := (self.dir / "a.key").read_bytes().strip(), base64.b64decode(text)):
                self.assertNotIn(secret[:16], memory)
        # Neither a terminal's end nor a manager's wish ends it before its time.
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            os.kill(int(guardian.name), number)
        end_a.kill()
        wait_for(lambda: not self.rules(self.a), "the rules to go")

    @not_sanitized
    def test_an_own_user(self):
        """Who is not root has the right to set rules from the capability alone, and so has its guardian."""
        self.hub()
        self.caller(FOUR)
        for name in ("a.key", "a.toml"):
            os.chown(self.dir / name, 12345, 12345)
        os.mknod(self.dir / "tun", 0o600 | 0o020000, os.makedev(10, 200))
        (self.dir / "tun").chmod(0o666)
        start = ["sh", "-c", f'mount --bind "{self.dir}/tun" /dev/net/tun && exec "$@"', "sh",
                 "setpriv", "--reuid=12345", "--regid=12345", "--clear-groups"]
        self.run(self.a, *start, "--inh-caps=+net_admin", "--ambient-caps=+net_admin", PROGRAM, "vpn", "up", "--daemon", "a.toml")
        try:
            self.assertEqual(self.seen_as("192.0.9.2"), "10.1.0.1")
        finally:
            self.assertEqual(self.run(self.a, *start, PROGRAM, "vpn", "down", "a.toml").stderr, "")
        self.assert_as_before()

    def test_a_peer_that_moves(self):
        """One that may have every address is followed all the same, but not into the tunnel's own networks."""
        end_b = self.hub()
        end_a = self.up(self.a, "up", self.caller(FOUR))
        self.ping(self.a, "192.0.9.2")
        self.ip("-n", self.b, "addr", "del", "192.0.2.2/24", "dev", "v2")
        self.ip("-n", self.b, "addr", "add", "192.0.2.99/24", "dev", "v2")
        self.ip("-n", self.b, "route", "add", "default", "via", "192.0.2.1")
        self.wait_for_ping(self.b, "10.1.0.1")
        self.assertEqual(end_a.peer()["endpoint"], "192.0.2.99:4500")
        self.assertEqual(end_a.peer()["refused_moves"], 0)
        self.ping(self.a, "192.0.9.2")
        self.assertEqual(end_b.peer()["moves"], 0)

    @not_sanitized
    def test_strict_filtering(self):
        """What the kernel would drop is said, with what mends it."""
        self.hub()
        self.caller(FOUR)
        self.sysctl(self.a, "net/ipv4/conf/v1/rp_filter", 1)
        end_a = self.up(self.a, "up", "a.toml")
        mend = "net.ipv4.conf.v1.rp_filter = 2"
        self.assertIn(mend, end_a.said)
        self.assertIn(mend, str(end_a.status()["fallbacks"]))
        self.assertFalse(self.ping(self.a, "192.0.9.2", check=False))
        self.sysctl(self.a, "net/ipv4/conf/v1/rp_filter", 2)
        self.wait_for_ping(self.a, "192.0.9.2")
        end_a.stop()
        end_a.start()
        self.assertNotIn(mend, end_a.said)
        # Where the main table has a nearer route to the endpoint, nothing is dropped, nor said.
        self.sysctl(self.a, "net/ipv4/conf/v1/rp_filter", 1)
        end_a.stop()
        self.ip("-n", self.a, "route", "add", "192.0.2.0/24", "via", "192.0.1.2")
        end_a.start()
        self.assertNotIn(mend, end_a.said)
        self.wait_for_ping(self.a, "192.0.9.2")
