// SPDX-License-Identifier: Apache-2.0
// `rewrap`: other recipients or another passphrase for a file that was sealed for some or with one.
#include <memory>

#include "commands.hpp"
#include "file_options.hpp"
#include "rewrap_job.hpp"
#include "sealed_options.hpp"

namespace dael::cli {
namespace {

struct RewrapOptions {
    SecretSource old_passphrase, new_passphrase;
    RecipientOptions recipients;
    IdentityOptions identities;
    ShowOptions show;
    RewrapJob job;
};

Result<> complete(RewrapOptions& options) {
    RewrapJob& job = options.job;
    const bool from_stdin = options.old_passphrase.from_stdin() ||
                            options.new_passphrase.from_stdin() ||
                            options.recipients.from_stdin() || options.identities.from_stdin();
    if (from_stdin && job.input == "-")
        return Error{Code::invalid_argument,
                     "standard input cannot be both the secret and the data; name the input file"};
    if (!job.output.path && job.input != "-") {
        job.output.path = job.input;
        job.output.replaces_input = true;
    }
    job.output.for_terminal = false;
    job.show = options.show.show();
    if (options.identities.given())
        job.identities = [&options] { return read(options.identities); };
    if (options.recipients.given())
        job.recipients = [&options] { return read(options.recipients); };
    job.old_passphrase = [&options] {
        return read_password(options.old_passphrase, false, "passphrase");
    };
    job.new_passphrase = [&options] {
        return read_password(options.new_passphrase, true, "new passphrase");
    };
    return {};
}

}  // namespace

void add_rewrap(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "rewrap");
    const auto options = std::make_shared<RewrapOptions>();
    RewrapJob& job = options->job;
    command->add_option("INPUT", job.input, "Sealed file (default: - for standard input)")
        ->type_name("");
    command
        ->add_option("-o,--output", job.output.path,
                     "File to write (default: INPUT is replaced, in one step)")
        ->type_name("FILE");
    add_identities(*command, options->identities);
    add_recipients(*command, options->recipients);
    add_secret(*command, "passphrase",
               "File whose first line is the passphrase so far (- is standard input; default: ask "
               "on the terminal)",
               options->old_passphrase);
    add_secret(*command, "new-passphrase",
               "File whose first line is the new passphrase (- is standard input; default: ask on "
               "the terminal)",
               options->new_passphrase);
    for (const char* passphrase : {"--passphrase-file", "--passphrase-fd"})
        command->get_option(passphrase)->excludes("--identity");
    add_max_cost(*command, job.most)->excludes("--identity");
    CLI::Option* cost = add_cost(*command, job.work);
    for (const char* recipients : {"--recipient", "--recipients-file"}) {
        cost->excludes(recipients);
        for (const char* passphrase : {"--new-passphrase-file", "--new-passphrase-fd"})
            command->get_option(passphrase)->excludes(recipients);
    }
    add_file_options(*command, job.output, options->show);
    command->callback([options, &context] {
        context.action = [options]() -> Result<> {
            DAEL_TRY(complete(*options));
            return run(options->job);
        };
    });
}

}  // namespace dael::cli
