// SPDX-License-Identifier: Apache-2.0
// Who gets keystream next, and how much: shares of the budget by recent rate, refills in the order
// in which they were asked for, and deficit round robin (Shreedhar and Varghese, 1995) where more
// is asked for than comes. All of it under the scheduler's mutex.
#include <algorithm>
#include <cmath>
#include <new>

#include "keystream/table.hpp"

namespace dael {

using namespace keystream;

namespace {

constexpr std::uint64_t kNever = ~std::uint64_t{0};
constexpr std::uint64_t kLeastQuantum = std::uint64_t{16} << 10;
constexpr double kMemory = 0.005;         // seconds over which rates are averaged
constexpr std::uint64_t kLeastSlots = 8;  // of a share
constexpr std::uint64_t kMaxLead = 4;     // shares
constexpr std::uint64_t kSweepTicks = 64;
constexpr std::uint64_t kPressed = 1000;                       // ticks
constexpr std::uint64_t kLeastShare = std::uint64_t{8} << 10;  // bytes, of an SA's packets of 1 KiB
constexpr std::chrono::steady_clock::duration kMaxTick = std::chrono::milliseconds(100);

// The longest slot that wastes no more than `most_waste` of its keystream on the packets of late:
// with k blocks for each, a packet that needs n uses min(n, k).
std::uint32_t slot_blocks(const RecentNeeds& recent, double most_waste, std::uint64_t most) {
    std::array<std::uint16_t, RecentNeeds::kCount> needs;
    const std::size_t count = recent.sorted(needs);
    if (count == 0) return 1;
    const double all = static_cast<double>(count);
    double below = 0;  // blocks of those that need less than needs[i]
    double best = needs[0];
    for (std::size_t i = 0; i < count; ++i) {
        // Between needs[i - 1] and needs[i]: below + (count - i) k >= (1 - waste) count k.
        const double slope = (1 - most_waste) * all - (all - static_cast<double>(i));
        const double k = slope <= 0 ? needs[i] : std::min<double>(needs[i], below / slope);
        best = std::max(best, k);
        if (k < needs[i]) break;
        below += needs[i];
    }
    return static_cast<std::uint32_t>(std::clamp<double>(best, 1, static_cast<double>(most)));
}

double average(const RecentNeeds& recent) {
    std::array<std::uint16_t, RecentNeeds::kCount> needs;
    const std::size_t count = recent.sorted(needs);
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) sum += needs[i];
    return count == 0 ? 1 : sum / static_cast<double>(count);
}

// One above the last number that may be asked for.
std::uint64_t end_of(const SaSlot& slot) {
    const SaOptions& options = slot.options;
    if (options.layout == SaLayout::stream) {
        const Uint128 end = (((slot.base >> 96) + 1) << 96) - slot.base;
        return end < kMaxPosition ? static_cast<std::uint64_t>(end) : kMaxPosition;
    }
    return options.direction == SaDirection::sending ? options.limit + 1 : kClassNumbers;
}

// Whether it wants keystream, and has none for its next packets.
bool is_dry(const SaSlot& slot) {
    return std::ranges::any_of(slot.tracks, [](const Track& track) {
        return track.wanting && track.ordered <= track.next.load(std::memory_order_relaxed);
    });
}

}  // namespace

std::size_t RecentNeeds::sorted(std::array<std::uint16_t, kCount>& to) const noexcept {
    std::size_t count = 0;
    for (const auto& need : needs_)
        if (const auto blocks = need.load(std::memory_order_relaxed)) to[count++] = blocks;
    std::sort(to.begin(), to.begin() + static_cast<std::ptrdiff_t>(count));
    return count;
}

std::string SaFiller::State::why(const SaTable::State& table, const SaSlot& slot) const {
    if (resting_) return "the filler has failed, and will be tried again: " + fault_;
    if (table.options.plan == SaTableOptions::Plan::direct) return "the table was opened so";
    if (table.options.plan == SaTableOptions::Plan::measured && !table.measured.pays())
        return "the direct path is as fast here, as measured";
    if (slot.options.quota == 0) return "its quota is 0";
    if (table.lost == table.buffers.size())
        return "the device could not be waited for with any of the table's memory, which stays";
    return slot.why;
}

