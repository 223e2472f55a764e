// SPDX-License-Identifier: Apache-2.0
// `aes`: the interface of the program in Potesil's thesis. There, the key is the leading bytes of
// SHA-256 of the password; how the IV travels is not described. Here it is random and stands in the
// 16 bytes in front, as `encrypt` has it: with a key that follows from the password alone, a fixed
// IV would use one CTR keystream for every file.
#include <openssl/evp.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <memory>

#include "apps/daelstrom/cipher_job.hpp"
#include "apps/daelstrom/commands.hpp"
#include "io/secrets.hpp"
#include "io/warnings.hpp"
#include "lab/exhibits.hpp"

namespace dael::cli {
namespace {

struct ThesisOptions {
    bool encrypt = false, decrypt = false, quiet = false;
    std::string mode = "CTR", shown;
    Secret password;
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

Result<> run_aes(ThesisOptions& options) {
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
    if (options.password.empty())
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
    job.key = [&] { return key_from_password(options.password, options.bits); };
    return run(job);
}

constexpr std::array kExamples{
    Example{"Encrypt and decrypt as in the thesis",
            "daelstrom aes -e -m CTR -l 128 -p hello -i notes.txt -o notes.thesis && "
            "daelstrom aes -d -m CTR -l 128 -p hello -i notes.thesis -o notes.back"},
};
constexpr CommandText kAes{
    "aes", "Encrypt or decrypt with a password on the command line",
    "The interface of the program in Potesil's thesis: the key is the leading bytes of "
    "SHA-256 of the password. CBC and ECB pad; a random IV stands in the first 16 bytes of "
    "the output (the thesis does not say how it travels). Such a key can be guessed as fast "
    "as SHA-256 runs, and others can see the password: for anything that matters use "
    "`daelstrom encrypt --openssl`.",
    kExamples};

}  // namespace

Result<Secret> take_password_argument(int argc, char** argv) {
    if (argc < 2 || argv[1] != std::string_view("aes")) return Secret();
    char* value = nullptr;
    for (int i = 2; i < argc && !value; ++i) {  // behind the command
        char* argument = argv[i];
        constexpr std::string_view kLong = "--password";
        if (std::strncmp(argument, kLong.data(), kLong.size()) == 0) {
            if (argument[kLong.size()] == '=')
                value = argument + kLong.size() + 1;
            else if (argument[kLong.size()] == '\0' && i + 1 < argc)
                value = argv[i + 1];
        } else if (argument[0] == '-' && argument[1] != '-') {  // -p X, -pX, and behind flags: -dpX
            const char* letter = argument + 1;
            while (*letter != '\0' && std::strchr("edfq", *letter)) ++letter;
            if (*letter == 'p')
                value = letter[1] != '\0' ? argument + (letter + 1 - argument)
                        : i + 1 < argc    ? argv[i + 1]
                                          : nullptr;
        }
    }
    if (!value || *value == '\0') return Secret();
    auto password = Secret::create();
    if (!password) return password;
    for (char* c = value; *c != '\0'; ++c) {
        if (!password->append(static_cast<std::uint8_t>(*c)))
            return Error{Code::invalid_argument, "the password is longer than " +
                                                     std::to_string(Secret::kCapacity) + " bytes"};
        *c = 'x';
    }
    return password;
}

void add_aes(CLI::App& app, Context& context, Secret password) {
    CLI::App* command = add_command(app, context, kAes);
    const auto options = std::make_shared<ThesisOptions>();
    options->password = std::move(password);
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
    command->add_option("-p,--password", options->shown, "Password; others can see it")
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
    command->callback(
        [options, &context] { context.action = [options] { return run_aes(*options); }; });
}

}  // namespace dael::cli
