// SPDX-License-Identifier: Apache-2.0
// `info`: what files look like, with what can be told without a key.
#include <cmath>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>

#include <daelstrom/sealed_keys.hpp>

#include "io/text.hpp"
#include "keysets.hpp"
#include "recognise.hpp"

namespace dael::cli {
namespace {

struct InfoOptions {
    std::vector<std::string> paths;
    bool json = false;
};

std::string in_bytes(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

// "2 X25519, 1 scrypt": how often each type stands in the head.
std::map<std::string, std::size_t> stanzas_of(const AgeHead& head) {
    std::map<std::string, std::size_t> counts;
    for (const std::string& type : head.stanzas) ++counts[type];
    return counts;
}

std::string info_row(std::string_view name, const std::string& value) {
    std::string line = "  " + std::string(name) + ":";
    line.append(line.size() < 16 ? 16 - line.size() : 1, ' ');
    return line + on_one_line(value) + "\n";
}

std::string rows_of_age(const AgeHead& head) {
    std::string recipients;
    for (const auto& [type, count] : stanzas_of(head))
        recipients += (recipients.empty() ? "" : ", ") + std::to_string(count) + " of type " + type;
    std::string rows = info_row("recipients", recipients);
    if (!head.work_factor) return rows;
    std::string cost = "2^" + std::to_string(*head.work_factor);
    if (*head.work_factor >= 0 && *head.work_factor <= 40)  // r = 8: 1 KiB for each of N
        cost += ", " + format_size(std::ldexp(1024, *head.work_factor)) + " of memory";
    return rows + info_row("scrypt", cost);
}

std::string rows_of_stream(const Looks& looks) {
    std::string rows;
    if (looks.stream_at != 0)
        rows += info_row("stream", "from byte " + std::to_string(looks.stream_at) + " on");
    rows += info_row("cipher", "AES-" + std::to_string(looks.key_bits) +
                                   "-GCM in segments, as Tink's AES-GCM-HKDF streaming");
    for (const Looks::Fit& fit : looks.fits)
        rows += info_row(
            fit.segment == sealed::kSmallSegment ? "segments of 4K" : "segments of 1M",
            std::to_string(fit.segments) + ", would hold " + in_bytes(fit.plain) + " of plaintext");
    return rows;
}

std::string describe(const std::string& name, const Looks& looks) {
    const std::string words = in_words(looks);
    std::string text = shown_name(name) + ": " +
                       (words.empty() ? "nothing that can be recognised" : "looks like " + words) +
                       "\n";
    if (looks.size) text += info_row("size", in_bytes(*looks.size));
    if (looks.age) text += rows_of_age(*looks.age);
    if (looks.plain) text += info_row("plaintext", in_bytes(*looks.plain));
    if (looks.key_bits != 0) text += rows_of_stream(looks);
    if (looks.as == Looks::As::stream)
        text += info_row("sure",
                         "no: it goes by the first byte alone, as one file of random bytes in "
                         "128 begins");
    if (looks.as == Looks::As::nothing_known)
        text += info_row("note",
                         "what `daelstrom encrypt` makes looks like random bytes, and is not "
                         "told from them");
    if (looks.keyset) {
        const std::string table = table_of(*looks.keyset);
        for (std::size_t at = 0; at < table.size();) {
            const std::size_t end = table.find('\n', at);
            text += info_row(at == 0 ? "keys" : "", table.substr(at, end - at));
            at = end + 1;
        }
    }
    return text;
}

JsonText json_row(const std::string& path, const Looks& looks) {
    auto object = JsonText::object();
    object.add_name("file", path).add("kind", word_for(looks.as));
    if (looks.size) object.add("size", *looks.size);
    if (looks.age) {
        auto age = JsonText::object(), types = JsonText::object();
        for (const auto& [type, count] : stanzas_of(*looks.age)) types.add(type, count);
        age.add("header", looks.age->size).add("stanzas", types);
        if (looks.age->work_factor) age.add("work_factor", *looks.age->work_factor);
        object.add("age", age);
    }
    if (looks.plain) object.add("plaintext", *looks.plain);
    if (looks.key_bits != 0) {
        auto fits = JsonText::array();
        for (const Looks::Fit& fit : looks.fits)
            fits.push(JsonText::object()
                          .add("segment", fit.segment)
                          .add("segments", fit.segments)
                          .add("plaintext", fit.plain));
        object.add("stream", JsonText::object()
                                 .add("offset", looks.stream_at)
                                 .add("key_bits", looks.key_bits)
                                 .add("fits", fits));
    }
    if (looks.keyset) object.add("keyset", json_of(*looks.keyset));
    return object;
}

// What can be said of the others is said, whatever one of them is.
Result<> run(const InfoOptions& options) {
    Result<> failed;
    auto all = JsonText::array();
    for (const std::string& path : options.paths) {
        auto input = Input::open(path);
        auto looks = input ? recognise(*input) : Result<Looks>(std::move(input).error());
        if (!looks) {
            if (!failed)
                std::fprintf(stderr, "daelstrom: %s\n",
                             on_one_line(failed.error().message).c_str());
            failed = std::move(looks).error();
        } else if (options.json) {
            all.push(json_row(path, *looks));
        } else {
            std::cout << describe(path == "-" ? "standard input" : path, *looks);
        }
    }
    if (options.json) std::cout << all.text() << '\n';
    return failed;
}

}  // namespace

void add_info(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "info");
    const auto options = std::make_shared<InfoOptions>();
    command->add_option("FILE", options->paths, "Files to look at (- is standard input)")
        ->type_name("")
        ->required();
    command->add_flag("--json", options->json, "As JSON, for programs");
    command->callback(
        [options, &context] { context.action = [options] { return run(*options); }; });
}

}  // namespace dael::cli
