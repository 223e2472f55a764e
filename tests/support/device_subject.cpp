// SPDX-License-Identifier: Apache-2.0
#include "support/device_subject.hpp"

#include <algorithm>
#include <mutex>

#include "modes/traits.hpp"

namespace dael::test {
namespace {

constexpr std::size_t kAlignment = 256;  // what device allocations have
constexpr std::size_t kGuard = 64;

// Memory of a device and page-locked memory of the host, of the same size, which outlive a call and
// serve later ones: both are slow to come by. Everything is wiped before it is released.
class MirroredMemory {
  public:
    static Result<std::unique_ptr<MirroredMemory>> make(Memory& memory, Order& order,
                                                        std::size_t size) {
        DAEL_LET(device, memory.allocate(size));
        auto host = memory.allocate_pinned(size);
        if (!host) {
            memory.release(device);
            return std::move(host).error();
        }
        return std::unique_ptr<MirroredMemory>(
            new MirroredMemory(memory, order, device, *host, size));
    }
    ~MirroredMemory() {
        wipe(image.data(), image.size());
        if (memory_.fill(device, 0, image.size(), {}) && order_.wait(Stream{}))
            memory_.release(device);
        memory_.release_pinned(image.data());
    }
    MirroredMemory(const MirroredMemory&) = delete;
    MirroredMemory& operator=(const MirroredMemory&) = delete;

    Result<> to_device(std::size_t size) { return memory_.copy_in(device, image.data(), size, {}); }
    Result<> to_host(std::size_t size) {
        DAEL_TRY(memory_.copy_out(image.data(), device, size, {}));
        return order_.wait(Stream{});
    }

  private:
    MirroredMemory(Memory& memory, Order& order, void* on_device, void* on_host, std::size_t size)
        : memory_(memory),
          order_(order),
          device(static_cast<std::uint8_t*>(on_device)),
          image(static_cast<std::uint8_t*>(on_host), size) {}
    Memory& memory_;
    Order& order_;

  public:
    std::uint8_t* const device;
    const std::span<std::uint8_t> image;
};

class DeviceSubject final : public Subject {
  public:
    explicit DeviceSubject(std::unique_ptr<DeviceCalls> calls) : calls_(std::move(calls)) {}

    core::Can can(const Cipher& cipher, int key_bits) const override {
        return calls_->can(cipher, key_bits);
    }

    Result<> run(const Cipher& cipher, std::span<const Key> keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        for (const Key& key : keys) DAEL_TRY(modes::check(cipher, key));
        if (!keys.empty())
            if (const auto can = calls_->can(cipher, keys[0].bits()); can.answer == core::Can::no)
                return core::cannot(calls_->info().name, cipher, can);
        // What only the host's addresses show: overlaps.
        std::vector<std::size_t> valid;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            codes[i] = modes::check(cipher, messages[i], keys.size()).code();
            if (codes[i] == Code::ok) valid.push_back(i);
        }
        const Layout layout(cipher, messages, valid);
        DAEL_LET(buffer, acquire(layout.end));
        const auto done = on_device(cipher, keys, messages, codes, valid, layout, *buffer);
        const std::lock_guard lock(mutex_);
        idle_.push_back(std::move(buffer));
        return done;
    }

  private:
    // Where everything lies in one piece of device memory; the list and the codes come last.
    struct Layout {
        Layout(const Cipher& cipher, std::span<const Message> messages,
               const std::vector<std::size_t>& valid) {
            for (const std::size_t i : valid) {
                const Message& m = messages[i];
                const bool tag = authenticates(cipher.mode);
                const std::size_t in = m.in ? place(m.in, m.size) : 0;
                places.push_back({in, m.in == m.out ? in : place(m.out, m.size),
                                  place(m.aad, m.aad_size), place(m.tag, tag ? cipher.tag : 0)});
            }
            list = place(nullptr, valid.size() * sizeof(Message));
        }
        std::size_t place(const std::uint8_t* host, std::size_t size) {
            const std::size_t at = (end + kGuard + kAlignment - 1) / kAlignment * kAlignment +
                                   reinterpret_cast<std::uintptr_t>(host) % 16;
            end = at + size + kGuard;
            return at;
        }
        struct Places {
            std::size_t in, out, aad, tag;
        };
        std::vector<Places> places;
        std::size_t list = 0, end = 0;
    };

