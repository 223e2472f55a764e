// SPDX-License-Identifier: Apache-2.0
// `reseal`: files sealed anew, under another key or for other recipients, in their places.
#include <memory>

#include "commands.hpp"
#include "file_options.hpp"
#include "many_files.hpp"
#include "sealed_file.hpp"
#include "sealed_options.hpp"

namespace dael::cli {
namespace {

struct ResealOptions {
    SecretSource key, new_key;
    std::optional<std::string> keyset;
    RecipientOptions recipients;
    IdentityOptions identities;
    AadOptions aad;
    EngineChoice engine;
    FileRequest files;
    ShowOptions show;
    ResealJob job;
};

void add_options(CLI::App& command, Context& context, ResealOptions& options) {
    add_inputs(command, options.files,
               "Files that were sealed with a key or for recipients; each is replaced");
    auto* keyset =
        command
            .add_option("--keyset", options.keyset,
                        "File with a keyset of Tink's in JSON (- is standard input): any of its "
                        "enabled keys opens, the primary one seals")
            ->type_name("FILE");
    add_secret(command, "key", "File with the key so far (- is standard input)", options.key);
    add_secret(command, "new-key", "File with the new key", options.new_key);
    for (const char* key : {"--key-file", "--key-fd", "--new-key-file", "--new-key-fd"})
        command.get_option(key)->excludes(keyset);
    add_identities(command, options.identities);
    add_recipients(command, options.recipients);
    for (const char* envelope : {"--identity", "--recipient", "--recipients-file"})
        for (const char* key :
             {"--keyset", "--key-file", "--key-fd", "--new-key-file", "--new-key-fd"})
            command.get_option(key)->excludes(envelope);
    add_aad(command, options.aad);
    add_engine_options(command, context, options.engine);
    add_file_options(command, options.job.output, options.show);
    add_json(command, options.show);
}

// What opens, and what seals from then on.
Result<> read_keys(ResealOptions& options) {
    ResealJob& job = options.job;
    const auto source = [](sealed::Keys keys) {
        const auto shared = std::make_shared<sealed::Keys>(std::move(keys));
        return source_of_keys([shared] { return Result<sealed::Keys>(std::move(*shared)); });
    };
    if (options.identities.given() || options.recipients.given()) {
        if (!options.identities.given() || !options.recipients.given())
            return usage("say who opens the files and who shall: -i IDENTITY and -r RECIPIENT");
        job.from = source_of_identities([&options] { return read(options.identities); });
        job.to = source_of_recipients([&options] { return read(options.recipients); },
                                      sealed::kLargeSegment);
        DAEL_TRY(job.from->ready());
        return job.to->ready();
    }
    if (options.keyset) {
        DAEL_LET(all, read_stream_keyset(*options.keyset));
        DAEL_LET(primary, all.sealing());
        job.to = source(std::move(primary));
        job.from = source(std::move(all));
        job.already = "is sealed with the primary key already";
        return {};
    }
    if (options.key.from_terminal() || options.new_key.from_terminal())
        return usage(
            "say which keys: --keyset FILE, or --key-file OLD and --new-key-file NEW, or for "
            "recipients -i IDENTITY and -r RECIPIENT");
    if (options.key.from_stdin() && options.new_key.from_stdin())
        return usage("standard input cannot be both keys; name a file for one of them");
    DAEL_LET(from, read_stream_key(options.key, false));
    DAEL_LET(to, read_stream_key(options.new_key, false));
    job.from = source(std::move(from));
    job.to = source(std::move(to));
    job.already = "is sealed with the new key already";
    return {};
}

Result<> run(ResealOptions& options) {
    ResealJob& job = options.job;
    if (is_stdin(options.files))
        return usage("name the files to seal anew; what comes from standard input has no place");
    options.files.naming = Naming::reseal;
    const bool secret_from_stdin =
        options.keyset == "-" || options.key.from_stdin() || options.new_key.from_stdin() ||
        options.identities.from_stdin() || options.recipients.from_stdin();
    DAEL_LET(aad, options.aad.read(secret_from_stdin));
    job.aad = std::move(aad);
    job.bind_names = options.aad.bind_names;
    DAEL_LET(plan, plan_files(options.files));
    DAEL_TRY(read_keys(options));
    DAEL_LET(engine, options.engine.open());
    job.engine = &engine;
    job.threads = options.engine.most_threads();
    return do_files(plan,
                    {.command = "reseal",
                     .verb = "sealed anew",
                     .show = options.show.show(),
                     .json = options.show.json,
                     .threads = job.threads,
                     .whole_sizes = true},
                    [&job](const PlannedFile& file, Buffers& buffers, Progress& progress) {
                        return reseal(job, file, buffers, progress);
                    });
}

}  // namespace

void add_reseal(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "reseal");
    const auto options = std::make_shared<ResealOptions>();
    add_options(*command, context, *options);
    command->callback([options, &context] {
        context.action = [options]() -> Result<> { return run(*options); };
    });
}

}  // namespace dael::cli
