# SPDX-License-Identifier: Apache-2.0
"""FlexA's keys against other people's hashes, and that nothing unsigned or moved is believed."""

from __future__ import annotations

import copy
import errno
import hashlib
import json
import os
import pickle
import stat
import struct

import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

pytest.importorskip("fsspec")
from daelstrom.exceptions import LimitError
from daelstrom.flexa import FileKeys, FlexA, FlexaError, Keyring, RollBack
from daelstrom.flexa import keyring as keyring_module
from daelstrom.flexa.cache import Cache
from daelstrom.flexa.manifest import (
    Ballot,
    Malformed,
    Manifest,
    Name,
    Signed,
    check_candidacy,
    make_candidacy,
)
from daelstrom.flexa.seen import Seen

NUMBER = bytes(range(32))


def derived(label: bytes) -> bytes:
    write = hashlib.sha256(NUMBER).digest()
    return HKDF(hashes.SHA256(), 32, None, b"daelstrom flexa 1 " + label).derive(write)


def test_the_chain_of_keys():
    keys = FileKeys.of_number(NUMBER)
    assert keys.verify == hashlib.sha384(NUMBER).digest() and keys.name == keys.verify.hex()
    assert keys.valid_write == derived(b"valid write")
    assert keys.read_key() == derived(b"read key")
    assert keys.entries_key() == derived(b"folder entries")
    signing = Ed25519PrivateKey.from_private_bytes(derived(b"signature"))
    assert keys.public == signing.public_key().public_bytes(Encoding.Raw, PublicFormat.Raw)
    assert keys.sign(b"text") == signing.sign(b"text")
    assert len({keys.valid_write, keys.read_key(), keys.entries_key(), derived(b"signature")}) == 4


def test_known_answers():
    """So that they never change."""
    keys = FileKeys.of_number(NUMBER)
    assert keys.name == (
        "e7112491faeefd57786da73f367b25a6f5769f5c98fa7b704d8d37747724a647371989e8b0fe8d3cb23f9eedd528456b"
    )
    made = hashlib.sha256(keys.valid_write + keys.read_key() + keys.public).hexdigest()
    assert made == "f05a9e8d60dc6fc786ebf8f2fb398c3e67e0ca2bcbed8110e00abc4268c7fb7a"


def test_each_has_what_it_takes_and_no_more():
    whole = FileKeys.of_number(NUMBER)
    reader, checker = FileKeys(whole.verify, whole.public, whole.read_key()), FileKeys(whole.verify, whole.public)
    assert whole.can_write and whole.can_read
    assert reader.can_read and not reader.can_write and reader.entries_key() is None
    assert not checker.can_read and not checker.can_write
    for keys in (reader, checker):
        assert keys.check(b"text", whole.sign(b"text")) and not keys.check(b"other", whole.sign(b"text"))
        with pytest.raises(PermissionError):
            keys.sign(b"text")
    with pytest.raises(PermissionError):
        checker.read_key()
    for keys in (whole, reader, checker):
        for call in (pickle.dumps, copy.copy):
            with pytest.raises(TypeError):
                call(keys)
        assert NUMBER.hex() not in repr(keys) and whole.read_key().hex() not in repr(keys)


def manifest(**other) -> Manifest:
    given = {"version": 3, "written": 3, "writer": bytes(16), "size": 5, "sealed": 61, "time": 1.5, "valid_write": bytes(32),
             "history": (bytes(32),), "inline": bytes(61), "hashes": b""}  # fmt: skip
    return Manifest(**{**given, **other})


def test_manifests_come_back_as_they_were():
    keys = FileKeys.of_number(NUMBER)
    for one in (manifest(), manifest(sealed=(7 << 20) + 5, inline=None, hashes=os.urandom(32 * 8))):
        signed = Signed.make(keys, Ballot(7, bytes(16)), one.encode())
        read = Signed.read(FileKeys(keys.verify, keys.public), Name.parse(signed.name), signed.raw)
        assert read.manifest == one and read.digest == signed.digest == one.digest(keys.verify)


