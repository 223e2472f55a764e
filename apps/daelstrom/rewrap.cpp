// SPDX-License-Identifier: Apache-2.0
// `rewrap`: other recipients or another passphrase for files that were sealed for some or with one.
#include <algorithm>
#include <memory>
#include <thread>

#include "commands.hpp"
#include "file_options.hpp"
#include "many_files.hpp"
#include "rewrap_job.hpp"
#include "sealed_options.hpp"

namespace dael::cli {
namespace {

struct RewrapChoices {
    SecretSource old_passphrase, new_passphrase;
    RecipientOptions recipients;
    IdentityOptions identities;
    FileRequest files;
    ShowOptions show;
    RewrapOptions job;
};

Result<> complete(RewrapChoices& choices) {
    RewrapOptions& job = choices.job;
    const bool from_stdin = choices.old_passphrase.from_stdin() ||
                            choices.new_passphrase.from_stdin() ||
                            choices.recipients.from_stdin() || choices.identities.from_stdin();
    if (from_stdin && is_stdin(choices.files))
        return Error{Code::invalid_argument,
                     "standard input cannot be both the secret and the data; name the input file"};
    choices.files.naming = Naming::reseal;
    choices.files.overwrite = job.output.overwrite;
    if (choices.identities.given())
        job.identities = [&choices] { return read(choices.identities); };
    if (choices.recipients.given())
        job.recipients = [&choices] { return read(choices.recipients); };
    job.old_passphrase = [&choices] {
        return read_password(choices.old_passphrase, false, "passphrase");
    };
    job.new_passphrase = [&choices] {
        return read_password(choices.new_passphrase, true, "new passphrase");
    };
    return {};
}

Result<> run(RewrapChoices& choices) {
    DAEL_TRY(complete(choices));
    DAEL_LET(plan, plan_files(choices.files));
    RewrapJob job(choices.job);
    if (!plan.single && !plan.files.empty()) DAEL_TRY(job.ready());
    const bool in_place = !choices.files.output && !is_stdin(choices.files);
    constexpr unsigned kMaxThreads = 8;  // that read and write, which is all
    return do_files(plan,
                    {.command = "rewrap",
                     .verb = "wrapped anew",
                     .show = choices.show.show(),
                     .threads = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads)},
                    [&](const PlannedFile& file, Buffers& buffers, Progress& progress) {
                        return job.run(file, in_place, buffers, progress);
                    });
}

}  // namespace

void add_rewrap(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "rewrap");
    const auto options = std::make_shared<RewrapChoices>();
    RewrapOptions& job = options->job;
    add_inputs(*command, options->files, "Sealed files (default: - for standard input)");
    command
        ->add_option("-o,--output", options->files.output,
                     "File to write (default: each INPUT is replaced, in one step)")
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
        context.action = [options]() -> Result<> { return run(*options); };
    });
}

}  // namespace dael::cli
