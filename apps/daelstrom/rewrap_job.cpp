// SPDX-License-Identifier: Apache-2.0
#include "rewrap_job.hpp"

#include "file_keys.hpp"
#include "io/text.hpp"
#include "io/transfer.hpp"

namespace dael::cli {
namespace {

Result<sealed::Identities> identities_of(const RewrapJob& job) {
    if (job.identities) return job.identities();
    DAEL_LET(passphrase, job.old_passphrase());
    return sealed::Identities::of_passphrase(passphrase.bytes(), job.most);
}

Result<sealed::Recipients> recipients_of(const RewrapJob& job) {
    if (job.recipients) return job.recipients();
    DAEL_LET(passphrase, job.new_passphrase());
    return sealed::Recipients::of_passphrase(passphrase.bytes(), job.work);
}

}  // namespace

Result<> run(const RewrapJob& job) {
    auto input = Input::open(job.input);
    if (!input) return std::move(input).error();
    if (job.output.replaces_input && !input->is_file())
        return Error{Code::io, input->name() + " is no file that can be replaced; give -o FILE"};
    auto output = Output::open(job.output, *input);
    if (!output) return std::move(output).error();
    const auto size = input->remaining();
    DAEL_LET(envelope, take_envelope(*input));
    if (envelope.bytes.empty())
        return Error{Code::bad_format,
                     input->name() +
                         " was not sealed for recipients or with a passphrase; was it sealed with "
                         "a key? daelstrom reseal changes that"};
    DAEL_TRY(check_kind(*input, envelope, job.identities ? Kind::recipients : Kind::passphrase));
    DAEL_LET(identities, identities_of(job));
    DAEL_LET(recipients, recipients_of(job));
    auto fresh = sealed::rewrap_envelope(identities, envelope.bytes, recipients);
    if (!fresh) return not_opened(*input, envelope, std::move(fresh).error());
    if (size) DAEL_TRY(output->reserve(*size - envelope.bytes.size() + fresh->size()));
    DAEL_TRY(output->write(*fresh));
    Progress progress(job.show, input_name(job.input), size);
    if (auto done = transfer(*input, *output, progress, {}, [](Chunk&) { return Result<>(); });
        !done) {
        progress.clear();
        return done;
    }
    DAEL_TRY(output->commit());
    progress.finish("no cipher: the stream stays as it is");
    return {};
}

}  // namespace dael::cli
