// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <map>

#include "io/text.hpp"
#include "lab/study.hpp"

namespace dael::lab {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// What a row says of itself, as against what was found out: the fields in front of the figures.
std::string fields_of(const Json& row) {
    std::string text;
    for (const auto& [field, value] : row.items()) {
        if (field == "gbps") break;
        text += (text.empty() ? "" : ", ") + field + " " +
                (value.is_string() ? value.get<std::string>() : value.dump());
    }
    return text;
}

Result<Json> read_document(const fs::path& path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{Code::io, "cannot read " + app::in_quotes(path.string())};
    Json json = Json::parse(file, nullptr, false);
    const auto fault = [&path](const char* what) {
        return Error{Code::invalid_argument, app::in_quotes(path.string()) + " " + what};
    };
    if (json.is_discarded() || !json.is_object() || !json.contains("rows") ||
        !json["rows"].is_array() || !json.contains("suite") || !json["suite"].is_string())
        return fault("is no document of `daelstrom lab run`");
    for (const Json& row : json["rows"]) {
        if (!row.is_object() || !row.contains("gbps") || !row["gbps"].is_object())
            return fault("has a row without a rate");
        for (const char* figure : {"median", "min", "max"})
            if (!row["gbps"].contains(figure) || !row["gbps"][figure].is_number())
                return fault("has a row whose rate is not median, min and max");
    }
    return json;
}

// A document, or those of a folder, by their studies.
Result<std::map<std::string, Json>> read_run(const fs::path& path) {
    std::map<std::string, Json> documents;
    const auto read = [&documents](const fs::path& file) -> Result<> {
        DAEL_LET(json, read_document(file));
        const auto study = json["suite"].get<std::string>();
        documents[study] = std::move(json);
        return {};
    };
    std::error_code status;
    if (!fs::is_directory(path, status)) {
        DAEL_TRY(read(path));
        return documents;
    }
    for (const auto& entry : fs::directory_iterator(path, status))
        if (entry.path().extension() == ".json") DAEL_TRY(read(entry.path()));
    if (documents.empty())
        return Error{Code::invalid_argument, "there is no document of `daelstrom lab run` in " +
                                                 app::in_quotes(path.string())};
    return documents;
}

std::string number(double value) {
    std::array<char, 32> text{};
    std::snprintf(text.data(), text.size(), "%.3g", value);
    return text.data();
}

std::string differing(const Json& before, const Json& after) {
    std::string text;
    for (const char* field : {"machine", "version", "commit", "compiler", "openssl", "quick"}) {
        const Json a = before.value(field, Json()), b = after.value(field, Json());
        if (a != b) text += (text.empty() ? "" : ", ") + std::string(field);
    }
    return text;
}

std::string compare_study(const std::string& study, const Json& before, const Json& after) {
    std::string text = study + "\n";
    if (const std::string other = differing(before, after); !other.empty())
        text += "  not the same: " + other + "\n";
    std::map<std::string, const Json*> old;
    for (const Json& row : before["rows"]) old[fields_of(row)] = &row;
    std::size_t only_after = 0;
    for (const Json& row : after["rows"]) {
        const auto found = old.find(fields_of(row));
        if (found == old.end()) {
            ++only_after;
            continue;
        }
        const Json &a = (*found->second)["gbps"], &b = row["gbps"];
        const double was = a["median"], is = b["median"];
        const bool apart = a["max"].get<double>() < b["min"].get<double>() ||
                           b["max"].get<double>() < a["min"].get<double>();
        text += "  " + number(was) + " -> " + number(is) + " GB/s, " +
                (was > 0 ? number(is / was) + " times" : std::string("from nothing")) +
                (apart ? " *" : "") + "  " + app::on_one_line(found->first) + "\n";
        old.erase(found);
    }
    if (!old.empty()) text += "  " + std::to_string(old.size()) + " rows only in the first\n";
    if (only_after) text += "  " + std::to_string(only_after) + " rows only in the second\n";
    return text;
}

}  // namespace

Result<std::string> compare(const fs::path& before, const fs::path& after) {
    DAEL_LET(first, read_run(before));
    DAEL_LET(second, read_run(after));
    std::string text;
    for (const auto& [study, document] : first) {
        const auto other = second.find(study);
        text += other == second.end() ? study + "\n  only in the first\n"
                                      : compare_study(study, document, other->second);
    }
    for (const auto& [study, document] : second)
        if (!first.contains(study)) text += study + "\n  only in the second\n";
    return text + "* the spreads do not overlap\n";
}

}  // namespace dael::lab
