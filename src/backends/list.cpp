// SPDX-License-Identifier: Apache-2.0
// The list of backends: adding one takes a folder beside this file and one line in each half of
// this one. A backend that this build leaves out is still listed, with the reason (its folder's
// absent.cpp).
#include <algorithm>
#include <array>
#include <atomic>

#include "core/registry.hpp"

namespace dael::backends {

extern const core::BackendEntry reference;
extern const core::BackendEntry openssl;
extern const core::BackendEntry cpu;
extern const core::BackendEntry cuda;
extern const core::BackendEntry opencl;

}  // namespace dael::backends

namespace dael::core {
namespace {

constexpr std::array kOwn{
    &backends::reference, &backends::openssl, &backends::cpu, &backends::cuda, &backends::opencl,
};
// Behind them, room for one that a program brings along.
constinit std::array<const BackendEntry*, kOwn.size() + 1> entries = [] {
    std::array<const BackendEntry*, kOwn.size() + 1> all{};
    std::ranges::copy(kOwn, all.begin());
    return all;
}();
constinit std::atomic<std::size_t> listed{kOwn.size()};

}  // namespace

BackendList backend_list() noexcept {
    return BackendList(std::span(entries).first(listed.load(std::memory_order_acquire)));
}

bool add_backend(const BackendEntry& entry) noexcept {
    const std::size_t count = listed.load(std::memory_order_relaxed);
    if (count == entries.size()) return entries.back() == &entry;
    entries[count] = &entry;
    listed.store(count + 1, std::memory_order_release);
    return true;
}

}  // namespace dael::core