bool SaFiller::State::plans_ahead(const SaTable::State& table) noexcept {
    const auto plan = table.options.plan;
    return plan == SaTableOptions::Plan::ahead ||
           (plan == SaTableOptions::Plan::measured && table.measured.pays());
}

bool SaFiller::State::ahead(const SaTable::State& table, const SaSlot& slot) const noexcept {
    return slot.options.quota != 0 && slot.why.empty() && plans_ahead(table);
}

void SaFiller::State::stop_asking(SaSlot& slot) noexcept {
    for (Track& track : slot.tracks) {
        track.refill_at.store(kNever, std::memory_order_relaxed);
        if (track.wanting) {
            track.wanting = false;
            track.asked.store(false, std::memory_order_release);
        }
    }
}

// Everybody who has asked since is queued.
void SaFiller::State::collect() {
    if (!asking_.load(std::memory_order_relaxed)) return;  // leaves its cache line where it is
    Track* track = asking_.exchange(nullptr, std::memory_order_acq_rel);
    // They were pushed, so the last one is first.
    Track* in_order = nullptr;
    while (track) {
        Track* const next = track->next_asking;
        track->next_asking = in_order;
        in_order = track;
        track = next;
    }
    while (in_order) {
        Track& asking = *in_order;
        in_order = asking.next_asking;  // it may ask again from here on
        SaSlot& slot = *asking.slot;
        if (!slot.key) {
            asking.asked.store(false, std::memory_order_release);
            continue;
        }
        const bool wanted = ahead(*slot.table, slot);
        try {
            if (!slot.active) {
                slot.table->active.push_back(&slot);
                slot.active = true;
                slot.idle_seconds = 0;
            }
            if (wanted && !slot.queued) {
                queue_.push_back(&slot);
                slot.queued = true;
            }
        } catch (const std::bad_alloc&) {  // it asks again, as all others do
            asking.asked.store(false, std::memory_order_release);
            continue;
        }
        if (!wanted) {
            asking.refill_at.store(kNever, std::memory_order_relaxed);
            asking.asked.store(false, std::memory_order_release);
            continue;
        }
        asking.wanting = true;
        stuck_ = false;
    }
}

// Bytes of keystream that may wait for a track, or be under way.
std::uint64_t SaFiller::State::share(const Track& track, std::uint64_t slot_bytes) const {
    const SaTable::State& table = table_of(track);
    const double budget =
        static_cast<double>(table.options.budget) * 7 / 8;  // the rest: who is new
    double part = 1.0 / 16;                                 // where nothing is known yet
    if (track.rate > 0 && table.rate > 0) part = std::min(1.0, track.rate / table.rate);
    const auto bytes = static_cast<std::uint64_t>(budget * part);
    return std::min(std::max(bytes, kLeastSlots * slot_bytes), track.slot->options.quota);
}

