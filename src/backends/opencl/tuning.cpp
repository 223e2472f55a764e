// SPDX-License-Identifier: Apache-2.0
#include "backends/opencl/tuning.hpp"

#include <algorithm>
#include <bit>
#include <charconv>

#include "backends/opencl/work.hpp"

namespace dael::opencl {
namespace {

constexpr std::size_t kTable = 32 * 1024;      // one T-table, 32 copies
constexpr std::size_t kPackedSbox = 8 * 1024;  // the S-box, four entries to a word, 32 copies
constexpr int kTables[] = {4, 2, 1, 0, -1};

unsigned most_teams(const Limits& limits) {
    return std::bit_floor(std::max(1u, static_cast<unsigned>(limits.work_group / kLanes)));
}

}  // namespace

bool known_local_memory(std::string_view platform, std::string_view device) {
    // Of rusticl's drivers radeonsi (AMD's LDS) and iris (Intel's SLM), which name themselves or
    // the maker.
    if (platform != "rusticl") return false;
    for (const std::string_view known : {"radeonsi", "Intel(R)"})
        if (device.find(known) != device.npos) return true;
    return false;
}

std::string to_string(const Tuning& tuning) {
    return "tables=" + std::to_string(tuning.tables) + ",teams=" + std::to_string(tuning.teams) +
           ",held=" + std::to_string(tuning.held) + ",groups=" + std::to_string(tuning.groups);
}

std::size_t table_bytes(int tables) {
    if (tables < 0) return 0;
    return tables == 0 ? kPackedSbox : static_cast<std::size_t>(tables) * kTable;
}

int tables_that_fit(int tables, const Limits& limits) {
    for (const int fewer : kTables)
        if (fewer <= tables && table_bytes(fewer) <= limits.local_memory) return fewer;
    return -1;
}

Tuning default_tuning(const Limits& limits) {
    // A device whose local memory is ordinary memory is a CPU: tables would lie in its caches,
    // where what was read can be told from outside (SIDE-CHANNELS.md).
    if (!limits.dedicated) return {-1, std::min(2u, most_teams(limits)), 8, 1};
    // Measured on an H200 with one table: 8 teams are 8% slower than 16; 4 values held and 2 are
    // within 1% of each other, 1 and 8 slower.
    return {tables_that_fit(4, limits), std::min(16u, most_teams(limits)), 4, 4};
}

std::vector<Tuning> candidates(const Limits& limits) {
    const Tuning usual = default_tuning(limits);
    std::vector<Tuning> list{usual};
    const auto add = [&](const Tuning& tuning) {
        if (std::ranges::find(list, tuning) == list.end()) list.push_back(tuning);
    };
    for (const unsigned teams : {4u, 8u, 16u, 32u})
        if (teams <= most_teams(limits)) add({usual.tables, teams, usual.held, 64 / teams});
    if (limits.dedicated)
        for (const int fewer : kTables)
            if (fewer < usual.tables) {
                add({fewer, usual.teams, usual.held, usual.groups});
                break;  // the next smaller ones: more work-groups fit beside one another
            }
    return list;
}

Result<Tuning> parse_tuning(std::string_view text, const Limits& limits) {
    Tuning tuning = default_tuning(limits);
    const auto refuse = [&](std::string_view what) {
        return Error{Code::invalid_argument,
                     "opencl: '" + std::string(what) +
                         "' is no shape of kernels here; write tables=4|2|1|0|-1, teams=1 to " +
                         std::to_string(most_teams(limits)) +
                         " (a power of two), held=1|2|4|8, groups=1 to 64, with commas between"};
    };
    while (!text.empty()) {
        const std::string_view field = text.substr(0, text.find(','));
        text.remove_prefix(std::min(text.size(), field.size() + 1));
        const auto equals = field.find('=');
        if (equals == field.npos) return refuse(field);
        const std::string_view name = field.substr(0, equals), number = field.substr(equals + 1);
        int value = 0;
        const auto [end, fault] =
            std::from_chars(number.data(), number.data() + number.size(), value);
        if (fault != std::errc{} || end != number.data() + number.size()) return refuse(field);
        const auto power = [&](unsigned most) {
            return value > 0 && std::has_single_bit(static_cast<unsigned>(value)) &&
                   static_cast<unsigned>(value) <= most;
        };
        if (name == "tables" && std::ranges::count(kTables, value) != 0) {
            if (table_bytes(value) > limits.local_memory)
                return Error{Code::unsupported, "opencl: tables=" + std::string(number) + " take " +
                                                    std::to_string(table_bytes(value)) +
                                                    " bytes of local memory, and the device has " +
                                                    std::to_string(limits.local_memory) +
                                                    "; ask for fewer"};
            tuning.tables = value;
        } else if (name == "teams" && power(most_teams(limits)))
            tuning.teams = static_cast<unsigned>(value);
        else if (name == "held" && power(8))
            tuning.held = static_cast<unsigned>(value);
        else if (name == "groups" && value >= 1 && value <= 64)
            tuning.groups = static_cast<unsigned>(value);
        else
            return refuse(field);
    }
    return tuning;
}

}  // namespace dael::opencl
