// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <cmath>

#include "measure/report.hpp"

namespace dael::measure {
namespace {

using Json = nlohmann::ordered_json;

// Six significant digits: more is noise, and makes committed results hard to read.
double rounded(double value) {
    if (value == 0 || !std::isfinite(value)) return value;
    const double scale = std::pow(10, 5 - std::floor(std::log10(std::abs(value))));
    return std::round(value * scale) / scale;
}

Json ceiling_json(const Ceiling& ceiling) {
    return {{"name", ceiling.name}, {"gbps", rounded(ceiling.gbps)}};
}

Json point_json(const Point& point) {
    Json json = Json::object();
    for (const auto& [field, value] : point.fields()) {
        const auto* number = std::get_if<std::uint64_t>(&value);
        const auto* text = std::get_if<std::string>(&value);
        if (number && *number != 0) json[field] = *number;
        if (text && !text->empty()) json[field] = *text;
    }
    return json;
}

Json row_json(const Row& row, bool every_sample) {
    Json json = point_json(row.point);
    json["gbps"] = {{"median", rounded(row.gbps.median)},
                    {"min", rounded(row.gbps.min)},
                    {"max", rounded(row.gbps.max)}};
    json["seconds"] = rounded(row.seconds);
    json["samples"] = row.samples;
    for (const auto& [name, value] : row.figures) json[name] = rounded(value);
    if (every_sample)
        for (const double seconds : row.series) json["series"].push_back(rounded(seconds));
    if (row.ceilings.empty()) return json;
    json["ceiling"] = ceiling_json(row.ceilings.front());
    json["ratio"] = rounded(row.ceilings.front().ratio);
    if (row.ceilings.size() > 1) {
        Json others = Json::array();
        for (std::size_t i = 1; i < row.ceilings.size(); ++i) {
            others.push_back(ceiling_json(row.ceilings[i]));
            others.back()["ratio"] = rounded(row.ceilings[i].ratio);
        }
        json["against"] = std::move(others);
    }
    return json;
}

}  // namespace

std::string to_json(const Report& report) {
    Json machine{{"cpu", report.machine.cpu},
                 {"cores", report.machine.cores},
                 {"memory", report.machine.memory}};
    if (!report.machine.gpu.empty()) {
        machine["gpu"] = report.machine.gpu;
        machine["multiprocessors"] = report.machine.multiprocessors;
        machine["gpu_memory"] = report.machine.gpu_memory;
        machine["driver"] = report.machine.driver;
        machine["cuda_runtime"] = report.machine.cuda_runtime;
    }
    // One row a line, so that two results can be compared with diff.
    std::string text = "{\n";
    const auto field = [&text](const char* key, const Json& value) {
        text += "\"" + std::string(key) + "\": " + value.dump() + ",\n";
    };
    field("machine", machine);
    field("date", report.date);
    field("version", report.version);
    field("commit", report.commit);
    field("compiler", report.compiler);
    field("suite", report.suite);
    field("skipped", report.skipped);
    const Json about = point_json(report.about);
    for (const auto& [name, value] : about.items()) field(name.c_str(), value);
    text += "\"rows\": [";
    for (const Row& row : report.rows)
        text +=
            (&row == report.rows.data() ? "\n" : ",\n") + row_json(row, report.every_sample).dump();
    return text + "\n]}\n";
}

}  // namespace dael::measure
