// SPDX-License-Identifier: Apache-2.0
// What a backend is: a name, a check that this machine has it, and a small table of primitives over
// segments of data. What the modes mean (padding, offsets, chaining across chunks, limits) is
// written once above it, in src/modes; cutting work up for threads and devices is src/pipeline's.
//
// A backend's primitives may be called from any number of threads at once.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/modes.hpp>
#include <daelstrom/xts.hpp>

namespace dael::core {

// A run of bytes that one primitive call transforms, already valid for its mode: sizes are whole
// blocks where the mode asks for them, and `out` is `in` itself or does not overlap it.
struct Segment {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t size = 0;   // bytes
    Block iv{};             // CTR: the first counter block; CBC, CFB, OFB: the block before
    std::uint8_t skip = 0;  // CTR only: bytes of the first keystream block to leave out, 0 to 15
};

struct Operation {
    Mode mode = Mode::ctr;
    Direction direction = Direction::encrypt;
    const Key* key = nullptr;
};

// XTS over neighbouring sectors. A segment of it has the number of its first sector, 128 bits
// little-endian, as its `iv`; all its sectors are `sector_size` bytes, but the last may be shorter,
// down to 16.
struct XtsOperation {
    Direction direction = Direction::encrypt;
    const XtsKey* key = nullptr;
    std::size_t sector_size = 512;
};

// One GCM message, already valid: sizes within the limits, pointers where there is a size. `iv` is
// host memory of 1 byte or more; the rest lies where the backend reaches.
struct GcmSegment {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;
    std::size_t size = 0;
    const std::uint8_t* aad = nullptr;
    std::size_t aad_size = 0;
    const std::uint8_t* iv = nullptr;
    std::size_t iv_size = 0;
    std::uint8_t* tag = nullptr;  // tag_size bytes
    std::size_t tag_size = 16;
    std::uint32_t key = 0;  // index into the prepared keys
};

// Keys as one backend wants them for GCM. Wiped when it goes.
class PreparedKeys {
  public:
    virtual ~PreparedKeys() = default;
};

// A GCM message in pieces, on the calling thread: aad() any number of times, then update(), then
// finish(), which yields the whole tag. Decrypts without verifying: what is above it must not
// release that (src/modes).
class GcmStream {
  public:
    virtual ~GcmStream() = default;
    virtual Result<> aad(std::span<const std::uint8_t> bytes) = 0;
    virtual Result<> update(std::span<const std::uint8_t> in, std::uint8_t* out) = 0;
    virtual Result<Block> finish() = 0;
};

class Device;

class Backend {
  public:
    virtual ~Backend() = default;

    virtual std::string_view name() const = 0;    // as asked for: "cpu", "cuda:0"
    virtual std::string description() const = 0;  // "libipsec-mb 1.3.0, AVX-512 with VAES"

    // Whether `run` takes this mode and direction; `segments` is how many it would get at once, for
    // backends that do sequential modes only as a batch.
    virtual bool supports(Mode mode, Direction direction, std::size_t segments) const = 0;

    // Host memory, on the calling thread, done when it returns. Segments are independent messages.
    // A backend whose memory is its own (device() is not null) answers Code::unsupported.
    virtual Result<> run(const Operation& operation, std::span<const Segment> segments) = 0;

    // GCM over host memory, on the calling thread. A result for each segment: ok, or authentication
    // when opening finds another tag, and then its output holds no plaintext. The return value
    // tells of failures of the whole call. Backends without GCM answer Code::unsupported.
    virtual Result<std::unique_ptr<PreparedKeys>> prepare_keys(std::span<const Key> keys);
    virtual Result<> gcm(Direction direction, const PreparedKeys& keys,
                         std::span<const GcmSegment> segments, std::span<Code> results);
    virtual Result<std::unique_ptr<GcmStream>> gcm_stream(Direction direction,
                                                          const PreparedKeys& keys,
                                                          std::uint32_t key,
                                                          std::span<const std::uint8_t> iv);

    // XTS over host memory, on the calling thread. Backends without it answer Code::unsupported.
    virtual bool has_xts() const { return false; }
    virtual Result<> xts(const XtsOperation& operation, const Segment& segment);

    // Whether the host's threads should share out what run() is given. Backends that are parallel
    // by themselves get whole messages, in one call.
    virtual bool shared_by_threads() const { return true; }

    // The processor with its own memory behind this backend; null for host backends.
    virtual Device* device() { return nullptr; }
};

// What backends have in common to say, under a name of theirs: of an object that a child of fork()
// has from its parent; and of one message in a mode that only batches make parallel.
Error opened_before_fork(std::string_view name);
Error sequential_within_message(std::string_view name, const Operation& operation);

struct BackendOptions {
    // cpu: "sse", "avx2", "avx512", or "" for the best that the machine has. cuda: how many
    // tables its kernels have ("tables=1"), or "" for all that fit. opencl: a shape of its kernels
    // (Device::shapes()). opengl: "gl-int", which is "" too, or "gl-float".
    std::string isa;
    int index = 0;  // which device, for backends with several
    // opencl: the caller's own, in place of one by index.
    void* context = nullptr;
    void* device = nullptr;
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
};

}  // namespace dael::core
