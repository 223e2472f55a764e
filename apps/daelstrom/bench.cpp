// SPDX-License-Identifier: Apache-2.0
// `daelstrom bench`: its options, and where the report goes.
#include <unistd.h>

#include <cstdio>
#include <iostream>
#include <memory>
#include <optional>

#include "bench/suite.hpp"
#include "commands.hpp"
#include "engine_options.hpp"
#include "io/output.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

struct BenchArguments {
    bench::Options options;
    std::vector<std::string> sizes;
    std::string json;  // empty: a table; "-": standard output
    bool overwrite = false, quiet = false;
};

Result<> check_choice(const std::string& text, const char* option,
                      const std::vector<std::string>& words) {
    std::string all;
    for (const std::string& word : words) {
        if (text == word) return {};
        all += (all.empty() ? "" : ", ") + word;
    }
    return Error{Code::invalid_argument,
                 std::string(option) + ": no " + in_quotes(text) + "; there are " + all};
}

Result<bench::Options> parse(const BenchArguments& arguments) {
    bench::Options options = arguments.options;
    if (options.suite == "generations")
        return Error{Code::invalid_argument,
                     "generations is a study of the lab: `daelstrom lab run generations`"};
    DAEL_TRY(
        check_choice(options.suite, "--suite", {"quick", "full", "h200", "packets", "devices"}));
    if (!options.form.empty())
        DAEL_TRY(check_choice(options.form, "--form", {"sse", "avx2", "avx512"}));
    for (const auto& text : options.modes)
        DAEL_TRY(check_choice(text, "--mode", bench::mode_names()));
    for (const auto& text : arguments.sizes) {
        const auto size = parse_size(text, "--size");
        if (!size) return size.error();
        if (*size == 0 || *size % kBlockSize != 0)
            return Error{Code::invalid_argument, "--size: " + in_quotes(text) +
                                                     " is not a multiple of 16 bytes; ECB and CBC "
                                                     "take whole blocks"};
        options.sizes.push_back(*size);
    }
    for (const auto& name : options.backends) {
        const std::string kind = name.substr(0, name.find(':'));
        if (auto known = check_choice(kind, "--backend", bench::backend_names()); !known)
            return Error{Code::unknown_backend, known.error().message};
    }
    if (options.suite == "packets" && (!options.modes.empty() || !options.backends.empty() ||
                                       !options.form.empty() || options.threads != 0))
        return Error{Code::invalid_argument,
                     "--suite packets is one comparison of AES-GCM; leave out --backend, --mode, "
                     "--form and --threads"};
    if (options.suite == "devices") {
        for (const auto& text : options.modes)
            DAEL_TRY(check_choice(text, "--suite devices: --mode", {"ctr", "gcm"}));
        if (!options.form.empty())
            return Error{Code::invalid_argument,
                         "--suite devices takes each backend as a set does; leave out --form"};
    }
    return options;
}

Result<> bench_action(const BenchArguments& arguments) {
    auto options = parse(arguments);
    if (!options) return std::move(options).error();
    const bool to_file = !arguments.json.empty() && arguments.json != "-";
    // A run takes minutes; that its result has nowhere to go is better known before.
    std::optional<Output> output;
    if (to_file) {
        DAEL_LET(opened, Output::open({.path = arguments.json, .overwrite = arguments.overwrite}));
        output.emplace(std::move(opened));
    }

    const bool show = !arguments.quiet && isatty(STDERR_FILENO) == 1;
    const auto report = bench::run(*options, [show](const std::string& what) {
        if (show) std::fprintf(stderr, "\r\033[K%s", what.c_str());
    });
    if (show) std::fputs("\r\033[K", stderr);
    if (!report) return report.error();
    // A backend that is named is used or refused.
    if (report->rows.empty() && !report->skipped.empty())
        return Error{Code::backend_absent, report->skipped.front()};

    if (arguments.json == "-") {
        std::cout << measure::to_json(*report);
        return {};
    }
    std::cout << measure::to_table(*report, bench::columns(options->suite));
    if (!output) return {};
    const std::string json = measure::to_json(*report);
    DAEL_TRY(output->write({reinterpret_cast<const std::uint8_t*>(json.data()), json.size()}));
    return output->commit();
}

}  // namespace

void add_bench(CLI::App& app, Context& context) {
    auto arguments = std::make_shared<BenchArguments>();
    CLI::App& command = *add_command(app, "bench");
    bench::Options& options = arguments->options;
    add_choice(command, context, "--suite", options.suite,
               {"quick", "full", "h200", "packets", "devices"},
               "How much: seconds, a minute or two, everything with messages of 4 GiB; or packets, "
               "with keystream made ahead of time; or all devices at one job (default: quick)");
    command
        .add_option("--backend", options.backends,
                    "Only this backend, cuda:1 the second GPU; may be repeated")
        ->type_name(alternatives(bench::backend_names()))
        ->expected(1)
        ->take_all();
    std::string modes;
    for (const auto& word : bench::mode_names()) modes += (modes.empty() ? "" : ", ") + word;
    command
        .add_option("--mode", options.modes, "Only this mode, of " + modes + "; may be repeated")
        ->type_name("MODE")
        ->expected(1)
        ->take_all();
    command.add_option("--bits", options.bits, "Only this key size; may be repeated")
        ->type_name("128|192|256")
        ->check(CLI::IsMember({128, 192, 256}))
        ->expected(1)
        ->take_all();
    command
        .add_option("--size", arguments->sizes,
                    "Messages of this size instead of the suite's; may be repeated")
        ->type_name("SIZE")
        ->expected(1)
        ->take_all();
    command.add_option("--repeats", options.repeats, "Samples of each figure (default: 15)")
        ->type_name("N")
        ->check(CLI::Range(1, 10000));
    command
        .add_option("--threads", options.threads,
                    "CPU threads for large messages (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    add_choice(command, context, "--form", options.form, {"sse", "avx2", "avx512"},
               "Only this instruction set of the backend cpu");
    command
        .add_option(
            "--json", arguments->json,
            "Write the figures to this file as well, or, with -, to standard output instead")
        ->type_name("FILE");
    command.add_flag("-f,--force", arguments->overwrite, "Overwrite the file of --json");
    command.add_option("--scale", options.scale, "")
        ->group("")  // hidden: smaller work, for tests
        ->check(CLI::Range(1, 1 << 20));
    command.add_flag("-q,--quiet", arguments->quiet, "No progress on standard error");
    command.callback([arguments, &context] {
        context.action = [arguments] { return bench_action(*arguments); };
    });
}

}  // namespace dael::cli
