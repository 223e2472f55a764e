// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>

#include "bench/report.hpp"
#include "io/text.hpp"

namespace dael::bench {
namespace {

// Three significant digits.
std::string digits(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.*f",
                  value < 9.995   ? 2
                  : value < 99.95 ? 1
                                  : 0,
                  value);
    return text.data();
}

using Cells = std::vector<std::string>;

std::string heading(const Machine& machine, const std::string& where) {
    if (where == "cache") return "Messages in the cache of one core of " + machine.cpu;
    if (where == "host") return "Host memory";
    if (where == "texture") return "Textures, drawing alone";
    if (where == "device") return machine.gpu + ", device memory, read and written";
    return "Host memory (" + where + ") through " + machine.gpu;
}

// What tells this row from its neighbours, besides cipher and size.
std::string manner(const Row& row) {
    std::string text = row.measure == "call" || row.measure == "kernel" ? "" : row.measure;
    if (row.where == "pinned" || row.where == "pageable") text = row.measure;
    if (row.where == "host" && (row.backend == "cpu" || row.backend == "openssl"))
        text = row.threads == 1 ? "one core" : std::to_string(row.threads) + " threads";
    if (row.data != "random") text += (text.empty() ? "" : ", ") + row.data + " data";
    if (row.placement != "apart") text += (text.empty() ? "" : ", ") + row.placement;
    return text;
}

Cells cells(const Row& row) {
    std::string ratios, ceiling;
    for (const Ceiling& c : row.ceilings) {
        ratios += (ratios.empty() ? "" : "  ") + digits(c.ratio);
        ceiling += (ceiling.empty() ? "" : "; ") + c.name + " " + digits(c.gbps);
    }
    return {row.isa.empty() ? row.backend : row.backend + " " + row.isa,
            cipher_name(row),
            size_name(row),
            manner(row),
            app::format_seconds(row.seconds),
            digits(row.gbps.median),
            digits(row.gbps.min) + " - " + digits(row.gbps.max),
            ratios,
            ceiling};
}

const Cells kTitles{"backend", "cipher",    "size",     "how",          "time",
                    "GB/s",    "min - max", "ratio to", "ceiling, GB/s"};
constexpr std::array kRight{false, false, true, false, true, true, true, true, false};

std::string aligned(const std::vector<Cells>& lines) {
    std::vector<std::size_t> widths(kTitles.size(), 0);
    for (const Cells& line : lines)
        for (std::size_t i = 0; i < line.size(); ++i)
            widths[i] = std::max(widths[i], line[i].size());
    std::string text;
    for (const Cells& line : lines) {
        std::string row;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (widths[i] == 0) continue;
            const std::string pad(widths[i] - line[i].size(), ' ');
            row += "  " + (kRight[i] ? pad + line[i] : line[i] + pad);
        }
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

}  // namespace

std::string to_table(const Report& report) {
    std::string text = "daelstrom " + report.version + " (" + report.commit + "), suite " +
                       report.suite + ", " + std::to_string(report.machine.cores) + " cores of " +
                       report.machine.cpu + "\n";
    if (!report.machine.gpu.empty())
        text +=
            report.machine.gpu + ", " + std::to_string(report.machine.multiprocessors) +
            " multiprocessors, driver " + report.machine.driver +
            (report.machine.cuda_runtime.empty() ? "" : ", CUDA " + report.machine.cuda_runtime) +
            "\n";
    for (const char* where : {"cache", "host", "device", "texture", "pinned", "pageable"}) {
        std::vector<Cells> lines{kTitles};
        for (const Row& row : report.rows)
            if (row.where == where) lines.push_back(cells(row));
        if (lines.size() == 1) continue;
        text += "\n" + heading(report.machine, where) + "\n" + aligned(lines);
    }
    if (!report.skipped.empty()) text += "\nLeft out:\n";
    for (const std::string& line : report.skipped) text += "  " + line + "\n";
    return text;
}

}  // namespace dael::bench
