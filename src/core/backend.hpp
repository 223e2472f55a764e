// SPDX-License-Identifier: Apache-2.0
// What a backend is: a name, a check that this machine has it, and one call that runs a cipher over
// messages. What the modes mean (padding, offsets, chaining across chunks, limits) is written once
// above it, in src/modes; cutting work up for threads and devices is src/pipeline's.
//
// All calls of a backend may come from any number of threads at once.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/message.hpp>

#include "core/packet_cipher.hpp"

namespace dael::core {

// What a backend makes of keys ahead of time: expanded, with what GHASH needs of each, where it
// wants them (a device: in its memory). Holds all that it needs of the keys; wiped when it goes,
// which must be after the work.
class KeyTables {
  public:
    virtual ~KeyTables() = default;
    // Puts another key in the place of key `index`. On a device in the stream's order: work that is
    // in the stream has the old key, work that follows has the new one; no allocation there. On the
    // host at once, which cannot fail, and nothing may use the tables meanwhile. The new key may
    // have another size. After an error the tables are as they were, unless whole() says otherwise.
    virtual Result<> replace(std::uint32_t index, const Key& key, Stream stream) = 0;
    // False once a replacement was launched in part, so that nobody can say which key is in what:
    // for good, and nothing uses such tables any more.
    virtual bool whole() const noexcept { return true; }

    KeyTables* next_kept = nullptr;  // of those that are kept for good (core/keep_forever.hpp)
};

// The keys of a call; messages name theirs by index. All are of one kind: for XTS, or not.
struct KeyList {
    std::span<const Key> list;
    const KeyTables* tables = nullptr;  // this backend's; null: nothing was made ready
};

// A tag, of which a cipher may have fewer bytes: all of what a mode makes for a tag of that size.
// (A tag of AEGIS of 16 bytes is no part of one of 32.)
struct Tag {
    Tag() noexcept = default;
    Tag(const Block& block) noexcept : size(kBlockSize) {
        std::copy(block.begin(), block.end(), bytes.begin());
    }
    std::array<std::uint8_t, 32> bytes{};
    std::uint8_t size = 0;

    const std::uint8_t* data() const noexcept { return bytes.data(); }
    const std::uint8_t* begin() const noexcept { return bytes.data(); }
    const std::uint8_t* end() const noexcept { return bytes.data() + size; }
    friend bool operator==(const Tag&, const Tag&) noexcept = default;  // tells where they differ
};

// A message in pieces, on the calling thread and in host memory, for one thread at a time; made by
// Backend::begin. It must not outlive its keys. The order of calls (aad, then update, then finish,
// once) and the limits are seen to above it.
class Pieces {
  public:
    virtual ~Pieces() = default;
    // Any number of bytes. Decrypting, it yields what nobody has verified yet: what is above it
    // must not hand that out.
    virtual Result<> aad(HostIn bytes) = 0;
    virtual Result<> update(const std::uint8_t* in, std::uint8_t* out, std::size_t size) = 0;
    virtual Result<Tag> finish() = 0;  // the whole tag
    // Another one in the same state.
    virtual Result<std::unique_ptr<Pieces>> clone() const = 0;
    // As begun anew under the same key, without allocation.
    virtual Result<> restart(const Start& start) = 0;
};

// Whether a backend takes a cipher. `batches`: many messages at once only, since one alone is
// sequential there.
struct Can {
    enum Answer : std::uint8_t { no, batches, yes } answer = yes;
    std::string_view why = {};  // where it is not `yes`: what is missing, and what to use instead
};

// The same name, in memory that is never released: what a call that comes by the million hands out
// in place of a copy.
std::string_view lasting(std::string_view name);

struct Profile {
    std::string name;         // as asked for: "cpu", "cuda:0"
    std::string description;  // "libipsec-mb 1.3.0, AVX-512 with VAES"
    // Whether the host's threads should share out what run() is given. Backends that are parallel
    // by themselves get whole messages, in one call.
    bool shared_by_threads = true;
    std::string_view lasting_name = lasting(name);
};

class Device;

class Backend {
  public:
    virtual ~Backend() = default;

    virtual const Profile& profile() const = 0;
    virtual Can can(const Cipher& cipher, int key_bits) const = 0;
    // Ok, or why nothing is done here any more: an answer that was known came out wrong, the GPU
    // was reset. Asks nothing of the device.
    virtual Result<> usable() const { return {}; }

    virtual Result<std::unique_ptr<KeyTables>> tables(std::span<const Key> keys) = 0;

