// SPDX-License-Identifier: Apache-2.0
// Built programs on disk, in `opencl` under daelstrom's cache folder, so that only the first
// process waits for the driver's compiler. A file is named after the SHA-256 of all that its
// content depends on, and begins with the SHA-256 of all that and the content: one that is damaged,
// or another's, counts as none. It holds no secrets, but it is code: a folder that others may write
// to, or a file that is not our own, is not used.
// Whatever fails here costs time, never correctness, so nothing is reported. Thread-safe, and safe
// beside other processes.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace dael::opencl {

using Binary = std::vector<unsigned char>;

// `identity`: the platform, the device, the driver's version, the source and the options.
std::optional<Binary> load_binary(const std::string& identity);
void store_binary(const std::string& identity, const Binary& binary) noexcept;

}  // namespace dael::opencl