def test_nothing_is_believed_that_is_not_signed_for_its_place():
    keys = FileKeys.of_number(NUMBER)
    signed = Signed.make(keys, Ballot(7, bytes(16)), manifest().encode())
    name = Name.parse(signed.name)
    for at in range(len(signed.raw)):
        raw = bytearray(signed.raw)
        raw[at] ^= 1
        with pytest.raises(Malformed):
            Signed.read(keys, name, bytes(raw))
    for raw in (b"", signed.raw[:-1], signed.raw + b"x", signed.raw[:90]):
        with pytest.raises(Malformed):
            Signed.read(keys, name, raw)
    for other in (Name("m", 4, name.ballot), Name("m", 3, Ballot(8, bytes(16))), Name("m", 3, Ballot(7, b"x" * 16))):
        with pytest.raises(Malformed):
            Signed.read(keys, other, signed.raw)
    with pytest.raises(Malformed):  # another file's
        Signed.read(FileKeys.of_number(bytes(32)), name, signed.raw)
    with pytest.raises(Malformed):  # another file's, by the same writer
        Signed.read(FileKeys(bytes(48), keys.public), name, signed.raw)


@pytest.mark.parametrize(
    "change",
    [{"version": 0}, {"version": 1 << 62}, {"written": 4}, {"size": -1}, {"sealed": 0}, {"sealed": 62}, {"sealed": 1 << 43},
     {"writer": bytes(15)}, {"valid_write": b""}, {"inline": None}, {"inline": None, "hashes": bytes(64)}],
)  # fmt: skip
def test_a_signed_manifest_that_does_not_fit_is_refused(change):
    keys = FileKeys.of_number(NUMBER)
    with pytest.raises(Malformed):
        Signed.make(keys, Ballot(1, bytes(16)), manifest(**change).encode())


@pytest.mark.parametrize("text", [b"", b"[]", b"null", b'{"version": true}', b"{" * 5000])
def test_a_manifest_of_other_text_is_refused(text):
    with pytest.raises(Malformed):
        Manifest.decode(struct.pack(">I", len(text)) + text)


def test_candidacies_are_for_one_ballot_of_one_version():
    keys, ballot = FileKeys.of_number(NUMBER), Ballot(3, b"p" * 16)
    raw = make_candidacy(keys, 5, ballot)
    assert check_candidacy(keys, Name("c", 5, ballot), raw)
    assert not check_candidacy(keys, Name("c", 6, ballot), raw)
    assert not check_candidacy(keys, Name("c", 5, Ballot(4, b"p" * 16)), raw)
    assert not check_candidacy(keys, Name("c", 5, Ballot(3, b"q" * 16)), raw)
    assert not check_candidacy(FileKeys.of_number(bytes(32)), Name("c", 5, ballot), raw)
    assert not check_candidacy(keys, Name("c", 5, ballot), raw[:-1])
    # What is signed for one thing is not for another.
    assert not check_candidacy(keys, Name("c", 5, ballot), raw[:27] + Signed.make(keys, ballot, manifest().encode()).raw[26:90])


@pytest.mark.parametrize("name", ["", "m", "m-1", "x-0000000000000001-00000001-" + "0" * 32, "m-0000000000000000-00000001-" + "0" * 32,
                                  "m-0000000000000001-00000001-" + "0" * 32 + "\n", "d-0000000000000001-" + "0" * 32 + "-3-00000000",
                                  "m-000000000000000A-00000001-" + "0" * 32])  # fmt: skip
def test_other_names_are_nobodys(name):
    assert Name.parse(name) is None


def test_portions_have_every_block_once():
    for blocks in (1, 2, 3, 4, 47, 48, 49, 100, 145):
        one = manifest(inline=None, sealed=(blocks << 20) - 5, hashes=bytes(32 * blocks))
        found = [i for portion, piece in one.pieces() for i in one.piece(portion, piece)]
        assert sorted(found) == list(range(blocks))
        assert all(i % 3 == portion for portion, piece in one.pieces() for i in one.piece(portion, piece))
        assert sum(map(one.block_size, found)) == one.sealed


