// SPDX-License-Identifier: Apache-2.0
// `provider`: the OpenSSL provider (provider/). What it says of itself, a configuration for it, and
// why a program uses it or does not.
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <memory>
#include <sstream>

#include "commands.hpp"
#include "io/json_text.hpp"
#include "io/output.hpp"
#include "io/text.hpp"
#include "openssl_side.hpp"

namespace dael::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kMark = "# Written by `daelstrom provider install`";

struct ProviderOptions {
    std::string action, program, module, config;
    bool json = false, overwrite = false;
};

Result<std::string> module_of(const ProviderOptions& options) {
    std::vector<std::string> looked;
    std::string file = find_module(options.module, looked);
    if (!file.empty()) return file;
    std::string places;
    for (const std::string& place : looked) places += (places.empty() ? "" : ", ") + place;
    return Error{Code::backend_absent,
                 "no daelstrom.so; looked for " + places +
                     ". Build the target daelstrom_provider, or say where it is with --module"};
}

Result<std::string> config_of(const ProviderOptions& options) {
    if (!options.config.empty()) return options.config;
    if (const char* const folder = std::getenv("XDG_CONFIG_HOME"); folder && *folder == '/')
        return std::string(folder) + "/daelstrom/openssl.cnf";
    if (const char* const home = std::getenv("HOME"); home && *home == '/')
        return std::string(home) + "/.config/daelstrom/openssl.cnf";
    return Error{Code::invalid_argument, "there is no HOME; say which file with --config"};
}

Result<> status(const ProviderOptions& options) {
    DAEL_LET(file, module_of(options));
    DAEL_LET(facts, ask_module(file));
    if (options.json) {
        auto all = JsonText::object().add("module", file);
        for (const auto& [name, value] : facts.texts) all.add(name, value);
        for (const auto& [name, value] : facts.numbers) all.add(name, value);
        std::cout << all.text() << '\n';
        return {};
    }
    const auto line = [](std::string name, const std::string& value) {
        if (name.starts_with("daelstrom-")) name = name.substr(10);
        name.resize(std::max<std::size_t>(name.size() + 2, 16), ' ');
        std::cout << name << value << '\n';
    };
    line("module", file);
    for (const auto& [name, value] : facts.texts)
        if (!value.empty()) line(name, value);
    for (const auto& [name, value] : facts.numbers) line(name, std::to_string(value));
    return {};
}

// The configuration of the packages (provider/daelstrom-openssl.cnf.in), with the module's place.
std::string configuration(const std::string& module) {
    return std::string(kMark) +
           "; `daelstrom provider uninstall` removes it.\n"
           "# OPENSSL_CONF names it to a program. docs/provider.md says what else can be set.\n"
           "openssl_conf = openssl_init\n\n"
           "[openssl_init]\nproviders = provider_sect\nalg_section = algorithm_sect\n\n"
           "[provider_sect]\ndefault = default_sect\ndaelstrom = daelstrom_sect\n\n"
           "[default_sect]\nactivate = 1\n\n"
           "[daelstrom_sect]\nmodule = " +
           module +
           "\nactivate = 1\n# backend = auto\n# threads = 0\n# threshold = 262144\n"
           "# warmup = 33554432\n# log = off\n\n"
           "[algorithm_sect]\ndefault_properties = ?provider=daelstrom\n";
}

bool is_ours(const fs::path& file) {
    std::ifstream in(file);
    std::string first;
    return std::getline(in, first) && first.starts_with(kMark);
}

