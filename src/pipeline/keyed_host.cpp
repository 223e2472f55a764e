// SPDX-License-Identifier: Apache-2.0
#include "pipeline/keyed_host.hpp"

#include <algorithm>
#include <limits>
#include <numeric>

#include "pipeline/host.hpp"

namespace dael::pipeline {
namespace {

// What a backend call costs, in bytes of data: keys change, lanes fill and empty.
constexpr std::uint64_t kCall = 512;
// Shares are no smaller and no larger than this.
constexpr std::uint64_t kSmallestShare = std::uint64_t{16} << 10;
constexpr std::uint64_t kLargestShare = std::uint64_t{1} << 20;
constexpr std::uint64_t kSharesPerThread = 4;

std::uint64_t total_bytes(const KeyedWork& work, std::span<const std::size_t> order) noexcept {
    std::uint64_t total = 0;
    for (const std::size_t i : order) total += work.bytes(i);
    return total;
}

// Neighbouring runs, up to `enough` of them together.
void collect_shares(KeyedRuns& runs, std::uint64_t enough) {
    KeyedRuns::Share next{0, 0, 0};
    for (std::size_t r = 0; r < runs.runs.size(); ++r) {
        std::uint64_t weight = kCall;
        for (const core::Segment& segment : runs[runs.runs[r]]) weight += segment.size;
        if (next.weight != 0 && next.weight + weight > enough) {
            runs.shares.push_back(next);
            next = {r, r, 0};
        }
        next.end = r + 1;
        next.weight += weight;
    }
    if (next.weight != 0) runs.shares.push_back(next);
    std::ranges::stable_sort(runs.shares, std::ranges::greater{}, &KeyedRuns::Share::weight);
}

}  // namespace

std::vector<std::size_t> sort_valid(const KeyedWork& work, std::size_t keys,
                                    std::span<Code> results) {
    // By key: counted first, then each put where its key's begin.
    std::vector<std::size_t> ends(keys + 1);
    std::size_t valid = 0;
    for (std::size_t i = 0; i < work.size(); ++i) {
        if (const Code code = work.check(i, keys); code != Code::ok) {
            results[i] = code;
            continue;
        }
        results[i] = Code::internal;  // until it is done
        ++ends[work.key(i) + 1];
        ++valid;
    }
    std::partial_sum(ends.begin(), ends.end(), ends.begin());
    std::vector<std::size_t> order(valid);
    for (std::size_t i = 0; i < work.size(); ++i)
        if (results[i] == Code::internal) order[ends[work.key(i)]++] = i;
    if (parallel_within_message(work.mode, Direction::encrypt)) return order;
    const auto longer = [&](std::size_t a, std::size_t b) { return work.bytes(a) > work.bytes(b); };
    auto begin = order.begin();
    for (std::size_t k = 0; k < keys; ++k) {
        const auto end = order.begin() + static_cast<std::ptrdiff_t>(ends[k]);
        if (!std::is_sorted(begin, end, longer)) std::stable_sort(begin, end, longer);
        begin = end;
    }
    return order;
}

KeyedRuns share_out(const KeyedWork& work, std::span<const std::size_t> order, int threads) {
    const bool cut = threads != 0,
               parallel = parallel_within_message(work.mode, Direction::encrypt);
    const std::uint64_t total = total_bytes(work, order);
    constexpr std::size_t kAll = std::numeric_limits<std::size_t>::max();
    // Most bytes, and most messages, of a run.
    const std::size_t piece = cut && parallel ? piece_size(total, threads) : kAll;
    const std::size_t most =
        cut && !parallel ? group_size(order.size(), static_cast<std::size_t>(threads)) : kAll;

    KeyedRuns runs;
    runs.segments.reserve(order.size());
    std::uint64_t collected = 0;  // bytes of the last run
    const auto add = [&](const core::Segment& segment, std::uint32_t key) {
        const bool fits =
            !runs.runs.empty() && runs.runs.back().key == key &&
            runs.runs.back().end - runs.runs.back().begin < most &&
            (collected == 0 || segment.size <= piece - std::min<std::uint64_t>(collected, piece));
        if (!fits) {
            runs.runs.push_back({runs.segments.size(), runs.segments.size(), key});
            collected = 0;
        }
        runs.segments.push_back(segment);
        runs.runs.back().end = runs.segments.size();
        collected += segment.size;
    };
    for (const std::size_t i : order) {
        const core::Segment segment = work[i];
        if (segment.size <= piece) {
            add(segment, work.key(i));
            continue;
        }
        for (const core::Segment& part : modes::split(work.mode, segment, piece))
            add(part, work.key(i));
    }
    if (cut)
        collect_shares(runs,
                       std::clamp(total / (static_cast<std::uint64_t>(threads) * kSharesPerThread),
                                  kSmallestShare, kLargestShare));
    return runs;
}

Result<int> keyed_on_host(core::Backend& backend, ThreadPool& pool, std::span<const Key> keys,
                          const KeyedWork& work, std::span<const std::size_t> order) {
    const int threads = threads_worth(work.mode, Direction::encrypt, total_bytes(work, order),
                                      order.size(), pool.threads());
    const KeyedRuns runs = share_out(work, order, threads == 1 ? 0 : threads);
    const auto run = [&](const KeyedRuns::Run& r) {
        return backend.run({work.mode, Direction::encrypt, &keys[r.key]}, runs[r]);
    };
    if (threads == 1) {
        for (const auto& r : runs.runs) DAEL_TRY(run(r));
        return 1;
    }
    return pool.run(runs.shares.size(), threads, [&](std::size_t s) -> Result<> {
        for (std::size_t r = runs.shares[s].begin; r < runs.shares[s].end; ++r)
            DAEL_TRY(run(runs.runs[r]));
        return {};
    });
}

}  // namespace dael::pipeline
