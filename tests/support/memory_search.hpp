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
        std::unordered_map<std::uint64_t, bool> seen;
        std::vector<std::uint8_t> chunk(kChunk);
        std::ifstream maps("/proc/self/maps");
        std::string line;
        bool any = false;  // where nothing can be read, nothing found says nothing
        while (std::getline(maps, line)) {
            std::uintptr_t from = 0, to = 0;
            char rights[5] = "";
            if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " %4s", &from, &to, rights) < 3)
                continue;
            if (rights[0] != 'r' || rights[1] != 'w' || to - from > kMax) continue;
            for (std::uintptr_t at = from; at < to; at += kChunk) {
                const std::size_t size = std::min<std::size_t>(kChunk, to - at);
                const auto mine = reinterpret_cast<std::uintptr_t>(chunk.data());
                if (mine < at + size && at < mine + kChunk) continue;
                // Another thread may have given the memory back meanwhile.
                const iovec local{chunk.data(), size};
                const iovec remote{reinterpret_cast<void*>(at), size};
                if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) !=
                    static_cast<ssize_t>(size))
                    continue;
                any = true;
                for (std::size_t i = 0; i + kBlock <= size; i += kBlock) {
                    const auto known = blocks_.find(half(&chunk[i]) ^ kMask);
                    if (known != blocks_.end() && known->second == (half(&chunk[i + 8]) ^ kMask))
                        seen.emplace(known->first, true);
                }
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
