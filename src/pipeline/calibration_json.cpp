// SPDX-License-Identifier: Apache-2.0
#include "pipeline/calibration_json.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "core/json.hpp"
#include "core/text.hpp"

namespace dael::pipeline {
namespace {

using core::JsonReader;
using Bytes = JsonReader::Bytes;
constexpr int kVersion = 4;

// Of which there are up to sixteen at once.
constexpr std::size_t kMaxChunk = std::size_t{64} << 20;

// --- to text

class Writer {
  public:
    // What stands for itself: brackets, names, commas and spaces.
    Writer& raw(std::string_view json) {
        text_ += json;
        return *this;
    }
    Writer& string(std::string_view text) { return raw(core::json_quoted(text)); }
    template <class Number>
    Writer& number(Number value) {
        std::array<char, 32> digits{};
        const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), value).ptr;
        text_.append(digits.data(), end);
        return *this;
    }
    // ,"name":
    Writer& member(std::string_view name) { return raw(", \"").raw(name).raw("\": "); }
    Writer& rate(std::string_view name, double value) { return member(name).number(value); }

    std::string take() { return std::move(text_); }

  private:
    std::string text_;
};

// The members that say what a rate is of.
void put_cipher(Writer& out, Mode mode, Direction direction, int bits) {
    out.raw("\"mode\": ").string(name(mode));
    out.member("direction").string(name(direction)).member("key_bits").number(bits);
}

void put(Writer& out, const HostRate& rate) {
    out.raw("{");
    put_cipher(out, rate.mode, rate.direction, rate.key_bits);
    out.member("backend").string(rate.backend);
    out.rate("one_core", rate.one_core).rate("all_cores", rate.all_cores);
    out.rate("batch_core", rate.batch_core).rate("batch_all", rate.batch_all).raw("}");
}

void put(Writer& out, const KernelRate& rate) {
    out.raw("{");
    put_cipher(out, rate.mode, rate.direction, rate.key_bits);
    out.rate("rate", rate.rate).raw("}");
}

void put(Writer& out, const DeviceRates& rates);

template <class Row>
void put(Writer& out, const std::vector<Row>& rows) {
    out.raw("[");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        out.raw(i == 0 ? "\n  " : ",\n  ");
        put(out, rows[i]);
    }
    out.raw("]");
}

void put(Writer& out, const DeviceRates& rates) {
    out.raw("{\"backend\": ").string(rates.backend).member("device").string(rates.device);
    out.rate("start_seconds", rates.start_seconds).rate("setup_seconds", rates.setup_seconds);
    out.rate("copy_in", rates.copy_in).rate("copy_out", rates.copy_out);
    out.rate("duplex", rates.duplex).rate("pageable", rates.pageable);
    out.member("chunk").number(rates.chunk).member("form").string(rates.form);
    out.member("kernels");
    put(out, rates.kernels);
    out.raw("}");
}

// --- from text

// Members of an object, each of which must be there once; others may not.
template <class Read>
Result<> members(JsonReader& json, std::span<const std::string_view> names, Read read) {
    std::uint32_t seen = 0;
    DAEL_TRY(json.object([&](Bytes raw) -> Result<> {
        const std::string member = core::json_text(raw);
        for (std::size_t i = 0; i < names.size(); ++i) {
            if (member != names[i] || (seen >> i & 1)) continue;
            seen |= 1u << i;
            return read(i);
        }
        return Error{Code::bad_format, "a member that is unknown or stands twice"};
    }));
    if (seen != (1u << names.size()) - 1) return Error{Code::bad_format, "a member is missing"};
    return {};
}

Result<> get(JsonReader& json, std::string& text) {
    const auto string = json.string();
    if (!string) return string.error();
    text = core::json_text(*string);
    return {};
}

template <class Number>
Result<> get_number(JsonReader& json, Number& value) {
    if (const auto kind = json.kind(); !kind || *kind != JsonReader::Kind::number)
        return Error{Code::bad_format, "a number was expected"};
    const auto text = json.number();
    if (!text) return text.error();
    const char* const end = text->data() + text->size();
    const auto read = std::from_chars(text->data(), end, value);
    if (read.ec != std::errc{} || read.ptr != end) return Error{Code::bad_format, "its range"};
    return {};
}

Result<> get_rate(JsonReader& json, double& rate) {
    DAEL_TRY(get_number(json, rate));
    if (!(rate > 0 && rate < 1e6)) return Error{Code::bad_format, "no rate"};
    return {};
}

Result<> get_limit(JsonReader& json, double& rate) {  // 0: none
    DAEL_TRY(get_number(json, rate));
    if (!(rate >= 0 && rate < 1e6)) return Error{Code::bad_format, "no rate"};
    return {};
}

