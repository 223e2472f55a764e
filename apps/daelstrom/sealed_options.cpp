// SPDX-License-Identifier: Apache-2.0
#include "sealed_options.hpp"

#include "io/input.hpp"

namespace dael::cli {

void add_inputs(CLI::App& command, FileRequest& request, const std::string& help) {
    command.add_option("INPUT", request.inputs, help)->type_name("")->expected(0, -1);
    command.add_flag("--recursive", request.recursive,
                     "Also the files in folders, and in folders in these; links that lie there are "
                     "left alone");
}

bool is_stdin(const FileRequest& request) {
    return request.inputs.empty() || request.inputs.front() == "-";
}

void add_aad(CLI::App& command, AadOptions& options) {
    auto* aad = command
                    .add_option("--aad", options.text,
                                "Associated data: not stored, and to be the same when opening")
                    ->type_name("TEXT");
    command.add_option("--aad-file", options.file, "File with the associated data")
        ->type_name("FILE")
        ->excludes(aad);
    command.add_flag(
        "--bind-names", options.bind_names,
        "Binds each sealed file to its name, in folders with the path from the one that "
        "is named on: what was renamed, moved or exchanged does not open");
}

Result<std::vector<std::uint8_t>> AadOptions::read(bool stdin_taken) const {
    constexpr std::size_t kMax = 16 << 20;
    if (!file)
        return text ? std::vector<std::uint8_t>(text->begin(), text->end())
                    : std::vector<std::uint8_t>();
    if (file == "-" && stdin_taken)
        return usage("standard input cannot be both the associated data and something else");
    DAEL_LET(input, Input::open(*file));
    DAEL_LET(bytes, input.peek(kMax + 1));
    if (bytes.size() > kMax)
        return Error{Code::limit, input.name() + " is more than 16 MiB of associated data"};
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
}

Result<sealed::Keys> read_stream_key(const SecretSource& source, bool confirm,
                                     std::uint32_t segment) {
    DAEL_LET(key, read_key_bytes(source, confirm));
    if (key.bytes().size() == 24)
        return Error{Code::key_size, "the key is 24 bytes; seal and open take 16 or 32"};
    return sealed::Keys::from_key(key.bytes(), segment);
}

Result<sealed::Keys> read_stream_keyset(const std::string& path) {
    DAEL_LET(text, read_keyset(path));
    return sealed::Keys::from_keyset(text.bytes());
}

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

}  // namespace dael::cli
