// SPDX-License-Identifier: Apache-2.0
// Looks through all memory that this process may write for blocks of 16 bytes that should be there
// no more. It keeps them in another form, so that it does not find its own.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include <daelstrom/key.hpp>

namespace dael::test {

class MemorySearch {
  public:
    static constexpr std::size_t kBlock = 16;

    void add(std::span<const std::uint8_t> block) {
        blocks_.emplace(half(block.data()) ^ kMask, half(block.data() + 8) ^ kMask);
    }
    std::size_t size() const { return blocks_.size(); }
    void clear() { blocks_.clear(); }

    // How many of the blocks lie somewhere, at an address that is a multiple of 16, as keystream
    // does. Mappings that are larger than anything that a test allocates are a sanitizer's own.
    std::size_t found() const {
        constexpr std::size_t kMax = std::size_t{1} << 30, kChunk = std::size_t{1} << 16;
        constexpr std::uintptr_t kPage = 4096;
        std::unordered_map<std::uint64_t, bool> seen;
        std::vector<std::uint8_t> chunk(kChunk);
        const auto own = reinterpret_cast<std::uintptr_t>(chunk.data());
        std::ifstream maps("/proc/self/maps");
        std::string line;
        bool any = false;  // where nothing can be read, nothing found says nothing
        while (std::getline(maps, line)) {
            std::uintptr_t from = 0, to = 0;
            char rights[5] = "";
            if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) < 3)
                continue;
            if (rights[0] != 'r' || rights[1] != 'w' || to - from > kMax) continue;
            for (std::uintptr_t at = from; at < to;) {
                // Another thread may have given memory back meanwhile: what is read is what comes
                // before that, and then what comes after the page that is gone.
                const iovec local{chunk.data(), std::min<std::size_t>(kChunk, to - at)};
                const iovec remote{reinterpret_cast<void*>(at), local.iov_len};
                const ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
                if (got <= 0) {
                    at += kPage - at % kPage;
                    continue;
                }
                any = true;
                const auto size = static_cast<std::size_t>(got);
                for (std::size_t i = 0; i + kBlock <= size; i += kBlock) {
                    // What lies in this search's own buffer is a copy. What lies beside it is not.
                    if (at + i + kBlock > own && at + i < own + kChunk) continue;
                    const auto known = blocks_.find(half(&chunk[i]) ^ kMask);
                    if (known != blocks_.end() && known->second == (half(&chunk[i + 8]) ^ kMask))
                        seen.emplace(known->first, true);
                }
                at += size;
            }
        }
        wipe(chunk.data(), chunk.size());
        if (!any) ADD_FAILURE() << "none of the process's memory could be read";
        return seen.size();
    }

  private:
    static constexpr std::uint64_t kMask = 0x5c5c5c5c5c5c5c5c;
    static std::uint64_t half(const std::uint8_t* from) {
        std::uint64_t value;
        std::memcpy(&value, from, 8);
        return value;
    }
    std::unordered_map<std::uint64_t, std::uint64_t> blocks_;
};

}  // namespace dael::test
