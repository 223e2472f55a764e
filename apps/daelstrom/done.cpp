// SPDX-License-Identifier: Apache-2.0
#include "done.hpp"

#include <algorithm>
#include <cmath>
#include <iostream>

#include "io/json_text.hpp"

namespace dael::cli {

void Doers::count(std::string_view name, double bytes) {
    const auto found = std::ranges::find(parts_, name, &Part::name);
    if (found != parts_.end())
        found->bytes += bytes;
    else
        parts_.push_back({std::string(name), bytes});
}

void Doers::add(const Ran& ran, std::uint64_t bytes) {
    if (ran.backend.empty()) return;
    threads_ = std::max(threads_, ran.threads);
    const auto all = static_cast<double>(bytes);
    std::string_view rest = ran.backend;
    for (std::size_t i = 0; !rest.empty(); ++i) {
        const auto plus = std::min(rest.find('+'), rest.size());
        const bool alone = i == 0 && plus == rest.size();
        const double percent = i < ran.percent.size() ? ran.percent[i] : 0;
        count(rest.substr(0, plus), alone ? all : all * percent / 100);
        rest.remove_prefix(std::min(plus + 1, rest.size()));
    }
}

void Doers::add(const Doers& others) {
    threads_ = std::max(threads_, others.threads_);
    for (const Part& part : others.parts_) count(part.name, part.bytes);
}

std::vector<Doers::Part> Doers::parts() const {
    std::vector<Part> parts = parts_;
    double all = 0;
    for (const Part& part : parts) all += part.bytes;
    if (all == 0) parts.resize(std::min<std::size_t>(parts.size(), 1));  // files without a byte
    for (Part& part : parts)
        part.percent = all > 0 ? static_cast<int>(std::lround(100 * part.bytes / all)) : 100;
    std::erase_if(parts, [](const Part& part) { return part.percent == 0; });
    std::stable_partition(parts.begin(), parts.end(), [](const Part& part) {
        return part.name.find(':') != std::string::npos;
    });
    return parts;
}

std::string by(const Doers& doers) {
    const auto parts = doers.parts();
    if (parts.empty()) return "no cipher: the stream stays as it is";
    std::string text;
    for (const Doers::Part& part : parts) {
        if (&part != &parts.front()) text += &part == &parts.back() ? " and " : ", ";
        text += part.name;
        if (parts.size() > 1) text += " " + std::to_string(part.percent) + "%";
    }
    if (doers.threads() > 1) text += ", " + std::to_string(doers.threads()) + " threads";
    return text;
}

void print_done(const Done& done) {
    const auto parts = done.doers.parts();
    std::string backend;
    JsonText percent = JsonText::object();
    for (const Doers::Part& part : parts) {
        backend += (backend.empty() ? "" : "+") + part.name;
        percent.add(part.name, part.percent);
    }
    JsonText line = JsonText::object();
    line.add("command", done.command)
        .add_name("input", done.input)
        .add_name("output", done.output)
        .add("read", done.read)
        .add("written", done.written)
        .add("backend", backend)
        .add("threads", done.doers.threads())
        .add("seconds", done.seconds);
    if (parts.size() > 1) line.add("percent", percent);
    std::cout << line.text() << std::endl;  // at once: the next file may take long
}

Result<> check_json(bool json, const std::optional<std::string>& output) {
    if (!json || (output && output != "-")) return {};
    return usage("--json writes to standard output, where the data would go too; give -o FILE");
}

}  // namespace dael::cli
