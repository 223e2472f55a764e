// SPDX-License-Identifier: Apache-2.0
#include "engine_options.hpp"

#include "core/registry.hpp"
#include "io/text.hpp"

namespace dael::cli {

Result<Engine> EngineChoice::open() const {
    EngineOptions options{.backend = backend, .isa = isa, .threads = threads};
    if (device >= 0) {
        if (!backend.empty() && backend != "auto" && backend != "cuda")
            return Error{Code::invalid_argument, "--device chooses a GPU, but --backend is " +
                                                     in_quotes(backend) +
                                                     "; leave one of them out"};
        options.backend = "cuda:" + std::to_string(device);
    }
    if (!isa.empty() && !options.backend.empty() && options.backend != "auto" &&
        options.backend != "cpu")
        return Error{Code::invalid_argument, "--isa is for the backend cpu, not for " +
                                                 in_quotes(options.backend) +
                                                 "; leave one of them out"};
    return Engine::open(std::move(options));
}

void add_engine_options(CLI::App& command, Context& context, EngineChoice& choice) {
    std::vector<std::string> backends{"auto"};
    for (const auto& entry : core::backend_list()) backends.emplace_back(entry.name);
    add_choice(command, context, "--backend", choice.backend, std::move(backends),
               "Where the cipher runs; a backend that is named is used or refused, never replaced "
               "(default: auto)");
    command
        .add_option("--device", choice.device,
                    "Use the GPU of this number, as `devices` lists them")
        ->type_name("N")
        ->check(CLI::Range(0, 4095));
    add_choice(command, context, "--isa", choice.isa, {"sse", "avx2", "avx512"},
               "Instruction set of the backend cpu (default: the best that the machine has)");
    command.add_option("--threads", choice.threads, "CPU threads (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
}

CLI::Option* add_choice(CLI::App& command, Context& context, const std::string& names,
                        std::string& value, std::vector<std::string> words,
                        const std::string& description) {
    std::string type;
    for (const auto& word : words) type += (type.empty() ? "" : "|") + word;
    auto* option = command.add_option(names, value, description)->type_name(type);
    context.choices[option] = std::move(words);
    return option;
}

Result<Mode> parse_mode(const std::string& text) {
    if (const auto mode = mode_by_name(text)) return *mode;
    std::string names;
    for (const Mode mode : kModes) names += (names.empty() ? "" : ", ") + std::string(name(mode));
    return Error{Code::invalid_argument,
                 "unknown mode " + in_quotes(text) + "; there are " + names};
}

}  // namespace dael::cli
