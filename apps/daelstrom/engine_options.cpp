// SPDX-License-Identifier: Apache-2.0
#include "engine_options.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <thread>

#include "io/text.hpp"

namespace dael::cli {

namespace {

bool any(const std::string& backend) {
    return backend.empty() || backend == "auto";
}

std::string_view kind_of(std::string_view backend) {
    return backend.substr(0, backend.find(':'));
}

// AES by drawing is an exhibit, which the lab's program has and this one has not.
Result<> check_drawing(const std::string& backend, const std::string& form) {
    const std::string draws = "opengl";
    const bool by_form = any(backend) && form.starts_with("gl-");
    if (!by_form && kind_of(backend) != draws) return {};
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

bool is_number(std::string_view text) {
    return !text.empty() && text.find_first_not_of("0123456789") == text.npos;
}

// What --backend, or the environment, and --device say together, as the engine takes it.
class Devices {
  public:
    Devices(const std::string& named, bool by_environment, const std::string& list)
        : named_(named),
          where_(by_environment ? "DAELSTROM_BACKEND" : "--backend"),
          list_(list),
          kind_(any(named) ? "cuda" : named) {}

    Result<std::string> backend() const {
        if (kind_ != "cuda" && kind_ != "opencl" && kind_ != "opengl")
            return Error{Code::invalid_argument, "--device chooses a GPU, but " + where_ + " is " +
                                                     in_quotes(named_) + "; leave one of them out"};
        if (list_ == "all") return any(named_) ? "all" : all_of_kind();
        std::string set;
        std::string_view rest = list_;
        for (bool more = true; more;) {
            const auto comma = rest.find(',');
            DAEL_LET(member, one(rest.substr(0, comma)));
            set += (set.empty() ? "" : "+") + member;
            more = comma != rest.npos;
            rest.remove_prefix(more ? comma + 1 : 0);
        }
        return set;
    }

  private:
    Error wrong(const std::string& why) const {
        return {Code::invalid_argument,
                "--device " + in_quotes(list_) + ": " + why +
                    "; give all, a number, or names as `daelstrom devices` lists them, with one "
                    "comma between: cuda:0,cpu"};
    }

    Result<std::string> one(std::string_view text) const {
        const std::string name(text);
        if (name.empty()) return wrong(list_.empty() ? "nothing is named" : "a name is missing");
        if (name == "all" || name == "auto") return wrong(name + " stands by itself");
        if (is_number(name)) {
            if (name.size() > 4 || std::stoi(name) > kMost)
                return wrong("numbers go from 0 to " + std::to_string(kMost));
            return kind_ + ":" + std::to_string(std::stoi(name));
        }
        const auto kinds = backend_kinds();
        const std::string_view its = kind_of(name);
        if (std::ranges::find(kinds, its, &BackendInfo::name) == kinds.end() && its != "opengl")
            return wrong(in_quotes(name) + " is not a device");
        if (!any(named_) && its != kind_ && (its == "cuda" || its == "opencl" || its == "opengl"))
            return wrong(in_quotes(name) + " is not of the backend " + kind_ + ", which " + where_ +
                         " names");
        return name;
    }

    // The first one's name, where there is none, so that the engine says what is missing.
    std::string all_of_kind() const {
        std::string set;
        for (const BackendInfo& device : list_backends(kind_))
            if (device.present) set += (set.empty() ? "" : "+") + device.name;
        return set.empty() ? kind_ : set;
    }

    static constexpr int kMost = 4095;
    const std::string named_, where_, list_, kind_;
};

}  // namespace

Result<Engine> EngineChoice::open() const {
    EngineOptions options{.backend = backend, .form = form, .threads = threads};
    options.cpu_share = cpu_share / 100.0;
    if (!device_memory.empty()) {
        DAEL_LET(bytes, parse_size(device_memory, "--device-memory"));
        options.device_memory = static_cast<std::size_t>(bytes);
    }
    if (!copy_rate.empty()) {
        DAEL_LET(bytes, parse_size(copy_rate, "--copy-rate"));
        options.copy_rate = bytes;
    }
    const char* const usual = ::secure_getenv("DAELSTROM_BACKEND");
    std::string named = !backend.empty() || !usual ? backend : usual;
    if (device) {
        DAEL_LET(together, Devices(named, backend.empty() && usual, *device).backend());
        options.backend = named = together;
    }
    DAEL_TRY(check_drawing(named, form));
    if (any(named) && form.find('=') != form.npos)
        return Error{Code::invalid_argument,
                     "--form " + in_quotes(form) + " needs a backend that has it: add --backend " +
                         (form.starts_with("tables=") ? "cuda or opencl" : "opencl")};
    return Engine::open(std::move(options));
}

unsigned EngineChoice::most_threads() const {
    if (threads > 0) return static_cast<unsigned>(threads);
    const double cores = std::max(1u, std::thread::hardware_concurrency());
    return std::max(1u, static_cast<unsigned>(std::lround(cores * cpu_share / 100)));
}

void add_engine_options(CLI::App& command, Context& context, EngineChoice& choice) {
    std::vector<std::string> backends{"auto", "all"};
    for (const BackendInfo& kind : backend_kinds()) backends.push_back(kind.name);
    add_choice(command, context, "--backend", choice.backend, std::move(backends),
               "Where the cipher runs; a backend that is named is used or refused, never replaced; "
               "several work together: cuda:0+cpu (default: auto)");
    auto* device = command.add_option_function<std::string>(
        "--device", [&choice](const std::string& list) { choice.device = list; },
        "Use these, together where there are several: names as `devices` lists them, cuda:0,cpu; "
        "numbers of the backend cuda, or of opencl where that is named, 0,1; or all, which is "
        "every device and the host");
    device->type_name("all|LIST");
    context.choices[device] = {"all"};
    add_choice(
        command, context, "--form", choice.form, {"sse", "avx2", "avx512"},
        "Instruction set of the backend cpu (default: the best that the machine has); for cuda and "
        "opencl the layout of the tables, tables=4, 2 or 1, for opencl also 0 or -1 and more "
        "(docs/opencl.md; default: what is fastest)");
    command.add_option("--threads", choice.threads, "CPU threads (default: all cores)")
        ->type_name("N")
        ->check(CLI::Range(1, 4096));
    command
        .add_option("--cpu-share", choice.cpu_share,
                    "The part of the cores to use, where --threads does not say, per cent")
        ->type_name("PERCENT")
        ->check(CLI::Range(1, 100));
    command
        .add_option("--device-memory", choice.device_memory,
                    "Most memory of each device that data on its way there and back may take "
                    "(default: up to 1.25G)")
        ->type_name("SIZE");
    command
        .add_option("--copy-rate", choice.copy_rate,
                    "Most bytes a second that go to each device, and come back (default: any)")
        ->type_name("SIZE");
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
