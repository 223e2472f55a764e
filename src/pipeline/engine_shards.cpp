// SPDX-License-Identifier: Apache-2.0
// One message that lies in the memory of several devices: each does its shard where it is, and of
// GCM there is one tag over all (gcm_parts.hpp). What crosses between devices are sums of 16 bytes,
// by way of the host, which has to look at the tag in any case.
#include <algorithm>
#include <list>
#include <vector>

#include "core/guard.hpp"
#include "core/keep_forever.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/gcm_parts.hpp"
#include "pipeline/key_set.hpp"

namespace dael {
namespace {

using pipeline::DevicePath;

Error of_shard(std::size_t index, Error error) {
    error.message = "shard " + std::to_string(index) + ": " + error.message;
    return error;
}

// A shard, and what its device is given for it. Nothing of it goes before the stream has done with
// it; where that cannot be waited for it stays.
class ShardPart {
  public:
    ShardPart(DevicePath& path, const Message& message, Stream stream, const core::KeyList& keys)
        : path_(&path), message_(message), stream_(stream), keys_(keys) {}
    ~ShardPart() {
        if (!used_ || core::waited([&] { return order().wait(stream_); })) return;
        if (room_used_) (*room_)->lose();
        core::keep_forever(std::move(batch_));
    }
    ShardPart(const ShardPart&) = delete;
    ShardPart& operator=(const ShardPart&) = delete;

    const DevicePath& path() const { return *path_; }
    const Message& message() const { return message_; }
    Message& message() { return message_; }
    Order& order() { return path_->device.order(); }

    // 16 bytes on the device, and as many page-locked.
    Result<> make_room() {
        DAEL_LET(room, path_->transfer.slots().acquire({.capacity = kBlockSize,
                                                        .least = kBlockSize,
                                                        .slots = 1,
                                                        .in_staging = true,
                                                        .out = false}));
        room_.emplace(std::move(room));
        return {};
    }
    std::uint8_t* there() { return (*room_)->slots().front().in; }
    const std::uint8_t* here() { return (*room_)->slots().front().in_staging; }

    Result<> run(const Cipher& cipher) {
        used_ = true;
        return path_->device.run(pipeline::for_backend(cipher), keys_, message_, stream_);
    }
    // A message of GCM, without a batch where the device takes it along with the launch.
    Result<> seal(const Message& part) {
        used_ = room_used_ = true;
        auto launched = path_->device.run({Mode::gcm}, keys_, {&part, 1}, {}, stream_);
        if (launched || launched.code() != Code::unsupported) return launched;
        DAEL_LET(batch, path_->device.prepare({Mode::gcm}, keys_, {&part, 1}));
        batch_ = std::move(batch);
        return path_->device.run(*batch_, stream_);
    }
    Result<> fetch(const std::uint8_t* block) {
        used_ = room_used_ = true;
        return path_->device.memory().copy_out((*room_)->slots().front().in_staging, block,
                                               kBlockSize, stream_);
    }
    Result<> wait() {
        DAEL_TRY(order().wait(stream_));
        used_ = room_used_ = false;
        if (batch_) DAEL_TRY(batch_->outcome());
        if (room_) room_->went_well();
        return {};
    }

