// SPDX-License-Identifier: Apache-2.0
#include "pipeline/work_queue.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

namespace dael::pipeline {
namespace {

// Chunks of messages that are cut are whole pages, where that goes.
constexpr std::size_t kPage = 4096;
// A worker's rate is known when it has done so many bytes, and so many chunks. Before, what it has
// done was set up, too.
constexpr std::uint64_t kKnownBytes = std::uint64_t{32} << 20, kKnownChunks = 4;
constexpr double kSetUp = 4;

// Whether what was written of it, in part, may have been its input.
bool overwrites_input(const Cipher& cipher, const Message& m) noexcept {
    if (m.size != 0 && m.in == m.out) return true;
    return m.tag && (modes::overlap(m.tag, cipher.tag, m.in, m.size) ||
                     modes::overlap(m.tag, cipher.tag, m.aad, m.aad_size));
}

}  // namespace

WorkQueue::WorkQueue(const Request& request, bool by_key)
    : request_(request),
      cipher_(request.cipher),
      cuts_(modes::can_cut(request.cipher)),
      unit_(modes::traits(request.cipher.mode).unit(request.cipher)) {
    largest_ = cuts_ ? (unit_ + kBlockSize - 1) / kBlockSize * kBlockSize : 0;
    const auto look = [&](std::size_t first, std::size_t count) -> Result<> {
        for (const Message& message : request_.messages.subspan(first, count)) {
            const std::size_t its = footprint(cipher_, message);
            size_ += bytes_of(message);
            longest_ = std::max({longest_, message.size, message.size + message.aad_size});
            if (!cuts_) largest_ = std::max(largest_, its);
        }
        return {};
    };
    (void)for_each_valid(request_, 0, request_.messages.size(), look);
    left_ = undone_ = size_;
    if (!by_key) return;
    order_.resize(request_.messages.size());
    std::iota(order_.begin(), order_.end(), std::size_t{0});
    std::ranges::stable_sort(order_, {}, [&](std::size_t i) { return request_.messages[i].key; });
}

WorkQueue::Member::Member(WorkQueue& queue, double rate) noexcept : queue_(queue), rate_(rate) {
    const std::lock_guard lock(queue_.mutex_);
    next_ = std::exchange(queue_.members_, this);
}

WorkQueue::Member::~Member() {
    const std::lock_guard lock(queue_.mutex_);
    Member** at = &queue_.members_;
    while (*at != this) at = &(*at)->next_;
    *at = next_;
}

// Of a message that is cut the parts must come to the whole: footprint() rounds each up.
std::uint64_t WorkQueue::bytes_of(const Message& message) const noexcept {
    return cuts_ ? message.size : footprint(cipher_, message);
}

// Bytes that a worker may take now: of what is left, its share is what its rate is of all rates.
std::size_t WorkQueue::bound(const Member& member, const Wish& wish) const noexcept {
    if (wish.in_parts == 0) return wish.size;
    const auto now = std::chrono::steady_clock::now();
    const auto rate = [&](const Member& one) {
        if (one.chunks_ == 0) return one.rate_;
        const std::chrono::duration<double> elapsed = now - one.since_;
        const double seen = static_cast<double>(one.bytes_) / std::max(elapsed.count(), 1e-9);
        const bool known = one.bytes_ >= kKnownBytes && one.chunks_ >= kKnownChunks;
        return known ? seen : std::min(one.rate_, kSetUp * seen);
    };
    // Whoever has done nothing yet may be far slower than was thought.
    if (member.chunks_ == 0 && members_ != nullptr && members_->next_ != nullptr)
        return std::min(wish.size, wish.least);
    double all = 0;
    for (const Member* one = members_; one; one = one->next_) all += rate(*one);
    if (all <= 0) return std::min(wish.size, wish.least);
    const double share = static_cast<double>(left_) * rate(member) / all / wish.in_parts;
    return std::min(wish.size, std::max(wish.least, static_cast<std::size_t>(share)));
}

// How much of a message that can be cut goes into a chunk of `size` bytes.
std::uint64_t WorkQueue::part_of(const Message& rest, std::size_t size) const noexcept {
    if (rest.size + rest.skip <= size / unit_ * unit_) return rest.size;
    const std::size_t step = std::max(cipher_.mode == Mode::xts ? unit_ : kPage, unit_);
    std::size_t most = size / step * step;
    if (most == 0) most = std::max(size / unit_ * unit_, unit_);
    return std::min(rest.size, most - rest.skip);
}

Taken WorkQueue::take(const Member& member, const Wish& wish) {
    Taken taken(1);
    Chunk& chunk = taken.front();
    const std::lock_guard lock(mutex_);
    const std::size_t size = bound(member, wish);
    if (!returned_.empty())
        take_returned(wish, size, chunk);
    else
        take_next(wish, size, chunk);
    if (chunk.pieces.empty()) return {};
    for (const Piece& piece : chunk.pieces) left_ -= bytes_of(piece.message);
    return taken;
}

// What was given back is taken in the chunks that it came in, or parts of them, from their ends.
void WorkQueue::take_returned(const Wish& wish, std::size_t size, Chunk& chunk) {
    std::vector<Piece>& from = returned_.front().pieces;
    Piece& last = from.back();
    const std::uint64_t part = cuts_ ? part_of(last.message, size) : last.message.size;
    if (part != last.message.size) {
        chunk.pieces.push_back(last);
        chunk.pieces[0].message = modes::slice(cipher_, last.message, 0, part);
        last.message = modes::slice(cipher_, last.message, part, last.message.size - part);
        return;
    }
    std::size_t count = 1, used = footprint(cipher_, last.message);
    for (; count < from.size() && count < wish.most_pieces; ++count) {
        const Message& next = from[from.size() - 1 - count].message;
        if (wish.one_key && next.key != last.message.key) break;
        used += footprint(cipher_, next);
        if (used > size && (count >= wish.least_pieces || used > wish.size)) break;
    }
    const auto first = from.end() - static_cast<std::ptrdiff_t>(count);
    chunk.pieces.assign(first, from.end());
    from.erase(first, from.end());
    if (from.empty()) returned_.pop_front();
}

void WorkQueue::take_next(const Wish& wish, std::size_t size, Chunk& chunk) {
    Cursor cursor = cursor_;
    const std::size_t count = request_.messages.size();
    std::size_t used = 0;
    for (; cursor.next < count && chunk.pieces.size() < wish.most_pieces; ++cursor.next) {
        const std::size_t index = index_at(cursor.next);
        if (cursor.at == 0 && request_.codes[index] != Code::ok) continue;  // refused
        Message rest = cursor.at != 0 ? cursor.rest : request_.messages[index];
        if (rest.size == 0 && !authenticates(cipher_.mode)) continue;
        if (wish.one_key && !chunk.pieces.empty() && rest.key != chunk.pieces.front().message.key)
            break;
        const std::uint64_t part = cuts_ ? part_of(rest, size) : rest.size;
        Message taken = rest;
        if (part != rest.size) taken = modes::slice(cipher_, rest, 0, part);
        used += footprint(cipher_, taken);
        const std::size_t have = chunk.pieces.size();
        if (have != 0 && used > size && (have >= wish.least_pieces || used > wish.size)) break;
        chunk.pieces.push_back({taken, index});
        if (part == rest.size) {
            cursor.at = 0;
            continue;
        }
        cursor.rest = modes::slice(cipher_, rest, part, rest.size - part);
        cursor.at += part;
        break;  // as full as it gets
    }
    cursor_ = cursor;
}

void WorkQueue::finish(Member& member, Taken taken) noexcept {
    if (taken.empty()) return;
    Chunk& chunk = taken.front();
    const std::lock_guard lock(mutex_);
    for (Piece& piece : chunk.pieces) {
        if (piece.stand != Stand::done && authenticates(cipher_.mode))
            request_.codes[piece.index] = Code::ok;  // whatever was found so far
        if (piece.stand == Stand::untouched) continue;
        touched_ = true;
        if (piece.stand == Stand::done) {
            member.bytes_ += bytes_of(piece.message);
            undone_ -= bytes_of(piece.message);
        } else if (overwrites_input(cipher_, piece.message)) {
            lost_bytes_ += bytes_of(piece.message);
            request_.codes[piece.index] = Code::internal;
        } else {
            piece.stand = Stand::untouched;
            piece.written = true;
        }
    }
    std::erase_if(chunk.pieces, [](const Piece& piece) { return piece.stand != Stand::untouched; });
    for (const Piece& piece : chunk.pieces) left_ += bytes_of(piece.message);
    if (chunk.pieces.empty())
        ++member.chunks_;
    else
        returned_.splice(returned_.begin(), taken);
}

bool WorkQueue::empty() noexcept {
    const std::lock_guard lock(mutex_);
    return left_ == 0;
}
bool WorkQueue::all_done() noexcept {
    const std::lock_guard lock(mutex_);
    return undone_ == 0;
}

void WorkQueue::tell(Code code) noexcept {
    const std::lock_guard lock(mutex_);
    const bool missing = undone_ != left_ + lost_bytes_;  // with a thread that has ended
    if (missing || !touched_) {
        std::ranges::fill(request_.codes, missing ? Code::internal : code);
        return;
    }
    // What nobody has begun with.
    for (std::size_t i = cursor_.next + (cursor_.at != 0); i < request_.messages.size(); ++i) {
        const std::size_t index = index_at(i);
        if (request_.messages[index].size == 0 && !authenticates(cipher_.mode)) continue;
        if (request_.codes[index] == Code::ok) request_.codes[index] = code;
    }
    // What has come back, in part or whole. Of messages that are in parts there are few.
    const auto each_part = [&](auto visit) {
        for (const Chunk& chunk : returned_)
            for (const Piece& piece : chunk.pieces)
                visit(piece.index, piece.message.size, piece.written);
        if (cursor_.at != 0) visit(index_at(cursor_.next), cursor_.rest.size, false);
    };
    each_part([&](std::size_t index, std::uint64_t size, bool written) {
        Code& its = request_.codes[index];
        if (its == Code::internal) return;  // lost, or told already
        if (size != request_.messages[index].size) {
            size = 0;
            each_part([&](std::size_t other, std::uint64_t part, bool part_written) {
                if (other != index) return;
                size += part;
                written |= part_written;
            });
        }
        its = written || size != request_.messages[index].size ? Code::internal : code;
    });
}

}  // namespace dael::pipeline
