// SPDX-License-Identifier: Apache-2.0
// SAs that come, change their keys and go.
#include "keystream/table.hpp"

#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "core/process.hpp"
#include "core/registry.hpp"
#include "keystream/key_memory.hpp"

namespace dael {

using keystream::FillBuffer;
using keystream::SaSlot;
using keystream::Track;
using keystream::Window;

namespace {

constexpr std::size_t kLeastBudget = std::size_t{64} << 10;
constexpr std::size_t kMaxBudget = std::size_t{1} << 36;
constexpr std::size_t kMaxBlock = std::size_t{1} << 20;

// The host backend that does packets best: libipsec-mb's, else libcrypto's.
Result<std::unique_ptr<core::Backend>> open_for_packets() {
    const Key key = *Key::import(std::array<std::uint8_t, 16>{});
    auto cpu = core::open_backend("cpu");
    if (cpu && (*cpu)->packets(key)) return cpu;
    return core::open_backend("openssl");
}

keystream::Uint128 first_counter(const SaOptions& options) {
    keystream::Uint128 counter = 0;
    for (const std::uint8_t byte : options.salt) counter = counter << 8 | byte;
    keystream::Uint128 iv = 0;
    for (const std::uint8_t byte : options.first_iv) iv = iv << 8 | byte;
    return counter << 96 | (iv == 0 ? 1 : iv);  // a counter of 0 would encrypt to the hash's key
}

keystream::Uint128 base_of(const SaOptions& options) {
    return options.layout == SaLayout::stream ? first_counter(options) : 0;
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

std::uint64_t ready_bytes(const SaSlot& slot) {
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
      pages(std::make_unique<std::atomic<Page*>[]>(kPages)) {}

Result<> SaTable::State::set_up() {
    if (filler->forked())
        return Error{Code::limit,
                     "the filler was opened before fork(), and has no threads here; open one in "
                     "the child"};
    if (options.budget < kLeastBudget || options.budget > kMaxBudget)
        return Error{Code::invalid_argument, "the budget is " + std::to_string(options.budget) +
                                                 " bytes; give 65536 to 2^36"};
    if (options.block % 4096 != 0 || options.block > kMaxBlock || options.block > options.budget)
        return Error{Code::invalid_argument,
                     "block is " + std::to_string(options.block) +
                         " bytes; give a multiple of 4096 to 2^20 within the budget, or 0"};
    if (!(options.most_waste >= 0 && options.most_waste < 1))
        return Error{Code::invalid_argument, "most_waste is a share: from 0 to below 1"};
    if (options.most_sas == 0 || options.most_sas > kPage * kPages)
        return Error{Code::invalid_argument,
                     "most_sas is " + std::to_string(options.most_sas) + "; give 1 to 1048576"};
    if (options.block == 0)
        options.block = std::clamp(options.budget / 8 / 4096 * 4096, std::size_t{4096}, kMaxBlock);
    process = core::this_process();
    DAEL_LET(backend, open_for_packets());
    host = std::move(backend);
    DAEL_LET(figures, keystream::measure(*host));
    measured = figures;
    return filler->attach(*this);
}

SaTable::State::~State() {
    if (forked()) {
        // Others' threads are not here, and what they held is held for ever: it goes with the
        // child.
        for (auto& buffer : buffers) (void)buffer.release();
        return;
    }
    for (std::size_t i = 0; i < slots; ++i) {
        SaSlot& slot = *pages[i / kPage].load()->slots[i % kPage];
        std::unique_lock lock(slot.mutex, std::defer_lock);
        const auto scheduler = filler->lock_with(lock);
        if (slot.id != 0) leave(slot);
    }
    filler->wake_to_forget();
    filler->detach(*this);
    for (std::size_t i = 0; i < kPages; ++i) delete pages[i].load();
}

bool SaTable::State::forked() const noexcept {
    return process != core::this_process();
}

Result<> SaTable::State::usable() const {
    if (!forked()) return {};
    return Error{Code::limit,
                 "the table was opened before fork(), and its numbers are the parent's to use; "
                 "open one in the child, with keys of its own"};
}

SaSlot* SaTable::State::find(SaId sa) const noexcept {
    const std::size_t index = static_cast<std::uint32_t>(sa.value) - std::size_t{1};
    if (index >= kPage * kPages) return nullptr;
    Page* const page = pages[index / kPage].load(std::memory_order_acquire);
    return page ? page->slots[index % kPage].get() : nullptr;
}

Result<> SaTable::State::check(const Key& key, const SaOptions& sa, const SaState* from) {
    if (key.is_xts())
        return Error{Code::invalid_argument, "the key is for XTS; an SA takes one of Key::import"};
    if (!gcm::valid_tag_size(sa.tag_size))
        return Error{Code::invalid_argument, "the tag is " + std::to_string(sa.tag_size) +
                                                 " bytes; GCM has 4, 8 and 12 to 16, RFC 4106 8, "
                                                 "12 and 16"};
    if (sa.lifetime.count() < 0 || sa.soft_lifetime.count() < 0)
        return Error{Code::invalid_argument, "a lifetime is negative; give milliseconds, or 0"};
    if (sa.direction == SaDirection::receiving) {
        if (!from) return {};
        return Error{Code::invalid_argument, "the state is of an SA that sends"};
    }
    if (!sa.fresh_key && !from)
        return Error{Code::invalid_argument,
                     "to send, the key must be fresh: numbers begin at 1, and under a key that was "
                     "used before, as one from a file is at the next start, counters would repeat; "
                     "agree on a new key, or state that this one is fresh"};
    if (sa.limit == 0)
        return Error{Code::invalid_argument, "the limit is 0 packets; give 1 or more"};
    return {};
}

namespace {

bool counts_by_size(const SaOptions& sa) noexcept {
    return sa.layout == SaLayout::rfc4106 && sa.ivs == SaIvs::by_size &&
           sa.direction == SaDirection::sending;
}
// Every number of a class, and every 64-bit number but the last, whose successor is none.
std::uint64_t most_packets(const SaOptions& sa) noexcept {
    const std::uint64_t most =
        counts_by_size(sa) ? keystream::kClassNumbers - 1 : ~std::uint64_t{0} - 1;
    return std::min(sa.limit, most);
}

// Whether such an SA can have come to it.
Result<> check_state(const SaOptions& sa, const SaState& from) {
    bool right = from.next >= 1 && from.next - 1 <= most_packets(sa);
    if (counts_by_size(sa))
        for (const std::uint64_t next : from.ivs) right = right && next >= 1 && next <= from.next;
    else if (sa.layout == SaLayout::stream)
        right = right && from.ivs[0] >= 1 && from.ivs[0] - 1 <= keystream::kMaxPosition;
    else
        right = right && from.ivs[0] == from.next;
    if (right) return {};
    return Error{Code::invalid_argument,
                 "the state is none of an SA with these options; give those that it was exported "
                 "with"};
}

}  // namespace

// Whatever may fail of taking a key, before anything changes. The claim comes last.
Result<SaTable::State::PreparedSa> SaTable::State::prepare(const Key& key, const SaOptions& sa,
                                                           const SaState* from) {
    DAEL_TRY(check(key, sa, from));
    if (from) DAEL_TRY(check_state(sa, *from));
    DAEL_LET(copy, key.duplicate());
    PreparedSa entry;
    entry.key = std::make_shared<const Key>(std::move(copy));
    DAEL_LET(cipher, host->packets(*entry.key));
    entry.cipher = std::move(cipher);
    if (sa.direction == SaDirection::receiving) return entry;
    DAEL_LET(print, keystream::print_of(key, sa.salt));
    DAEL_TRY(keystream::claim_sending(print, from, base_of(sa)));
    entry.print = print;
    return entry;
}

namespace {

// Ids of SAs are unique in their table alone; states go from table to table.
std::uint64_t next_owner() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
}

}  // namespace

// A key in a place where nothing is left of another; under its mutex and the scheduler's.
void SaTable::State::enter(SaSlot& slot, PreparedSa entry, const SaOptions& sa,
                           const SaState& from) noexcept {
    const bool stream = sa.layout == SaLayout::stream;
    slot.cipher = std::move(entry.cipher);
    slot.near.store(slot.cipher->near(), std::memory_order_relaxed);
    slot.options = sa;
    slot.base = base_of(sa);
    slot.number = from.next;
    slot.lease = ~std::uint64_t{0};
    slot.key_bytes = from.bytes;
    slot.key_failed = 0;
    slot.print = entry.print;
    slot.owner = next_owner();
    slot.exported = slot.imported = false;
    ++slot.epoch_number;
    slot.born_ms = keystream::now_ms() - static_cast<std::int64_t>(from.age_ms);
    slot.packet_ms = keystream::now_ms();
    slot.key_bits = entry.key->bits();
    slot.by_size = counts_by_size(sa);
    slot.options.limit = most_packets(sa);
    if (slot.options.soft_limit == 0)
        slot.options.soft_limit = slot.options.limit - slot.options.limit / 8;
    for (std::size_t i = 0; i < slot.tracks.size(); ++i) {
        Track& track = slot.tracks[i];
        // Streams count blocks, from 0 on, in one track, as counting IVs do.
        const std::uint64_t next = stream ? from.ivs[0] - 1 : from.ivs[i];
        track.next.store(next, std::memory_order_relaxed);
        track.needed.store(0, std::memory_order_relaxed);
        track.lead.store(0, std::memory_order_relaxed);
        track.recent.clear();
    }
    slot.seen.store(0, std::memory_order_relaxed);
    slot.seen_strays.store(0, std::memory_order_relaxed);
    filler->enter(*this, slot, std::move(entry.key));
}

// The SA's key and all keystream of it, wiped; under its mutex and the scheduler's.
void SaTable::State::leave(SaSlot& slot) noexcept {
    filler->leave(*this, slot);
    drop_all(slot);
    filler->wipe_used(*this, slot);
    slot.near.store(nullptr, std::memory_order_relaxed);
    slot.cipher.reset();
    if (slot.options.direction == SaDirection::sending)
        keystream::release_sending(slot.print, slot.number != 1 || slot.exported || slot.imported);
}

Result<SaId> SaTable::State::add(const Key& key, const SaOptions& sa, const SaState* from) {
    DAEL_TRY(usable());
    const std::lock_guard controlled(control);
    if (sas == options.most_sas)
        return Error{Code::limit, "the table is full with " + std::to_string(sas) +
                                      " SAs; remove some, or open it for more"};
    if (free_slots.empty()) {
        if (slots % kPage == 0) {
            auto page = std::make_unique<Page>();
            for (std::size_t i = 0; i < kPage; ++i)
                page->slots[i] =
                    std::make_unique<SaSlot>(static_cast<std::uint32_t>(slots + i), this);
            free_slots.reserve(slots + kPage);
            pages[slots / kPage].store(page.release(), std::memory_order_release);
        }
        free_slots.push_back(slots++);
    }
    const std::uint32_t index = free_slots.back();
    SaSlot& slot = *pages[index / kPage].load(std::memory_order_relaxed)->slots[index % kPage];
    DAEL_LET(entry, prepare(key, sa, from));
    std::unique_lock lock(slot.mutex, std::defer_lock);
    const auto scheduler = filler->lock_with(lock);
    slot.counters = {};
    slot.epoch_number = 0;
    enter(slot, std::move(entry), sa, from ? *from : SaState{});
    slot.imported = from != nullptr;
    free_slots.pop_back();
    ++sas;
    many.store(sas > kFew, std::memory_order_relaxed);
    slot.id = ++generation << 32 | (index + 1);
    return SaId{slot.id};
}

Result<> SaTable::State::rekey(SaId sa, const Key& key, const std::array<std::uint8_t, 4>& salt) {
    DAEL_TRY(usable());
    SaSlot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard controlled(control);
    if (slot->id != sa.value) return keystream::no_such_sa();
    SaOptions changed = slot->options;  // which none but control calls write
    changed.salt = salt;
    changed.fresh_key = true;  // as the call promises
    DAEL_LET(entry, prepare(key, changed, nullptr));
    {
        std::unique_lock lock(slot->mutex, std::defer_lock);
        const auto scheduler = filler->lock_with(lock);
        leave(*slot);
        enter(*slot, std::move(entry), changed, {});
    }
    filler->wake_to_forget();
    return {};
}

Result<> SaTable::State::remove(SaId sa) {
    DAEL_TRY(usable());
    SaSlot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard controlled(control);
    if (slot->id != sa.value) return keystream::no_such_sa();
    {
        std::unique_lock lock(slot->mutex, std::defer_lock);
        const auto scheduler = filler->lock_with(lock);
        leave(*slot);
        slot->id = 0;
        add_up(gone, slot->counters);
        slot->counters = {};
        --sas;
        many.store(sas > kFew, std::memory_order_relaxed);
        free_slots.push_back(slot->index);  // there is room: it was there before
    }
    filler->wake_to_forget();
    return {};
}

Result<SaState> SaTable::State::export_state(SaId sa, std::uint64_t more) {
    DAEL_TRY(usable());
    SaSlot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard controlled(control);
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return keystream::no_such_sa();
    if (slot->options.direction != SaDirection::sending)
        return Error{Code::invalid_argument,
                     "the SA is for receiving; it has no numbers to export"};
    const bool stream = slot->options.layout == SaLayout::stream;
    if (stream && more != 0)
        return Error{Code::invalid_argument,
                     "packets of a stream may need any number of counters; export it with 0 more"};
    more = std::min(more, slot->options.limit - (slot->number - 1));
    SaState state;
    state.next = slot->number + more;
    for (std::size_t i = 0; i < state.ivs.size(); ++i)
        state.ivs[i] = slot->tracks[i].next.load(std::memory_order_relaxed) + more;
    if (!slot->by_size) state.ivs = {stream ? state.ivs[0] + 1 : state.next, 1, 1, 1};
    state.bytes = slot->key_bytes;
    state.age_ms = static_cast<std::uint64_t>(keystream::now_ms() - slot->born_ms);
    DAEL_TRY(
        keystream::export_sending(slot->print, state, slot->owner, slot->exported, slot->base));
    slot->exported = true;
    slot->lease = state.next - 1;
    return state;
}

void SaTable::State::retire(Window& window) noexcept {
    live.fetch_sub(window.bytes(), std::memory_order_relaxed);
    window.track->waiting.fetch_sub(1, std::memory_order_relaxed);
    window.over = true;
    window.buffer->live.fetch_sub(1, std::memory_order_seq_cst);
    filler->freed();
}

void SaTable::State::drop(Track& track, std::uint32_t at) noexcept {
    Window& window = *track.windows[at];
    const std::uint64_t dropped = left_of(track, window);
    track.slot->counters.dropped += dropped;
    track.slot->dropped.fetch_add(dropped, std::memory_order_relaxed);
    wipe(window.data, window.bytes());
    retire(window);
    --track.held;
    for (; at < track.held; ++at) track.windows[at] = track.windows[at + 1];
    track.aim_at_none();
}

void SaTable::State::drop_all(SaSlot& slot) noexcept {
    for (Track& track : slot.tracks) {
        take_in(track, 0, slot.counters);
        while (track.held > 0) drop(track, track.held - 1);
        track.over = 0;
    }
}

SaCounters SaTable::State::counters() const {
    SaCounters sum;
    if (forked()) return sum;
    const std::lock_guard controlled(control);
    add_up(sum, gone);
    for (std::size_t i = 0; i < slots; ++i) {
        SaSlot& slot = *pages[i / kPage].load(std::memory_order_relaxed)->slots[i % kPage];
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
    DAEL_TRY(usable());
    SaSlot* const slot = find(sa);
    if (!slot) return keystream::no_such_sa();
    const std::lock_guard lock(slot->mutex);
    if (slot->id != sa.value) return keystream::no_such_sa();
    SaStatus status;
    status.options = slot->options;
    status.key_bits = slot->key_bits;
    status.counters = slot->counters;
    status.counters.ready = ready_bytes(*slot);
    const std::int64_t now = keystream::now_ms();
    if (slot->options.direction == SaDirection::sending) status.next = slot->number;
    status.epoch = slot->epoch_number;
    status.rekey_soon = keystream::soft_passed(*slot, now);
    status.expired = keystream::hard_passed(*slot, now);
    status.age = std::chrono::milliseconds(now - slot->born_ms);
    status.since_packet = std::chrono::milliseconds(now - slot->packet_ms);
    status.why = filler->why_direct(*this, *slot);
    status.ahead = status.why.empty();
    return status;
}

}  // namespace dael
