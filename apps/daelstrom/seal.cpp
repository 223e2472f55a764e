// SPDX-License-Identifier: Apache-2.0
// `seal` and `open`: the same options, but for what only one of them asks.
#include <algorithm>
#include <charconv>
#include <memory>

#include "commands.hpp"
#include "file_options.hpp"
#include "io/text.hpp"
#include "sealed_job.hpp"

namespace dael::cli {
namespace {

struct SealOptions {
    SecretSource key, passphrase;
    std::optional<std::string> keyset, aad, aad_file, segment, range;
    RecipientOptions recipients;          // sealing
    std::vector<std::string> identities;  // opening
    PassphraseOptions of_passphrase;
    std::uint32_t segment_size = sealed::kLargeSegment;
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
    SealedJob& job = options.job;
    command.add_option("INPUT", job.input, "File to read (default: - for standard input)")
        ->type_name("");
    command.add_option("-o,--output", job.output.path, "File to write (default: standard output)")
        ->type_name("FILE");
    add_secrets(command, options);
    auto* aad = command
                    .add_option("--aad", options.aad,
                                "Associated data: not stored, and to be the same when opening")
                    ->type_name("TEXT");
    command.add_option("--aad-file", options.aad_file, "File with the associated data")
        ->type_name("FILE")
        ->excludes(aad);
    if (job.seals) {
        auto* segment =
            command
                .add_option("--segment", options.segment,
                            "Size of a segment (default: 1M; with --keyset, what that says)")
                ->type_name("4K|1M")
                ->excludes("--keyset");
        context.choices[segment] = {"4K", "1M"};
        add_cost(command, options.of_passphrase.work)
            ->excludes("--keyset")
            ->excludes("--key-file")
            ->excludes("--key-fd")
            ->excludes("--recipient")
            ->excludes("--recipients-file");
    } else {
        add_max_cost(command, options.of_passphrase.most)
            ->excludes("--keyset")
            ->excludes("--key-file")
            ->excludes("--key-fd")
            ->excludes("--identity");
        command
            .add_option("--range", options.range,
                        "Only bytes A to B of the plaintext, counted from 0, both included; A- is "
                        "from A to the end")
            ->type_name("A-B");
    }
    add_engine_options(command, context, job.engine);
    add_file_options(command, job.output, options.show);
}

Result<SealedJob::Range> parse_range(std::string_view text) {
    SealedJob::Range range;
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

Result<std::vector<std::uint8_t>> read_aad(const std::string& path) {
    constexpr std::size_t kMost = 16 << 20;
    auto input = Input::open(path);
    if (!input) return std::move(input).error();
    const auto bytes = input->peek(kMost + 1);
    if (!bytes) return bytes.error();
    if (bytes->size() > kMost)
        return Error{Code::limit, input->name() + " is more than 16 MiB of associated data"};
    return std::vector<std::uint8_t>(bytes->begin(), bytes->end());
}

Result<sealed::Keys> read_keys(const SealOptions& options) {
    if (options.keyset) {
        auto text = read_keyset(*options.keyset);
        if (!text) return std::move(text).error();
        return sealed::Keys::from_keyset(text->bytes());
    }
    DAEL_LET(key, read_key_bytes(options.key, options.job.seals));
    if (key.bytes().size() == 24)
        return Error{Code::key_size, "the key is 24 bytes; seal and open take 16 or 32"};
    return sealed::Keys::from_key(key.bytes(), options.segment_size);
}

// Where the keys come from, by the options that were given.
std::unique_ptr<KeySource> source_of(SealOptions& options) {
    if (options.keyset || !options.key.from_terminal())
        return source_of_keys([&options] { return read_keys(options); });
    if (options.recipients.given())
        return source_of_recipients(
            [&options] {
                return read_recipients(options.recipients.recipients, options.recipients.files);
            },
            options.segment_size);
    if (!options.identities.empty())
        return source_of_identities([&options] { return read_identities(options.identities); });
    options.of_passphrase.segment = options.segment_size;
    return source_of_passphrase(
        [&options] { return read_password(options.passphrase, options.job.seals, "passphrase"); },
        options.of_passphrase);
}

// Everything that the command line alone can tell to be wrong.
Result<> complete(SealOptions& options) {
    SealedJob& job = options.job;
    const bool from_stdin = options.keyset == "-" || options.key.from_stdin() ||
                            options.passphrase.from_stdin() || options.recipients.from_stdin() ||
                            std::ranges::count(options.identities, "-") > 0;
    if (from_stdin && job.input == "-")
        return usage("standard input cannot be both the secret and the data; name the input file");
    if (options.segment == "4K")
        options.segment_size = sealed::kSmallSegment;
    else if (options.segment && options.segment != "1M")
        return usage("--segment: " + in_quotes(*options.segment) + " is neither 4K nor 1M");
    if (options.range) {
        auto range = parse_range(*options.range);
        if (!range) return std::move(range).error();
        job.range = *range;
    }
    if (options.aad_file) {
        if (options.aad_file == "-" && (job.input == "-" || from_stdin))
            return usage("standard input cannot be both the associated data and something else");
        auto aad = read_aad(*options.aad_file);
        if (!aad) return std::move(aad).error();
        job.aad = std::move(*aad);
    } else if (options.aad) {
        job.aad.assign(options.aad->begin(), options.aad->end());
    }
    job.show = options.show.show();
    job.output.for_terminal = !job.seals;
    job.keys = source_of(options);
    return {};
}

void add(CLI::App& app, Context& context, bool seals) {
    CLI::App* command = add_command(app, seals ? "seal" : "open");
    const auto options = std::make_shared<SealOptions>();
    options->job.seals = seals;
    add_options(*command, context, *options);
    command->callback([options, &context] {
        context.action = [options]() -> Result<> {
            DAEL_TRY(complete(*options));
            return run(options->job);
        };
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