    Result<std::unique_ptr<MirroredMemory>> acquire(std::size_t size) {
        {
            const std::lock_guard lock(mutex_);
            if (!idle_.empty()) {
                auto buffer = std::move(idle_.back());
                idle_.pop_back();
                if (buffer->image.size() >= size) return buffer;
            }
        }
        return MirroredMemory::make(calls_->memory(), calls_->order(),
                                    std::max<std::size_t>(2 * size, 1 << 16));
    }

    Result<> on_device(const Cipher& cipher, std::span<const Key> keys,
                       std::span<const Message> messages, std::span<Code> codes,
                       const std::vector<std::size_t>& valid, const Layout& layout,
                       MirroredMemory& buffer) {
        Bytes image(layout.end, Poisoned::kPoison);
        std::vector<Message> moved;
        for (std::size_t i = 0; i < valid.size(); ++i) {
            const Message& m = messages[valid[i]];
            const auto& [in, out, aad, tag] = layout.places[i];
            if (m.in) std::copy_n(m.in, m.size, image.data() + in);
            std::copy_n(m.aad, m.aad_size, image.data() + aad);
            Message& there = moved.emplace_back(m);
            if (m.in) there.in = buffer.device + in;
            there.out = buffer.device + out;
            there.aad = buffer.device + aad;
            there.tag = nullptr;
            if (!authenticates(cipher.mode)) continue;
            std::copy_n(m.tag, cipher.tag, image.data() + tag);
            there.tag = buffer.device + tag;
        }
        const auto* const list = reinterpret_cast<const std::uint8_t*>(moved.data());
        std::copy_n(list, moved.size() * sizeof(Message), image.data() + layout.list);
        std::ranges::copy(image, buffer.image.begin());
        DAEL_TRY(buffer.to_device(layout.end));

        std::vector<Code> ran(moved.size(), Code::ok);
        DAEL_TRY(launch(cipher, keys, moved, buffer.device + layout.list, ran));
        DAEL_TRY(buffer.to_host(layout.end));
        for (std::size_t i = 0; i < valid.size(); ++i) {
            const Message& m = messages[valid[i]];
            const auto take = [&](std::size_t at, std::size_t size, std::uint8_t* to) {
                std::copy_n(buffer.image.data() + at, size, to);
                std::copy_n(to, size, image.data() + at);  // for the comparison
            };
            codes[valid[i]] = ran[i];
            take(layout.places[i].out, m.size, m.out);
            if (authenticates(cipher.mode) && cipher.direction == Direction::encrypt)
                take(layout.places[i].tag, cipher.tag, m.tag);
        }
        if (const auto stray = difference(image, buffer.image.first(layout.end)); !stray.empty())
            return Error{Code::internal, "the device wrote outside of the output: " + stray};
        return {};
    }

    // One by itself where that may be, and as often as a batch of one; batches from a list in
    // either memory where it may lie in both.
    Result<> launch(const Cipher& cipher, std::span<const Key> keys,
                    std::span<const Message> messages, const void* list, std::span<Code> codes) {
        if (messages.size() == 1 && !authenticates(cipher.mode) && toss() &&
            parallel_within_message(cipher.mode, cipher.direction)) {
            Message alone = messages[0];
            alone.key = 0;
            DAEL_TRY(calls_->one(cipher, keys[messages[0].key], alone, {}));
            return calls_->order().wait(Stream{});
        }
        const bool from_lists =
            calls_->info().reads_lists &&
            (authenticates(cipher.mode) || cipher.mode == Mode::gcm_ctr ||
             (cipher.mode == Mode::cbc && cipher.direction == Direction::encrypt));
        Messages batch{messages.data(), static_cast<std::uint32_t>(messages.size())};
        if (from_lists && toss()) {
            batch.list = static_cast<const Message*>(list);
            batch.place = Place::device;
        }
        return calls_->batch(cipher, keys, batch, {}, codes);
    }
    bool toss() {
        const std::lock_guard lock(mutex_);
        return random_.below(2) == 0;
    }

