// SPDX-License-Identifier: Apache-2.0
// `encrypt` and `decrypt`: the same options, but for what only one direction asks.
#include <algorithm>
#include <memory>

#include "cipher_job.hpp"
#include "commands.hpp"
#include "done.hpp"
#include "file_options.hpp"
#include "io/text.hpp"

namespace dael::cli {
namespace {

struct CipherOptions {
    Direction direction = Direction::encrypt;
    std::string mode = "ctr";
    std::optional<std::string> iv, offset;
    SecretSource key, password;
    bool no_padding = false, openssl = false;
    ShowOptions show;
    int bits = 256, iterations = 10000;
    CipherJob job;
};

void add_openssl(CLI::App& command, Context& context, CipherOptions& options) {
    auto* openssl = command.add_flag(
        "--openssl", options.openssl,
        "The format of `openssl enc -pbkdf2`: a password, and Salted__ with a salt in front");
    add_secret(command, "password", "File whose first line is the password (- is standard input)",
               options.password);
    command.get_option("--password-file")->needs(openssl);
    command.get_option("--password-fd")->needs(openssl);
    auto* bits = command
                     .add_option("--bits", options.bits,
                                 "With --openssl: key size, 128, 192 or 256 (default: 256)")
                     ->type_name("128|192|256")
                     ->check(CLI::IsMember({128, 192, 256}))
                     ->needs(openssl);
    context.choices[bits] = {"128", "192", "256"};
    command
        .add_option("--iterations", options.iterations,
                    "With --openssl: rounds of PBKDF2 (default: 10000, as openssl)")
        ->type_name("N")
        ->check(CLI::Range(1, 2'000'000'000))
        ->needs(openssl);
    openssl->excludes("--key-file")->excludes("--key-fd")->excludes("--iv")->excludes("--offset");
}

void add_options(CLI::App& command, Context& context, CipherOptions& options) {
    CipherJob& job = options.job;
    command.add_option("INPUT", job.input, "File to read (default: - for standard input)")
        ->type_name("");
    command.add_option("-o,--output", job.output.path, "File to write (default: standard output)")
        ->type_name("FILE");
    add_choice(command, context, "-m,--mode", options.mode, mode_names(),
               "Mode of operation (default: ctr)");
    add_secret(
        command, "key",
        "File with the key: 16, 24 or 32 bytes, or hexadecimal (- is standard input; default: "
        "ask on the terminal)",
        options.key);
    command
        .add_option("--iv", options.iv,
                    "IV, or first counter block; as `openssl enc -K -iv`, nothing stands in front "
                    "(default: random, in the 16 bytes in front)")
        ->type_name("HEX");
    command
        .add_option("--offset", options.offset,
                    "CTR with --iv: byte of the keystream at which the data begins (default: 0)")
        ->type_name("SIZE");
    command.add_flag("--no-padding", options.no_padding,
                     "ECB and CBC: no PKCS#7 padding; the length must be a multiple of 16");
    add_openssl(command, context, options);
    add_engine_options(command, context, job.engine);
    add_file_options(command, job.output, options.show);
    add_json(command, options.show);
}

// GCM, which authenticates, is what `seal` is for.
Error in_the_right_command(const std::string& mode, Error error) {
    std::string lower = mode;
    std::ranges::transform(lower, lower.begin(), [](char c) {
        return c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
    });
    if (lower.find("gcm") != lower.npos)
        error.message += "; AES-GCM is what `daelstrom seal` and `daelstrom open` do";
    return error;
}

// Everything that the command line alone can tell to be wrong.
Result<> complete(CipherOptions& options) {
    CipherJob& job = options.job;
    auto mode = parse_mode(options.mode);
    if (!mode) return in_the_right_command(options.mode, std::move(mode).error());
    job.mode = *mode;
    job.padding = !options.no_padding;
    if (options.no_padding && !whole_blocks_only(job.mode))
        return usage("--no-padding is for ecb and cbc; " + std::string(name(job.mode)) +
                     " never pads, leave it out");
    if (options.iv) {
        if (!takes_iv(job.mode)) return usage("ecb takes no IV; leave --iv out");
        auto iv = parse_iv(*options.iv);
        if (!iv) return std::move(iv).error();
        job.iv = *iv;
    }
    if (options.offset) {
        if (job.mode != Mode::ctr) return usage("--offset is for ctr; leave it out");
        if (!job.iv)
            return usage(
                "--offset says where in a keystream the data begins; say which one with --iv");
        auto offset = parse_size(*options.offset, "--offset");
        if (!offset) return std::move(offset).error();
        job.offset = *offset;
    }
    const SecretSource& secret = options.openssl ? options.password : options.key;
    if (secret.from_stdin() && job.input == "-")
        return usage("standard input cannot be both the secret and the data; name the input file");
    DAEL_TRY(check_json(options.show.json, job.output.path));
    job.show = options.show.show();
    job.json = options.show.json;
    job.output.for_terminal = !job.encrypts();
    job.key = [&options] { return read_key_bytes(options.key, options.job.encrypts()); };
    if (options.openssl)
        job.salted = {
            [&options] { return read_password(options.password, options.job.encrypts()); },
            options.iterations, options.bits};
    return {};
}

void add(CLI::App& app, Context& context, Direction direction) {
    CLI::App* command = add_command(app, name(direction));
    const auto options = std::make_shared<CipherOptions>();
    options->job.direction = direction;
    add_options(*command, context, *options);
    command->callback([options, &context] {
        context.action = [options]() -> Result<> {
            DAEL_TRY(complete(*options));
            return run(options->job);
        };
    });
}

}  // namespace

void add_encrypt(CLI::App& app, Context& context) {
    add(app, context, Direction::encrypt);
}
void add_decrypt(CLI::App& app, Context& context) {
    add(app, context, Direction::decrypt);
}

}  // namespace dael::cli