def test_a_keyring_is_sealed_and_for_its_owner(tmp_path):
    stores = [f"{tmp_path}/s{number}" for number in range(3)]
    made = Keyring.create(tmp_path / "ring", primaries=stores, passphrase="words", work=10, options={stores[0]: {"sync": False}})
    assert stat.S_IMODE(os.stat(tmp_path / "ring").st_mode) == 0o600
    data = (tmp_path / "ring").read_bytes()
    assert b"number" not in data and stores[0].encode() not in data
    again = Keyring.open(tmp_path / "ring", passphrase=bytearray(b"words"))
    assert again.root.name == made.root.name and again.root.can_write and again.options == made.options
    assert again.primaries == tuple(stores) and again.space == made.space
    with pytest.raises(Exception, match="passphrase|key"):
        Keyring.open(tmp_path / "ring", passphrase="other words")
    with pytest.raises(FileExistsError):
        Keyring.create(tmp_path / "ring", primaries=stores, passphrase="words", work=10)
    with pytest.raises(TypeError):
        pickle.dumps(again)
    moved = again.replace(stores[1], f"{tmp_path}/new", passphrase="words", work=10)
    assert moved.primaries == (stores[0], f"{tmp_path}/new", stores[2]) and moved.root.name == made.root.name
    assert stat.S_IMODE(os.stat(tmp_path / "ring").st_mode) == 0o600


def test_a_keyring_for_recipients(tmp_path):
    from daelstrom.files import generate_identity

    identity, recipient = generate_identity()
    stores = [f"{tmp_path}/s{number}" for number in range(3)]
    made = Keyring.create(tmp_path / "ring", primaries=stores, recipients=[recipient])
    assert Keyring.open(tmp_path / "ring", identities=identity).root.name == made.root.name


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"format": "daelstrom flexa keyring 1"}', '{"format": "daelstrom flexa share 1", "kind": "x"}'])
def test_what_is_no_share_is_refused(tmp_path, text):
    (tmp_path / "share").write_text(text)
    with pytest.raises(FlexaError):
        Keyring.of_share(tmp_path / "share")


def test_shares_have_what_they_say_and_no_more(tmp_path):
    stores = [f"{tmp_path}/s{number}" for number in range(3)]
    ring = Keyring.create(tmp_path / "ring", primaries=stores, passphrase="w", work=10, options={stores[0]: {"secret": "hush"}})
    keys = FileKeys.of_number(NUMBER)
    ring.share(tmp_path / "read", keys, "file", "f", read=True)
    ring.share(tmp_path / "verify", keys, "file", "f", read=False)
    for name, may in (("read", True), ("verify", False)):
        text = (tmp_path / name).read_text()
        assert stat.S_IMODE(os.stat(tmp_path / name).st_mode) == 0o600
        assert (keys.read_key().hex() in text) == may and "hush" not in text
        assert NUMBER.hex() not in text and hashlib.sha256(NUMBER).hexdigest() not in text
        held = Keyring.of_share(tmp_path / name)
        assert held.root.can_read == may and not held.root.can_write and held.kind == "file"
        assert set(json.loads(text)) - {"read"} == {"format", "kind", "name", "space", "verify", "public", "primaries", "secondaries", "options"}


def ring_at(path, **other):
    stores = [f"{path.parent}/s{number}" for number in range(3)]
    return Keyring.create(path, **{"primaries": stores, "passphrase": "words", "work": 10, **other})


def test_a_keyring_as_costly_as_it_gets_opens(tmp_path, monkeypatch):
    ring_at(tmp_path / "ring")
    for most, opens in ((keyring_module._MOST_WORK, True), (10, True), (9, False)):
        monkeypatch.setattr(keyring_module, "_MOST_WORK", most)
        if opens:
            assert Keyring.open(tmp_path / "ring", passphrase="words").root.can_write
        else:
            with pytest.raises(LimitError):
                Keyring.open(tmp_path / "ring", passphrase="words")


