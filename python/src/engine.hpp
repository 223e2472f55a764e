// SPDX-License-Identifier: Apache-2.0
// Engines, keys and key sets as Python's objects: handles of the C interface that may be copied.
#pragma once

#include <atomic>
#include <initializer_list>
#include <memory>
#include <span>
#include <vector>

#include "buffer.hpp"
#include "described.hpp"
#include "devices.hpp"

namespace daelpy {

// A whole number of Python's, from 0 to 2^64 - 1. Throws TypeError or ValueError, which name it.
std::uint64_t whole_number(nb::handle number, const char* name);

struct Engine {
    explicit Engine(dael_engine* opened)
        : handle(opened, dael_engine_close), devices(std::make_shared<Devices>(opened)) {}

    std::shared_ptr<dael_engine> handle;
    std::shared_ptr<Devices> devices;  // goes before the engine

    static Engine open(const std::string& backend, const std::string& form,
                       dael_engine_options options);
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

// Whether a set is in use, and by how many calls; or one of its keys is being replaced, which
// excludes every use. Calls wait for a replacement, which takes no time; a replacement does not
// wait for calls, but is refused. A child of fork() has its parent's uses for good, which is why it
// replaces none, and cannot use a set in which its parent was replacing a key.
class Uses {
  public:
    void begin();
    void end() noexcept { count_.fetch_sub(1, std::memory_order_release); }
    void begin_replacing();
    void end_replacing() noexcept { count_.store(0, std::memory_order_release); }

  private:
    std::atomic<std::int64_t> count_{0};  // -1: being replaced
    std::atomic<std::uint64_t> process_{0};
};

struct KeySet {
    // The keys by number, for who makes GCM's start from a nonce of any size.
    class List {
      public:
        explicit List(std::vector<Key> keys)
            : all_(std::make_shared<std::vector<Key>>(std::move(keys))) {}
        std::size_t size() const { return all_->size(); }
        Key& operator[](std::size_t i) const { return (*all_)[i]; }

      private:
        std::shared_ptr<std::vector<Key>> all_;
    };

    Engine engine;
    std::shared_ptr<dael_key_set> handle;
    List keys;
    std::shared_ptr<Uses> uses = std::make_shared<Uses>();
    bool is_fixed = false;  // an AESGCM's

    static KeySet make(const Engine& engine, std::vector<Key> keys);
    dael_key_set* get() const { return handle.get(); }
    void replace(std::uint32_t index, Key fresh, void* stream);
};

// For as long as a call reads keys or runs with them.
class InUse {
  public:
    explicit InUse(const KeySet& set) : uses_(set.is_fixed ? nullptr : set.uses.get()) {
        if (uses_) uses_->begin();
    }
    ~InUse() {
        if (uses_) uses_->end();
    }
    InUse(const InUse&) = delete;
    InUse& operator=(const InUse&) = delete;

  private:
    Uses* uses_;
};

// The device that holds this memory.
struct Device {
    std::shared_ptr<dael_device> handle;
    static Device of(const Engine& engine, const void* memory);
    dael_device* get() const { return handle.get(); }
};

// Runs work on the stream that its caller named, else on that of the `first` tensor's producer:
// after what the producers of all its tensors have queued so far, and before what they queue later,
// so that memory may be freed as soon as the call returns. For producers that hand memory on in an
// order of their own, neither torch nor cupy, the call waits until the work is done; what could not
// be waited for is kept for good. The tensors outlive this.
class Order {
  public:
    using Tensors = std::initializer_list<const Memory*>;  // null, and those of the host: left out
    Order(const Engine& engine, const Memory& first, nb::handle stream)
        : Order(engine, first, Tensors{}, stream) {}
    Order(const Engine& engine, const Memory& first, Tensors others, nb::handle stream)
        : Order(engine, first, std::span(others.begin(), others.size()), stream) {}
    Order(const Engine& engine, const Memory& first, const std::vector<Memory>& others,
          nb::handle stream);
    ~Order() noexcept(false);
    Order(const Order&) = delete;
    Order& operator=(const Order&) = delete;
    void* stream() const { return stream_; }

  private:
    Order(const Engine& engine, const Memory& first, std::span<const Memory* const> others,
          nb::handle stream);
    void add(const Memory* memory);
    void begin(const Engine& engine);

    void* stream_;
    std::vector<void*> producers_;        // the other ones, each once
    std::vector<const Memory*> foreign_;  // of which the producer's order is not known
    const Memory* somewhere_ = nullptr;   // one that is not empty
    KeptDevice* device_ = nullptr;
    int exceptions_ = 0;
};

[[noreturn]] void refuse_pickling(nb::handle object, const char* mend);

// Copies and pickles of an object are refused in words: `mend` says what to do instead.
template <class Class>
void keep_here(Class& type, const char* mend) {
    type.def("__reduce__", [mend](nb::handle self) { refuse_pickling(self, mend); });
}
void bind_engine(nb::module_& m);
void bind_gcm(nb::module_& m);
void bind_aead(nb::module_& m);
void bind_modes(nb::module_& m);
void bind_pieces(nb::module_& m);
void bind_batch(nb::module_& m);
void bind_sealed(nb::module_& m);
void bind_weights(nb::module_& m);

}  // namespace daelpy
