// SPDX-License-Identifier: Apache-2.0
// How a call's data crosses between host memory and a device: by the device's own copies, through
// staging buffers that threads of the host fill and drain, or not at all, where kernels reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <daelstrom/message.hpp>

#include "core/device.hpp"

namespace dael::pipeline {

// Whether copies between the device and all of these messages are direct.
struct Direct {
    bool in = false;
    bool out = false;
    // And whether one copy may span neighbouring messages: each row of them is one allocation.
    bool rows_in = false;
    bool rows_out = false;
    explicit operator bool() const noexcept { return in && out; }
};
Direct direct_copies(core::Device& device, std::span<const Message> messages);
bool in_place(std::span<const Message> messages) noexcept;  // whether one of them is

// Whether page-locked messages are so few and short that kernels had better reach for them across
// the bus, `reach` being core::Device's; and whether these also lie as that asks for.
bool in_reach(std::size_t reach, const Cipher& cipher, std::uint64_t bytes,
              std::uint64_t messages) noexcept;
bool in_reach(core::Device& device, const Cipher& cipher,
              std::span<const Message> messages) noexcept;

// A copy that a thread of the host does.
struct HostCopy {
    void* to;
    const void* from;
    std::size_t size;
};
// Appends one, cut to pieces for several threads.
void append(std::vector<HostCopy>& copies, void* to, const void* from, std::size_t size);
// Short ones together, so that taking a share costs nothing beside it: where each share ends.
std::vector<std::size_t> share_copies(const std::vector<HostCopy>& copies);

}  // namespace dael::pipeline
