// SPDX-License-Identifier: Apache-2.0
#include "pipeline/share.hpp"

#include <algorithm>

#include "core/guard.hpp"

namespace dael::pipeline {
namespace {

// What one more thread must get to be worth waking. Waking takes 5 to 20 microseconds; in that time
// a core does 128 KiB in the parallel modes and 16 KiB in the sequential ones.
constexpr std::uint64_t kWorthParallel = std::uint64_t{128} << 10;
constexpr std::uint64_t kWorthSequential = std::uint64_t{16} << 10;

// Shares are small enough that threads which the system slows down do not hold up the call, and
// large enough that taking one costs nothing beside it. 64 KiB also keeps whole pages together.
constexpr std::uint64_t kSmallestShare = std::uint64_t{64} << 10;
constexpr std::uint64_t kLargestPiece = std::uint64_t{1} << 20;
constexpr std::uint64_t kLargestWhole = std::uint64_t{4} << 20;  // of messages that are not cut
constexpr std::uint64_t kSharesPerThread = 8;

// AEGIS is sequential, and yet as fast in one message as in several.
bool sequential(const Cipher& cipher) noexcept {
    return !is_aegis(cipher.mode) && !parallel_within_message(cipher.mode, cipher.direction);
}

// The weight of a share.
std::uint64_t share_size(const Cipher& cipher, std::uint64_t weight, int threads) {
    const std::uint64_t even = weight / (static_cast<std::uint64_t>(threads) * kSharesPerThread);
    return std::clamp(even, kSmallestShare,
                      modes::can_cut(cipher) ? kLargestPiece : kLargestWhole) /
           kSmallestShare * kSmallestShare;
}

// Neighbours in a list, collected until a share is full.
class Collector {
  public:
    Collector(std::uint64_t full, bool of_parts, std::vector<Share>& shares)
        : full_(full), shares_(shares), open_{0, 0, 0, of_parts} {}
    void add(std::size_t begin, std::size_t end, std::uint64_t weight) {
        if (open_.end != begin || open_.weight + weight > full_) close();
        if (open_.end == open_.begin) open_.begin = begin;
        open_.end = end;
        open_.weight += weight;
    }
    // What was collected is a share, if it is anything.
    void close() {
        if (open_.end != open_.begin) shares_.push_back(open_);
        open_ = {0, 0, 0, open_.of_parts};
    }