    std::unique_ptr<DeviceCalls> calls_;
    std::mutex mutex_;
    Random random_{777};
    std::vector<std::unique_ptr<MirroredMemory>> idle_;
};

// A device below the engine.
class CoreCalls final : public DeviceCalls {
  public:
    explicit CoreCalls(std::unique_ptr<core::Backend> backend)
        : backend_(std::move(backend)), device_(*backend_->device()) {}
    const DeviceInfo& info() const override { return device_.info(); }
    Memory& memory() override { return device_.memory(); }
    Order& order() override { return device_.order(); }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        return backend_->can(cipher, key_bits);
    }
    Result<> one(const Cipher& cipher, const Key& key, const Message& message,
                 Stream stream) override {
        return device_.run(cipher, {std::span(&key, 1), nullptr}, message, stream);
    }
    Result<> batch(const Cipher& cipher, std::span<const Key> keys, const Messages& messages,
                   Stream stream, std::span<Code> codes) override {
        DAEL_LET(tables, backend_->tables(keys));
        auto prepared = device_.prepare(cipher, {keys, tables.get()}, messages);
        if (prepared.code() == Code::unsupported && messages.place == Place::host)
            return key_by_key(cipher, {keys, tables.get()}, messages, stream);
        if (!prepared) return std::move(prepared).error();
        DAEL_TRY(device_.run(**prepared, stream));
        DAEL_TRY(device_.order().wait(stream));
        DAEL_TRY((*prepared)->outcome());
        if (!(*prepared)->results()) return {};
        DAEL_LET(room, memory().allocate_pinned(codes.size() * 4 + 1));
        auto* const numbers = static_cast<std::uint32_t*>(room);
        auto copied = memory().copy_out(numbers, (*prepared)->results(), codes.size() * 4, stream);
        if (copied) copied = device_.order().wait(stream);
        for (std::size_t i = 0; copied && i < codes.size(); ++i)
            codes[i] = static_cast<Code>(numbers[i]);
        wipe(room, codes.size() * 4);
        memory().release_pinned(room);
        return copied;
    }

  private:
    // Modes whose kernels take one key: the pipeline divides such batches, too.
    Result<> key_by_key(const Cipher& cipher, const core::KeyList& keys, const Messages& messages,
                        Stream stream) {
        for (std::uint32_t k = 0; k < keys.list.size(); ++k) {
            std::vector<Message> of_key;
            std::ranges::copy_if(std::span(messages.list, messages.count),
                                 std::back_inserter(of_key),
                                 [=](const Message& m) { return m.key == k; });
            if (of_key.empty()) continue;
            if (of_key.size() == messages.count)
                return Error{Code::unsupported, "a batch under one key is refused"};
            DAEL_LET(prepared,
                     device_.prepare(cipher, keys,
                                     {of_key.data(), static_cast<std::uint32_t>(of_key.size())}));
            DAEL_TRY(device_.run(*prepared, stream));
            DAEL_TRY(device_.order().wait(stream));
            DAEL_TRY(prepared->outcome());
        }
        return {};
    }

    std::unique_ptr<core::Backend> backend_;
    core::Device& device_;
};

}  // namespace

std::unique_ptr<Subject> device_subject(std::unique_ptr<DeviceCalls> calls) {
    return std::make_unique<DeviceSubject>(std::move(calls));
}

std::unique_ptr<Subject> device_subject(std::unique_ptr<core::Backend> backend) {
    return device_subject(std::make_unique<CoreCalls>(std::move(backend)));
}

}  // namespace dael::test
