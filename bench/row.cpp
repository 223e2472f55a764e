// SPDX-License-Identifier: Apache-2.0
#include "bench/row.hpp"

#include "io/text.hpp"

namespace dael::bench {

std::string mode_name(const Work& work) {
    if (work.keys != 0) return work.mac_only ? "gmac" : "gcm";
    return work.sector != 0 ? "xts" : std::string(name(work.mode));
}

std::string cipher_name(const Work& work) {
    std::string text = mode_name(work) + "-" + std::to_string(work.bits);
    if (work.keys != 0)
        return text + (work.direction == Direction::decrypt ? " decrypt" : "") +
               (work.keys > 1 ? ", " + std::to_string(work.keys) + " keys" : "");
    const bool one_way = work.sector == 0 && (work.mode == Mode::ctr || work.mode == Mode::ofb);
    if (!one_way) text += " " + std::string(name(work.direction));
    if (work.sector != 0)
        text += ", " +
                (work.sector < 1024 ? std::to_string(work.sector) + " B"
                                    : app::format_size(static_cast<double>(work.sector))) +
                " sectors";
    return text;
}

std::string size_name(const Work& work) {
    return (work.messages > 1 ? std::to_string(work.messages) + " x " : "") +
           app::format_size(static_cast<double>(work.size));
}

Row make_row(Work work, const Series& series, const std::vector<Yardstick>& yardsticks) {
    Row row;
    static_cast<Work&>(row) = std::move(work);
    row.gbps = gigabytes_per_second(series, row.bytes());
    row.seconds = spread(series).median;
    row.samples = static_cast<int>(series.size());
    for (const auto& [name, other] : yardsticks)
        row.ceilings.push_back(
            {name, gigabytes_per_second(*other, row.bytes()).median, speed_ratio(series, *other)});
    return row;
}

}  // namespace dael::bench