  private:
    const std::uint64_t full_;
    std::vector<Share>& shares_;
    Share open_;
};

// `message` in parts of `piece` bytes or less, to the end of `parts`.
void cut(const Cipher& cipher, const Message& message, std::uint64_t piece,
         std::vector<Message>& parts) {
    const std::uint64_t unit = modes::traits(cipher.mode).unit(cipher);
    const std::uint64_t step = std::max(piece / unit, std::uint64_t{1}) * unit;
    for (std::uint64_t at = 0; at < message.size;) {
        const std::uint64_t whole = at == 0 ? step - message.skip : step;
        const std::uint64_t size = std::min(whole, message.size - at);
        parts.push_back(modes::slice(cipher, message, at, size));
        at += size;
    }
}

// At least an even share each, and where there are more than the lanes take, several rounds of
// lanes: a lane by itself takes no less time than all lanes together.
std::size_t group_size(std::size_t messages, std::size_t threads) {
    const std::size_t even = (messages + threads - 1) / threads;
    const std::size_t finer = messages / (threads * kSharesPerThread);
    return even <= kLanes ? even : std::max(kLanes, finer / kLanes * kLanes);
}

// As they stand where they come longest first anyhow, else in an order of their own.
Shares share_out_sequential(const Request& request, const Survey& survey, std::size_t threads) {
    Shares result;
    auto& parts = result.parts;
    std::size_t count = request.messages.size();
    if (!survey.shrinking) {
        (void)for_each_valid(request, 0, count, [&](std::size_t first, std::size_t its) {
            const auto valid = request.messages.subspan(first, its);
            parts.insert(parts.end(), valid.begin(), valid.end());
            return Result<>{};
        });
        std::ranges::stable_sort(parts, std::ranges::greater{}, &Message::size);
        count = parts.size();
    }
    const std::size_t group = std::max<std::size_t>(group_size(count, threads), 1);
    for (std::size_t begin = 0; begin < count; begin += group)
        result.shares.push_back({begin, std::min(begin + group, count), 0, !survey.shrinking});
    return result;
}

// A message that no share of many holds: by itself or, where that is possible, cut.
void share_out_long(const Request& request, std::size_t index, std::uint64_t weight,
                    std::uint64_t full, Collector& whole, std::vector<Message>& parts) {
    if (weight <= full || !modes::can_cut(request.cipher))
        return whole.add(index, index + 1, weight);
    (void)for_each_valid(request, index, index + 1, [&](std::size_t, std::size_t) -> Result<> {
        cut(request.cipher, request.messages[index], full, parts);
        return {};
    });
}

Shares share_out_parallel(const Request& request, const Survey& survey, std::uint64_t full) {
    Shares result;
    Collector whole(full, false, result.shares), pieces(full, true, result.shares);
    const auto messages = request.messages;
    for (std::size_t begin = 0; begin < messages.size(); begin += kGroup) {
        const std::size_t count = std::min(kGroup, messages.size() - begin);
        const Group its = survey.groups.empty()
                              ? look_at(request.cipher, messages.subspan(begin, count))
                              : survey.groups[begin / kGroup];
        const std::size_t shares = (its.weight + full - 1) / full;
        if (shares <= 1) {
            whole.add(begin, begin + count, its.weight);
        } else if (its.largest <= full / 8) {  // as even as if each were looked at
            for (std::size_t i = 0; i < shares; ++i)
                whole.add(begin + count * i / shares, begin + count * (i + 1) / shares,
                          its.weight / shares);
        } else {
            for (std::size_t i = begin; i < begin + count; ++i)
                share_out_long(request, i, weight(request.cipher, messages[i]), full, whole,
                               result.parts);
        }
    }
    whole.close();
    for (std::size_t i = 0; i < result.parts.size(); ++i)
        pieces.add(i, i + 1, result.parts[i].size);
    pieces.close();
    std::ranges::stable_sort(result.shares, std::ranges::greater{}, &Share::weight);
    return result;
}

}  // namespace

int threads_worth(const Cipher& cipher, std::uint64_t weight, std::uint64_t messages, int most) {
    std::uint64_t worth = weight / (sequential(cipher) ? kWorthSequential : kWorthParallel);
    if (!modes::can_cut(cipher)) worth = std::min(worth, messages);
    return static_cast<int>(std::clamp<std::uint64_t>(worth, 1, static_cast<std::uint64_t>(most)));
}

Shares share_out(const Request& request, const Survey& survey, int threads) {
    if (sequential(request.cipher))
        return share_out_sequential(request, survey, static_cast<std::size_t>(threads));
    return share_out_parallel(request, survey, share_size(request.cipher, survey.weight, threads));
}

Result<int> run_on_host(core::Backend& backend, ThreadPool& pool, const Request& request,
                        const Survey& survey, int most) {
    const Cipher cipher = for_backend(request.cipher);
    const auto run_valid = [&](std::size_t begin, std::size_t end) {
        return for_each_valid(request, begin, end, [&](std::size_t first, std::size_t count) {
            return backend.run(cipher, request.keys, request.messages.subspan(first, count),
                               request.codes.subspan(first, count));
        });
    };
    if (!backend.profile().shared_by_threads) most = 1;
    const int threads = threads_worth(request.cipher, survey.weight, request.messages.size(), most);
    if (threads == 1) {  // nothing to share out, nothing to allocate
        DAEL_TRY(run_valid(0, request.messages.size()));
        return 1;
    }
    const Shares all = share_out(request, survey, threads);
    return pool.run(all.shares.size(), threads, [&](std::size_t i) -> Result<> {
        const Share& share = all.shares[i];
        if (!share.of_parts) return run_valid(share.begin, share.end);
        return backend.run(cipher, request.keys,
                           std::span(all.parts).subspan(share.begin, share.end - share.begin), {});
    });
}

Result<int> run_on_host(core::Backend& backend, ThreadPool& pool, const Request& request,
                        WorkQueue& queue, WorkQueue::Member& member, int most) {
    const Cipher cipher = for_backend(request.cipher);
    const bool cuts = modes::can_cut(cipher);
    if (!backend.profile().shared_by_threads) most = 1;
    const int threads = threads_worth(request.cipher, queue.size(), request.messages.size(), most);
    const WorkQueue::Wish wish{
        .size = static_cast<std::size_t>(cuts ? kLargestPiece : kLargestWhole),
        .in_parts = 2.0 * threads,
        .least = static_cast<std::size_t>(kSmallestShare),
        .least_pieces = sequential(cipher) ? kLanes : 1};
    const auto work = [&](std::size_t) -> Result<> {
        std::vector<Message> messages;
        std::vector<Code> codes;
        for (;;) {
            Taken taken = queue.take(member, wish);
            if (taken.empty()) return {};
            std::vector<Piece>& pieces = taken.front().pieces;
            auto done = core::guarded([&]() -> Result<> {
                messages.clear();
                for (const Piece& piece : pieces) messages.push_back(piece.message);
                codes.assign(cuts ? 0 : pieces.size(), Code::ok);
                for (Piece& piece : pieces) piece.stand = Stand::lost;
                DAEL_TRY(backend.run(cipher, request.keys, messages, codes));
                for (Piece& piece : pieces) piece.stand = Stand::done;
                for (std::size_t i = 0; i < codes.size(); ++i)
                    if (codes[i] != Code::ok) request.codes[pieces[i].index] = codes[i];
                return {};
            });
            queue.finish(member, std::move(taken));
            if (!done) return done;
        }
    };
    return pool.run(static_cast<std::size_t>(threads), threads, work);
}

}  // namespace dael::pipeline