// The next window of a track; none (count 0) if it has enough, and then when it is to ask again.
SaFiller::State::Wish SaFiller::State::wish(Track& track) const {
    const SaTable::State& table = table_of(track);
    const SaSlot& slot = *track.slot;
    const bool stream = slot.options.layout == SaLayout::stream;
    Wish wish;
    if (!stream)
        wish.blocks = slot_blocks(track.recent, table.options.most_waste, table.options.block / 16);
    const std::uint64_t number_bytes = std::uint64_t{16} * wish.blocks;
    // A packet is many numbers in a stream, and windows should hold some packets.
    const std::uint64_t packet_bytes =
        stream ? static_cast<std::uint64_t>(16 * average(track.recent)) + 16 : number_bytes;
    std::uint64_t mine = share(track, packet_bytes);
    const std::uint64_t window = std::clamp<std::uint64_t>(
        std::max(mine / 8, std::min(mine / 2, kLeastQuantum)), packet_bytes, table.options.block);
    // No more than the track can hold.
    mine = std::min(mine, (Track::kWindows - 2) * window);
    const std::uint64_t next = track.next.load(std::memory_order_relaxed);
    if (slot.options.direction == SaDirection::receiving) {
        // A part of the share stays behind, for packets that come late.
        const std::uint64_t behind = std::min(table.options.overlap * packet_bytes, mine / 4);
        track.keep.store(static_cast<std::uint32_t>(behind / number_bytes),
                         std::memory_order_relaxed);
        mine -= behind;
    }
    // What is ordered now finds the numbers used that come before it is there: where there was
    // nothing, a run begins beyond them. Those numbers take no memory.
    const std::uint64_t reached =
        next + std::min<std::uint64_t>(track.lead.load(std::memory_order_relaxed),
                                       kMaxLead * mine / number_bytes);
    const bool dry = track.ordered <= reached;
    wish.first = std::max(track.ordered, reached);
    const std::uint64_t from = dry ? wish.first : std::max(next, track.run);
    const std::uint64_t ahead = (wish.first - from) * number_bytes;
    const std::uint64_t end = end_of(slot);
    if (mine < packet_bytes || wish.first >= end) {
        track.refill_at.store(kNever, std::memory_order_relaxed);
        return wish;
    }
    if (!dry && ahead + window > mine) {
        const std::uint64_t until = (ahead + window - mine + number_bytes - 1) / number_bytes;
        track.refill_at.store(from + until, std::memory_order_relaxed);
        return wish;
    }
    // Those that are there may be of a time when its share, and so each of them, was smaller.
    if (track.waiting.load(std::memory_order_relaxed) == Track::kWindows) {
        track.refill_at.store(next + std::max<std::uint64_t>(window / number_bytes, 1),
                              std::memory_order_relaxed);
        return wish;
    }
    if (dry) track.run = wish.first;
    wish.count = std::min(std::max<std::uint64_t>(window / number_bytes, 1), end - wish.first);
    return wish;
}

// As many of a slot's windows as its deficit and the buffer allow. Whether it has all it wants.
bool SaFiller::State::add_windows(Fill& fill, SaSlot& slot, std::uint64_t quantum) {
    // What it could not have for want of room it is not owed for ever.
    slot.deficit = std::min<std::uint64_t>(slot.deficit, fill.table->options.block) + quantum;
    FillBuffer& buffer = *fill.buffer;
    bool content = true;
    for (std::size_t which = 0; which < kClasses; ++which) {
        Track& track = slot.tracks[which];
        while (track.wanting) {
            Wish its = wish(track);
            if (its.count == 0) {
                track.wanting = false;
                track.asked.store(false, std::memory_order_release);
                break;
            }
            const std::uint64_t bytes = std::uint64_t{16} * its.blocks;
            const SaTableOptions& limits = fill.table->options;
            const std::uint64_t live = fill.table->live.load(std::memory_order_relaxed);
            const std::uint64_t most = std::min<std::uint64_t>(
                limits.block, live < limits.budget ? limits.budget - live : 0);
            const std::uint64_t room =
                fill.bytes >= most ? 0
                                   : std::min<std::uint64_t>((most - fill.bytes) / bytes,
                                                             kMaxMessages - 2 - fill.messages);
            its.count = std::min({its.count, room, slot.deficit / bytes});
            if (its.count == 0 || buffer.count == kMaxWindows) {
                content = false;
                break;
            }
            Stretch order;
            order.key = slot.key;
            order.key_serial = slot.key_serial;
            order.layout = slot.options.layout;
            order.salt = slot.options.salt;
            order.iv_bits = std::uint64_t{which} << kClassShift;
            order.base = slot.base;
            order.first = its.first;
            order.end = its.first + its.count;
            order.blocks = its.blocks;
            order.offset = fill.bytes;
            fill.stretches.push_back(std::move(order));
            Window& window = buffer.windows[buffer.count++];
            window = {its.first,  its.first + its.count,
                      its.blocks, buffer.memory + fill.bytes,
                      &buffer,    &track,
                      slot.epoch, track.next.load(std::memory_order_relaxed),
                      nullptr,    false};
            track.ordered = window.end;
            track.waiting.fetch_add(1, std::memory_order_relaxed);
            fill.messages += messages_of(fill.stretches.back());
            fill.bytes += window.bytes();
            slot.deficit -= std::min<std::uint64_t>(slot.deficit, window.bytes());
        }
    }
    return content;
}

