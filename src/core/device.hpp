// SPDX-License-Identifier: Apache-2.0
// A processor with memory of its own, as the pipeline sees it: its memory and its order of work
// (daelstrom/device.hpp), and ciphers over messages that lie there. All calls may come from any
// thread, whichever device is current in it. Errors name the driver call that failed; a failed call
// leaves the process and other devices usable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <daelstrom/device.hpp>
#include <daelstrom/message.hpp>

#include "core/backend.hpp"
#include "core/keystream_maker.hpp"

namespace dael::core {

// A batch of messages made ready in device memory, with its workspace. Its keys must outlive it,
// and it the work that it was used for. Runs on different streams are put in order, one after
// another.
class Prepared {
  public:
    virtual ~Prepared() = default;
    // Device memory, one for each message in order: a Code as a 32-bit number. Valid once a run has
    // ended, and its outcome is good. Null where every message that was given is done: lists of the
    // host's, checked before, in modes that do not authenticate.
    virtual const std::uint32_t* results() const = 0;
    // Of a run that has been waited for: a failure that the wait may have kept silent about.
    virtual Result<> outcome() const { return {}; }

    Prepared* next_kept = nullptr;  // of those that are kept for good (core/keep_forever.hpp)
};

// The forms that a device's kernels can have, for calibration to try: the first is the default. A
// form holds for work that is launched after it. Only those of the list may be used here, where the
// choice may come from a file: another may be slower, or tell more of what it looks up.
class Forms {
  public:
    virtual ~Forms() = default;
    virtual std::vector<std::string> list() const = 0;
    virtual Result<> use(const std::string& form) = 0;
    virtual std::string in_use() const = 0;
};

// The driver's own objects behind a device, for callers who share theirs. OpenCL: cl_context,
// cl_device_id, cl_command_queue.
struct NativeHandles {
    void* context = nullptr;
    void* device = nullptr;
    void* queue = nullptr;
};

// Memory that the caller has from the driver itself, where it is not named by address: it gets one,
// or has one and becomes known, until it is forgotten.
class Adoption {
  public:
    virtual ~Adoption() = default;
    virtual NativeHandles native() const = 0;
    virtual Result<DeviceOut> adopt(void* native_buffer) = 0;
    virtual Result<> adopt_shared(void* memory, std::size_t size) = 0;
    virtual Result<> forget(const void* address) = 0;
    virtual Result<Stream> adopt_queue(void* native_queue) = 0;  // not retained
};

class Device {
  public:
    virtual ~Device() = default;

    virtual const DeviceInfo& info() const = 0;
    virtual Memory& memory() = 0;
    virtual Order& order() = 0;

    // One valid message of device memory, in a mode that does not authenticate: launches on the
    // stream and returns. No allocation, no synchronisation, no tables needed (opencl: but for the
    // first use of a kernel, which compiles it, and of scratch memory on a stream). CBC, CFB and
    // OFB that cannot be parallelised are refused (Code::unsupported), and so is GCM: prepare it.
    virtual Result<> run(const Cipher& cipher, const KeyList& keys, const Message& message,
                         Stream stream) = 0;

    // The same for a message in page-locked memory of the host, both ends aligned to 16 bytes,
    // which kernels read and write themselves, across the bus. reach(): bytes up to which this is
    // sooner done than copies there and back with a kernel in between; 0: kernels do not reach it.
    virtual std::size_t reach() const { return 0; }
    virtual Result<> run_in_reach(const Cipher& cipher, const KeyList& keys, const Message& message,
                                  Stream stream) {
        return run(cipher, keys, message, stream);
    }

    // Many messages of device memory in one launch. prepare() allocates and copies what it needs,
    // synchronously, without waiting for anybody else's work; run() may then be repeated, without
    // allocation. A list from the host is valid and is copied; one in device memory is read and
    // checked when the batch runs, and a message of it that cannot be done has a result that says
    // so, and the others are done. Decryption in a mode that authenticates verifies a message
    // before it writes any of its plaintext. `keys` has tables.
    //
    // Lists in device memory are taken for modes that authenticate, gcm_ctr and cbc encryption.
    // Messages under different keys are taken for those and for ctr; for the other modes, whose
    // kernels take one key, they are Code::unsupported (the pipeline divides such batches).
    virtual Result<std::unique_ptr<Prepared>> prepare(const Cipher& cipher, const KeyList& keys,
                                                      const Messages& messages) = 0;
    virtual Result<> run(Prepared& prepared, Stream stream) = 0;

    // Engine::launch of a few messages of gcm or gcm_ctr, at most kMaxLaunched, that are valid and
    // whose list, and AAD if so said, lie on the host: launches on the stream and returns, without
    // allocation or synchronisation, but for what the keys' first use takes, which waits for nobody
    // else's work. `keys` has tables, which must outlive the work or wait for it
    // at their end. Errors: unsupported, where the device does not take lists along, and for
    // messages that need a workspace on a stream that is captured.
    virtual Result<> run(const Cipher& cipher, const KeyList& keys,
                         std::span<const Message> messages, const LaunchOptions& options,
                         Stream stream);

    // Whether one copy may have all of this host memory: it is page-locked, and one allocation.
    virtual bool takes_in_one(const void* host_memory, std::size_t size) {
        return memory().is_pinned(host_memory, size);
    }

    // What not every device has; null where it has not.
    virtual Result<std::unique_ptr<KeystreamMaker>> keystream_maker() {
        return std::unique_ptr<KeystreamMaker>();
    }
    virtual Forms* forms() { return nullptr; }
    virtual Adoption* adoption() { return nullptr; }
};

}  // namespace dael::core
