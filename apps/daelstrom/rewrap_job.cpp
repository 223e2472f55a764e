// SPDX-License-Identifier: Apache-2.0
#include "rewrap_job.hpp"

#include "file_keys.hpp"
#include "io/text.hpp"
#include "io/transfer.hpp"

namespace dael::cli {

Result<> run(const RewrapJob& job) {
    auto input = Input::open(job.input);
    if (!input) return std::move(input).error();
    if (job.output.replaces_input && !input->is_file())
        return Error{Code::io, input->name() + " is no file that can be replaced; give -o FILE"};
    auto output = Output::open(job.output, *input);
    if (!output) return std::move(output).error();
    auto engine = job.engine.open();
    if (!engine) return std::move(engine).error();
    const auto size = input->remaining();
    auto lock = read_lock(*input);
    if (!lock) return std::move(lock).error();
    auto old_passphrase = job.old_passphrase();
    if (!old_passphrase) return std::move(old_passphrase).error();
    auto new_passphrase = job.new_passphrase();
    if (!new_passphrase) return std::move(new_passphrase).error();
    auto relocked = sealed::relock(*engine, old_passphrase->bytes(), new_passphrase->bytes(), *lock,
                                   job.cost, job.most);
    if (!relocked) return not_unlocked(*input, *lock, std::move(relocked).error());
    if (size) DAEL_TRY(output->reserve(*size));
    DAEL_TRY(output->write(*relocked));
    Progress progress(job.show, job.input == "-" ? "standard input" : in_quotes(job.input), size);
    if (auto done = transfer(*input, *output, progress, {}, [](Chunk&) { return Result<>(); });
        !done) {
        progress.clear();
        return done;
    }
    DAEL_TRY(output->commit());
    progress.finish("no cipher: the payload stays as it is");
    return {};
}

}  // namespace dael::cli