// Where a table's windows can go now; null: nowhere. The first that is free, so that no more memory
// is in turn than has to be, and the caches keep it.
FillBuffer* SaFiller::State::free_buffer(SaTable::State& table) {
    if (table.looked_at == composed_) return nullptr;  // for this fill there was none already
    if (table.live.load(std::memory_order_seq_cst) + kLeastQuantum <= table.options.budget)
        for (const auto& buffer : table.buffers)
            if (!buffer->taken && buffer->live.load(std::memory_order_seq_cst) == 0)
                return buffer.get();
    table.looked_at = composed_;
    return nullptr;
}

// A buffer's worth of windows of one table. False: nobody wants, or nothing is free.
bool SaFiller::State::compose(Fill& fill) {
    fill.table = nullptr;
    fill.buffer = nullptr;
    fill.stretches.clear();
    fill.bytes = fill.messages = 0;
    if (queue_.empty() || stuck_ || resting_) return false;
    ++composed_;
    // Before any buffer is looked at: of what is given back afterwards this thread is told.
    want_room_.store(true, std::memory_order_seq_cst);
    std::uint64_t quantum = 0;
    const std::size_t once = queue_.size();
    std::size_t passed = 0;  // by, since somebody was served
    bool tried = false;
    while (!queue_.empty() && passed < (tried ? 5 * once : once)) {
        SaSlot& slot = *queue_.front();
        SaTable::State& table = *slot.table;
        if (!fill.table) {
            fill.buffer = free_buffer(table);
            if (fill.buffer) {
                fill.table = &table;
                fill.buffer->count = 0;
                quantum = std::max<std::uint64_t>(kLeastQuantum, table.options.block / once);
            } else {
                table.blocked = table.blocked || is_dry(slot);
            }
        }
        queue_.pop_front();
        if (fill.table != &table) {
            queue_.push_back(&slot);
            ++passed;
            continue;
        }
        tried = true;
        const std::size_t before = fill.bytes;
        if (add_windows(fill, slot, quantum)) {
            slot.queued = false;
            slot.deficit = 0;
        } else {
            queue_.push_back(&slot);
        }
        passed = fill.bytes == before ? passed + 1 : 0;
        if (fill.bytes == 0)
            fill.table = nullptr;  // another table may want something that there is room for
        else if (fill.bytes + kLeastQuantum > table.options.block ||
                 fill.buffer->count == kMaxWindows || fill.messages + 2 >= kMaxMessages)
            break;
    }
    if (queue_.empty()) want_room_.store(false, std::memory_order_relaxed);
    if (fill.bytes == 0) {
        stuck_ = true;
        return false;
    }
    FillBuffer& buffer = *fill.buffer;
    buffer.bytes = fill.bytes;
    // What is not written over would be nobody's from here on, and would not be found when its SA
    // goes.
    if (buffer.dirty > fill.bytes)
        dael::wipe(buffer.memory + fill.bytes, buffer.dirty - fill.bytes);
    buffer.dirty = fill.bytes;
    buffer.taken = true;
    buffer.order = ++buffer_order_;
    buffer.live.store(static_cast<std::uint32_t>(buffer.count), std::memory_order_relaxed);
    fill.table->live.fetch_add(fill.bytes, std::memory_order_relaxed);
    ++fill.table->under_way;
    return true;
}

// What packets came of late, for all who had some.
void SaFiller::State::tick(Clock::time_point now) {
    const double seconds = std::chrono::duration<double>(now - last_tick_).count();
    last_tick_ = now;
    ++ticks_;
    stuck_ = false;
    for (SaTable::State* table : tables_) look_at(*table, seconds, now);
    if (ticks_ % kSweepTicks == 0) sweep();
    // With very many SAs a look takes long: then there are fewer of them.
    pause_ = std::clamp<Clock::duration>(8 * (Clock::now() - now), kTick, kMaxTick);
}

