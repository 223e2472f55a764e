// SPDX-License-Identifier: Apache-2.0
#include "lab/exhibits.hpp"

#include "apps/daelstrom/manual.hpp"
#include "apps/daelstrom/parse.hpp"

namespace dael::cli {

bool is_exhibit(std::string_view word) {
    return word == "aes";
}

int run_exhibit(int argc, char** argv) {
    return guarded([=] {
        auto password = take_password_argument(argc, argv);
        if (!password) return complain(password.error());
        Context context;
        CLI::App app("Exhibits of the lab", "daelstrom lab");
        app.formatter(help_formatter(context));
        add_aes(app, context, std::move(*password));
        return parse_and_run(app, context, argc, argv);
    });
}

}  // namespace dael::cli
