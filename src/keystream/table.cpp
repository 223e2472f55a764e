// SPDX-License-Identifier: Apache-2.0
// SAs that come, change their keys and go.
#include "keystream/table.hpp"

#include <openssl/evp.h>

#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "core/key_schedule.hpp"
#include "core/libcrypto.hpp"
#include "core/process.hpp"
#include "core/random.hpp"
#include "core/registry.hpp"

namespace dael {

using keystream::Buffer;
using keystream::Slot;
using keystream::Track;
using keystream::Window;

namespace {

constexpr std::size_t kLeastBudget = std::size_t{64} << 10;
constexpr std::size_t kMostBlock = std::size_t{1} << 20;

// The host backend that does packets best: libipsec-mb's, else libcrypto's.
Result<std::unique_ptr<core::Backend>> open_for_packets() {
    const Key key = *Key::import(std::array<std::uint8_t, 16>{});
    auto cpu = core::open_backend("cpu");
    if (cpu && (*cpu)->packets(key)) return cpu;
    return core::open_backend("openssl");
}

keystream::Wide first_counter(const SaOptions& options) {
    keystream::Wide counter = 0;
    for (const std::uint8_t byte : options.salt) counter = counter << 8 | byte;
    keystream::Wide iv = 0;
    for (const std::uint8_t byte : options.first_iv) iv = iv << 8 | byte;
    return counter << 96 | (iv == 0 ? 1 : iv);  // a counter of 0 would encrypt to the hash's key
}

// The gone SAs' counters go on counting for the table.
void add_up(SaCounters& sum, const SaCounters& more) {
    sum.packets += more.packets;
    sum.bytes += more.bytes;
    sum.hits += more.hits;
    sum.partial += more.partial;
    sum.direct += more.direct;
    sum.overlapped += more.overlapped;
    sum.failed += more.failed;
    sum.windows += more.windows;
    sum.made += more.made;
    sum.used += more.used;
    sum.dropped += more.dropped;
    sum.ready += more.ready;
}

// What is left of a window for packets to come.
std::uint64_t left_of(const Track& track, const Window& window) {
    const std::uint64_t next = track.next.load(std::memory_order_relaxed);
    return next >= window.end
               ? 0
               : (window.end - std::max(next, window.first)) * window.blocks * kBlockSize;
}

std::uint64_t ready_bytes(const Slot& slot) {
    std::uint64_t bytes = 0;
    for (const Track& track : slot.tracks)
        for (std::uint32_t i = 0; i < track.held; ++i) bytes += left_of(track, *track.windows[i]);
    return bytes;
}

}  // namespace

SaTable::State::State(std::shared_ptr<SaFiller::State> its_filler,
                      const SaTableOptions& its_options)
    : filler(std::move(its_filler)),
      options(its_options),
      chunks(std::make_unique<std::atomic<Chunk*>[]>(kChunks)) {}

Result<> SaTable::State::set_up() {
    if (options.budget < kLeastBudget)
        return Error{Code::invalid_argument, "the budget is " + std::to_string(options.budget) +
                                                 " bytes; give 65536 or more"};
    if (options.block % 4096 != 0 || options.block > kMostBlock || options.block > options.budget)
        return Error{Code::invalid_argument,
                     "block is " + std::to_string(options.block) +
                         " bytes; give a multiple of 4096 to 2^20 within the budget, or 0"};
    if (!(options.most_waste >= 0 && options.most_waste < 1))
        return Error{Code::invalid_argument, "most_waste is a share: from 0 to below 1"};
    if (options.most_sas == 0 || options.most_sas > kChunk * kChunks)
        return Error{Code::invalid_argument,
                     "most_sas is " + std::to_string(options.most_sas) + "; give 1 to 1048576"};
    if (options.block == 0)
        options.block = std::clamp(options.budget / 8 / 4096 * 4096, std::size_t{4096}, kMostBlock);
    process = core::this_process();
    DAEL_TRY(core::fill_random(secret));
    DAEL_LET(backend, open_for_packets());
    host = std::move(backend);
    DAEL_LET(figures, keystream::measure(*host));
    measured = figures;
    return filler->attach(*this);
}

SaTable::State::~State() {
    if (process != core::this_process()) {
        // Others' threads are not here, and what they held is held for ever: it goes with the
        // child.
        for (auto& buffer : buffers) (void)buffer.release();
        return;
    }
    for (std::size_t i = 0; i < slots; ++i) {
        Slot& slot = *chunks[i / kChunk].load()->slots[i % kChunk];
        const std::lock_guard lock(slot.mutex);
        if (slot.id != 0) leave(slot);
    }
    filler->detach(*this);
    for (std::size_t i = 0; i < kChunks; ++i) delete chunks[i].load();
    wipe(secret.data(), secret.size());
}

Result<> SaTable::State::usable() const {
    if (process == core::this_process()) return {};
    return Error{Code::limit,
                 "the table was opened before fork(), and its numbers are the parent's to use; "
                 "open one in the child, with keys of its own"};
}

Slot* SaTable::State::find(SaId sa) const noexcept {
    const std::size_t index = static_cast<std::uint32_t>(sa.value) - std::size_t{1};
    if (index >= kChunk * kChunks) return nullptr;
    Chunk* const chunk = chunks[index / kChunk].load(std::memory_order_acquire);
    return chunk ? chunk->slots[index % kChunk].get() : nullptr;
}

Result<SaTable::State::Fingerprint> SaTable::State::fingerprint(
    const Key& key, const std::array<std::uint8_t, 4>& salt) const {
    struct Free {
        void operator()(EVP_MD* md) const { EVP_MD_free(md); }
        void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
    };
    const std::unique_ptr<EVP_MD, Free> md(EVP_MD_fetch(core::libcrypto(), "SHA256", nullptr));
    const std::unique_ptr<EVP_MD_CTX, Free> context(EVP_MD_CTX_new());
    Fingerprint digest;
    const auto bytes = key.schedule().key();
    if (!md || !context || EVP_DigestInit_ex2(context.get(), md.get(), nullptr) != 1 ||
        EVP_DigestUpdate(context.get(), secret.data(), secret.size()) != 1 ||
        EVP_DigestUpdate(context.get(), salt.data(), salt.size()) != 1 ||
        EVP_DigestUpdate(context.get(), bytes.data(), bytes.size()) != 1 ||
        EVP_DigestFinal_ex(context.get(), digest.data(), nullptr) != 1)
        return Error{Code::internal, "SHA-256 of libcrypto failed"};
    return digest;
}

Result<> SaTable::State::check(const Key& key, const SaOptions& sa) const {
    if (key.is_xts())
        return Error{Code::invalid_argument, "the key is for XTS; an SA takes one of Key::import"};
    if (!gcm::valid_tag_size(sa.tag_size))
        return Error{Code::invalid_argument, "the tag is " + std::to_string(sa.tag_size) +
                                                 " bytes; GCM has 4, 8 and 12 to 16, RFC 4106 8, "
                                                 "12 and 16"};
    if (sa.direction == SaDirection::receiving) return {};
    if (!sa.fresh_key)
        return Error{Code::invalid_argument,
                     "to send, the key must be fresh: numbers begin at 1, and under a key that was "
                     "used before, as one from a file is at the next start, counters would repeat; "
                     "agree on a new key, or state that this one is fresh"};
    if (sa.limit == 0)
        return Error{Code::invalid_argument, "the limit is 0 packets; give 1 or more"};
    return {};
}

// Whatever may fail of taking a key, before anything changes.
Result<SaTable::State::Entry> SaTable::State::prepare(const Key& key, const SaOptions& sa) {
    DAEL_TRY(check(key, sa));
    DAEL_LET(copy, key.duplicate());
    Entry entry;
    entry.key = std::make_shared<const Key>(std::move(copy));
    DAEL_LET(cipher, host->packets(*entry.key));
    entry.cipher = std::move(cipher);
    if (sa.direction == SaDirection::receiving) return entry;
    DAEL_LET(print, fingerprint(key, sa.salt));
    if (!sent_under.insert(print).second)
        return Error{Code::invalid_argument,
                     "this key and salt have sent in this table before, and their counters would "
                     "repeat; agree on a new key"};
    return entry;
}

// A key in a place where nothing is left of another; under its mutex.
void SaTable::State::enter(Slot& slot, Entry entry, const SaOptions& sa) noexcept {
    slot.cipher = std::move(entry.cipher);
    slot.near.store(slot.cipher->near(), std::memory_order_relaxed);
    slot.options = sa;
    slot.base = sa.layout == SaLayout::stream ? first_counter(sa) : 0;
    slot.number = 1;
    slot.key_bits = entry.key->bits();
    slot.by_size = sa.layout == SaLayout::rfc4106 && sa.ivs == SaIvs::by_size &&
                   sa.direction == SaDirection::sending;
    // Every number of a class, and every 64-bit number but the last, whose successor is none.
    const std::uint64_t most = slot.by_size ? keystream::kClassNumbers - 1 : ~std::uint64_t{0} - 1;
    slot.options.limit = std::min(sa.limit, most);
    if (slot.options.soft_limit == 0)
        slot.options.soft_limit = slot.options.limit - slot.options.limit / 8;
    for (Track& track : slot.tracks) {
        track.next.store(keystream::first_number(sa.layout), std::memory_order_relaxed);
        track.needed.store(0, std::memory_order_relaxed);
        track.lead.store(0, std::memory_order_relaxed);
        track.recent.clear();
    }
    slot.seen.store(0, std::memory_order_relaxed);
    slot.seen_strays.store(0, std::memory_order_relaxed);
    filler->enter(*this, slot, std::move(entry.key));
}

// The SA's key and all keystream of it, wiped; under its mutex.
void SaTable::State::leave(Slot& slot) noexcept {
    filler->leave(*this, slot);
    drop_all(slot);
    slot.near.store(nullptr, std::memory_order_relaxed);
    slot.cipher.reset();
}

Result<SaId> SaTable::State::add(const Key& key, const SaOptions& sa) {
    DAEL_TRY(usable());
    const std::lock_guard controlled(control);
    if (sas == options.most_sas)
        return Error{Code::limit, "the table is full with " + std::to_string(sas) +
                                      " SAs; remove some, or open it for more"};
    if (free_slots.empty()) {
        if (slots % kChunk == 0) {
            auto chunk = std::make_unique<Chunk>();
            for (std::size_t i = 0; i < kChunk; ++i)
                chunk->slots[i] =
                    std::make_unique<Slot>(static_cast<std::uint32_t>(slots + i), this);
            free_slots.reserve(slots + kChunk);
            chunks[slots / kChunk].store(chunk.release(), std::memory_order_release);
        }
        free_slots.push_back(slots++);
    }
    const std::uint32_t index = free_slots.back();
    Slot& slot = *chunks[index / kChunk].load(std::memory_order_relaxed)->slots[index % kChunk];
    const std::lock_guard lock(slot.mutex);
    slot.counters = {};
    DAEL_LET(entry, prepare(key, sa));
    enter(slot, std::move(entry), sa);
    free_slots.pop_back();
    ++sas;
    many.store(sas > kFew, std::memory_order_relaxed);
    slot.id = ++generation << 32 | (index + 1);
    return SaId{slot.id};
}

Result<> SaTable::State::rekey(SaId sa, const Key& key, const std::array<std::uint8_t, 4>& salt) {
    DAEL_TRY(usable());
    Slot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard controlled(control);
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return keystream::no_such_sa();
    SaOptions changed = slot->options;
    changed.salt = salt;
    changed.fresh_key = true;  // as the call promises
    DAEL_LET(entry, prepare(key, changed));
    leave(*slot);
    enter(*slot, std::move(entry), changed);
    return {};
}

Result<> SaTable::State::remove(SaId sa) {
    DAEL_TRY(usable());
    Slot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard controlled(control);
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return keystream::no_such_sa();
    leave(*slot);
    slot->id = 0;
    add_up(gone, slot->counters);
    slot->counters = {};
    --sas;
    many.store(sas > kFew, std::memory_order_relaxed);
    free_slots.push_back(slot->index);  // there is room: it was there before
    return {};
}

void SaTable::State::retire(Window& window) noexcept {
    live.fetch_sub(window.bytes(), std::memory_order_relaxed);
    window.track->waiting.fetch_sub(1, std::memory_order_relaxed);
    window.buffer->live.fetch_sub(1, std::memory_order_seq_cst);
    filler->freed();
}

void SaTable::State::drop(Track& track, std::uint32_t at) noexcept {
    Window& window = *track.windows[at];
    track.slot->counters.dropped += left_of(track, window);
    wipe(window.data, window.bytes());
    retire(window);
    --track.held;
    for (; at < track.held; ++at) track.windows[at] = track.windows[at + 1];
    track.aim_at_none();
}

void SaTable::State::drop_all(Slot& slot) noexcept {
    for (Track& track : slot.tracks) {
        take_in(track, 0, slot.counters);
        while (track.held > 0) drop(track, track.held - 1);
        track.over = 0;
    }
}

SaCounters SaTable::State::counters() const {
    SaCounters sum;
    const std::lock_guard controlled(control);
    add_up(sum, gone);
    for (std::size_t i = 0; i < slots; ++i) {
        Slot& slot = *chunks[i / kChunk].load(std::memory_order_relaxed)->slots[i % kChunk];
        const std::lock_guard lock(slot.mutex);
        if (slot.id == 0) continue;
        add_up(sum, slot.counters);
        sum.ready += ready_bytes(slot);
    }
    // The SAs were looked at one after the other: what one gave up meanwhile, the next may have
    // got.
    sum.ready = std::min(sum.ready, live.load(std::memory_order_relaxed));
    filler->add_to(sum, *this);
    return sum;
}

Result<SaStatus> SaTable::State::status(SaId sa) const {
    Slot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return keystream::no_such_sa();
    SaStatus status;
    status.options = slot->options;
    status.key_bits = slot->key_bits;
    status.counters = slot->counters;
    status.counters.ready = ready_bytes(*slot);
    if (slot->options.direction == SaDirection::sending) {
        status.next = slot->number;
        status.rekey_soon = slot->number > slot->options.soft_limit;
    }
    status.why = filler->why_direct(*this, *slot);
    status.ahead = status.why.empty();
    return status;
}

}  // namespace dael
