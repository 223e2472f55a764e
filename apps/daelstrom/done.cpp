// SPDX-License-Identifier: Apache-2.0
#include "done.hpp"

#include <iostream>

#include "io/json_text.hpp"

namespace dael::cli {

std::string by(const Ran& ran) {
    if (ran.backend.empty()) return "no cipher: the stream stays as it is";
    if (ran.threads <= 1) return std::string(ran.backend);
    return std::string(ran.backend) + ", " + std::to_string(ran.threads) + " threads";
}

void print_done(const Done& done) {
    std::cout << JsonText::object()
                     .add("command", done.command)
                     .add_name("input", done.input)
                     .add_name("output", done.output)
                     .add("read", done.read)
                     .add("written", done.written)
                     .add("backend", done.ran.backend)
                     .add("threads", done.ran.threads)
                     .add("seconds", done.seconds)
                     .text()
              << std::endl;  // at once: the next file may take long
}

Result<> check_json(bool json, const std::optional<std::string>& output) {
    if (!json || (output && output != "-")) return {};
    return usage("--json writes to standard output, where the data would go too; give -o FILE");
}

}  // namespace dael::cli