// What was used is wiped, whoever else goes on: buffers beyond those that are in turn may not be
// filled again for long. Those that were filled since the last time are in turn.
void SaFiller::State::sweep() noexcept {
    for (SaTable::State* table : tables_)
        for (const auto& buffer : table->buffers)
            if (buffer->dirty != 0 && !buffer->taken && buffer->order <= swept_ &&
                buffer->live.load(std::memory_order_seq_cst) == 0)
                wipe_buffer(*buffer);
    swept_ = buffer_order_;
}

void SaFiller::State::wipe_buffer(FillBuffer& buffer) noexcept {
    dael::wipe(buffer.memory, buffer.dirty);
    buffer.dirty = 0;
}

// Under the slot's mutex, too: its windows that are over lie where they lay, until others are
// filled in there. Buffers that are being filled are written over, or wiped if that fails.
void SaFiller::State::wipe_used(SaTable::State& table, const SaSlot& slot) noexcept {
    for (const auto& buffer : table.buffers) {
        if (buffer->taken || buffer->dirty == 0) continue;
        for (std::size_t i = 0; i < buffer->count; ++i) {
            const Window& window = buffer->windows[i];
            if (window.track->slot == &slot && window.over) dael::wipe(window.data, window.bytes());
        }
    }
}

void SaFiller::State::look_at(SaTable::State& table, double seconds, Clock::time_point now) {
    const double weight = seconds / (seconds + kMemory);
    table.rate = 0;
    for (std::size_t i = 0; i < table.active.size();) {
        SaSlot& slot = *table.active[i];
        bool any = false;
        for (Track& track : slot.tracks) {
            const std::uint64_t needed = track.needed.load(std::memory_order_relaxed);
            const std::uint64_t more = needed - track.needed_then;
            track.needed_then = needed;
            track.rate += weight * (static_cast<double>(more) / seconds - track.rate);
            table.rate += track.rate;
            any = any || more != 0;
        }
        slot.idle_seconds = any ? 0 : slot.idle_seconds + seconds;
        if (slot.idle_seconds * 1000 > table.options.idle_ms && slot.mutex.try_lock()) {
            const std::lock_guard lock(slot.mutex, std::adopt_lock);
            release_idle(table, slot, now);
            table.active[i] = table.active.back();
            table.active.pop_back();
            continue;
        }
        if (slot.direct_until == Clock::time_point{}) judge(slot);
        judge_waste(table, slot, now);
        ++i;
    }
    if (table.blocked) {
        table.pressed = ticks_;
        if (!shrink(table) && ++table.blocked_ticks > 2) drop_newest(table);
    } else {
        table.blocked_ticks = 0;
    }
    table.blocked = false;
}

// Where a peer's IVs do not count up, no window is ever hit: such an SA is left direct for a while,
// each time for twice as many packets.
void SaFiller::State::judge(SaSlot& slot) {
    constexpr std::uint64_t kEnough = 256, kFirst = 4096, kMax = std::uint64_t{1} << 22;
    if (slot.options.direction != SaDirection::receiving) return;
    const std::uint64_t seen = slot.seen.load(std::memory_order_relaxed);
    const std::uint64_t strays = slot.seen_strays.load(std::memory_order_relaxed);
    if (!slot.why.empty()) {
        if (seen < slot.resume_at) return;
        slot.why.clear();
        for (Track& track : slot.tracks) track.refill_at.store(0, std::memory_order_relaxed);
    } else {
        const std::uint64_t packets = seen - slot.seen_then, stray = strays - slot.strays_then;
        if (packets < kEnough) return;
        if (stray * 2 > packets) {
            slot.penalty = std::clamp(2 * slot.penalty, kFirst, kMax);
            slot.resume_at = seen + slot.penalty;
            slot.why = "its peer's IVs do not count up: of " + std::to_string(packets) +
                       " packets " + std::to_string(stray) + " were nowhere near the one before";
            stop_asking(slot);
        } else {
            slot.penalty = 0;
        }
    }
    slot.seen_then = seen;
    slot.strays_then = strays;
}