Result<> install(const ProviderOptions& options) {
    DAEL_LET(module, module_of(options));
    DAEL_TRY(ask_module(module));
    // What OpenSSL's configuration takes for something else.
    if (module.find_first_of("$#\\\n\"'`") != module.npos)
        return Error{Code::invalid_argument,
                     module + " has a character that OpenSSL's configuration does not take"};
    DAEL_LET(config, config_of(options));
    std::error_code fault;
    if (const fs::path folder = fs::path(config).parent_path(); !folder.empty())
        fs::create_directories(folder, fault);
    if (fault)
        return Error{Code::io,
                     "cannot make the folder of " + in_quotes(config) + ": " + fault.message()};
    // Opened before it is looked at: what is replaced then is what was looked at, and nothing
    // newer.
    DAEL_LET(output, Output::open({.path = config, .overwrite = true}));
    if (fs::exists(config, fault) && !is_ours(config) && !options.overwrite)
        return Error{Code::io, config +
                                   " exists and is not this program's; -f overwrites it, "
                                   "--config names another"};
    const std::string text = configuration(module);
    DAEL_TRY(output.write({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    DAEL_TRY(output.commit());
    std::cout << "Wrote " << config << ". A program uses it that is started with\n"
              << "    OPENSSL_CONF=" << fs::absolute(config).string() << " PROGRAM\n";
    return {};
}

Result<> uninstall(const ProviderOptions& options) {
    DAEL_LET(config, config_of(options));
    std::error_code fault;
    if (!fs::exists(config, fault)) {
        std::cout << "There is no " << config << ".\n";
        return {};
    }
    if (!is_ours(config))
        return Error{Code::io, config +
                                   " was not written by `daelstrom provider install`; "
                                   "remove it yourself if you mean it"};
    fs::remove(config, fault);
    if (fault) return Error{Code::io, "cannot remove " + config + ": " + fault.message()};
    std::cout << "Removed " << config << ". Programs that run keep what they have loaded.\n";
    return {};
}

// Findings, good and bad, one a line.
class Findings {
  public:
    void good(const std::string& text) { std::cout << "ok    " << text << '\n'; }
    void note(const std::string& text) { std::cout << "note  " << text << '\n'; }
    void bad(const std::string& text) {
        std::cout << "no    " << text << '\n';
        ++bad_;
    }
    int bad_count() const { return bad_; }

  private:
    int bad_ = 0;
};

std::string on_path(const std::string& name) {
    if (name.find('/') != name.npos) return name;
    std::istringstream folders(std::getenv("PATH") ? std::getenv("PATH") : "");
    for (std::string folder; std::getline(folders, folder, ':');) {
        std::error_code ignored;
        const fs::path path = fs::path(folder) / name;
        if (fs::is_regular_file(path, ignored)) return path.string();
    }
    return name;
}

void look_at_program(const std::string& name, Findings& findings) {
    const std::string path = on_path(name);
    std::ifstream in(path, std::ios::binary);
    if (!in) return findings.bad(name + " is no program that can be read");
    std::string bytes((std::istreambuf_iterator<char>(in)), {});
    struct stat about {};
    if (::stat(path.c_str(), &about) == 0 && (about.st_mode & (S_ISUID | S_ISGID)))
        findings.bad(path +
                     " runs with other rights than its caller's: OpenSSL then does not look "
                     "at OPENSSL_CONF; only the system's configuration reaches it");
    const auto has = [&](std::string_view what) { return bytes.find(what) != bytes.npos; };
    if (bytes.starts_with("#!"))
        return findings.note(path + " is a script; ask about the program that runs it");
    if (has("libcrypto.so.3") || has("libssl.so.3"))
        return findings.good(path + " is linked to OpenSSL 3");
    if (has("libcrypto.so.1"))
        return findings.bad(path + " is linked to OpenSSL 1.1, which has no providers");
    if (has("OpenSSL 3."))
        return findings.bad(path +
                            " has an OpenSSL of its own inside, which may read another "
                            "configuration, or none, and may load no modules");
    findings.note(path +
                  " is not linked to OpenSSL itself; a library that it loads may be "
                  "(ldd tells; GnuTLS, NSS, Go and rustls have AES of their own)");
}

Result<> doctor(const ProviderOptions& options) {
    Findings findings;
    if (auto module = module_of(options); !module) {
        findings.bad(module.error().message);
    } else if (auto facts = ask_module(*module); !facts) {
        findings.bad(facts.error().message);
    } else {
        for (const auto& [name, value] : facts->texts)
            if (name == "buildinfo") findings.good(*module + " loads: " + value);
    }
    const std::string config = options.config.empty() ? configuration_file() : options.config;
    std::error_code ignored;
    if (!fs::exists(config, ignored)) {
        findings.bad("there is no " + config + ", which programs would read");
    } else {
        findings.good("programs that start here read " + config +
                      (options.config.empty() ? "" : ", given OPENSSL_CONF"));
        const Reading reading = read_configuration(config);
        if (!reading.fault.empty())
            findings.bad("OpenSSL cannot follow it, and programs say nothing of that: " +
                         reading.fault);
        if (!reading.daelstrom)
            findings.bad(
                "it does not activate daelstrom; `daelstrom provider install` writes one "
                "that does, for OPENSSL_CONF");
        if (reading.daelstrom && reading.digest_from.empty())
            findings.bad(
                "it activates daelstrom and nothing else: what is not AES is missing, so "
                "most programs fail. Add `activate = 1` to the section of `default`");
        if (reading.daelstrom && reading.cipher_from != "daelstrom")
            findings.bad("AES-256-GCM still comes from '" + reading.cipher_from +
                         "', which was activated first. Set `default_properties = "
                         "?provider=daelstrom` in the section that alg_section names");
        if (reading.daelstrom && reading.cipher_from == "daelstrom")
            findings.good("AES-256-GCM comes from daelstrom, SHA-256 from '" + reading.digest_from +
                          "'");
        if (!reading.engine_fault.empty()) findings.bad(reading.engine_fault);
    }
    if (!options.program.empty()) look_at_program(options.program, findings);
    if (findings.bad_count() == 0) {
        findings.note(
            "small requests go to OpenSSL's own code; the engine opens after 32 MiB in a "
            "process, or one update of 256 KiB (docs/provider.md)");
        return {};
    }
    return Error{Code::backend_absent, findings.bad_count() == 1
                                           ? "something stands in the way; see above"
                                           : std::to_string(findings.bad_count()) +
                                                 " things stand in the way; see above"};
}

}  // namespace

void add_provider(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "provider");
    const auto options = std::make_shared<ProviderOptions>();
    auto* action =
        command->add_option("ACTION", options->action, "status, install, uninstall or doctor")
            ->type_name("")
            ->required();
    context.choices[action] = {"status", "install", "uninstall", "doctor"};
    command->add_option("PROGRAM", options->program, "doctor: a program to look at as well")
        ->type_name("");
    command->add_option("--module", options->module, "The file daelstrom.so")->type_name("FILE");
    command
        ->add_option("--config", options->config,
                     "install, uninstall: the file (default: daelstrom/openssl.cnf in the user's "
                     "folder of configurations); doctor: instead of what OPENSSL_CONF says")
        ->type_name("FILE");
    command->add_flag("--json", options->json, "status: as JSON, for programs");
    command->add_flag("-f,--force", options->overwrite, "install: overwrite the file");
    command->callback([options, &context] {
        context.action = [options]() -> Result<> {
            if (options->action == "status") return status(*options);
            if (options->action == "install") return install(*options);
            if (options->action == "uninstall") return uninstall(*options);
            if (options->action == "doctor") return doctor(*options);
            return usage("there is no action '" + options->action +
                         "'; there are status, install, uninstall and doctor");
        };
    });
}

}  // namespace dael::cli