Result<> get(JsonReader& json, Mode& mode) {
    std::string text;
    DAEL_TRY(get(json, text));
    const auto found = mode_by_name(text);
    if (!found) return Error{Code::bad_format, "no mode"};
    mode = *found;
    return {};
}

Result<> get(JsonReader& json, Direction& direction) {
    std::string text;
    DAEL_TRY(get(json, text));
    direction = text == name(Direction::decrypt) ? Direction::decrypt : Direction::encrypt;
    if (text != name(direction)) return Error{Code::bad_format, "no direction"};
    return {};
}

// The rates of a row after what they are of, which stands in `of`.
template <class Row, std::size_t N>
Result<> get_row(JsonReader& json, Row& row, const std::array<std::string_view, N>& names,
                 const std::array<double Row::*, N>& rates, std::string* backend) {
    std::vector<std::string_view> all{"mode", "direction", "key_bits"};
    if (backend) all.push_back("backend");
    const std::size_t first = all.size();
    all.insert(all.end(), names.begin(), names.end());
    return members(json, all, [&](std::size_t i) -> Result<> {
        if (i == 0) return get(json, row.mode);
        if (i == 1) return get(json, row.direction);
        if (i == 2) return get_number(json, row.key_bits);
        if (i < first) return get(json, *backend);
        return get_rate(json, row.*rates[i - first]);
    });
}

Result<> get(JsonReader& json, HostRate& rate) {
    return get_row<HostRate, 4>(
        json, rate, {"one_core", "all_cores", "batch_core", "batch_all"},
        {&HostRate::one_core, &HostRate::all_cores, &HostRate::batch_core, &HostRate::batch_all},
        &rate.backend);
}

Result<> get(JsonReader& json, KernelRate& rate) {
    return get_row<KernelRate, 1>(json, rate, {"rate"}, {&KernelRate::rate}, nullptr);
}

Result<> get(JsonReader& json, DeviceRates& rates);

template <class Row>
Result<> get(JsonReader& json, std::vector<Row>& rows) {
    return json.array([&]() -> Result<> {
        rows.emplace_back();
        return get(json, rows.back());
    });
}

Result<> get(JsonReader& json, DeviceRates& rates) {
    constexpr std::array<std::string_view, 11> kNames{
        "backend",       "device",  "chunk",    "form",   "kernels", "start_seconds",
        "setup_seconds", "copy_in", "copy_out", "duplex", "pageable"};
    double* const figures[] = {&rates.start_seconds, &rates.setup_seconds, &rates.copy_in,
                               &rates.copy_out,      &rates.duplex,        &rates.pageable};
    DAEL_TRY(members(json, kNames, [&](std::size_t i) -> Result<> {
        if (i == 0) return get(json, rates.backend);
        if (i == 1) return get(json, rates.device);
        if (i == 2) return get_number(json, rates.chunk);
        if (i == 3) return get(json, rates.form);
        if (i == 4) return get(json, rates.kernels);
        return get_rate(json, *figures[i - 5]);
    }));
    if (rates.chunk == 0 || rates.chunk % 4096 != 0 || rates.chunk > kMaxChunk)
        return Error{Code::bad_format, "no chunk"};
    return {};
}

}  // namespace

Result<std::string> to_json(const Calibration& calibration) {
    Writer out;
    out.raw("{\"version\": ").number(kVersion);
    out.raw(",\n \"machine\": ").string(calibration.machine);
    out.raw(",\n \"made\": ").string(calibration.made);
    out.raw(",\n \"hosts\": ");
    put(out, calibration.hosts);
    out.raw(",\n \"devices\": ");
    put(out, calibration.devices);
    out.rate("memory_core", calibration.memory_core).rate("memory_all", calibration.memory_all);
    std::string text = out.raw("}\n").take();
    // Names come from drivers. What could not be read again is not written.
    if (!calibration_of(text))
        return Error{Code::internal, "the calibration holds a name that is no UTF-8, or no rate"};
    return text;
}

std::optional<Calibration> calibration_of(std::string_view text) {
    constexpr std::array<std::string_view, 7> kNames{"version", "machine",     "made",      "hosts",
                                                     "devices", "memory_core", "memory_all"};
    JsonReader json(core::bytes_of(text), "the calibration");
    Calibration calibration;
    int version = 0;
    const auto read = members(json, kNames, [&](std::size_t i) -> Result<> {
        if (i == 0) return get_number(json, version);
        if (i == 1) return get(json, calibration.machine);
        if (i == 2) return get(json, calibration.made);
        if (i == 3) return get(json, calibration.hosts);
        if (i == 4) return get(json, calibration.devices);
        return get_limit(json, i == 5 ? calibration.memory_core : calibration.memory_all);
    });
    if (!read || version != kVersion || !json.end()) return std::nullopt;
    return calibration;
}

}  // namespace dael::pipeline