def test_another_store_leaves_the_cost_as_it_was(tmp_path):
    from daelstrom import _core

    ring = ring_at(tmp_path / "ring", work=11)
    ring = ring.replace(ring.primaries[0], "/elsewhere", passphrase="words")
    assert _core.envelope_read((tmp_path / "ring").read_bytes())[1] == 11
    ring.replace("/elsewhere", "/there", passphrase="words", work=10)
    assert _core.envelope_read((tmp_path / "ring").read_bytes())[1] == 10


def test_of_two_that_replace_a_store_none_is_undone(tmp_path, monkeypatch):
    ring, real = ring_at(tmp_path / "ring"), keyring_module.read_file
    first, second, _ = ring.primaries

    def beside(path):
        data = real(path)
        monkeypatch.setattr(keyring_module, "read_file", real)
        ring.replace(first, "/one", passphrase="words")
        return data

    monkeypatch.setattr(keyring_module, "read_file", beside)
    with pytest.raises(OSError):
        ring.replace(second, "/two", passphrase="words")
    assert Keyring.open(tmp_path / "ring", passphrase="words").primaries[:2] == ("/one", second)
    assert os.listdir(tmp_path) == ["ring"]


@pytest.mark.parametrize("at", ["write", "appear"])
def test_a_replacement_that_fails_leaves_the_keyring(tmp_path, monkeypatch, at):
    ring = ring_at(tmp_path / "ring")
    before = (tmp_path / "ring").read_bytes()

    def full(*_):
        raise OSError(errno.ENOSPC, "no room")

    monkeypatch.setattr(keyring_module.Appearing, at, full)
    with pytest.raises(OSError, match="no room"):
        ring.replace(ring.primaries[0], "/new", passphrase="words")
    assert (tmp_path / "ring").read_bytes() == before and os.listdir(tmp_path) == ["ring"]


def test_places_and_options_that_are_none(tmp_path):
    stores = ["/a", "/b", "/c"]
    for primaries, options in ((["/a", "/b", "/b"], None), (["/a", "/b", "/b/"], None), (["/a", "/b", ""], None), (["/a", "/b"], None),
                               (["/a", "/b", "sftp://me:hush@host/x"], None), (["/a", "/b", "sftp://me:hu/sh@host/x"], None),
                               (["/a", "/b", "s3://key:sec@ret@bucket"], None), (stores, {"/d": {}}), (stores, {"/a": 5})):  # fmt: skip
        with pytest.raises((ValueError, TypeError)) as found:
            ring_at(tmp_path / "ring", primaries=primaries, options=options)
        assert "hush" not in str(found.value) and not os.listdir(tmp_path)
    ring = ring_at(tmp_path / "ring", primaries=["sftp://host:22/me@x", "sftp://me@[::1]:22/a:b@c", "/a:b@c"])
    for new in (ring.primaries[1], ring.primaries[1] + "/", "sftp://me:hush@host/x", ""):
        with pytest.raises(ValueError):
            ring.replace(ring.primaries[0], new, passphrase="words")
    with pytest.raises(ValueError, match="/a:b@c"):
        ring.replace("/nothing", "/new", passphrase="words")
    with pytest.raises(TypeError):
        ring.replace(ring.primaries[0], "/new", identities="AGE-SECRET-KEY-1")


def test_a_keyring_learns_how_its_stores_are_reached(tmp_path):
    ring = ring_at(tmp_path / "ring", options={f"{tmp_path}/s0": {"secret": "old"}})
    first = ring.primaries[0]
    ring = ring.replace(first, first, passphrase="words", options={"secret": "new"})
    assert ring.options == {first: {"secret": "new"}}
    ring = ring.replace(first, "/new", passphrase="words", options={"sync": False})
    assert ring.options == {"/new": {"sync": False}}
    assert ring.replace("/new", "/newer", passphrase="words").options == {}


def share_at(path, **other):
    """One of somebody who means ill."""
    keys = FileKeys.of_number(NUMBER)
    held = {"format": "daelstrom flexa share 1", "kind": "file", "name": "f", "space": bytes(16).hex(), "verify": keys.verify.hex(),
            "public": keys.public.hex(), "read": keys.read_key().hex(), "primaries": ["/a", "/b", "/c"], "secondaries": [], "options": {}}  # fmt: skip
    path.write_text(json.dumps({**held, **other}))
    return path


