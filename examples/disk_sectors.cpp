// SPDX-License-Identifier: Apache-2.0
// Encrypts the sectors of a disk image in memory with AES-256-XTS, then reads and rewrites one of
// them, as a file system would.
#include <daelstrom/xts.hpp>

#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

namespace {

// Keys must come from a cryptographic source; std::random_device is one on Linux.
void fill_random(std::span<std::uint8_t> bytes) {
    std::random_device source;
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::uint8_t>(source()); });
}

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
}

}  // namespace

int main() {
    std::array<std::uint8_t, 64> bytes;  // two AES-256 keys
    fill_random(bytes);
    auto engine = dael::Engine::open();
    auto key = dael::Key::import_xts(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!engine) return report(engine.error());
    if (!key) return report(key.error());

    constexpr std::size_t kSector = 4096;
    std::vector<std::uint8_t> disk(1000 * kSector, 'd');

    // The whole image in place: sectors 0 to 999.
    auto ran = dael::xts::encrypt(*engine, *key, {.first = 0, .size = kSector}, disk, disk);
    if (!ran) return report(ran.error());
    std::printf("encrypted %zu sectors on %s\n", disk.size() / kSector, ran->backend.data());

    // Sector 123 by itself: read, changed, written back.
    const dael::HostOut sector = dael::HostOut(disk).subspan(123 * kSector, kSector);
    std::vector<std::uint8_t> clear(kSector);
    auto read = dael::xts::decrypt(*engine, *key, {.first = 123, .size = kSector}, sector, clear);
    if (!read) return report(read.error());
    const bool same =
        std::all_of(clear.begin(), clear.end(), [](auto byte) { return byte == 'd'; });
    clear[0] = 'D';
    auto written =
        dael::xts::encrypt(*engine, *key, {.first = 123, .size = kSector}, clear, sector);
    if (!written) return report(written.error());

    if (auto back = dael::xts::decrypt(*engine, *key, {.first = 0, .size = kSector}, disk, disk);
        !back)
        return report(back.error());
    const bool changed = disk[123 * kSector] == 'D' && std::count(disk.begin(), disk.end(), 'd') ==
                                                           static_cast<long>(disk.size() - 1);
    std::puts(same && changed ? "read and rewritten" : "NOT what was written");
    return same && changed ? 0 : 1;
}
