// SPDX-License-Identifier: Apache-2.0
// `keyset`: Tink's keysets made, changed in place, and listed.
#include <algorithm>
#include <charconv>
#include <iostream>
#include <memory>

#include <daelstrom/sealed_keys.hpp>

#include "engine_options.hpp"
#include "io/output.hpp"
#include "io/text.hpp"
#include "io/warnings.hpp"
#include "keysets.hpp"

namespace dael::cli {
namespace {

struct KeysetOptions {
    std::string action, path, number, name;
    bool overwrite = false, json = false, quiet = false;
};

std::string status_of(const sealed::Keyset::Entry& entry) {
    using Status = sealed::Keyset::Status;
    switch (entry.status) {
        case Status::enabled:
            return "enabled";
        case Status::disabled:
            return "disabled";
        case Status::destroyed:
            return "destroyed";
        case Status::unknown:
            break;
    }
    return "unknown (" + std::to_string(static_cast<std::int32_t>(entry.status)) + ")";
}

std::string shape_of(const sealed::Keyset::Entry& entry) {
    if (!entry.shape.empty()) return entry.shape;
    return entry.type.empty() ? "no key" : entry.type + ", which cannot be read";
}

std::vector<std::string> template_names() {
    return {sealed::kTemplates.begin(), sealed::kTemplates.end()};
}

// The number of a key, for the actions that take one, and nothing for those that take none.
Result<std::uint32_t> number_of(const KeysetOptions& options) {
    std::uint32_t number = 0;
    const std::string& text = options.number;
    const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
    if (!text.empty() && read.ec == std::errc{} && read.ptr == text.data() + text.size())
        return number;
    return usage("keyset " + options.action + " takes a keyset and the number of a key in it, as " +
                 "`daelstrom keyset list` shows it" +
                 (text.empty() ? "" : "; " + in_quotes(text) + " is none"));
}

Result<sealed::Keyset> parse(const Secret& text, const std::string& path) {
    auto keyset = sealed::Keyset::parse(text.bytes());
    if (keyset) return keyset;
    Error error = std::move(keyset).error();
    error.message = input_name(path) + ": " + error.message;
    return error;
}

// What the library will not do with this keyset; the command line itself was right.
template <class T>
Result<T> in_keyset(const std::string& path, Result<T> done) {
    if (done || done.code() != Code::invalid_argument) return done;
    return Error{Code::unsupported, in_quotes(path) + ": " + std::move(done).error().message};
}

Result<> change(const KeysetOptions& options, sealed::Keyset& keyset, std::uint32_t& added) {
    if (options.action == "create" || options.action == "add") {
        auto id = options.name.empty() ? keyset.add() : keyset.add(options.name);
        if (id) added = *id;
        return id ? Result<>() : Result<>(std::move(id).error());
    }
    DAEL_LET(number, number_of(options));
    return in_keyset(options.path, options.action == "promote"   ? keyset.promote(number)
                                   : options.action == "enable"  ? keyset.enable(number)
                                   : options.action == "disable" ? keyset.disable(number)
                                                                 : keyset.remove(number));
}

Result<> create(const KeysetOptions& options) {
    sealed::Keyset keyset;
    std::uint32_t added = 0;
    DAEL_TRY(change(options, keyset, added));
    DAEL_LET(text, secret_text(keyset));
    OutputOptions to{.path = options.path, .overwrite = options.overwrite, .secret = true};
    DAEL_LET(output, Output::open(to));
    DAEL_TRY(output.write(text.bytes()));
    return output.commit();
}

// All of what is locked. Errors: key_size for more than a keyset may have.
Result<Secret> read_locked(Input& input) {
    warn_if_shared(input.fd(), "keyset file " + input.name());
    DAEL_LET(text, Secret::create(kMaxKeyset + 1));
    DAEL_LET(size, input.fill(text.fill()));
    if (size > kMaxKeyset)
        return Error{Code::key_size, "keyset file " + input.name() + " holds more than " +
                                         std::to_string(kMaxKeyset) +
                                         " bytes; is it the right file?"};
    text.truncate(size);
    return std::move(text);
}

// In place, whole or not at all. From reading to replacing it is locked: of two who add a key at
// once, the other reads what the first has written.
Result<> edit(const KeysetOptions& options) {
    if (options.path == "-")
        return usage("keyset " + options.action + " changes a file in place; name one");
    DAEL_LET(input, Input::open_locked(options.path));
    OutputOptions to{.path = options.path, .overwrite = options.overwrite, .replaces_input = true};
    DAEL_LET(old, read_locked(input));
    DAEL_LET(output, Output::open(to, input));
    DAEL_LET(keyset, parse(old, options.path));
    std::uint32_t added = 0;
    DAEL_TRY(change(options, keyset, added));
    DAEL_LET(text, secret_text(keyset));
    // Nothing is left behind that cannot be used.
    if (const auto keys = sealed::Keys::from_keyset(text.bytes()); !keys)
        return Error{keys.code(),
                     in_quotes(options.path) +
                         " would be of no use for sealing after this: " + keys.error().message};
    DAEL_TRY(output.write(text.bytes()));
    DAEL_TRY(output.commit());
    if (options.action == "add") std::cout << added << '\n';
    return {};
}

Result<> run(const KeysetOptions& options) {
    if (options.quiet) silence_warnings();
    constexpr std::string_view kActions[] = {"create", "list",    "add",   "promote",
                                             "enable", "disable", "delete"};
    if (std::ranges::find(kActions, options.action) == std::end(kActions)) {
        std::string names;
        for (const auto action : kActions)
            names += (names.empty() ? "" : ", ") + std::string(action);
        return usage("keyset: no " + in_quotes(options.action) + "; there are " + names);
    }
    const bool makes = options.action == "create" || options.action == "add";
    const bool takes_number = !makes && options.action != "list";
    if (!takes_number && !options.number.empty())
        return usage("keyset " + options.action + " takes a keyset and no key's number");
    if (!makes && !options.name.empty())
        return usage("--template is for keyset create and keyset add; leave it out");
    if (options.json && options.action != "list")
        return usage("--json is for keyset list; leave it out");
    if (options.action == "create") return create(options);
    if (options.action != "list") return edit(options);
    DAEL_LET(text, read_keyset(options.path));
    DAEL_LET(keyset, parse(text, options.path));
    std::cout << (options.json ? json_of(keyset).text() + "\n" : table_of(keyset));
    return {};
}

}  // namespace

Result<Secret> secret_text(const sealed::Keyset& keyset) {
    const std::size_t size = keyset.json_size();
    if (size > kMaxKeyset)
        return Error{Code::limit, "the keyset would have more than " +
                                      std::to_string(kMaxKeyset >> 10) +
                                      " KiB; remove keys that are no longer used"};
    DAEL_LET(text, Secret::create(size));
    DAEL_TRY(keyset.write_json(text.fill()));
    return std::move(text);
}

std::string table_of(const sealed::Keyset& keyset) {
    const auto entries = keyset.entries();
    std::string table;
    for (const auto& entry : entries) {
        std::string line = std::to_string(entry.id);
        const auto column = [&line](std::size_t at) {
            line.append(line.size() < at ? at - line.size() : 1, ' ');
        };
        column(12);
        line += status_of(entry);
        column(24);
        line += entry.primary ? "primary" : "";
        column(33);
        table += line + shape_of(entry) + "\n";
    }
    return table;
}

JsonText json_of(const sealed::Keyset& keyset) {
    auto keys = JsonText::array();
    for (const auto& entry : keyset.entries())
        keys.push(JsonText::object()
                      .add("id", entry.id)
                      .add("status", status_of(entry))
                      .add("primary", entry.primary)
                      .add("type", entry.type)
                      .add("template", entry.shape));
    return JsonText::object().add("keys", keys);
}

void add_keyset(CLI::App& app, Context& context) {
    CLI::App* command = add_command(app, "keyset");
    const auto options = std::make_shared<KeysetOptions>();
    auto* action = command
                       ->add_option("ACTION", options->action,
                                    "create, list, add, promote, enable, disable or delete")
                       ->type_name("")
                       ->required();
    context.choices[action] = {"create", "list", "add", "promote", "enable", "disable", "delete"};
    command->add_option("KEYSET", options->path, "The keyset's file (list: - for standard input)")
        ->type_name("")
        ->required();
    command
        ->add_option("NUMBER", options->number,
                     "The key's, for promote, enable, disable and delete")
        ->type_name("");
    add_choice(*command, context, "--template", options->name, template_names(),
               "create, add: the kind of key, as Tink calls it (default: AES256_GCM_HKDF_1MB)");
    command->add_flag("--json", options->json, "list: as JSON, for programs");
    command->add_flag("-f,--force", options->overwrite,
                      "create: overwrite the file, and what was sealed with it is lost; others: "
                      "change a file that has other names (hard links)");
    command->add_flag("-q,--quiet", options->quiet, "No warnings");
    command->callback(
        [options, &context] { context.action = [options] { return run(*options); }; });
}

}  // namespace dael::cli