S3 = "s3://bucket/x"


@pytest.mark.parametrize(
    "url, options",
    [("sftp://h/x", {"proxy_command": "touch pwned"}), ("sftp://h/x", {"config": "/tmp/theirs"}), ("sftp://h/x", {"client_keys": ["/root/.ssh/id"]}),
     ("ssh://h/x", {"known_hosts": "/etc/passwd"}), (S3, {"profile": "work"}), (S3, {"endpoint_url": "https://theirs"}),
     (S3, {"client_kwargs": {"endpoint_url": "https://theirs"}}), (S3, {"client_kwargs": {"verify": False}}), (S3, {"client_kwargs": 5}),
     ("gs://bucket/x", {"endpoint_url": "https://theirs"}), ("simplecache://x", {"target_protocol": "file"}), ("/a", {"auto_mkdir": True}),
     ("webdav://x", {"cert": "/root/key"}), ("unheard://x", {"a": 1}), ("/a", 5), ("/a", [1]), (S3, {"client_kwargs": None}),
     (S3, {"use_ssl": False}), ("sftp://h/x", {"username": "$(touch pwned)"}), ("sftp://h/x", {"username": 5})],
)  # fmt: skip
def test_a_share_does_not_say_what_runs_here(tmp_path, url, options):
    path = share_at(tmp_path / "share", primaries=[url, "/b", "/c"], options={url: options})
    with pytest.raises(FlexaError):
        Keyring.of_share(path)
    mine = {"anon": True}
    assert Keyring.of_share(path, options={url: mine}).options == {url: mine}
    ring = ring_at(tmp_path / "ring", primaries=[url, "/b", "/c"])
    with pytest.raises((ValueError, TypeError, AttributeError)):
        ring.share(tmp_path / "made", ring.root, "file", "f", read=True, options={url: options})
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    "url, options",
    [("sftp://h/x", {"username": "me", "password": "p", "known_hosts": None, "config": None}), (S3, {"anon": True, "endpoint_url": "http://x"}),
     (S3, {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": "http://x", "region_name": "eu"}}), ("/a", {"sync": False}),
     ("webdav://x", {"base_url": "http://x", "auth": ["a", "b"], "timeout": 3})],
)  # fmt: skip
def test_a_share_says_how_stores_are_reached(tmp_path, url, options):
    path = share_at(tmp_path / "share", primaries=[url, "/b", "/c"], options={url: options})
    assert Keyring.of_share(path).options == {url: options}


@pytest.mark.parametrize("url", ["reference://x", "dask://x", "dvc://x", "git:///x", "flexa://x", "daelstrom://x", "unheard://x", "simplecache://x",
                                 "sftp://$(touch pwned)/x", "ssh://`x`@h/x", "sftp://-oProxyCommand=x/x", "ssh://me@-o/x", "sftp://h?x;y/z"])  # fmt: skip
def test_a_share_names_no_place_that_hurts(tmp_path, url):
    path = share_at(tmp_path / "share", primaries=["/a", "/b", url])
    with pytest.raises(FlexaError, match="a share may name"):
        Keyring.of_share(path)
    assert Keyring.of_share(path, options={url: {}}).primaries[2] == url  # its reader knows it


@pytest.mark.parametrize("url", ["sftp://me.x+y@host-1.example.org:22/a $(b)", "ssh://10.0.0.1/x", "s3://bucket/x y", "gs://b/x", "webdav://x", "/a/$(b)"])
def test_a_share_names_places(tmp_path, url):
    assert Keyring.of_share(share_at(tmp_path / "share", primaries=[url, "/b", "/c"])).primaries[0] == url


@pytest.mark.parametrize("other", [{"primaries": ["simplecache::file:///etc", "/b", "/c"]}, {"primaries": [1, 2, 3]}, {"primaries": 5}, {"options": []},
                                   {"options": None}, {"options": "x"}, {"verify": "00"}, {"public": 5}, {"secondaries": None}, {"kind": ["file"]},
                                   {"name": "../x"}, {"name": "/etc/x"}, {"name": ".."}, {"name": "x\0"}])  # fmt: skip
def test_a_share_of_nonsense_is_refused(tmp_path, other):
    with pytest.raises(FlexaError):
        Keyring.of_share(share_at(tmp_path / "share", **other))


def test_a_sealed_share_costs_what_is_usual(tmp_path):
    from daelstrom import _core, streams

    text = share_at(tmp_path / "share").read_bytes()
    sealed = streams.seal(text, recipients=_core.Recipients.of_passphrase(b"words", 10))
    (tmp_path / "sealed").write_bytes(sealed)
    assert Keyring.of_share(tmp_path / "sealed", passphrase="words").name == "f"
    with pytest.raises(FlexaError, match="passphrase"):
        Keyring.of_share(tmp_path / "sealed")
    with FlexA.of_share(tmp_path / "sealed", passphrase="words", options={}) as theirs:
        assert theirs._ring.name == "f"
    costly = sealed.replace(b" 10\n", b" 20\n", 1)
    assert costly != sealed
    (tmp_path / "sealed").write_bytes(costly)
    with pytest.raises(LimitError, match="scrypt"):  # before anything is computed
        Keyring.of_share(tmp_path / "sealed", passphrase="words")


def test_errors_name_the_file(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "large").write_bytes(bytes((1 << 20) + 1))
    (tmp_path / "other").write_text("something")
    for name in ("", "pipe", "large", "other", "nothing"):
        for call in (Keyring.of_share, lambda path: Keyring.open(path, passphrase="w")):
            with pytest.raises((FlexaError, OSError)) as found:
                call(tmp_path / name)
            assert str(tmp_path / name) in str(found.value)


def test_a_cache_leaves_alone_what_is_not_its(tmp_path):
    for name in ("x" * 64, "t-shirt.jpg", "t-" + "g" * 32):
        (tmp_path / name).write_bytes(b"somebody's")
        os.utime(tmp_path / name, (0, 0))
    old = "t-" + "0" * 32
    (tmp_path / old).write_bytes(b"of a crash")
    os.utime(tmp_path / old, (0, 0))
    blocks = [bytes([number]) * 1000 for number in range(5)]
    digests = [hashlib.sha256(block).digest() for block in blocks]
    cache = Cache(tmp_path, 3000)
    for digest, block in zip(digests, blocks):
        cache.put(digest, block)
    assert [cache.get(digest) for digest in digests] == [None, None, *blocks[2:]]
    assert not (tmp_path / old).exists() and (tmp_path / ("x" * 64)).exists() and (tmp_path / "t-shirt.jpg").exists()
    for digest, age in zip(digests[2:], (3, 2, 1)):
        os.utime(tmp_path / digest.hex(), (age, age))
    cache.get(digests[3])  # the one that was used last stays
    (tmp_path / digests[2].hex()).write_bytes(bytes(1 << 20))
    assert cache.get(digests[2]) is None
    assert Cache(tmp_path, 1000).get(digests[3]) == blocks[3]
    assert not (tmp_path / digests[4].hex()).exists()
    with pytest.raises(ValueError):
        Cache(tmp_path, -1)


def test_what_was_seen_is_not_forgotten(tmp_path):
    seen, other = Seen(tmp_path / "seen"), Seen(tmp_path / "seen")
    seen.accept("f", 3, b"three")
    assert other.newest("f") == (3, b"three")
    other.accept("f", 5, b"five", (3, b"three"))
    with pytest.raises(RollBack):
        seen.accept("f", 4, b"four", seen.newest("f"))
    with pytest.raises(RollBack):
        seen.accept("f", 5, b"another five")
    seen.accept("f", 4, b"four", (3, b"three"))  # asked before somebody saw the fifth
    assert seen.newest("f") == (5, b"five")
    seen.accept("f", 5, b"five")
    assert stat.S_IMODE(os.stat(tmp_path / "seen").st_mode) == 0o600
