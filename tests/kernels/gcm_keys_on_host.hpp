// SPDX-License-Identifier: Apache-2.0
// GCM's keys as the device has them, made on the host by the kernel that makes them there. Included
// among the kernels, as cuda_on_host.hpp says; the table_image of the file that includes it has
// room for kKeyImage.
#pragma once

#include "core/key_schedule.hpp"

#define kThreads kKeyThreads
#define kWarps kKeyWarps
#include "backends/cuda/gcm/keys.cu"
#undef kWarps
#undef kThreads

namespace dael::test {

inline constexpr std::size_t kKeyImage =
    cuda::shapes::gcm_key_setup().dynamic + cuda::shapes::kKeyShared;

static std::vector<cuda::GcmKey> device_keys(std::span<const Key> keys) {
    std::vector<cuda::GcmKey> made(keys.size());
    for (std::size_t i = 0; i < keys.size(); ++i) {
        std::memset(&made[i], 0xee, sizeof made[i]);
        std::memcpy(made[i].encrypt.w, keys[i].schedule().encrypt.data(), sizeof made[i].encrypt.w);
        made[i].rounds = static_cast<std::uint32_t>(keys[i].rounds());
    }
    launch_blocks(1, cuda::shapes::gcm_key_setup().threads, [&] {
        cuda::gcm_key_setup(made.data(), nullptr, static_cast<std::uint32_t>(made.size()));
    });
    return made;
}

}  // namespace dael::test
