// SPDX-License-Identifier: Apache-2.0
// The program `daelstrom`. Exit status: 0 done, 1 it failed, 2 the command line is wrong.
#include "manual.hpp"
#include "parse.hpp"

namespace dael::cli {
namespace {

int run(int argc, char** argv) {
    if (are_the_labs(argc, argv)) return complain(start_lab(argc, argv));
    if (are_flexas(argc, argv)) return complain(start_flexa(argc, argv));
    Context context;
    CLI::App app("Encrypts and decrypts with AES, wherever the data is", "daelstrom");
    app.set_version_flag("-V,--version", "daelstrom " DAELSTROM_VERSION,
                         "Show the version and exit");
    app.formatter(help_formatter(context));  // the commands inherit it
    // In this order they are shown.
    add_seal(app, context);
    add_open(app, context);
    add_keygen(app, context);
    add_keyset(app, context);
    add_reseal(app, context);
    add_rewrap(app, context);
    add_info(app, context);
    add_encrypt(app, context);
    add_decrypt(app, context);
    add_explain(app, context);
    add_devices(app, context);
    add_calibrate(app, context);
    add_bench(app, context);
    add_lab(app, context);
    add_flexa(app, context);
    add_vpn(app, context);
    add_provider(app, context);
    add_completion(app, context);
    add_manual(app, context);
    add_help(app, context);
    return parse_and_run(app, context, argc, argv);
}

}  // namespace
}  // namespace dael::cli

int main(int argc, char** argv) {
    return dael::cli::guarded([=] { return dael::cli::run(argc, argv); });
}
