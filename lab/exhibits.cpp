// SPDX-License-Identifier: Apache-2.0
#include "lab/exhibits.hpp"

#include <array>

#include "apps/daelstrom/engine_options.hpp"
#include "apps/daelstrom/manual.hpp"
#include "apps/daelstrom/parse.hpp"

namespace dael::cli {
namespace {

constexpr std::array kEncrypt{
    Example{"A file, by drawing",
            "daelstrom lab encrypt --backend opengl --key-file key notes.txt -o notes.drawn"},
    Example{"As a GeForce 6800 could",
            "daelstrom lab encrypt --backend opengl --form gl-float --mode ecb --key-file key "
            "notes.txt -o notes.ecb"},
};
constexpr std::array kDecrypt{
    Example{"What was drawn, by drawing",
            "daelstrom lab decrypt --backend opengl --key-file key notes.drawn -o notes.again"},
};
constexpr std::array kDevices{
    Example{"Whether there is a driver to draw with", "daelstrom lab devices"},
};
constexpr CommandText kTexts[] = {
    {"encrypt", "Encrypt a file or a stream, by drawing too",
     "As `daelstrom encrypt`, with one backend more: opengl, which draws AES as programs did "
     "before CUDA. gl-int has ECB both ways and CTR, gl-float encrypts in ECB. It protects nothing "
     "against those who can measure its time.",
     kEncrypt},
    {"decrypt", "Decrypt a file or a stream, by drawing too",
     "As `daelstrom decrypt`, with one backend more: opengl, in its form gl-int.", kDecrypt},
    {"devices", "List every backend, the lab's too, and what this machine has of it",
     "As `daelstrom devices`, with one backend more: opengl.", kDevices},
};

// What the program's own command cannot say of the lab's backend.
void tell(CLI::App& app, Context& context, const CommandText& text) {
    CLI::App* command = app.get_subcommand(std::string(text.name));
    command->description(std::string(text.summary));
    context.texts[command] = &text;
    CLI::Option* form = command->get_option_no_throw("--form");
    if (!form) return;
    auto& words = context.choices[form];
    words.insert(words.end(), {"gl-int", "gl-float"});
    form->type_name(alternatives(words));
    form->description(form->get_description() +
                      "; or the form of the backend opengl (default: gl-int)");
}

}  // namespace

int run_exhibit(int argc, char** argv) {
    return guarded([=] {
        auto password = take_password_argument(argc, argv);
        if (!password) return complain(password.error());
        Context context;
        CLI::App app("Exhibits of the lab", "daelstrom lab");
        app.formatter(help_formatter(context));
        add_encrypt(app, context);
        add_decrypt(app, context);
        add_devices(app, context);
        for (const CommandText& text : kTexts) tell(app, context, text);
        add_aes(app, context, std::move(*password));
        return parse_and_run(app, context, argc, argv);
    });
}

}  // namespace dael::cli
