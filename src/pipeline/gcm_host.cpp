// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "pipeline/gcm_work.hpp"

namespace dael::pipeline {
namespace {

// What one more thread must get to be worth waking; see host.cpp.
constexpr std::uint64_t kWorthThread = std::uint64_t{128} << 10;
constexpr std::uint64_t kSmallestShare = std::uint64_t{64} << 10;
constexpr std::uint64_t kLargestShare = std::uint64_t{4} << 20;
constexpr std::uint64_t kSharesPerThread = 4;
// Most messages that go to the backend in one call, on the stack.
constexpr std::size_t kGroup = 64;

std::uint64_t total_weight(const GcmWork& work) noexcept {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < work.size(); ++i) total += work.weight(i);
    return total;
}

template <std::size_t kMost>
Result<> run_groups(core::Backend& backend, const core::PreparedKeys& keys, std::size_t count,
                    const GcmWork& work, const GcmShare& share, std::span<Code> results) {
    std::array<core::GcmSegment, kMost> segments;
    for (std::size_t i = share.begin; i < share.end;) {
        const std::size_t first = i;
        std::size_t valid = 0;
        for (; i < share.end && valid < kMost; ++i, ++valid) {
            segments[valid] = work[i];
            if (!modes::takes(segments[valid], count)) break;
        }
        DAEL_TRY(backend.gcm(work.direction, keys, std::span(segments).first(valid),
                             results.subspan(first, valid)));
        if (i < share.end && valid < kMost) {  // one that is not valid ends the group
            results[i] = modes::check(segments[valid], count).code();
            ++i;
        }
    }
    return {};
}

Result<> run_share(core::Backend& backend, const core::PreparedKeys& keys, std::size_t count,
                   const GcmWork& work, const GcmShare& share, std::span<Code> results) {
    // Making room for a group takes 80 ns, which one message need not pay.
    return share.end - share.begin == 1
               ? run_groups<1>(backend, keys, count, work, share, results)
               : run_groups<kGroup>(backend, keys, count, work, share, results);
}

}  // namespace

int threads_worth(const GcmWork& work, int most) {
    if (most == 1) return 1;
    const std::uint64_t worth =
        std::min<std::uint64_t>(total_weight(work) / kWorthThread, work.size());
    return static_cast<int>(std::clamp<std::uint64_t>(worth, 1, static_cast<std::uint64_t>(most)));
}

std::vector<GcmShare> share_out(const GcmWork& work, int threads) {
    const std::uint64_t enough =
        std::clamp(total_weight(work) / (static_cast<std::uint64_t>(threads) * kSharesPerThread),
                   kSmallestShare, kLargestShare);
    std::vector<GcmShare> shares;
    GcmShare next{0, 0, 0};
    for (std::size_t i = 0; i < work.size(); ++i) {
        const std::uint64_t weight = work.weight(i);
        if (next.weight != 0 && next.weight + weight > enough) {
            shares.push_back(next);
            next = {i, i, 0};
        }
        next.end = i + 1;
        next.weight += weight;
    }
    if (next.weight != 0) shares.push_back(next);
    std::ranges::stable_sort(shares, std::ranges::greater{}, &GcmShare::weight);
    return shares;
}

Result<int> gcm_on_host(core::Backend& backend, ThreadPool& pool, const core::PreparedKeys& keys,
                        std::size_t count, const GcmWork& work, std::span<Code> results) {
    const int threads = threads_worth(work, pool.threads());
    if (threads == 1) {  // nothing to share out, nothing to allocate
        DAEL_TRY(run_share(backend, keys, count, work, {0, work.size(), 0}, results));
        return 1;
    }
    const auto shares = share_out(work, threads);
    return pool.run(shares.size(), threads, [&](std::size_t share) {
        return run_share(backend, keys, count, work, shares[share], results);
    });
}

}  // namespace dael::pipeline
