// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cstdio>

#include "io/text.hpp"
#include "measure/report.hpp"

namespace dael::measure {
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

// What the columns in front say of a point, and then its figures.
Cells cells(const Row& row, const Columns& columns) {
    Cells line;
    for (const auto& column : columns.columns) line.push_back(column.text(row.point));
    std::string ratios, ceiling;
    for (const Ceiling& c : row.ceilings) {
        ratios += (ratios.empty() ? "" : "  ") + digits(c.ratio);
        ceiling += (ceiling.empty() ? "" : "; ") + c.name + " " + digits(c.gbps);
    }
    for (std::string& cell :
         Cells{app::format_seconds(row.seconds), digits(row.gbps.median),
               digits(row.gbps.min) + " - " + digits(row.gbps.max), ratios, ceiling})
        line.push_back(std::move(cell));
    line.push_back(columns.figures ? columns.figures(row.figures) : "");
    return line;
}

std::string aligned(const std::vector<Cells>& lines, const std::vector<bool>& right) {
    std::vector<std::size_t> widths(right.size(), 0);
    for (const Cells& line : lines)
        for (std::size_t i = 0; i < line.size(); ++i)
            widths[i] = std::max(widths[i], line[i].size());
    std::string text;
    for (const Cells& line : lines) {
        std::string row;
        for (std::size_t i = 0; i < line.size(); ++i) {
            if (widths[i] == 0) continue;
            const std::string pad(widths[i] - line[i].size(), ' ');
            row += "  " + (right[i] ? pad + line[i] : line[i] + pad);
        }
        row.erase(row.find_last_not_of(' ') + 1);
        text += row + "\n";
    }
    return text;
}

}  // namespace

void Report::skip(std::string line) {
    if (std::ranges::find(skipped, line) == skipped.end()) skipped.push_back(std::move(line));
}

std::string to_table(const Report& report, const Columns& columns) {
    const Machine& machine = report.machine;
    std::string text = "daelstrom " + report.version + " (" + report.commit + "), suite " +
                       report.suite + ", " + std::to_string(machine.cores) + " cores of " +
                       machine.cpu + "\n";
    if (!machine.gpu.empty())
        text += machine.gpu + ", " + std::to_string(machine.multiprocessors) +
                " multiprocessors, driver " + machine.driver +
                (machine.cuda_runtime.empty() ? "" : ", CUDA " + machine.cuda_runtime) + "\n";
    Cells titles;
    std::vector<bool> right;
    for (const auto& column : columns.columns) {
        titles.push_back(column.title);
        right.push_back(column.right);
    }
    for (const char* title : {"time", "GB/s", "min - max", "ratio to", "ceiling, GB/s"}) {
        titles.emplace_back(title);
        right.push_back(titles.back() != "ceiling, GB/s");
    }
    titles.emplace_back(columns.figures ? "figures" : "");
    right.push_back(false);
    for (const std::string& group : columns.groups) {
        std::vector<Cells> lines{titles};
        for (const Row& row : report.rows)
            if (row.point.text("where") == group) lines.push_back(cells(row, columns));
        if (lines.size() == 1) continue;
        text += "\n" + columns.heading(machine, group) + "\n" + aligned(lines, right);
    }
    if (!report.skipped.empty()) text += "\nLeft out:\n";
    for (const std::string& line : report.skipped) text += "  " + line + "\n";
    return text;
}

}  // namespace dael::measure
