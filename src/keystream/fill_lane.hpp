// SPDX-License-Identifier: Apache-2.0
// Precomputing keystream, one batch (a fill) at a time: it goes through a lane, which has its own
// keys, and on a device its own stream, memory and event. A lane is one thread's.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include <daelstrom/device.hpp>
#include <daelstrom/engine.hpp>
#include <daelstrom/keystream.hpp>

#include "core/guard.hpp"
#include "core/keystream_maker.hpp"
#include "keystream/window.hpp"

namespace dael::keystream {

using Uint128 = unsigned __int128;

// One window of a fill, with what is needed of its SA, which may be gone by the time it is filled.
struct Stretch {
    std::shared_ptr<const Key> key;
    std::uint64_t key_serial = 0;
    SaLayout layout = SaLayout::rfc4106;
    std::array<std::uint8_t, 4> salt{};
    std::uint64_t iv_bits = 0;  // rfc4106: of every IV
    Uint128 base = 0;           // stream: the counter of block 0
    std::uint64_t first = 0, end = 0;
    std::uint32_t blocks = 1;
    std::size_t offset = 0;  // in the buffer
};

struct Fill {
    // Whose; null: nothing is under way, or its table has gone and left the buffer to the fill. The
    // scheduler's mutex guards it, and `began`.
    SaTable::State* table = nullptr;
    FillBuffer* buffer = nullptr;
    std::vector<Stretch> stretches;
    std::size_t bytes = 0;
    std::size_t messages = 0;
    std::chrono::steady_clock::time_point began;
    // It failed, and could not be waited for: `buffer` stays taken, and as it is.
    bool lost = false;
};

inline constexpr std::size_t kMaxMessages = 8192;  // of a fill

// Keys in a set, by what they are called in the filler. What a set is its lane knows.
class KeyPlaces {
  public:
    virtual ~KeyPlaces() = default;
    // A place for each stretch's key, in `places`. Whether the set is a new one, and what was made
    // of the old one is to be made again. Nothing of the lane may be under way.
    Result<bool> find(const std::vector<Stretch>& stretches, Stream stream,
                      std::vector<std::uint32_t>& places);
    // Puts a key of zeros in the place of these.
    Result<> forget(const std::vector<std::uint64_t>& serials, Stream stream);
    void clear();

  private:
    virtual Result<> make_set(std::span<const Key> keys) = 0;  // there is none
    virtual Result<> replace(std::uint32_t index, const Key& key, Stream stream) = 0;
    virtual void drop_set() = 0;

    Result<> remake(const std::vector<Stretch>& stretches);
    struct Place {
        std::shared_ptr<const Key> key;
        std::uint32_t index = 0;
        std::uint64_t used = 0;  // when, in jobs
    };
    bool made_ = false;
    std::unordered_map<std::uint64_t, Place> by_serial_;
    std::vector<std::uint32_t> free_;
    std::uint64_t jobs_ = 0;
};

// In an engine's key set.
class EngineKeys final : public KeyPlaces {
  public:
    explicit EngineKeys(Engine& engine) : engine_(engine) {}
    const KeySet& set() const { return *set_; }

  private:
    Result<> make_set(std::span<const Key> keys) override;
    Result<> replace(std::uint32_t index, const Key& key, Stream stream) override {
        return set_->replace(index, key, stream);
    }
    void drop_set() override { set_.reset(); }

    Engine& engine_;
    std::optional<KeySet> set_;
};

// The first counter of a stretch's number n: in rfc4106 of a packet's slot, in stream the block's.
Block counter_of(const Stretch& stretch, std::uint64_t n);
// The messages of which a fill consists, keys being where `places` says; `memory` is the buffer, or
// a device's for it.
void write_messages(const Fill& fill, const std::vector<std::uint32_t>& places,
                    std::uint8_t* memory, Message* to);
std::size_t messages_of(const Stretch& stretch);

class FillLane {
  public:
    virtual ~FillLane() = default;  // nothing is under way
    // Begins `fill`. After an error something of it may be under way.
    virtual Result<> begin() = 0;
    // Whether it has ended: at once, or, of a lane that cannot tell, after a wait. After an error
    // something may be under way still, and nothing that it brought is of use.
    virtual Result<bool> done() = 0;
    // Waits for whatever is under way. False: nobody knows whether it has ended, and nothing that
    // the device may read or write may be wiped, given back or used again.
    virtual bool end() noexcept { return true; }
    // Nothing is under way. Keys that nobody has any more; what it still holds of keystream.
    virtual Result<> forget(const std::vector<std::uint64_t>& serials) = 0;
    virtual void forget_all_keys() = 0;
    virtual Result<> wipe() = 0;

    Fill fill;
    bool busy = false, dirty = false;
    std::vector<std::uint64_t> forgotten;  // the scheduler's mutex guards it
    bool forget_all = false;               // likewise; there was no memory to say which
    FillLane* next_kept = nullptr;
};

// Wipes a lane and frees it; or keeps it with all that it has, its engine too, for as long as the
// process lives, where its device cannot be waited for.
struct EndFillLane {
    void operator()(FillLane* lane) const noexcept;
};
using FillLaneOwner = std::unique_ptr<FillLane, EndFillLane>;

Result<FillLaneOwner> open_host_lane(Engine& engine);
// Through a device that makes runs.
Result<FillLaneOwner> open_run_lane(Engine& engine, std::unique_ptr<core::KeystreamMaker> maker,
                                    const DeviceAccess& device);
// Through one that takes lists of messages. Of jobs of at most so many bytes.
Result<FillLaneOwner> open_device_lane(Engine& engine, const DeviceAccess& device,
                                       std::size_t bytes);

}  // namespace dael::keystream
