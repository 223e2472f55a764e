// SPDX-License-Identifier: Apache-2.0
// Sealed messages from a source into device memory, where they are opened: host memory sees
// ciphertext alone.
#include "pipeline/inflow.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include <daelstrom/gcm.hpp>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/key_set.hpp"

namespace dael::pipeline {
namespace {

constexpr std::size_t kChunk = std::size_t{32} << 20;  // where nothing else was asked for
constexpr int kSlots = 3;  // one being read, one on the bus, one being opened
constexpr std::size_t kListAlignment = 64;
// What a thread reads at a time, where several do.
constexpr std::size_t kLeastRead = std::size_t{128} << 10, kMaxRead = std::size_t{512} << 10;
constexpr Cipher kOpening = gcm::opening();

// A slot holds the bytes of some messages, and behind them the list of the messages. The list
// travels along, so that batches are prepared once for each slot and not for each chunk: preparing
// allocates, and what it replaces is released, which would wait for the whole device.
std::size_t slot_bytes(std::size_t messages, std::size_t piece) noexcept {
    return messages * (piece + sizeof(Message)) + kListAlignment - 1;
}
std::size_t slot_messages(std::size_t bytes, std::size_t piece) noexcept {
    return (bytes - (kListAlignment - 1)) / (piece + sizeof(Message));
}
std::size_t list_at(std::size_t data) noexcept {
    return (data + kListAlignment - 1) / kListAlignment * kListAlignment;
}

}  // namespace

// One call's chunks in one set of slots.
class Inflow {
  public:
    // `room`: bytes of a chunk, a multiple of source.piece.
    Inflow(core::Device& device, ThreadPool& pool, const core::KeyList& keys, const Source& source,
           SlotSet& set, std::size_t room, Stream stream)
        : device_(device),
          pool_(pool),
          memory_(device.memory()),
          order_(device.order()),
          keys_(keys),
          source_(source),
          set_(set),
          room_(room),
          stream_(stream),
          chunks_(set.slots().size()) {}
    // Before the batches go.
    ~Inflow() {
        if (quiet_) return;
        const core::Uncancelled whole;
        (void)core::guarded([&] { return set_.wait(); });
        if (core::waited([&] { return order_.wait(stream_); })) return;
        set_.lose();
        for (SlotBatch& chunk : chunks_) core::keep_forever(std::move(chunk.batch));
    }

    // Returns the number of chunks.
    Result<std::uint64_t> run() {
        std::uint64_t count = 0;
        for (std::uint64_t at = 0; at < source_.size; at += room_, ++count) {
            const std::size_t slot = count % chunks_.size();
            DAEL_TRY(collect(slot));
            DAEL_TRY(launch(
                slot, at,
                static_cast<std::size_t>(std::min<std::uint64_t>(room_, source_.size - at))));
        }
        // The oldest first, so that the first message that fails is the one that is named.
        for (std::size_t i = 0; i < chunks_.size(); ++i)
            DAEL_TRY(collect((count + i) % chunks_.size()));
        quiet_ = true;
        return count;
    }

  private:
    struct SlotBatch {
        std::uint64_t first = 0;  // number of its first message
        std::size_t size = 0;     // bytes, for which the batch was prepared,
        std::size_t count = 0;    // and messages
        bool under_way = false;
        std::unique_ptr<core::Prepared> batch;
    };

    // What one core copies from the page cache is a fifth of what the bus takes.
    Result<> read(std::uint64_t at, HostOut chunk) {
        if (source_.readers <= 1) return source_.read(at, chunk);
        const auto readers = static_cast<std::size_t>(source_.readers);
        const std::size_t share =
            std::clamp((chunk.size() + readers - 1) / readers, kLeastRead, kMaxRead);
        const std::size_t shares = (chunk.size() + share - 1) / share;
        auto done = pool_.run(shares, source_.readers, [&](std::size_t i) {
            const std::size_t from = i * share;
            return source_.read(at + from,
                                chunk.subspan(from, std::min(share, chunk.size() - from)));
        });
        if (!done) return std::move(done).error();
        return {};
    }

