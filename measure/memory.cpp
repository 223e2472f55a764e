// SPDX-License-Identifier: Apache-2.0
#include "measure/memory.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <string>

#include "io/text.hpp"

namespace dael::measure {
namespace {

constexpr std::size_t kPage = 4096;

// SplitMix64 (Steele, Lea and Flood 2014) at a given position, so that every thread can start
// anywhere.
std::uint64_t splitmix(std::uint64_t seed, std::uint64_t position) noexcept {
    std::uint64_t z = seed + (position + 1) * 0x9e3779b97f4a7c15;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

}  // namespace

Result<HostBuffer> HostBuffer::allocate(std::size_t size) {
    HostBuffer buffer;
    const std::size_t whole = (size + kPage - 1) / kPage * kPage;
    buffer.data_.reset(static_cast<std::uint8_t*>(std::aligned_alloc(kPage, whole)));
    if (!buffer.data_)
        return Error{Code::out_of_memory,
                     "no memory for a buffer of " + std::to_string(size) + " bytes"};
    std::memset(buffer.data_.get(), 0, whole);
    buffer.size_ = size;
    return buffer;
}

void HostBuffer::Free::operator()(std::uint8_t* data) const noexcept {
    std::free(data);
}

void fill_random(Team& team, std::uint8_t* data, std::size_t size, std::uint64_t seed) {
    team.run(size, [=](std::size_t begin, std::size_t end) {
        for (std::size_t at = begin; at < end; at += 8) {
            const std::uint64_t word = splitmix(seed, at / 8);
            std::memcpy(data + at, &word, std::min<std::size_t>(8, end - at));
        }
    });
}

std::uint64_t available_memory() {
    // Free pages alone leave out the page cache, which gives way.
    std::ifstream info("/proc/meminfo");
    for (std::string field; info >> field;)
        if (std::uint64_t kib = 0; field == "MemAvailable:" && info >> kib) return kib << 10;
    return static_cast<std::uint64_t>(sysconf(_SC_AVPHYS_PAGES)) *
           static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

std::uint64_t fitting(Report& report, std::uint64_t wanted, int buffers) {
    const std::uint64_t most = available_memory() / 4 * 3 / static_cast<unsigned>(buffers);
    if (wanted <= most) return wanted;
    report.skip("host memory: messages of more than " +
                app::format_size(static_cast<double>(most)) +
                ", for which too little memory is available");
    return most / kPage * kPage;
}

Fetch fetch_from(const std::uint8_t* host_memory) {
    return [host_memory](std::uint64_t at, std::uint8_t* bytes, std::size_t size) -> Result<> {
        std::memcpy(bytes, host_memory + at, size);
        return {};
    };
}

}  // namespace dael::measure
