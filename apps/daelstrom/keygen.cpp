// SPDX-License-Identifier: Apache-2.0
// `keygen`: a new random key, in a file that nobody else may read.
#include <algorithm>
#include <iostream>
#include <memory>
#include <string>

#include <daelstrom/sealed_keys.hpp>
#include <daelstrom/sealed_recipients.hpp>

#include "commands.hpp"
#include "engine_options.hpp"
#include "io/output.hpp"
#include "io/text.hpp"
#include "io/warnings.hpp"
#include "keysets.hpp"

namespace dael::cli {
namespace {

struct KeygenOptions {
    OutputOptions output;
    std::string format = "raw";
    int bits = 256;
    bool quiet = false;
};

// As age-keygen writes it: the public half in a comment, so that it is found again. `recipient`
// becomes that half.
Result<Secret> make_identity_file(bool hybrid, std::string& recipient) {
    DAEL_LET(identity,
             Secret::create(hybrid ? sealed::kHybridIdentitySize : sealed::kIdentitySize));
    DAEL_TRY(hybrid ? sealed::make_hybrid_identity(identity.fill())
                    : sealed::make_identity(identity.fill()));
    DAEL_LET(parsed, sealed::Identities::parse(identity.bytes()));
    DAEL_LET(recipients, parsed.recipients());
    recipient = recipients.substr(0, recipients.find('\n'));
    const std::string comment = "# public key: " + recipient + "\n";
    DAEL_LET(text, Secret::create(comment.size() + identity.bytes().size() + 1));
    const auto out = text.fill();
    std::ranges::copy(comment, out.begin());
    std::ranges::copy(identity.bytes(), out.subspan(comment.size()).begin());
    out.back() = '\n';
    return std::move(text);
}

Result<Secret> make(const KeygenOptions& options, std::string& recipient) {
    const auto bytes = static_cast<std::size_t>(options.bits) / 8;
    if (options.format == "age" || options.format == "age-pq") {
        if (options.bits != 256)
            return usage("--bits: identities of age have one size; leave it out");
        return make_identity_file(options.format == "age-pq", recipient);
    }
    if (options.format == "keyset") {
        if (options.bits == 192)
            return usage("--bits 192: keysets have keys of 128 or 256 bits; choose one of them");
        sealed::Keyset keyset;
        DAEL_TRY(keyset.add("AES" + std::to_string(options.bits) + "_GCM_HKDF_1MB"));
        return secret_text(keyset);
    }
    if (options.format != "raw" && options.format != "hex")
        return usage("--format: no " + in_quotes(options.format) +
                     "; there are raw, hex, keyset, age and age-pq");
    DAEL_LET(key, random_secret(bytes));
    if (options.format == "raw") return std::move(key);
    return in_hex(key.bytes());
}

Result<> run(KeygenOptions& options) {
    if (options.quiet) silence_warnings();
    options.output.secret = true;
    options.output.for_terminal = false;
    std::string recipient;
    DAEL_LET(key, make(options, recipient));
    DAEL_LET(output, Output::open(options.output));
    DAEL_TRY(output.write(key.bytes()));
    DAEL_TRY(output.commit());
    // For `seal -r`, where it does not mix with the identity.
    if (!recipient.empty() && options.output.path && options.output.path != "-")
        std::cout << recipient << '\n';
    return {};
}

}  // namespace

void add_keygen(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "keygen");
    const auto options = std::make_shared<KeygenOptions>();
    command
        ->add_option(
            "-o,--output", options->output.path,
            "File to write, which only you will be able to read (default: standard output)")
        ->type_name("FILE");
    add_choice(
        *command, context, "--format", options->format, {"raw", "hex", "keyset", "age", "age-pq"},
        "The key's bytes as they are, in hexadecimal, a keyset of Tink's with this one "
        "key, or an identity of age's, whose recipient is printed; age-pq: post-quantum, with "
        "OpenSSL 3.5 (default: raw)");
    auto* bits = command->add_option("--bits", options->bits, "Key size (default: 256)")
                     ->type_name("128|192|256")
                     ->check(CLI::IsMember({128, 192, 256}));
    context.choices[bits] = {"128", "192", "256"};
    command->add_flag("-f,--force", options->output.overwrite,
                      "Overwrite the output file: what was encrypted with the key in it is lost");
    command->add_flag("-q,--quiet", options->quiet, "No warnings");
    command->callback(
        [options, &context] { context.action = [options] { return run(*options); }; });
}

}  // namespace dael::cli