  private:
    DevicePath* path_;
    Message message_;
    const Stream stream_;
    const core::KeyList keys_;
    bool used_ = false, room_used_ = false;  // by what the stream may not have done yet
    std::optional<pipeline::SlotPool::Loan> room_;
    std::unique_ptr<core::Prepared> batch_;
};

using ShardParts = std::list<ShardPart>;

// All of them, whatever comes of one.
template <class Each>
Result<> for_each(ShardParts& parts, Each each) {
    Result<> first;
    for (ShardPart& part : parts)
        if (auto done = each(part); !done && first) first = std::move(done);
    return first;
}
Result<> wait_for(ShardParts& parts) {
    return for_each(parts, [](ShardPart& part) { return part.wait(); });
}

// What the mode asks of the whole, of which only the sizes count; it lies nowhere.
Result<> check_whole(const Cipher& cipher, const Message& message, std::uint64_t size,
                     std::size_t keys) {
    if (message.in || message.out || message.size != 0)
        return Error{Code::invalid_argument,
                     "the message of a call over shards has no data of its own: its input and "
                     "output are null, and its size is 0"};
    if (!modes::can_cut(cipher) && cipher.mode != Mode::gcm)
        return Error{Code::unsupported, std::string(name(cipher.mode)) + " " +
                                            std::string(name(cipher.direction)) +
                                            " is sequential: a message of it lies on one device"};
    Message whole = message;
    whole.size = size;
    // At the end of all addresses, where no tag and no additional data are.
    auto* const somewhere = reinterpret_cast<std::uint8_t*>(~std::uintptr_t{0} - kBlockSize - size);
    if (size != 0) whole.in = whole.out = somewhere;
    DAEL_TRY(modes::check(cipher, whole, keys));
    if (authenticates(cipher.mode) && !pipeline::can_be_in_parts(cipher, whole))
        return Error{Code::unsupported,
                     "the counter of this IV, which is not of 12 bytes, wraps within the message; "
                     "in shards that is not opened"};
    return {};
}

// Each shard as a message of its own; only its start is missing, where it is that of ciphertext.
Result<> lay_out(ShardParts& parts, Engine::State& engine, const Cipher& cipher, KeySet::State& set,
                 const Message& whole, std::span<const Shard> shards) {
    const std::size_t unit = modes::traits(cipher.mode).unit(cipher);
    std::uint64_t at = 0;
    std::size_t last = shards.size();
    while (last > 0 && shards[last - 1].size == 0) --last;
    for (std::size_t i = 0; i < last; ++i) {
        const Shard& shard = shards[i];
        if (shard.size == 0) continue;
        if (i + 1 < last && (at + shard.size + whole.skip) % unit != 0)
            return of_shard(
                i, {Code::ragged_length, std::to_string(shard.size) + " bytes; in " +
                                             std::string(name(cipher.mode)) +
                                             " every shard but the last ends at a multiple of " +
                                             std::to_string(unit) + " bytes of the message"});
        Message its = whole;
        its.in = shard.in;
        its.out = shard.out;
        its.size = shard.size;
        its.aad = nullptr;
        its.aad_size = 0;
        its.tag = nullptr;
        Cipher as_run = cipher;
        if (authenticates(cipher.mode)) {
            // Sealing, the counter may wrap; its bytes and places are checked.
            as_run.mode = modes::encrypts(cipher) ? Mode::ctr : Mode::gcm_ctr;
            its.start =
                modes::counter_add32(whole.start, static_cast<std::uint32_t>(1 + at / kBlockSize));
        } else if (at != 0) {
            its.skip = 0;
            if (cipher.mode != Mode::cbc && cipher.mode != Mode::cfb)
                its.start = modes::traits(cipher.mode).start_at(cipher, whole, at);
        }
        if (auto good = modes::check(as_run, its, set.list.size()); !good)
            return of_shard(i, std::move(good).error());
        auto path = engine.path_of(std::span(&its, 1));
        if (!path) return of_shard(i, std::move(path).error());
        const core::Can can = (*path)->backend->can(cipher, set.bits());
        if (can.answer == core::Can::no)
            return of_shard(i, core::cannot((*path)->name(), cipher, can));
        if ((*path)->device.order().is_capturing(shard.stream))
            return of_shard(
                i, {Code::unsupported, "its stream is being captured, and this call waits for it"});
        core::KeyList keys{set.list};
        if (authenticates(cipher.mode)) {
            DAEL_LET(ready, set.on(**path));
            keys = ready;
        }
        parts.emplace_back(**path, its, shard.stream, keys);
        at += shard.size;
    }
    return set.settle();
}

// In CBC and CFB a shard begins from the ciphertext before it, which is there before anything is
// decrypted in place.
Result<> fetch_starts(ShardParts& parts, Block start) {
    DAEL_TRY(for_each(parts, [](ShardPart& part) { return part.make_room(); }));
    auto fetched = for_each(parts, [&](ShardPart& part) {
        if (&part == &parts.back()) return Result<>{};
        return part.fetch(part.message().in + part.message().size - kBlockSize);
    });
    auto waited = wait_for(parts);
    DAEL_TRY(std::move(fetched));
    DAEL_TRY(std::move(waited));
    for (ShardPart& part : parts) {
        part.message().start = start;
        std::copy_n(part.here(), kBlockSize, start.data());
    }
    return {};
}

Result<> run_all(ShardParts& parts, const Cipher& cipher) {
    auto asked = for_each(parts, [&](ShardPart& part) { return part.run(cipher); });
    auto done = wait_for(parts);
    DAEL_TRY(std::move(asked));
    return done;
}

// What has to be there comes first, then what only reads or makes the output, then the tag.
Result<> run_gcm(ShardParts& parts, Engine::State& engine, const Cipher& cipher, KeySet::State& set,
                 const Message& whole) {
    DAEL_TRY(for_each(parts, [](ShardPart& part) { return part.make_room(); }));
    pipeline::GcmParts sums(cipher, whole);
    for (ShardPart& part : parts)
        sums.add(part.message().in, part.message().out, part.message().size);
    const std::span<Message> messages = sums.parts();
    if (messages.size() != parts.size())
        DAEL_TRY(engine.run_one({Mode::gcm}, set.list, &set, messages.back()));
    std::size_t next = 0;
    auto asked = for_each(parts, [&](ShardPart& part) -> Result<> {
        Message message = messages[next++];
        message.tag = part.there();
        DAEL_TRY(part.seal(message));
        return part.fetch(part.there());
    });
    // While the devices are at it: by these few blocks nobody need be woken.
    const Message blocks = sums.blocks();
    const core::KeySchedule& schedule = set.list[whole.key].schedule();
    for (std::uint64_t at = 0; at < blocks.size; at += kBlockSize) {
        Block block;
        const core::WipeAtEnd no_block(block);
        std::copy_n(blocks.in + at, kBlockSize, block.begin());
        block = modes::encrypt_block(schedule, block);
        std::ranges::copy(block, blocks.out + at);
    }
    auto done = wait_for(parts);
    DAEL_TRY(std::move(asked));
    DAEL_TRY(std::move(done));
    next = 0;
    for (ShardPart& part : parts) std::copy_n(part.here(), kBlockSize, sums.tag(next++).data());
    Block tag = sums.tag_of_all();
    const core::WipeAtEnd no_tag(tag);
    if (modes::encrypts(cipher)) {
        std::copy_n(tag.begin(), cipher.tag, whole.tag);
        return {};
    }
    if (!modes::equal_tags(tag.data(), whole.tag, cipher.tag))
        return pipeline::authentication_failed();
    return run_all(parts, {Mode::gcm_ctr, Direction::decrypt});
}

}  // namespace

Result<Ran> Engine::State::run_shards(const Cipher& cipher, KeySet::State& set,
                                      const Message& whole, std::span<const Shard> shards) {
    std::uint64_t size = 0;
    for (std::size_t i = 0; i < shards.size(); ++i) {
        if (shards[i].size > ~std::uint64_t{0} - size)
            return of_shard(i, {Code::limit, "the shards come to 2^64 bytes and more"});
        size += shards[i].size;
    }
    DAEL_TRY(check_whole(cipher, whole, size, set.list.size()));
    ShardParts parts;
    DAEL_TRY(lay_out(parts, *this, cipher, set, whole, shards));
    std::vector<pipeline::Did> did;
    for (const ShardPart& part : parts) did.push_back({part.path(), part.message().size});
    if (authenticates(cipher.mode)) {
        DAEL_TRY(run_gcm(parts, *this, cipher, set, whole));
    } else {
        if (cipher.mode == Mode::cbc || cipher.mode == Mode::cfb)
            DAEL_TRY(fetch_starts(parts, whole.start));
        DAEL_TRY(run_all(parts, cipher));
    }
    if (did.empty()) return Ran{};
    return pipeline::ran_by(did, false);
}

Result<Ran> Engine::run_shards(const Cipher& cipher, const KeySet& keys, const Message& message,
                               std::span<const Shard> shards) {
    return core::guarded([&]() -> Result<Ran> {
        KeySet::State& set = keys.state();
        DAEL_TRY(set.check(cipher, *state_));
        return state_->run_shards(cipher, set, message, shards);
    });
}

}  // namespace dael