// Where others wait for room, and there is too little for all that are active, who gives up nearly
// all that was made for it before packets come to it (very many SAs, each with little traffic) is
// left direct for a while, each time for twice as long.
void SaFiller::State::judge_waste(const SaTable::State& table, SaSlot& slot,
                                  Clock::time_point now) {
    constexpr std::uint64_t kEnough = std::uint64_t{32} << 10;  // bytes
    constexpr Clock::duration kFirst = std::chrono::seconds(1), kMax = std::chrono::minutes(1);
    if (slot.direct_until != Clock::time_point{}) {
        if (now < slot.direct_until) return;
        slot.direct_until = {};
        slot.why.clear();
        for (Track& track : slot.tracks) track.refill_at.store(0, std::memory_order_relaxed);
        return;
    }
    const std::uint64_t made = slot.made.load(std::memory_order_relaxed) - slot.made_then;
    const std::uint64_t dropped = slot.dropped.load(std::memory_order_relaxed) - slot.dropped_then;
    if (made < kEnough) return;
    slot.made_then += made;
    slot.dropped_then += dropped;
    if (dropped * 8 < made * 7) {
        slot.rest = {};
    } else if (slot.why.empty() && ticks_ - table.pressed < kPressed && table.pressed != 0 &&
               table.active.size() * kLeastShare > table.options.budget) {
        slot.why =
            "of the keystream that was made for it nearly all was given up before packets came, "
            "and others wait for room";
        slot.rest = std::clamp(2 * slot.rest, kFirst, kMax);
        slot.direct_until = now + slot.rest;
        stop_asking(slot);
    }
}

// Under the slot's mutex too. What is under way for it is thrown away when it comes.
void SaFiller::State::release_idle(SaTable::State& table, SaSlot& slot,
                                   Clock::time_point now) noexcept {
    slot.active = false;
    table.drop_all(slot);
    // Who was found to waste is still, when it comes back: it asks once, to be looked at.
    const bool may_ask = slot.options.quota != 0 && plans_ahead(table);
    if (slot.direct_until <= now) {
        slot.direct_until = {};
        slot.why.clear();
    }
    for (Track& track : slot.tracks) {
        track.ordered = 0;
        track.rate = 0;
        track.refill_at.store(may_ask ? 0 : kNever, std::memory_order_relaxed);
    }
}

// Others wait: what was kept for late packets goes, and of those who have more than their share by
// now what they would need last.
bool SaFiller::State::shrink(SaTable::State& table) noexcept {
    bool any = false;
    for (SaSlot* slot : table.active) {
        if (!slot->mutex.try_lock()) continue;
        const std::lock_guard lock(slot->mutex, std::adopt_lock);
        for (Track& track : slot->tracks) {
            table.take_in(track, 0, slot->counters);
            const std::uint64_t next = track.next.load(std::memory_order_relaxed);
            while (track.held > 0 && track.windows[0]->end <= next) {  // kept for late packets
                table.drop(track, 0);
                any = true;
            }
            while (track.held > 1) {
                Window& last = *track.windows[track.held - 1];
                const std::uint64_t bytes = std::uint64_t{16} * last.blocks;
                if (last.first <= next ||
                    (last.first - next) * bytes < share(track, bytes) + last.bytes())
                    break;
                if (track.ordered == last.end) track.ordered = last.first;
                table.drop(track, track.held - 1);
                any = true;
            }
        }
    }
    return any;
}

// Somebody has nothing, and no buffer is free: the one that was filled last holds what is needed
// last.
void SaFiller::State::drop_newest(SaTable::State& table) noexcept {
    table.blocked_ticks = 0;
    FillBuffer* newest = nullptr;
    for (const auto& buffer : table.buffers)
        if (!buffer->taken && buffer->live.load(std::memory_order_acquire) != 0 &&
            (!newest || buffer->order > newest->order))
            newest = buffer.get();
    if (!newest) return;
    for (std::size_t i = 0; i < newest->count; ++i) {
        Track& track = *newest->windows[i].track;
        if (!track.slot->mutex.try_lock()) continue;
        const std::lock_guard lock(track.slot->mutex, std::adopt_lock);
        table.take_in(track, 0, track.slot->counters);
        for (std::uint32_t at = track.held; at-- > 0;) {
            const Window& window = *track.windows[at];
            if (window.buffer != newest) continue;
            if (track.ordered == window.end) track.ordered = window.first;
            table.drop(track, at);
        }
    }
}

}  // namespace dael
