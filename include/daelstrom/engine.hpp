// SPDX-License-Identifier: Apache-2.0
// The engine: AES wherever the data is.
//
// Safety: the modes here keep secrets but do not authenticate; see modes.hpp for each mode's
// limits. Never use one (key, counter) or (key, IV) twice in CTR or OFB.
//
// An Engine may be used by any number of threads at once, with any number of keys and streams.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/error.hpp>
#include <daelstrom/gcm.hpp>
#include <daelstrom/gcm_stream.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/keyed.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/modes.hpp>
#include <daelstrom/plan.hpp>
#include <daelstrom/xts.hpp>

namespace dael {

struct EngineOptions {
    // "auto", or a backend by name: "reference", "openssl", "cpu", "cuda", "cuda:1",
    // "opencl", "opengl".
    // Empty: the environment's DAELSTROM_BACKEND, else "auto". A named backend is used or refused,
    // never replaced.
    std::string backend = {};
    // cpu backend: "sse", "avx2", "avx512"; empty: the best there is. opengl: "gl-int", "gl-float".
    // cuda: "tables=4", 2 or 1. opencl: the shape of its kernels,
    // "tables=1,teams=16,held=4,groups=4" or a part of that (docs/opencl.md).
    std::string isa = {};
    int threads = 0;         // host threads for data in host memory; 0: all cores
    std::size_t chunk = 0;   // bytes of a chunk between host and device; 0: as calibrated
    bool calibrated = true;  // whether `auto` may read the calibration that this user stored
};

// What a call did, for those who want to know.
struct Ran {
    std::string backend;       // the backend that processed the data: "cpu", "cuda:0"
    int threads = 1;           // host threads that took part
    std::uint64_t chunks = 0;  // chunks that crossed to a device and back; 0: none
};

// Many messages in device memory, made ready for one launch; see Engine::prepare.
class Batch {
  public:
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) noexcept;
    ~Batch();

