// SPDX-License-Identifier: Apache-2.0
// The engine: AES wherever the data is. What is done is a Cipher, to what a Message; the modes'
// headers (gcm.hpp, ctr.hpp, unauthenticated.hpp, xts.hpp, ...) have named uses of these calls, and
// say what each mode is good for and where its limits are.
//
// Safety: gcm authenticates, every other mode keeps secrets only. A start (nonce, counter block,
// IV) must never repeat under one key: gcm.hpp counts them.
//
// Threads: an Engine may be used by any number at once, with any number of keys and streams; a
// Batch by one at a time. Closing: no call of the object may run while it is destroyed or moved
// from; key sets, batches and pieces keep what they need of the engine alive. fork(): a child may
// go on using the host backends, whatever other threads were doing; device backends answer
// Code::device there, and what belongs to them may be destroyed.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/message.hpp>
#include <daelstrom/pieces.hpp>
#include <daelstrom/plan.hpp>

namespace dael {

struct EngineOptions {
    // "auto", or a backend by name: "reference", "openssl", "cpu", "cuda", "cuda:1", "opencl".
    // Several that work on each job together: "cuda:0+cuda:1+cpu", devices and at most one host
    // backend, or "all", which is every device that `auto` would find, and the host
    // (docs/devices.md). Empty: the environment's DAELSTROM_BACKEND, else "auto". A named backend
    // is used or refused, never replaced; of several, whoever fails amid a job is replaced by the
    // others.
    std::string backend = {};
    // The form of the backend, empty for its best. cpu, and auto's host side: "sse", "avx2",
    // "avx512". cuda: "tables=4", 2 or 1. opencl: "tables=1,teams=16,held=4,groups=4" or a part of
    // that (docs/opencl.md).
    std::string form = {};
    int threads = 0;         // host threads for data in host memory; 0: all cores
    std::size_t chunk = 0;   // most bytes of a chunk between host and device; 0: as calibrated
    bool calibrated = true;  // whether `auto` may read the calibration that this user stored
    // Where several work on ordinary memory, or in place: seconds, and a half for each megabyte,
    // that a device may take for a chunk before it is given up, and others do it. 0: for ever.
    double patience = 10;
    // What it leaves to others. Of the host's cores, where `threads` is 0, the part that it may
    // use, above 0 to 1. Of each device, over all calls on host memory at once: bytes of its memory
    // for staging, and as many page-locked (0: up to 1.25 GiB; calls wait for each other, and one
    // that could never have room fails with out_of_memory), and bytes a second across its bus, each
    // way (0: any).
    double cpu_share = 1;
    std::size_t device_memory = 0;
    std::uint64_t copy_rate = 0;
    // Called on each thread that the engine starts, before it works: for its affinity, its
    // priority, its name ("daelstrom"). It has the affinity of the thread that first needed it, and
    // takes no signals.
    void (*thread_started)(void* context) = nullptr;
    void* thread_context = nullptr;
};

// What a call did, for those who want to know.
struct Ran {
    // Who processed the data: "cpu", "cuda:0", "cuda:0+cpu". Lasts as long as the program, and a 0
    // ends it.
    std::string_view backend = "";
    int threads = 1;           // host threads that took part
    std::uint64_t chunks = 0;  // chunks that crossed to a device and back; 0: none
    bool replaced = false;     // a device was to do it and failed, so that others did
    // Where several did: how much each of them, in the order of their names, to the nearest per
    // cent. Else 0.
    std::array<std::uint8_t, 16> percent = {};
};

// A part of a message in the memory of a device, and the stream that its work is in order with.
struct Shard {
    const std::uint8_t* in = nullptr;
    std::uint8_t* out = nullptr;  // `in` itself, or apart
    std::uint64_t size = 0;       // bytes of each
    Stream stream = {};
};

// Messages in device memory, made ready by Engine::prepare: one launch does them all. For one
// thread at a time, which the replay of a graph that it was captured into counts as, too; destroy
// it after the work. Launches and replays of it follow each other in the order of the calls,
// whichever streams they are on.
class DAEL_API Batch {
  public:
    Batch(Batch&&) noexcept;
    Batch& operator=(Batch&&) noexcept;
    ~Batch();
    // Device memory: a Code for each message, as a 32-bit number, once a launch has ended. Null
    // where every message is done: lists from the host, outside gcm decryption.
    const std::uint32_t* codes() const noexcept;
    // Waits for the stream, and tells what became of each message. Errors: device.
    Result<std::vector<Code>> results(Stream stream) const;

  private:
    friend class Engine;
    struct DAEL_HIDDEN State;
    explicit Batch(std::unique_ptr<State> state) noexcept;
    std::unique_ptr<State> state_;
};

class DAEL_API Engine {
  public:
    // Errors: unknown_backend, backend_absent (the message says what is missing), invalid_argument.
    static Result<Engine> open(EngineOptions options = {});

    Engine(Engine&&) noexcept;
    Engine& operator=(Engine&&) noexcept;
    ~Engine();

    // Keys made ready once and used by index, all for XTS or none. They are copied.
    // Errors: invalid_argument, out_of_memory, device.
    Result<KeySet> keys(std::span<const Key> keys);

