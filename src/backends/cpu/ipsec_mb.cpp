// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/ipsec_mb.hpp"

#include <atomic>
#include <memory>

#include <daelstrom/key.hpp>

#include "backends/cpu/gcm.hpp"
#include "core/secure_memory.hpp"
#include "vectors/units.hpp"

namespace dael::cpu {
namespace {

struct LevelInfo {
    std::string_view name, title;
    std::uint64_t needs;     // IMB_FEATURE_... bits
    std::uint64_t for_vaes;  // those with which the library takes its VAES code at this level
    void (*init)(IMB_MGR*);
};
constexpr std::array<LevelInfo, 3> kInfo{{
    {"sse", "SSE", IMB_CPUFLAGS_SSE, 0, init_mb_mgr_sse},
    {"avx2", "AVX2", IMB_CPUFLAGS_AVX2, IMB_CPUFLAGS_AVX2_T2, init_mb_mgr_avx2},
    {"avx512", "AVX-512", IMB_CPUFLAGS_AVX512, IMB_CPUFLAGS_AVX512_T2, init_mb_mgr_avx512},
}};

const LevelInfo& info(Level level) noexcept {
    return kInfo[static_cast<std::size_t>(level)];
}

bool has(std::uint64_t features) noexcept {
    // Asked until it is known: a child of fork() may not wait for a thread that asks.
    constinit static std::atomic<std::uint64_t> known{0};
    std::uint64_t present = known.load(std::memory_order_relaxed);
    if (present == 0) known.store(present = imb_get_feature_flags(), std::memory_order_relaxed);
    return (present & features) == features;
}

struct Release {
    void operator()(Workspace* workspace) const noexcept {
        if (workspace->manager) core::secure_release(workspace->manager, imb_get_mb_mgr_size());
        if (workspace->gcm_key) core::secure_release(workspace->gcm_key, sizeof(GcmKey));
        core::secure_release(workspace, sizeof(Workspace));
    }
};

}  // namespace

std::string_view name(Level level) noexcept {
    return info(level).name;
}

std::optional<Level> level_by_name(std::string_view text) noexcept {
    for (const Level level : kLevels)
        if (text == name(level)) return level;
    return std::nullopt;
}

bool available(Level level) noexcept {
    // The library asks the CPU only, and not whether the system saves the wide registers.
    const bool system = level == Level::sse    ? true
                        : level == Level::avx2 ? vectors::units().avx2
                                               : vectors::units().avx512;
    return system && has(info(level).needs);
}

bool vectorised(Level level) noexcept {
    return info(level).for_vaes != 0 && has(info(level).for_vaes);
}

std::string describe(Level level) {
    return std::string(info(level).title) + (vectorised(level) ? " with VAES" : " with AES-NI");
}

void Workspace::wipe_keystream(std::size_t count, std::size_t size) noexcept {
    for (std::size_t lane = 0; lane < count; ++lane) {
        wipe(scratch_of(lane), size);
        wipe(ivs[lane].data(), kBlockSize);
        wipe(lanes[lane].chain.data(), kBlockSize);
    }
}

Result<Workspace*> workspace(Level level) {
    thread_local std::array<std::unique_ptr<Workspace, Release>, kLevels.size()> of_this_thread;
    auto& mine = of_this_thread[static_cast<std::size_t>(level)];
    if (mine) return mine.get();
    void* memory = core::secure_allocate(sizeof(Workspace), core::Swapping::allowed);
    if (!memory) return Error{Code::out_of_memory, "no memory for libipsec-mb's jobs"};
    std::unique_ptr<Workspace, Release> fresh(new (memory) Workspace{});
    void* manager = core::secure_allocate(imb_get_mb_mgr_size(), core::Swapping::allowed);
    if (!manager) return Error{Code::out_of_memory, "no memory for libipsec-mb's manager"};
    fresh->manager = imb_set_pointers_mb_mgr(manager, 0, 1);
    void* key = core::secure_allocate(sizeof(GcmKey));
    if (!key) return Error{Code::out_of_memory, "no memory for a key's GCM tables"};
    fresh->gcm_key = new (key) GcmKey{};
    info(level).init(fresh->manager);
    if (const int fault = imb_get_errno(fresh->manager))
        return Error{Code::internal, "libipsec-mb: init_mb_mgr_" + std::string(name(level)) + ": " +
                                         imb_get_strerror(fault)};
    mine = std::move(fresh);
    return mine.get();
}

}  // namespace dael::cpu
