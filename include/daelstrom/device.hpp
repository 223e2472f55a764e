// SPDX-License-Identifier: Apache-2.0
// The memory of an engine's device and the order of work there, the same for every kind of device:
// for programs that have no framework of their own to allocate and copy with.
//
// Everything but allocation and wait() is asynchronous and ordered by streams; all calls may come
// from any thread. Errors name the driver call that failed (Code::device), or out_of_memory; a
// failed call leaves the process and other devices usable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>

namespace dael {

class Engine;

struct DeviceInfo {
    std::string name;          // "NVIDIA H200"
    std::string architecture;  // "sm_90"
    std::uint64_t memory = 0;  // bytes in all
    int multiprocessors = 0;
    std::string driver;          // driver and runtime: "580.82, CUDA 13.0"
    bool shared_memory = false;  // whether memory of the host can be adopted (OpenCL's SVM)
    bool reads_lists = true;     // whether lists of messages may lie in device memory
    std::string layout = {};     // of the tables that kernels use: "128 KiB"
};

// Memory on the device, page-locked memory on the host, and copies.
class DAEL_API Memory {
  public:
    virtual ~Memory() = default;
    // Device memory that held secrets is wiped by the caller before it is released.
    virtual Result<void*> allocate(std::size_t size) = 0;
    virtual void release(void* memory) noexcept = 0;
    virtual Result<void*> allocate_pinned(std::size_t size) = 0;
    virtual void release_pinned(void* memory) noexcept = 0;
    virtual Result<std::uint64_t> free_memory() = 0;  // bytes
    // Whether the device can copy from all of this host memory at full speed without staging.
    virtual bool is_pinned(const void* host_memory, std::size_t size) = 0;
    // Whether it is memory of this device.
    virtual bool owns(const void* device_memory) = 0;

    // Copies are asynchronous when the host memory is page-locked.
    virtual Result<> copy_in(void* device_memory, const void* host_memory, std::size_t size,
                             Stream stream) = 0;
    virtual Result<> copy_out(void* host_memory, const void* device_memory, std::size_t size,
                              Stream stream) = 0;
    virtual Result<> copy_within(void* to, const void* from, std::size_t size, Stream stream) = 0;
    virtual Result<> fill(void* device_memory, std::uint8_t value, std::size_t size,
                          Stream stream) = 0;
};

// Marks a point of a stream.
struct Event {
    void* handle = nullptr;
};

// Streams and events.
class DAEL_API Order {
  public:
    virtual ~Order() = default;
    virtual Result<Stream> create_stream() = 0;
    // One whose events elapsed_ms() takes. With some drivers it is slower.
    virtual Result<Stream> create_timed_stream() { return create_stream(); }
    virtual void destroy_stream(Stream stream) noexcept = 0;
    virtual Result<Event> create_event() = 0;
    virtual void destroy_event(Event event) noexcept = 0;
    virtual Result<> record(Event event, Stream stream) = 0;  // what the stream has so far
    virtual Result<> wait(Stream stream, Event event) = 0;  // later work of the stream comes after
    virtual Result<> wait(Event event) = 0;                 // the calling thread waits
    virtual Result<> wait(Stream stream) = 0;               // the calling thread waits for all
    virtual Result<float> elapsed_ms(Event from, Event to) = 0;  // both recorded and done
    // Whether it has come, without waiting; here by waiting, where a device knows no better.
    virtual Result<bool> is_done(Event event) {
        auto waited = wait(event);
        if (!waited) return std::move(waited).error();
        return true;
    }
    // Whether what the stream is given is being recorded, to be replayed later (a CUDA graph under
    // capture), instead of done.
    virtual bool is_capturing(Stream stream) {
        (void)stream;
        return false;
    }
};

// References stay valid as long as the engine, and what keeps it alive, does.
struct DeviceAccess {
    const DeviceInfo& info;
    Memory& memory;
    Order& order;
    std::string backend;  // by name: "cuda:0"
};

// The device of an engine that was opened on one, or the one, of an engine for `auto`, that holds
// `memory` (null: its first). Errors: unsupported for an engine on a host backend; backend_absent;
// invalid_argument for memory of no device.
DAEL_API Result<DeviceAccess> device(Engine& engine, const void* memory = nullptr);

}  // namespace dael
