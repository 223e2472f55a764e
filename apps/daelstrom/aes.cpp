// SPDX-License-Identifier: Apache-2.0
// `aes`: the interface of the program in Potesil's thesis. There, the key is the leading bytes of
// SHA-256 of the password; how the IV travels is not described. Here it is random and stands in the
// 16 bytes in front, as `encrypt` has it: with a key that follows from the password alone, a fixed
// IV would use one CTR keystream for every file.
#include <openssl/evp.h>
#include <unistd.h>

#include <cstdio>
#include <memory>

#include "cipher_job.hpp"
#include "commands.hpp"
#include "io/warnings.hpp"

namespace dael::cli {
namespace {

struct ThesisOptions {
    bool encrypt = false, decrypt = false, quiet = false;
    std::string mode = "CTR", password;
    int bits = 256;
    CipherJob job;
};

Result<Secret> key_from_password(const Secret& password, int bits) {
    DAEL_LET(digest, Secret::create(32));
    const auto text = password.bytes();
    if (!EVP_Digest(text.data(), text.size(), digest.fill().data(), nullptr, EVP_sha256(), nullptr))
        return Error{Code::internal, "SHA-256 of libcrypto failed"};
    digest.truncate(static_cast<std::size_t>(bits) / 8);
    return std::move(digest);
}

Result<> run_aes(ThesisOptions& options, Context& context) {
    CipherJob& job = options.job;
    if (options.encrypt == options.decrypt)
        return Error{Code::invalid_argument, "say either -e to encrypt or -d to decrypt"};
    job.direction = options.encrypt ? Direction::encrypt : Direction::decrypt;
    auto mode = parse_mode(options.mode);
    if (!mode) return std::move(mode).error();
    if (*mode == Mode::cfb || *mode == Mode::ofb)
        return Error{Code::invalid_argument, "aes takes ECB, CTR and CBC; for " +
                                                 std::string(name(*mode)) +
                                                 " use `daelstrom encrypt --mode`"};
    job.mode = *mode;
    if (context.argument_password.empty())
        return Error{Code::invalid_argument,
                     "the password is empty; a password has at least one character"};
    if (options.quiet) {
        silence_warnings();
        job.show = Show::never;
    }
    warn(
        "a password on a command line can be seen by others (ps, shell history); `daelstrom "
        "encrypt --openssl` asks for it");
    job.output.for_terminal = !job.encrypts();
    job.key = [&] { return key_from_password(context.argument_password, options.bits); };
    return run(job);
}

}  // namespace

void add_aes(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "aes");
    const auto options = std::make_shared<ThesisOptions>();
    CipherJob& job = options->job;
    command->add_flag("-e,--encrypt", options->encrypt, "Encrypt");
    command->add_flag("-d,--decrypt", options->decrypt, "Decrypt");
    add_choice(*command, context, "-m,--mode", options->mode, {"ECB", "CTR", "CBC"},
               "Mode of operation (default: CTR)");
    auto* bits =
        command->add_option("-l,--length", options->bits, "Key size in bits (default: 256)")
            ->type_name("128|192|256")
            ->check(CLI::IsMember({128, 192, 256}));
    context.choices[bits] = {"128", "192", "256"};
    command->add_option("-p,--password", options->password, "Password; others can see it")
        ->type_name("PASSWORD")
        ->required();
    command->add_option("-i,--input", job.input, "File to read (- is standard input)")
        ->type_name("FILE")
        ->required();
    command->add_option("-o,--output", job.output.path, "File to write (- is standard output)")
        ->type_name("FILE")
        ->required();
    add_engine_options(*command, context, job.engine);
    command->add_flag("-f,--force", job.output.overwrite, "Overwrite the output file");
    command->add_flag("-q,--quiet", options->quiet, "No progress and no warning");
    command->callback([options, &context] {
        context.action = [options, &context] { return run_aes(*options, context); };
    });
}

}  // namespace dael::cli
