// SPDX-License-Identifier: Apache-2.0
// `explain`: which way the engine would take with a job, and why, with the figures that it goes by.
#include <algorithm>
#include <cmath>
#include <iomanip>
#include <iostream>
#include <memory>
#include <sstream>

#include <daelstrom/sealed.hpp>

#include "engine_options.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

constexpr std::string_view kSeal = "seal";  // beside the modes

struct ExplainOptions {
    std::string size, from = "host", mode = "ctr";
    bool decrypt = false;
    int bits = 128;
    std::uint64_t messages = 1;
    EngineChoice engine;
};

Result<Job> job_from(const ExplainOptions& options) {
    Job job;
    job.cipher.mode = Mode::gcm;
    if (options.mode != kSeal) {
        const auto mode = parse_mode(options.mode, kModes);
        if (!mode) return Error{mode.code(), mode.error().message + ", and seal"};
        job.cipher.mode = *mode;
    }
    job.cipher.direction = options.decrypt ? Direction::decrypt : Direction::encrypt;
    job.key_bits = options.bits;
    auto size = parse_size(options.size, "--size");
    if (!size) return std::move(size).error();
    job.size = *size;
    job.messages = options.messages;
    if (options.mode == kSeal) {  // a message of GCM for each segment
        if (options.bits == 192)
            return usage("seal takes keys of 128 or 256 bits; give --bits 256");
        const sealed::Layout layout{sealed::kLargeSegment, options.bits == 256 ? 40u : 24u};
        DAEL_TRY(layout.sealed_size(*size));
        const std::uint64_t segments = layout.segments(*size);
        job.messages *= segments;
        job.size = (*size + segments - 1) / segments;
    }
    if (options.from == "host")
        job.from = Job::From::host;
    else if (options.from == "pinned")
        job.from = Job::From::pinned;
    else if (options.from == "device")
        job.from = Job::From::device;
    else
        return Error{Code::invalid_argument, "--from: unknown place " + in_quotes(options.from) +
                                                 "; there are host, pinned and device"};
    return job;
}

// "; cuda:0 62% and cpu 38%"
std::string shares_of(const Option& option) {
    std::string text;
    std::string_view rest = option.backend;
    for (std::size_t i = 0; i < option.shares.size(); ++i) {
        const auto plus = std::min(rest.find('+'), rest.size());
        text += i == 0 ? "; " : i + 1 < option.shares.size() ? ", " : " and ";
        text += std::string(rest.substr(0, plus)) + " " +
                std::to_string(std::lround(100 * option.shares[i])) + "%";
        rest.remove_prefix(std::min(plus + 1, rest.size()));
    }
    return text;
}

void print(const dael::Plan& plan) {
    std::size_t longest = 10;
    for (const Option& option : plan.options) longest = std::max(longest, option.backend.size());
    const int width = static_cast<int>(longest) + 2;
    std::cout << plan.summary << "\n\n"
              << std::left << std::setw(width) << "backend" << std::right << std::setw(8)
              << "threads" << std::setw(10) << "chunk" << std::setw(12) << "rate" << std::setw(12)
              << "set up" << std::setw(12) << "in all"
              << "  figures\n";
    for (const Option& option : plan.options) {
        std::cout << std::left << std::setw(width) << option.backend << std::right;
        if (!option.possible) {
            std::cout << "  not possible: " << option.why << '\n';
            continue;
        }
        std::cout << std::setw(8) << option.threads << std::setw(10)
                  << (option.chunk ? format_size(static_cast<double>(option.chunk)) : "-")
                  << std::setw(12) << format_rate(1e9 * option.gigabytes_per_second)
                  << std::setw(12) << format_seconds(option.setup_seconds) << std::setw(12)
                  << format_seconds(option.seconds)
                  << (option.measured ? "  measured here" : "  built in") << shares_of(option)
                  << '\n';
    }
}

// Why nothing can do it.
std::string reasons_of(const dael::Plan& plan) {
    std::string reasons = plan.summary;
    for (std::size_t i = 1; i < plan.options.size(); ++i)
        reasons += "; " + plan.options[i].backend + ": " + plan.options[i].why;
    return reasons;
}

std::vector<std::string> explained_modes() {
    auto names = mode_names(kModes);
    names.emplace_back(kSeal);
    return names;
}

}  // namespace

void add_explain(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "explain");
    const auto options = std::make_shared<ExplainOptions>();
    command->add_option("--size", options->size, "Bytes of a message: 4096, 64M, 1.5G")
        ->type_name("SIZE")
        ->required();
    add_choice(*command, context, "--from", options->from, {"host", "pinned", "device"},
               "Where the data lies: host memory, page-locked host memory, or GPU memory "
               "(default: host)");
    std::string words;
    for (const auto& word : explained_modes()) words += (words.empty() ? "" : ", ") + word;
    add_choice(*command, context, "-m,--mode", options->mode, explained_modes(),
               "Mode of operation, or what seal does: " + words + " (default: ctr)")
        ->type_name("MODE");
    command->add_flag("-d,--decrypt", options->decrypt, "Decryption instead of encryption");
    auto* bits = command->add_option("--bits", options->bits, "Key size (default: 128)")
                     ->type_name("128|192|256")
                     ->check(CLI::IsMember({128, 192, 256}));
    context.choices[bits] = {"128", "192", "256"};
    command->add_option("--messages", options->messages, "How many messages at once (default: 1)")
        ->type_name("N")
        ->check(CLI::Range(std::uint64_t{1}, std::uint64_t{1} << 40));
    add_engine_options(*command, context, options->engine);
    command->callback([&context, options] {
        context.action = [options]() -> Result<> {
            auto job = job_from(*options);
            if (!job) return std::move(job).error();
            auto engine = options->engine.open();
            if (!engine) return std::move(engine).error();
            const dael::Plan plan = engine->explain(*job);
            if (plan.options.empty() || !plan.options.front().possible)
                return Error{Code::unsupported, reasons_of(plan)};
            if (options->mode == kSeal)
                std::cout << "Sealing is AES-GCM, a message for each segment of 1 MiB: "
                          << job->messages << " of them here.\n";
            print(plan);
            return {};
        };
    });
}

}  // namespace dael::cli
