// SPDX-License-Identifier: Apache-2.0
// Known-answer self-tests (FIPS 140's CAST) of a device: it is asked what AES makes of a few
// messages before its kernels are believed, since drivers have compiled AES wrongly, and what such
// a one encrypts nobody can decrypt. Each kind of kernels, in each form, once in a process. A
// device that answers wrongly is left alone for good.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/device.hpp"

namespace dael::core {

// What is asked: these messages under keys of their own, against what a host backend makes of them.
// Of decryption that authenticates the last message is forged, and must be found out and leave
// nothing.
struct Question {
    // Device::run, run_in_reach, prepare, the same with the list in device memory, run of a list.
    enum class By : std::uint8_t { message, reach, batch, placed, list };

    std::string name;  // of the kernels: "ctr", "gcm of short messages"
    Cipher cipher{};
    int bits = 128;  // of its keys
    By by = By::batch;
    std::vector<std::uint32_t> sizes{};  // bytes of each message
    std::uint32_t aad = 0;               // bytes of each
    std::uint32_t keys = 1;              // message i has key i % keys
    std::uint32_t shift = 0;             // bytes past a multiple of 16 that data begin at
    bool in_place = false;
    bool keystream = false;  // there is no input
    bool wraps = false;      // CTR: amid the first message the counter carries to its first byte
};

using MakeTables = std::function<Result<std::unique_ptr<KeyTables>>(std::span<const Key>)>;

// A stream of the device, and page-locked memory, as long as they last.
class DeviceStream {
  public:
    explicit DeviceStream(Device& device) : device_(device) {
        auto made = device.order().create_stream();
        if (made)
            stream_ = *made;
        else
            status_ = std::move(made).error();
    }
    ~DeviceStream() {
        if (!stream_.handle) return;
        (void)device_.order().wait(stream_);
        device_.order().destroy_stream(stream_);
    }
    Result<> status() const { return status_; }
    Stream stream() const { return stream_; }

  private:
    Device& device_;
    Stream stream_;
    Result<> status_;
};

class Pinned {
  public:
    Pinned(Memory& memory, std::size_t size) : memory_(memory) {
        auto made = memory.allocate_pinned(size);
        if (made)
            data_ = static_cast<std::uint8_t*>(*made);
        else
            status_ = std::move(made).error();
    }
    Pinned(const Pinned&) = delete;
    ~Pinned() {
        if (data_) memory_.release_pinned(data_);
    }
    Result<> status() const { return status_; }
    std::uint8_t* data() const { return data_; }
    // It stays, since something may still write there.
    void keep() { data_ = nullptr; }

  private:
    Memory& memory_;
    std::uint8_t* data_ = nullptr;
    Result<> status_;
};

// A host backend that does this, by which devices are judged. Errors: backend_absent; those of
// one that is here, and could not be opened this time.
Result<Backend*> judge(const Cipher& cipher, int bits);
// Whether the device's answer is right. Errors: it could not be asked.
Result<bool> ask(Device& device, const MakeTables& tables, const Question& question);
// The same of what works in host memory, in modes that do not authenticate.
using RunOnHost = std::function<Result<>(std::span<const Key>, std::span<const Message>)>;
Result<bool> ask(const RunOnHost& run, const Question& question);

// Asks, unless it was asked before in this process. `device_name`: as users know it,
// "opencl:0 (gfx1100)". `form`: all else that kernels depend on, the driver's version too. While a
// thread asks, its own calls ask nothing. Errors: device, which says what is wrong; and it could
// not be asked.
Result<> believe(const std::string& device_name, const std::string& form, const Question& question,
                 const std::function<Result<bool>()>& asks);
// What is known of a device: ok, or that it computes wrongly.
Result<> believed(const std::string& device_name);
// How many times a device of this process was found to compute wrongly.
inline std::atomic<std::uint32_t> verdicts{0};
// Of one that remembers that its kernels were right: how many of those it knows of. Where there are
// more they may be another's, or its own that was found by way of somebody else: it asks believe()
// once more, and if that has nothing against it, knows of all that there were before.
class Heard {
  public:
    bool all() const noexcept {
        return count_.load(std::memory_order_relaxed) == verdicts.load(std::memory_order_relaxed);
    }
    void of(std::uint32_t count) noexcept { count_.store(count, std::memory_order_relaxed); }

  private:
    std::atomic<std::uint32_t> count_{0};
};
// Whether this thread is asking.
bool asking() noexcept;

// For tests: the answers to questions of this name come out wrong; empty: none. And all that is
// known is forgotten.
void spoil_answers(std::string name);
bool is_spoiled(const std::string& name);
void forget_answers();
// How often believe() was called.
inline std::atomic<std::uint64_t> beliefs{0};

}  // namespace dael::core
