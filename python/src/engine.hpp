// SPDX-License-Identifier: Apache-2.0
// Engines, keys and key sets as Python's objects: handles of the C interface that may be copied.
#pragma once

#include <memory>
#include <vector>

#include "buffer.hpp"
#include "devices.hpp"

namespace daelpy {

struct Engine {
    explicit Engine(dael_engine* opened)
        : handle(opened, dael_engine_close), devices(std::make_shared<Devices>(opened)) {}

    std::shared_ptr<dael_engine> handle;
    std::shared_ptr<Devices> devices;  // goes before the engine

    static Engine open(const std::string& backend, const std::string& form, int threads,
                       std::uint64_t chunk, bool calibrated);
    // The process's own, for those who name none: opened when first asked for, and never closed.
    static const Engine& usual();
    static const Engine& or_usual(const Engine* given) { return given ? *given : usual(); }
    dael_engine* get() const { return handle.get(); }
    // The one that this memory lies on.
    KeptDevice& device_of(const Memory& memory) const;
};

struct Key {
    std::shared_ptr<dael_key> handle;

    static Key import(nb::handle bytes);
    static Key import_xts(nb::handle bytes);
    // A key as it is, or from its bytes.
    static Key from(nb::handle key);
    static Key xts_from(nb::handle key);
    dael_key* get() const { return handle.get(); }
};

struct KeySet {
    Engine engine;
    std::shared_ptr<dael_keyset> handle;
    std::vector<Key> keys;

    static KeySet make(const Engine& engine, std::vector<Key> keys);
    dael_keyset* get() const { return handle.get(); }
};

// The device that holds this memory.
struct Device {
    std::shared_ptr<dael_device> handle;
    static Device of(const Engine& engine, const void* memory);
    dael_device* get() const { return handle.get(); }
};

// Runs work on the stream that its caller named, after what the tensors' producer has queued so far
// and before what it queues later, so that memory may be freed as soon as the call returns. Where
// no stream was named, the producer's own is used, and nothing need be done for it.
class Order {
  public:
    Order(const Engine& engine, const Memory& memory, nb::handle stream);
    ~Order() noexcept(false);
    Order(const Order&) = delete;
    Order& operator=(const Order&) = delete;
    void* stream() const { return stream_; }

  private:
    void* stream_;
    void* producers_;
    KeptDevice* device_ = nullptr;
    int exceptions_ = 0;
};

void bind_engine(nb::module_& m);
void bind_gcm(nb::module_& m);
void bind_modes(nb::module_& m);
void bind_pieces(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_sealed(nb::module_& m);
void bind_weights(nb::module_& m);

}  // namespace daelpy
