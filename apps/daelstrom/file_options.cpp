// SPDX-License-Identifier: Apache-2.0
#include "file_options.hpp"

#include "io/warnings.hpp"

namespace dael::cli {

void add_secret(CLI::App& command, const std::string& what, const std::string& file_help,
                SecretSource& source) {
    auto* file =
        command.add_option("--" + what + "-file", source.file, file_help)->type_name("FILE");
    command
        .add_option("--" + what + "-fd", source.fd,
                    "Read the " + what + " from this file descriptor")
        ->type_name("N")
        ->check(CLI::Range(0, 1 << 20))
        ->excludes(file);
}

void add_file_options(CLI::App& command, OutputOptions& output, ShowOptions& show) {
    command.add_flag("-f,--force", output.overwrite, "Overwrite the output file");
    command.add_flag("--sync", output.sync,
                     "Bring a new file to the disk before it gets its name, as is always done with "
                     "one that takes another's place");
    command.add_flag("-q,--quiet", show.quiet, "No progress and no warnings")
        ->each([](const std::string&) { silence_warnings(); });
    auto* progress = command.add_flag(
        "--progress", show.progress,
        "Progress even into a log; with --json a line of JSON a second, on standard "
        "error");
    command.add_flag("--no-progress", show.no_progress, "No progress on a terminal")
        ->excludes(progress);
}

void add_json(CLI::App& command, ShowOptions& show) {
    command.add_flag("--json", show.json,
                     "What was done, as a line of JSON on standard output for each file; takes "
                     "output files");
}

}  // namespace dael::cli