    // One message in host memory, of any alignment, done when it returns (message.key is 0).
    // Errors: those of modes::check (ragged_length, overlap, limit, invalid_argument), unsupported,
    // authentication, device, out_of_memory. After an error the output's bytes are unspecified, but
    // a message that fails to authenticate leaves no plaintext, and in place its ciphertext. In
    // place the output is the input: an engine on a device by name that fails midway (device) may
    // leave neither. `auto` does on the host what the device has not touched, also in place.
    Result<Ran> run(const Cipher& cipher, const Key& key, const Message& message);

    // The same in device memory: launches on the stream and returns, without synchronising or
    // allocating; but the first use of an OpenCL kernel compiles it. Errors of the launch return
    // here; errors of the device while it runs show at the stream's next synchronisation, as with
    // any kernel. 16-byte aligned pointers are fast. Errors: as above; unsupported for gcm, which
    // launch() has, and for CBC, CFB and OFB where they are sequential: prepare() those.
    Result<Ran> run(const Cipher& cipher, const Key& key, const Message& message, Stream stream);

    // Many messages in host memory at once, each under its key of the set; done when it returns.
    // codes[i] tells of message i: ok; authentication; or why it was not touched. No message
    // disturbs another. That they do not share output is up to the caller. The call itself fails
    // with invalid_argument, device, out_of_memory, and limit where two messages would be encrypted
    // from the same start under the same key (checked in gcm, gcm_ctr, ctr and ofb). The codes then
    // still tell of each message: ok, it is done; authentication and the like, as ever; the call's
    // own code, nothing of it was touched; internal, nobody knows, and its output, in place its
    // data, is lost. With `auto` a device's failure is one of the call only where data is lost:
    // what is not, the host does.
    Result<Ran> run(const Cipher& cipher, const KeySet& keys, std::span<const Message> messages,
                    std::span<Code> codes);

    // One message that lies in pieces on several devices of the engine, "cuda:0+cuda:1" or `auto`,
    // done by each where it is, in its stream's order, and done when this returns. `message` has
    // the start, the key, and for gcm the tag and the additional data, in host memory, and no data:
    // that is the shards', in order, and every one but the last ends at a whole block of it (XTS:
    // sector). Of gcm there is one tag over all; opening decrypts nothing before it is known to be
    // right. Modes that are parallel within a message, and gcm. For KeySet::replace() it counts as
    // a call on host memory. Errors: as above; authentication;
    // unsupported, also for a stream that is captured. After an error the output's bytes are
    // unspecified, but for authentication and what was wrong with the call, which leave all as it
    // was.
    Result<Ran> run_shards(const Cipher& cipher, const KeySet& keys, const Message& message,
                           std::span<const Shard> shards);

    // A batch in device memory. Allocates; synchronous, but waits for nobody else's work. The list
    // lies on the host, and is checked and copied; or in device memory, where a kernel may make it,
    // and is read and checked at each launch (modes that authenticate, gcm_ctr and cbc encryption;
    // cuda): a message that makes no sense has a code that says so. That its memory is what it says
    // is for whoever makes the list. Keys are the set's at the launch. Errors: as above;
    // unsupported.
    Result<Batch> prepare(const Cipher& cipher, const KeySet& keys, const Messages& messages);

    // Launches on the stream and returns, without allocation. What encrypts, from a list whose
    // starts are fixed, is launched once only (Code::limit after that); decryption, ECB and XTS as
    // often as wanted. It can be captured into a CUDA graph if it may be launched again, or has
    // nonces that count on the device.
    Result<Ran> launch(Batch& batch, Stream stream);

    // A few messages of modes that authenticate, or gcm_ctr, in device memory, known only now,
    // without a batch (cuda): the list lies on the host and travels with the launch, at most
    // kMaxLaunched messages under keys of the set. Launches on the stream and returns, without
    // allocation or synchronisation, but that a set's first launch, and its first of long messages,
    // makes what GHASH needs of its keys; from any number of threads. List and options may go at
    // once, the set when the work is done, and its end waits for that. Up to 64 KiB a message it is
    // one kernel for each size of keys; longer ones take a few, and have memory that streams may
    // share: their launches on different streams may follow each other. No message disturbs
    // another; opening leaves nothing of one that is not authentic. Each launch encrypts: of what
    // encrypts, none can be captured into a CUDA graph (Code::limit), and of the rest what is one
    // kernel. Errors: as above; limit for more messages or AAD; unsupported for other modes, which
    // run() and prepare() have, and elsewhere.
    Result<Ran> launch(const Cipher& cipher, const KeySet& keys, std::span<const Message> messages,
                       Stream stream, const LaunchOptions& options = {});

    // A message in host memory in pieces; see pieces.hpp. With an engine on a device, through that.
    Result<Pieces> begin(const Cipher& cipher, const Key& key, const Start& start);

    // What this engine would do with a job, and why, with the figures that it goes by.
    Plan explain(const Job& job) const;
    // The backends in use: the forced one; under "auto" the host's, and each device once a job, or
    // explain(), has had a need of it. Starts nothing.
    std::vector<std::string> backends() const;
    // Wipes and gives back what the engine keeps for the next call through a device: page-locked
    // and device memory, up to 512 MiB a device, which still holds the data of calls that are done.
    // In a child of fork(): nothing.
    void trim() noexcept;

    struct DAEL_HIDDEN State;  // src/pipeline/engine_state.hpp
    const std::shared_ptr<State>& state() const noexcept { return state_; }
    explicit Engine(std::shared_ptr<State> state) noexcept;

  private:
    std::shared_ptr<State> state_;
};

}  // namespace dael