  private:
    friend class Engine;
    struct State;
    explicit Batch(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

class Engine {
  public:
    // Errors: unknown_backend, backend_absent (the message says what is missing), invalid_argument.
    static Result<Engine> open(EngineOptions options = {});
    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;
    ~Engine();

    // Host memory. Transforms in.size() bytes; out.size() must be in.size(); `out` is `in` or apart
    // from it; any alignment. Blocks until done. Errors: ragged_length, overlap, invalid_argument,
    // unsupported, device, out_of_memory. After an error the output's bytes are unspecified.
    Result<Ran> run(const Key& key, const Cipher& cipher, HostIn in, HostOut out);
    // Many independent messages at once: the natural call for CBC, CFB and OFB encryption.
    Result<Ran> run(const Key& key, Mode mode, Direction direction,
                    std::span<const Message> messages);

    // Device memory, for an engine on a device backend: launches on the stream and returns, without
    // synchronising or allocating; but the first use of an OpenCL kernel compiles it. Errors of the
    // launch return here; errors of the device while it runs show at the stream's next
    // synchronisation, as with any kernel. Pointers of any alignment; 16-byte aligned ones are
    // fast. CBC, CFB and OFB that are sequential within a message need a Batch.
    Result<Ran> run(const Key& key, const Cipher& cipher, DeviceIn in, DeviceOut out,
                    Stream stream);

    // A batch of messages whose `in` and `out` are device pointers. prepare() allocates and copies
    // the descriptors; run() may be repeated, on any stream, one launch each. It belongs to this
    // engine: destroy it after the work and before the engine.
    Result<Batch> prepare(Mode mode, Direction direction, std::span<const Message> device_messages);
    Result<Ran> run(const Key& key, const Batch& batch, Stream stream);

    // GCM; see gcm.hpp. Keys are made ready once and used by index.
    // Errors: out_of_memory, device, unsupported.
    Result<KeySet> prepare_keys(std::span<const Key> keys);

    // Batches of messages in host memory; done when it returns. results[i] tells of message i: ok;
    // authentication (open: its output then holds no plaintext); invalid_argument, overlap or limit
    // for a message that was not touched. No message disturbs another. The call itself fails
    // (invalid_argument, device, out_of_memory) only as a whole. `tag_size`: 4, 8, 12 to 16.
    Result<Ran> seal_batch(const KeySet& keys, std::span<const GcmMessage> messages,
                           std::span<Code> results, std::size_t tag_size = kTagSize);
    Result<Ran> open_batch(const KeySet& keys, std::span<const GcmMessage> messages,
                           std::span<Code> results, std::size_t tag_size = kTagSize);

    // Batches in device memory; see GcmBatch in gcm.hpp. prepare_gcm() allocates and is
    // synchronous; seal() and open() launch on the stream and return; results() waits. Errors: as
    // above.
    Result<GcmBatch> prepare_gcm(const KeySet& keys, std::span<const GcmMessage> messages,
                                 std::size_t tag_size = kTagSize);
    Result<GcmBatch> prepare_gcm(const KeySet& keys, const GcmMessage* device_list,
                                 std::uint32_t count, std::size_t tag_size = kTagSize);
    Result<Ran> seal(GcmBatch& batch, Stream stream);
    Result<Ran> open(GcmBatch& batch, Stream stream);
    Result<std::vector<Code>> results(const GcmBatch& batch, Stream stream);

    // Batches with a key for each message, without authentication; see keyed.hpp. In host memory,
    // with results as of seal_batch(): counter mode as prepare_gcm() has it with `tag_size` 0, and
    // CBC encryption, where ragged_length is a message's size that is no multiple of 16.
    Result<Ran> ctr_batch(const KeySet& keys, std::span<const GcmMessage> messages,
                          std::span<Code> results);
    Result<Ran> cbc_encrypt_batch(const KeySet& keys, std::span<const KeyedMessage> messages,
                                  std::span<Code> results);
    // In device memory, as prepare_gcm(), seal() and results() are.
    Result<KeyedBatch> prepare_cbc_encrypt(const KeySet& keys,
                                           std::span<const KeyedMessage> messages);
    Result<KeyedBatch> prepare_cbc_encrypt(const KeySet& keys, const KeyedMessage* device_list,
                                           std::uint32_t count);
    Result<Ran> run(KeyedBatch& batch, Stream stream);
    Result<std::vector<Code>> results(const KeyedBatch& batch, Stream stream);

    // One message in host memory, with an IV of any length from 1 byte (12 is the fast and usual
    // one); tag.size() is the tag's size. Errors: as above, authentication among them.
    Result<Ran> gcm_seal(const Key& key, std::span<const std::uint8_t> iv, HostIn aad, HostIn in,
                         HostOut out, std::span<std::uint8_t> tag);
    Result<Ran> gcm_open(const Key& key, std::span<const std::uint8_t> iv, HostIn aad, HostIn in,
                         HostOut out, std::span<const std::uint8_t> tag);
    // The same in pieces; see gcm_stream.hpp.
    Result<GcmSealer> gcm_sealer(const Key& key, std::span<const std::uint8_t> iv);
    Result<GcmOpener> gcm_opener(const Key& key, std::span<const std::uint8_t> iv);

    // XTS over neighbouring sectors; see xts.hpp. in.size() is whole sectors, but for the last,
    // which may be shorter, down to 16 bytes. Otherwise as run(), on host and on device memory.
    Result<Ran> xts_encrypt(const XtsKey& key, const XtsSectors& sectors, HostIn in, HostOut out);
    Result<Ran> xts_decrypt(const XtsKey& key, const XtsSectors& sectors, HostIn in, HostOut out);
    Result<Ran> xts_encrypt(const XtsKey& key, const XtsSectors& sectors, DeviceIn in,
                            DeviceOut out, Stream stream);
    Result<Ran> xts_decrypt(const XtsKey& key, const XtsSectors& sectors, DeviceIn in,
                            DeviceOut out, Stream stream);

    // The same calls by the modes' names (direction as named; CTR and OFB do the same both ways).
    Result<Ran> ecb_encrypt(const Key& key, HostIn in, HostOut out) {
        return run(key, {Mode::ecb, Direction::encrypt, {}, 0}, in, out);
    }
    Result<Ran> ecb_decrypt(const Key& key, HostIn in, HostOut out) {
        return run(key, {Mode::ecb, Direction::decrypt, {}, 0}, in, out);
    }
    Result<Ran> cbc_encrypt(const Key& key, const Block& iv, HostIn in, HostOut out) {
        return run(key, {Mode::cbc, Direction::encrypt, iv, 0}, in, out);
    }
    Result<Ran> cbc_decrypt(const Key& key, const Block& iv, HostIn in, HostOut out) {
        return run(key, {Mode::cbc, Direction::decrypt, iv, 0}, in, out);
    }
    Result<Ran> ctr(const Key& key, const Block& counter, HostIn in, HostOut out,
                    std::uint64_t offset = 0) {
        return run(key, {Mode::ctr, Direction::encrypt, counter, offset}, in, out);
    }
    Result<Ran> ctr(const Key& key, const Block& counter, DeviceIn in, DeviceOut out, Stream stream,
                    std::uint64_t offset = 0) {
        return run(key, {Mode::ctr, Direction::encrypt, counter, offset}, in, out, stream);
    }

    // What this engine would do with a job, and why, with the figures that it goes by.
    Plan explain(const Job& job) const;

    // The backends in use: the forced one; under "auto" the host's, and each device once a job, or
    // explain(), has had a need of it. Starts nothing.
    std::vector<std::string> backends() const;

    struct State;  // src/pipeline/engine.cpp
    State& state() noexcept { return *state_; }

  private:
    explicit Engine(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

}  // namespace dael
