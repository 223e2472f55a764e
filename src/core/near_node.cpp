// SPDX-License-Identifier: Apache-2.0
#include "core/near_node.hpp"

#include <linux/mempolicy.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cctype>
#include <cstdio>
#include <cstdlib>
#include <memory>

namespace dael::core {
namespace {

struct Close {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

// The first line of a small file of the kernel's; empty where there is none.
std::array<char, 128> first_line(const char* path) noexcept {
    std::array<char, 128> line{};
    const std::unique_ptr<std::FILE, Close> file(std::fopen(path, "re"));
    if (file && !std::fgets(line.data(), static_cast<int>(line.size()), file.get())) line[0] = 0;
    return line;
}

}  // namespace

int NearNode::count() noexcept {
    static const int nodes = [] {  // "0", "0-3", "0,2-3"
        const auto line = first_line("/sys/devices/system/node/has_memory");
        int count = 0;
        for (const char* at = line.data(); std::isdigit(static_cast<unsigned char>(*at));) {
            char* end = nullptr;
            const long first = std::strtol(at, &end, 10);
            long last = first;
            if (*end == '-') last = std::strtol(end + 1, &end, 10);
            count += static_cast<int>(last - first + 1);
            at = *end == ',' ? end + 1 : end;
        }
        return count > 0 ? count : 1;
    }();
    return nodes;
}

NearNode::NearNode(int node, int nodes) noexcept {
    if (node < 0 || node >= kMostNodes || nodes < 2) return;
    // The kernel counts one node less than it is told of (get_mempolicy(2), BUGS).
    if (syscall(SYS_get_mempolicy, &before_, nodes_.data(), kMostNodes, nullptr, 0) != 0) return;
    std::array<unsigned long, kMostNodes / (8 * sizeof(unsigned long))> wanted{};
    constexpr int kBits = 8 * sizeof(unsigned long);
    wanted[static_cast<std::size_t>(node / kBits)] = 1ul << (node % kBits);
    changed_ = syscall(SYS_set_mempolicy, MPOL_PREFERRED, wanted.data(), kMostNodes + 1) == 0;
}

NearNode::~NearNode() {
    if (!changed_) return;
    const bool none = before_ == MPOL_DEFAULT;
    syscall(SYS_set_mempolicy, before_, none ? nullptr : nodes_.data(), none ? 0 : kMostNodes + 1);
}

int node_of_pci(const char* address) noexcept {
    std::array<char, 96> path{};
    std::snprintf(path.data(), path.size(), "/sys/bus/pci/devices/%s/numa_node", address);
    for (char& letter : path) letter = static_cast<char>(std::tolower(letter));
    const auto line = first_line(path.data());
    char* end = nullptr;
    const long node = std::strtol(line.data(), &end, 10);
    return end != line.data() && node >= 0 && node < NearNode::kMostNodes ? static_cast<int>(node)
                                                                          : -1;
}

}  // namespace dael::core