    Result<> launch(std::size_t which, std::uint64_t at, std::size_t size) {
        SlotBatch& chunk = chunks_[which];
        const Slot& slot = set_.slots()[which];
        const std::size_t list = list_at(size);
        DAEL_TRY(read(at, {slot.in_staging, size}));
        DAEL_TRY(source_.list(at, size, slot.in, messages_));
        const std::size_t list_size = messages_.size() * sizeof(Message);
        std::memcpy(slot.in_staging + list, messages_.data(), list_size);
        DAEL_TRY(memory_.copy_in(slot.in, slot.in_staging, list + list_size, set_.inward()));
        DAEL_TRY(order_.record(slot.arrived, set_.inward()));
        // All chunks are alike but the last one.
        if (!chunk.batch || chunk.size != size) {
            Messages messages;
            messages.list = reinterpret_cast<const Message*>(slot.in + list);
            messages.count = static_cast<std::uint32_t>(messages_.size());
            messages.place = Place::device;
            DAEL_LET(batch, device_.prepare(kOpening, keys_, messages));
            chunk.batch = std::move(batch);
            chunk.size = size;
            chunk.count = messages_.size();
        }
        chunk.first = seen_;
        chunk.under_way = true;
        seen_ += chunk.count;
        DAEL_TRY(order_.wait(stream_, slot.arrived));
        DAEL_TRY(device_.run(*chunk.batch, stream_));
        // What lay in the staging has arrived: there is room for the results, 4 bytes a message.
        DAEL_TRY(memory_.copy_out(slot.in_staging, chunk.batch->results(),
                                  chunk.count * sizeof(std::uint32_t), stream_));
        return order_.record(slot.done, stream_);
    }

    // Waits for a chunk, if one is under way in this slot, and looks at its results.
    Result<> collect(std::size_t which) {
        SlotBatch& chunk = chunks_[which];
        if (!std::exchange(chunk.under_way, false)) return {};
        const Slot& slot = set_.slots()[which];
        DAEL_TRY(order_.wait(slot.done));
        DAEL_TRY(chunk.batch->outcome());
        for (std::size_t i = 0; i < chunk.count; ++i) {
            std::uint32_t code = 0;
            std::memcpy(&code, slot.in_staging + i * sizeof code, sizeof code);
            if (static_cast<Code>(code) != Code::ok)
                return source_.fault(chunk.first + i, static_cast<Code>(code));
        }
        return {};
    }

    core::Device& device_;
    ThreadPool& pool_;
    Memory& memory_;
    Order& order_;
    const core::KeyList keys_;
    const Source& source_;
    SlotSet& set_;
    const std::size_t room_;
    const Stream stream_;
    bool quiet_ = false;             // all of it was waited for
    std::uint64_t seen_ = 0;         // messages so far
    std::vector<Message> messages_;  // of the chunk that is being launched
    std::vector<SlotBatch> chunks_;  // one for each slot
};

namespace {

// Returns the number of chunks.
Result<std::uint64_t> flow(core::Device& device, SlotPool& slots, ThreadPool& pool,
                           const core::KeyList& keys, const Source& source, std::size_t chunk,
                           Stream stream) {
    const std::size_t piece = source.piece;
    const std::uint64_t all = source.size / piece + (source.size % piece != 0);
    const auto wanted = static_cast<std::size_t>(std::min<std::uint64_t>(
        all, std::max<std::size_t>(1, (chunk != 0 ? chunk : kChunk) / piece)));
    SlotNeeds needs;
    needs.capacity = slot_bytes(wanted, piece);
    needs.least = slot_bytes(1, piece);
    needs.slots = wanted == all ? 1 : kSlots;
    needs.in_staging = true;
    needs.out = false;
    DAEL_LET(set, slots.acquire(needs));
    const std::size_t room = std::min(wanted, slot_messages(set->capacity(), piece)) * piece;
    auto chunks = Inflow(device, pool, keys, source, *set, room, stream).run();
    if (chunks) set.went_well();
    return chunks;
}

}  // namespace

Result<Ran> open_into(Engine::State& engine, KeySet::State& keys, const Source& source,
                      DeviceOut out, Stream stream) {
    DAEL_LET(path, engine.path_of(out.data));
    if (!path->device.info().reads_lists)  // which this way makes there
        return Error{Code::unsupported, path->name() +
                                            ": sealed files do not open into this memory; open "
                                            "into host memory, or use the backend 'cuda'"};
    // After an error, and as well where the thread is cancelled while it reads.
    struct Wipe {
        Result<> now() {
            armed = false;
            return core::guarded([&]() -> Result<> {
                DAEL_TRY(device.memory().fill(out.data, 0, out.size, stream));
                return device.order().wait(stream);
            });
        }
        ~Wipe() {
            if (armed) (void)now();
        }
        core::Device& device;
        DeviceOut out;
        Stream stream;
        bool armed = true;
    } wipe{path->device, out, stream};
    auto chunks = core::guarded([&]() -> Result<std::uint64_t> {
        DAEL_LET(ready, keys.on(*path));
        return flow(path->device, path->transfer.slots(), engine.pool(), ready, source,
                    engine.chunk(), stream);
    });
    if (chunks) {
        wipe.armed = false;
        return path->ran(1, *chunks);
    }
    Error error = std::move(chunks).error();
    if (const auto wiped = wipe.now(); !wiped)
        error.message += "; and the output could not be wiped: " + wiped.error().message;
    return error;
}

}  // namespace dael::pipeline
