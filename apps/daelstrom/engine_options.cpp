// SPDX-License-Identifier: Apache-2.0
#include "engine_options.hpp"

#include <algorithm>
#include <cstdlib>
#include <thread>

#include "io/text.hpp"

namespace dael::cli {

namespace {

bool any(const std::string& backend) {
    return backend.empty() || backend == "auto";
}

// AES by drawing is an exhibit, which the lab's program has and this one has not.
Result<> check_drawing(const std::string& backend, const std::string& form) {
    const std::string draws = "opengl";
    const bool by_form = any(backend) && form.starts_with("gl-");
    if (!by_form && backend.substr(0, backend.find(':')) != draws) return {};
    for (const BackendInfo& kind : backend_kinds())
        if (kind.name == draws)
            return by_form ? usage("--form " + in_quotes(form) +
                                   " needs a backend that has it: add --backend opengl")
                           : Result<>{};
    return Error{Code::unknown_backend,
                 (by_form ? "form " + in_quotes(form) : "backend " + in_quotes(backend)) +
                     ", AES by drawing, is an exhibit of the lab: `daelstrom lab encrypt --backend "
                     "opengl`, `daelstrom lab decrypt`"};
}

}  // namespace

Result<Engine> EngineChoice::open() const {
    EngineOptions options{.backend = backend, .form = form, .threads = threads};
    const char* const usual = ::secure_getenv("DAELSTROM_BACKEND");
    const std::string named = !backend.empty() || !usual ? backend : usual;
    DAEL_TRY(check_drawing(named, form));
    if (any(named) && form.find('=') != form.npos)
        return Error{Code::invalid_argument,
                     "--form " + in_quotes(form) + " needs a backend that has it: add --backend " +
                         (form.starts_with("tables=") ? "cuda or opencl" : "opencl")};
    if (device >= 0) {
        const std::string kind = any(named) ? "cuda" : named;
        if (kind != "cuda" && kind != "opencl" && kind != "opengl")
            return Error{Code::invalid_argument, "--device chooses a GPU, but --backend is " +
                                                     in_quotes(named) + "; leave one of them out"};
        options.backend = kind + ":" + std::to_string(device);
    }
    return Engine::open(std::move(options));
}

unsigned EngineChoice::most_threads() const {
    if (threads > 0) return static_cast<unsigned>(threads);
    return std::max(1u, std::thread::hardware_concurrency());
}

void add_engine_options(CLI::App& command, Context& context, EngineChoice& choice) {
    std::vector<std::string> backends{"auto"};
    for (const BackendInfo& kind : backend_kinds()) backends.push_back(kind.name);
    add_choice(command, context, "--backend", choice.backend, std::move(backends),
               "Where the cipher runs; a backend that is named is used or refused, never replaced "
               "(default: auto)");
    command
        .add_option(
            "--device", choice.device,
            "Use the device of this number, as `devices` lists them: of the backend cuda, or of "
            "opencl where that is named")
        ->type_name("N")
        ->check(CLI::Range(0, 4095));
    add_choice(
        command, context, "--form", choice.form, {"sse", "avx2", "avx512"},
        "Instruction set of the backend cpu (default: the best that the machine has); for cuda and "
        "opencl the layout of the tables, tables=4, 2 or 1, for opencl also 0 or -1 and more "
        "(docs/opencl.md; default: what is fastest)");
    command.add_option("--threads", choice.threads, "CPU threads (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
}

std::string alternatives(const std::vector<std::string>& words) {
    std::string all;
    for (const auto& word : words) all += (all.empty() ? "" : "|") + word;
    return all;
}

CLI::Option* add_choice(CLI::App& command, Context& context, const std::string& names,
                        std::string& value, std::vector<std::string> words,
                        const std::string& description) {
    auto* option = command.add_option(names, value, description)->type_name(alternatives(words));
    context.choices[option] = std::move(words);
    return option;
}

std::vector<std::string> mode_names(std::span<const Mode> modes) {
    std::vector<std::string> names;
    for (const Mode mode : modes) names.emplace_back(name(mode));
    return names;
}

Result<Mode> parse_mode(const std::string& text, std::span<const Mode> modes) {
    if (const auto mode = mode_by_name(text);
        mode && std::ranges::find(modes, *mode) != modes.end())
        return *mode;
    std::string names;
    for (const Mode mode : modes) names += (names.empty() ? "" : ", ") + std::string(name(mode));
    return Error{Code::invalid_argument,
                 "unknown mode " + in_quotes(text) + "; there are " + names};
}

}  // namespace dael::cli
