// SPDX-License-Identifier: Apache-2.0
#include <openssl/crypto.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>

#include <unistd.h>

#include "io/output.hpp"
#include "io/text.hpp"
#include "lab/study.hpp"
#include "measure/machine.hpp"

namespace dael::lab {
namespace {

constexpr std::uint64_t kFormat = 1;  // of documents; lab/README.md

constexpr std::array kStudies{&kPlacement,   &kGranularity, &kSizes,  &kOverlap,
                              &kDevices,     &kFiles,       &kEnergy, &kPackets,
                              &kGenerations, &kPicture,     &kTiming};

// The fastest core's clock in MHz, 0 where the system does not tell.
std::uint64_t cpu_mhz() {
    std::ifstream info("/proc/cpuinfo");
    double fastest = 0;
    for (std::string line; std::getline(info, line);)
        if (line.starts_with("cpu MHz"))
            fastest = std::max(fastest, std::atof(line.c_str() + line.find(':') + 1));
    return static_cast<std::uint64_t>(fastest);
}

std::uint64_t load_in_hundredths() {
    double load = 0;
    return getloadavg(&load, 1) == 1 ? static_cast<std::uint64_t>(load * 100) : 0;
}

// What the driver's own program says of the first GPU: "clocks.sm=1980 MHz; ...". Empty without.
std::string gpu_state() {
    const std::string fields =
        "clocks.sm,clocks.mem,clocks.max.sm,power.draw,power.limit,temperature.gpu,"
        "clocks_event_reasons.active";
    const std::string command =
        "nvidia-smi --id=0 --query-gpu=" + fields + " --format=csv,noheader 2>/dev/null";
    const std::unique_ptr<std::FILE, int (*)(std::FILE*)> pipe(popen(command.c_str(), "r"), pclose);
    std::array<char, 512> line{};
    if (!pipe || !std::fgets(line.data(), line.size(), pipe.get())) return {};
    std::string state, values = line.data();
    for (std::size_t name = 0, value = 0; name < fields.size() && value < values.size();) {
        const std::size_t name_end = std::min(fields.find(',', name), fields.size());
        const std::size_t value_end = std::min(values.find_first_of(",\n", value), values.size());
        while (value < value_end && values[value] == ' ') ++value;
        state += (state.empty() ? "" : "; ") + fields.substr(name, name_end - name) + "=" +
                 values.substr(value, value_end - value);
        name = name_end + 1;
        value = value_end + 1;
    }
    return state;
}

void note_state(Point& about, const std::string& when) {
    about.set("load_" + when, load_in_hundredths());
    about.set("cpu_mhz_" + when, cpu_mhz());
    about.set("gpu_" + when, gpu_state());
}

}  // namespace

std::span<const Study> studies() {
    static const auto all = [] {
        std::vector<Study> list;
        for (const Study* study : kStudies) list.push_back(*study);
        return list;
    }();
    return all;
}

Result<const Study*> study_by_name(std::string_view name) {
    std::string names;
    for (const Study& study : studies()) {
        if (study.name == name) return &study;
        names += (names.empty() ? "" : ", ") + std::string(study.name);
    }
    return Error{Code::invalid_argument,
                 "no study " + app::in_quotes(name) + "; there are " + names + ", and all"};
}

Result<measure::Report> run(const Study& study, const Settings& settings,
                            std::function<void(const std::string&)> progress) {
    const auto start = std::chrono::steady_clock::now();
    measure::Report report;
    measure::describe_build(report);
    report.machine = measure::describe_host();
    report.suite = study.name;
    report.every_sample = true;
    report.about = {{"format", kFormat},
                    {"quick", std::uint64_t{settings.quick}},
                    {"scale", settings.scale == 1 ? std::uint64_t{0} : settings.scale},
                    {"openssl", std::string(OpenSSL_version(OPENSSL_VERSION))}};
    note_state(report.about, "before");
    measure::Sampling sampling;
    sampling.repeats = settings.repeats ? settings.repeats : settings.quick ? 3 : 15;
    if (settings.quick) {
        sampling.sample_seconds = 0.0005;
        sampling.budget_seconds = 0.3;
    }
    measure::Session session{report, sampling, study.describe, std::move(progress)};
    DAEL_TRY(study.run({settings, report, session}));
    note_state(report.about, "after");
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    report.about.set("seconds", static_cast<std::uint64_t>(took.count() + 0.5));
    return report;
}

Result<> write_document(const std::filesystem::path& path, const std::string& text) {
    const app::OutputOptions to{.path = path.string(), .overwrite = true};
    DAEL_LET(output, app::Output::open(to));
    DAEL_TRY(output.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    return output.commit();
}

std::string describe_fields(const Point& point) {
    std::string text;
    for (const auto& [field, value] : point.fields()) {
        const auto* number = std::get_if<std::uint64_t>(&value);
        const auto* word = std::get_if<std::string>(&value);
        if (field == "where" || (number && *number == 0) || (word && word->empty())) continue;
        std::string shown = word ? *word
                            : field == "size" || field == "chunk"
                                ? app::format_size(static_cast<double>(*number))
                                : std::to_string(*number);
        text += (text.empty() ? "" : ", ") +
                (word || field == "size" ? shown : app::on_one_line(field) + " " + shown);
    }
    std::ranges::replace(text, '_', ' ');
    return text;
}

}  // namespace dael::lab
