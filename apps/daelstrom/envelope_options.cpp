// SPDX-License-Identifier: Apache-2.0
// The options that say whom a file is sealed for, and who opens it.
#include <algorithm>

#include "sealed_job.hpp"

namespace dael::cli {

CLI::Option* add_cost(CLI::App& command, int& work) {
    return command
        .add_option("--cost", work,
                    "With a passphrase: each guess takes 2^N KiB of memory, and time in proportion "
                    "(default: 17, 128 MiB and some tenths of a second)")
        ->type_name("N")
        ->check(CLI::Range(10, 20));
}

CLI::Option* add_max_cost(CLI::App& command, int& most) {
    return command
        .add_option("--max-cost", most,
                    "With a passphrase: how much a file may ask for before it is known to be good, "
                    "as --cost has it (default: 18, 256 MiB and less than a second)")
        ->type_name("N")
        ->check(CLI::Range(10, 20));
}

bool RecipientOptions::from_stdin() const {
    return std::ranges::count(files, "-") > 0;
}

void add_recipients(CLI::App& command, RecipientOptions& options) {
    command
        .add_option("-r,--recipient", options.recipients,
                    "Whoever has the identity of this recipient can open the file: age1..., as "
                    "age-keygen tells it; may be repeated")
        ->type_name("RECIPIENT")
        ->allow_extra_args(false);  // one each time
    command
        .add_option("-R,--recipients-file", options.files,
                    "File with recipients, one a line (- is standard input); may be repeated")
        ->type_name("FILE")
        ->allow_extra_args(false);  // one each time
}

CLI::Option* add_identities(CLI::App& command, std::vector<std::string>& files) {
    return command
        .add_option("-i,--identity", files,
                    "File with identities, AGE-SECRET-KEY-1..., as age-keygen writes it (- is "
                    "standard input); may be repeated")
        ->type_name("FILE")
        ->allow_extra_args(false);  // one each time
}

}  // namespace dael::cli