    // Host memory, on the calling thread, done when it returns. The messages are independent of
    // each other and valid (modes::check); they may be under different keys, of different sizes.
    // `codes`, one for each message, were set to ok by the caller: only decryption in a mode that
    // authenticates writes there, Code::authentication for a message whose tag does not match. Its
    // output then holds nothing of the plaintext, and where it was in place (in == out) the
    // ciphertext as before. `codes` may be empty in the other modes. The return value tells of
    // failures of the call as a whole.
    //
    // gcm_ctr never comes here: once checked it is ctr.
    //
    // Without tables every mode still works, GCM by expanding a key for the call in memory of the
    // thread's own, and one message then costs no allocation and no lock. A backend whose memory is
    // its own (device() is not null) answers Code::unsupported.
    virtual Result<> run(const Cipher& cipher, const KeyList& keys,
                         std::span<const Message> messages, std::span<Code> codes) = 0;

    // A message in pieces, for modes that authenticate (the other modes' pieces are made of run(),
    // in src/pipeline/pieces.cpp); on a device backend too, through the device. `keys` has tables.
    virtual Result<std::unique_ptr<Pieces>> begin(const Cipher& cipher, const KeyList& keys,
                                                  std::uint32_t key, const Start& start) = 0;

    // GCM for packets under this key, which is copied, with keystream that was made ahead of time:
    // packet_cipher.hpp. Host backends. Errors: unsupported, out_of_memory.
    virtual Result<std::unique_ptr<PacketCipher>> packets(const Key& key);

    // The processor with its own memory behind this backend; null for host backends.
    virtual Device* device() { return nullptr; }

    Backend* next_kept = nullptr;  // of those that are kept for good (core/keep_forever.hpp)
};

// What backends have in common to say, under a name of theirs: of an object that a child of fork()
// has from its parent; of one message in a mode that only batches make parallel; of tables or
// batches of another backend.
Error opened_before_fork(std::string_view name);
Error sequential_within_message(std::string_view name, const Cipher& cipher);
Error made_for_another(std::string_view name, std::string_view what);
// Why a Can is not what was asked for, as an Error: "backend 'cuda': ...".
Error cannot(std::string_view name, const Cipher& cipher, const Can& can);

struct BackendOptions {
    // Which form of itself a backend takes, "" for its best; each parses its own. cpu: "sse",
    // "avx2", "avx512". cuda: how many tables its kernels have, "tables=1". opencl: a form of its
    // kernels (Forms).
    std::string form;
    int index = 0;  // which device, for backends with several
    // opencl: the caller's own, in place of one by index.
    void* context = nullptr;
    void* device = nullptr;
    // cuda: whether the device may wait with starting until it is used, for those who open all that
    // there are and use few. What opening it would have refused then shows at its first use.
    bool later = false;
};

// GB/s of AES-128 on one core.
struct Expected {
    double parallel = 1;  // ECB, CTR, CBC decryption, XTS
    double cfb_decrypt = 0.5;
    double sequential = 0.5;        // one message
    double sequential_batch = 0.5;  // 16 messages
    double gcm = 0.5;
    double aegis = 0.5;  // of any kind
};

// How a backend enters the list (src/backends/list.cpp). `name` is what --backend takes.
struct BackendEntry {
    const char* name;     // "cpu"
    const char* summary;  // one line for `daelstrom devices`
    // How many devices of this kind the machine has (1 for host backends that run here, 0 if
    // absent). On 0, `*why` says what is missing.
    int (*count)(std::string* why);
    Result<std::unique_ptr<Backend>> (*open)(const BackendOptions& options);
    // What a device is called by its driver, without opening it; empty for one that is to be used
    // only where it is asked for by name. Null for backends without memory of their own.
    std::string (*device_name)(int index) = nullptr;
    // How many of them, from the first, may be looked at by those who did not ask for this backend
    // by name, and are found without loading the drivers of the others. Null: all.
    int (*offered)() = nullptr;
    // What the planner expects of a host backend in this form on this machine, where nothing was
    // measured. Null: `auto` never chooses the backend for data in host memory.
    Expected (*expected)(const std::string& form) = nullptr;
    // The forms that tests and `daelstrom bench` go through, where there are several: names for
    // BackendOptions::form. Only those that this machine has.
    std::vector<std::string> (*forms)() = nullptr;
    // A device of this kind that this process has started, whether we have or somebody else; -1:
    // none. Starts nothing. Null where the driver does not tell.
    int (*in_use)() = nullptr;
};

}  // namespace dael::core
