// SPDX-License-Identifier: Apache-2.0
// `vpn`: a tunnel between this machine and others (apps/vpn, docs/vpn.md).
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iostream>
#include <memory>
#include <string>

#include "commands.hpp"
#include "io/output.hpp"
#include "io/text.hpp"
#include "io/warnings.hpp"
#include "vpn/config.hpp"
#include "vpn/control.hpp"
#include "vpn/run.hpp"

namespace dael::cli {
namespace {

struct VpnOptions {
    std::string action, name, client, init;
    std::uint16_t server = 0;
    OutputOptions output;
    bool json = false, metrics = false, daemon = false, quiet = false;
};

// A configuration without a fault, or all of its faults on standard error.
Result<vpn::Config> read(const std::string& path) {
    if (path.empty()) return usage("name the configuration, a file in TOML (docs/vpn.md)");
    std::vector<vpn::Fault> faults;
    DAEL_LET(config, vpn::read_config(path, faults));
    if (faults.empty()) return std::move(config);
    std::cerr << vpn::describe(path, faults);
    return Error{Code::bad_format,
                 shown_name(path) + ": " +
                     (faults.size() == 1 ? "a fault" : std::to_string(faults.size()) + " faults") +
                     "; nothing was started"};
}

// An interface, by its name or by the configuration that names it.
Result<std::string> interface_of(const VpnOptions& options) {
    if (options.name.empty()) return std::string(vpn::Config{}.interface);
    if (options.name.find('/') == options.name.npos && !options.name.ends_with(".toml"))
        return options.name;
    return vpn::read_interface(options.name);
}

// In a process of its own, without a terminal; comes back when the tunnel is up, or could not be.
Result<> run_behind(vpn::Config config) {
    int ends[2];
    if (::pipe2(ends, O_CLOEXEC) != 0)
        return Error{Code::io, std::string("cannot make a pipe: ") + std::strerror(errno)};
    std::cout.flush();
    const pid_t child = ::fork();
    if (child < 0)
        return Error{Code::io, std::string("cannot start a process: ") + std::strerror(errno)};
    if (child != 0) {
        ::close(ends[1]);
        char up = 0;
        ssize_t got = 0;
        while ((got = ::read(ends[0], &up, 1)) < 0 && errno == EINTR) continue;
        ::close(ends[0]);
        if (got == 1) return {};
        int status = 0;
        while (::waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
        return Error{Code::io, "the tunnel did not start; its words are above"};
    }
    ::close(ends[0]);
    ::setsid();
    const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);  // later it may open nothing
    const auto done = vpn::run_tunnel(std::move(config), [&ends, null] {
        for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
            if (null >= 0) (void)::dup2(null, fd);
        if (null >= 0) ::close(null);
        (void)!::write(ends[1], "", 1);
        ::close(ends[1]);
    });
    if (!done) complain(done.error().message);
    ::_exit(done ? 0 : 1);
}

Result<> start(vpn::Config config, const VpnOptions& options) {
    if (options.quiet) silence_warnings();
    if (options.daemon) return run_behind(std::move(config));
    const std::string name = config.interface;
    return vpn::run_tunnel(std::move(config), [&name] { tell("interface " + name + " is up"); });
}

Result<> start_short(const VpnOptions& options) {
    if (options.init.empty())
        return usage("-i FILE is missing: the file of the secret that both ends have");
    if (options.server != 0 && !options.client.empty())
        return usage("-s is for the one end and -c for the other; give one of them");
    if (options.server != 0) {
        DAEL_LET(config, vpn::server_config(options.server, options.init));
        return start(std::move(config), options);
    }
    const auto where = vpn::parse_host_port(options.client);
    if (!where) return usage("-c: " + in_quotes(options.client) + " is not HOST:PORT");
    DAEL_LET(config, vpn::client_config(*where, options.init));
    return start(std::move(config), options);
}

Result<> check(const VpnOptions& options) {
    DAEL_LET(config, read(options.name));
    std::cout << shown_name(options.name) << ": no fault; interface " << config.interface << ", "
              << config.peers.size() << (config.peers.size() == 1 ? " peer" : " peers") << '\n';
    return {};
}

Result<> status(const VpnOptions& options) {
    if (options.json && options.metrics) return usage("--json and --metrics exclude each other");
    DAEL_LET(interface, interface_of(options));
    DAEL_LET(text, vpn::ask(interface, options.json      ? "json"
                                       : options.metrics ? "metrics"
                                                         : "status"));
    std::cout << text;
    return {};
}

Result<> down(const VpnOptions& options) {
    DAEL_LET(interface, interface_of(options));
    DAEL_TRY(vpn::ask(interface, "down"));
    return {};
}

Result<> genkey(VpnOptions& options) {
    if (!options.name.empty()) return usage("genkey takes no name; -o FILE says where it goes");
    options.output.secret = true;
    options.output.for_terminal = false;
    DAEL_LET(key, vpn::generate_key());
    DAEL_LET(own, vpn::public_key(key));
    DAEL_LET(text, Secret::create(vpn::kKeyText + 1));
    const auto out = text.fill();
    vpn::encode_key(key.span(), std::span<char, vpn::kKeyText>(reinterpret_cast<char*>(out.data()),
                                                               vpn::kKeyText));
    out.back() = '\n';
    DAEL_LET(output, Output::open(options.output));
    DAEL_TRY(output.write(text.bytes()));
    DAEL_TRY(output.commit());
    // For the other end's configuration, where it does not mix with the secret.
    if (options.output.path && *options.output.path != "-") std::cout << vpn::to_text(own) << '\n';
    return {};
}

Result<> pubkey(const VpnOptions& options) {
    DAEL_LET(key, vpn::read_key(options.name.empty() ? "-" : options.name, "private key"));
    DAEL_LET(own, vpn::public_key(key));
    std::cout << vpn::to_text(own) << '\n';
    return {};
}

Result<> run(VpnOptions& options) {
    if (options.action.empty()) {
        if (options.server != 0 || !options.client.empty()) return start_short(options);
        return usage(
            "say what to do: up, down, status, check, genkey or pubkey; or -s PORT or -c HOST:PORT "
            "with -i FILE");
    }
    if (options.server != 0 || !options.client.empty() || !options.init.empty())
        return usage("-s, -c and -i stand alone, without " + in_quotes(options.action));
    if (options.action == "up") {
        DAEL_LET(config, read(options.name));
        return start(std::move(config), options);
    }
    if (options.action == "down") return down(options);
    if (options.action == "status") return status(options);
    if (options.action == "check") return check(options);
    if (options.action == "genkey") return genkey(options);
    if (options.action == "pubkey") return pubkey(options);
    return usage("there is no action " + in_quotes(options.action) +
                 "; there are up, down, status, check, genkey and pubkey");
}

}  // namespace

void add_vpn(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "vpn");
    const auto options = std::make_shared<VpnOptions>();
    auto* action =
        command->add_option("ACTION", options->action, "up, down, status, check, genkey or pubkey")
            ->type_name("");
    context.choices[action] = {"up", "down", "status", "check", "genkey", "pubkey"};
    command
        ->add_option("NAME", options->name,
                     "up, check: the configuration; down, status: it too, or the interface "
                     "(default: dael0); pubkey: the private key's file (default: standard input)")
        ->type_name("");
    command
        ->add_option("-s", options->server,
                     "Without an action: be the end that waits for the other, at this port of UDP")
        ->type_name("PORT")
        ->check(CLI::Range(1, 65535));
    command
        ->add_option("-c", options->client,
                     "Without an action: be the end that calls the other, at HOST:PORT")
        ->type_name("HOST");
    command
        ->add_option("-i", options->init,
                     "With -s or -c: the file of the secret that both ends have, at least 16 bytes")
        ->type_name("FILE");
    command->add_flag("--daemon", options->daemon,
                      "up, -s, -c: return once the tunnel is up, and leave it running");
    command->add_flag("--json", options->json, "status: as JSON, for programs");
    command->add_flag("--metrics", options->metrics, "status: as Prometheus reads it");
    command
        ->add_option("-o,--output", options->output.path,
                     "genkey: the file, which only you will be able to read; its public key is "
                     "printed (default: standard output)")
        ->type_name("FILE");
    command->add_flag("-f,--force", options->output.overwrite, "genkey: overwrite the file");
    command->add_flag("-q,--quiet", options->quiet, "up, -s, -c: no warnings");
    command->callback(
        [options, &context] { context.action = [options] { return run(*options); }; });
}

}  // namespace dael::cli
