// SPDX-License-Identifier: Apache-2.0
// `seal` and `open`: the same options, but for what only one of them asks.
#include <charconv>
#include <memory>

#include "commands.hpp"
#include "file_options.hpp"
#include "io/text.hpp"
#include "many_files.hpp"
#include "sealed_file.hpp"
#include "sealed_options.hpp"

namespace dael::cli {
namespace {

struct SealOptions {
    SecretSource key, passphrase;
    std::optional<std::string> keyset, segment, range;
    RecipientOptions recipients;  // sealing
    IdentityOptions identities;   // opening
    PassphraseOptions with_passphrase;
    AadOptions aad;
    EngineChoice engine;
    FileRequest files;
    ShowOptions show;
    SealedJob job;
};

void add_secrets(CLI::App& command, SealOptions& options) {
    if (options.job.seals)
        add_recipients(command, options.recipients);
    else
        add_identities(command, options.identities);
    add_secret(command, "key",
               "File with the key: 16 or 32 bytes, or hexadecimal (- is standard input)",
               options.key);
    auto* keyset = command
                       .add_option("--keyset", options.keyset,
                                   "File with a keyset of Tink's in JSON (- is standard input)")
                       ->type_name("FILE");
    add_secret(command, "passphrase",
               "File whose first line is the passphrase (- is standard input; default, where no "
               "key is given: ask on the terminal)",
               options.passphrase);
    for (const char* key : {"--key-file", "--key-fd"}) command.get_option(key)->excludes(keyset);
    for (const char* passphrase : {"--passphrase-file", "--passphrase-fd"})
        command.get_option(passphrase)
            ->excludes(keyset)
            ->excludes("--key-file")
            ->excludes("--key-fd");
    for (const char* envelope : {"--recipient", "--recipients-file", "--identity"})
        if (auto* option = command.get_option_no_throw(envelope))
            for (const char* other :
                 {"--keyset", "--key-file", "--key-fd", "--passphrase-file", "--passphrase-fd"})
                command.get_option(other)->excludes(option);
}

void add_options(CLI::App& command, Context& context, SealOptions& options) {
    const bool seals = options.job.seals;
    add_inputs(command, options.files, "Files to read (default: - for standard input)");
    auto* output =
        command
            .add_option("-o,--output", options.files.output,
                        seals ? "File to write (default: INPUT.sealed; - is standard output, as "
                                "for what comes from standard input)"
                              : "File to write (default: INPUT without .sealed; - is standard "
                                "output, as for ranges and what comes from standard input)")
            ->type_name("FILE");
    command
        .add_option("--output-dir", options.files.output_dir,
                    "Folder for the outputs, which is made if it is not there; what comes from "
                    "folders lies in it likewise")
        ->type_name("DIR")
        ->excludes(output);
    add_secrets(command, options);
    add_aad(command, options.aad);
    if (seals) {
        auto* segment =
            command
                .add_option("--segment", options.segment,
                            "Size of a segment (default: 1M; with --keyset, what that says)")
                ->type_name("4K|1M")
                ->excludes("--keyset");
        context.choices[segment] = {"4K", "1M"};
        add_cost(command, options.with_passphrase.work)
            ->excludes("--keyset")
            ->excludes("--key-file")
            ->excludes("--key-fd")
            ->excludes("--recipient")
            ->excludes("--recipients-file");
    } else {
        add_max_cost(command, options.with_passphrase.most)
            ->excludes("--keyset")
            ->excludes("--key-file")
            ->excludes("--key-fd")
            ->excludes("--identity");
        command
            .add_option("--range", options.range,
                        "Only bytes A to B of the plaintext, counted from 0, both included; A- is "
                        "from A to the end")
            ->type_name("A-B")
            ->excludes("--output-dir");
    }
    add_engine_options(command, context, options.engine);
    add_file_options(command, options.job.output, options.show);
    add_json(command, options.show);
}

Result<SealedJob::ByteRange> parse_range(std::string_view text) {
    SealedJob::ByteRange range;
    const char* const end = text.data() + text.size();
    const auto first = std::from_chars(text.data(), end, range.first);
    bool good = first.ec == std::errc{} && first.ptr != end && *first.ptr == '-';
    if (good && first.ptr + 1 != end) {
        const auto last = std::from_chars(first.ptr + 1, end, range.last.emplace());
        good = last.ec == std::errc{} && last.ptr == end && *range.last >= range.first;
    }
    if (good) return range;
    return usage("--range: " + in_quotes(text) +
                 " is no range; give the first and the last byte, as in 0-99, or 100- up to the "
                 "end");
}

// What yields the keys of every file. The options outlive it.
std::unique_ptr<KeySource> key_source(const SealOptions& options) {
    const bool seals = options.job.seals;
    if (options.keyset)
        return source_of_keys([&options] { return read_stream_keyset(*options.keyset); });
    if (!options.key.from_terminal())
        return source_of_keys([&options, seals] {
            return read_stream_key(options.key, seals, options.with_passphrase.segment);
        });
    if (options.recipients.given())
        return source_of_recipients([&options] { return read(options.recipients); },
                                    options.with_passphrase.segment);
    if (options.identities.given())
        return source_of_identities([&options] { return read(options.identities); });
    return source_of_passphrase(
        [&options, seals] { return read_password(options.passphrase, seals, "passphrase"); },
        options.with_passphrase);
}

// Everything that the command line alone can tell to be wrong.
Result<> complete(SealOptions& options) {
    SealedJob& job = options.job;
    const bool secret_from_stdin =
        options.keyset == "-" || options.key.from_stdin() || options.passphrase.from_stdin() ||
        options.recipients.from_stdin() || options.identities.from_stdin();
    const bool data_from_stdin = is_stdin(options.files);
    if (secret_from_stdin && data_from_stdin)
        return usage("standard input cannot be both the secret and the data; name the input file");
    if (options.segment == "4K")
        options.with_passphrase.segment = sealed::kSmallSegment;
    else if (options.segment && options.segment != "1M")
        return usage("--segment: " + in_quotes(*options.segment) + " is neither 4K nor 1M");
    if (options.range) {
        DAEL_LET(range, parse_range(*options.range));
        job.range = range;
    }
    DAEL_LET(aad, options.aad.read(data_from_stdin || secret_from_stdin));
    job.aad = std::move(aad);
    job.bind_names = options.aad.bind_names;
    job.output.for_terminal = !job.seals;
    options.files.naming = job.seals ? Naming::seal : Naming::open;
    options.files.overwrite = job.output.overwrite;
    options.files.to_stdout = job.range.has_value();
    options.with_passphrase.asks = options.passphrase.from_terminal() && !options.keyset &&
                                   options.key.from_terminal() && !options.recipients.given() &&
                                   !options.identities.given();
    job.keys = key_source(options);
    return {};
}

Result<> run(SealOptions& options) {
    SealedJob& job = options.job;
    DAEL_TRY(complete(options));
    DAEL_LET(plan, plan_files(options.files));
    DAEL_LET(engine, options.engine.open());
    job.engine = &engine;
    job.threads = options.engine.most_threads();
    if (!plan.single && !plan.files.empty()) {
        DAEL_TRY(options.with_passphrase.asks && !job.seals
                     ? job.keys->ready_to_open(engine, plan.files)
                     : job.keys->ready());
        job.keys->ask_no_more();
    }
    return do_files(plan,
                    {.command = job.seals ? "seal" : "open",
                     .verb = job.seals ? "sealed" : "opened",
                     .show = options.show.show(),
                     .json = options.show.json,
                     .threads = job.threads,
                     .whole_sizes = !job.range},
                    [&job](const PlannedFile& file, Buffers& buffers, Progress& progress) {
                        return seal_or_open(job, file, buffers, progress);
                    });
}

void add(CLI::App& app, Context& context, bool seals) {
    CLI::App* command = add_command(app, seals ? "seal" : "open");
    const auto options = std::make_shared<SealOptions>();
    options->job.seals = seals;
    add_options(*command, context, *options);
    command->callback([options, &context] {
        context.action = [options]() -> Result<> { return run(*options); };
    });
}

}  // namespace

void add_seal(CLI::App& app, Context& context) {
    add(app, context, true);
}
void add_open(CLI::App& app, Context& context) {
    add(app, context, false);
}

}  // namespace dael::cli
