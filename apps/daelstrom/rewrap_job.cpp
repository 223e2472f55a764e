// SPDX-License-Identifier: Apache-2.0
#include "rewrap_job.hpp"

#include <utility>

#include "io/filter.hpp"

namespace dael::cli {

Result<> RewrapJob::ready() {
    const std::lock_guard guard(reading_);
    if (!identities_) {
        if (options_.identities) {
            DAEL_LET(identities, options_.identities());
            identities_ = std::move(identities);
        } else {
            DAEL_LET(passphrase, options_.old_passphrase());
            DAEL_LET(identities,
                     sealed::Identities::of_passphrase(passphrase.bytes(), options_.most));
            identities_ = std::move(identities);
        }
    }
    if (recipients_) return {};
    if (options_.recipients) {
        DAEL_LET(recipients, options_.recipients());
        recipients_ = std::move(recipients);
    } else {
        DAEL_LET(passphrase, options_.new_passphrase());
        DAEL_LET(recipients, sealed::Recipients::of_passphrase(passphrase.bytes(), options_.work));
        recipients_ = std::move(recipients);
    }
    return {};
}

std::shared_ptr<RewrapJob::RewrappedEnvelope> RewrapJob::entry_of(
    const std::vector<std::uint8_t>& envelope) {
    constexpr std::size_t kMax = 1000;
    const std::lock_guard guard(mutex_);
    const auto found = known_.find(envelope);
    if (found != known_.end()) return found->second;
    if (known_.size() == kMax) known_.erase(known_.begin());
    return known_[envelope] = std::make_shared<RewrappedEnvelope>();
}

Result<std::vector<std::uint8_t>> RewrapJob::fresh_for(const std::vector<std::uint8_t>& envelope) {
    if (options_.identities && options_.recipients)
        return sealed::rewrap_envelope(*identities_, envelope, *recipients_);
    const auto known = entry_of(envelope);
    const std::lock_guard guard(known->mutex);
    if (known->fresh) return *known->fresh;
    at_once_.acquire();
    auto fresh = sealed::rewrap_envelope(*identities_, envelope, *recipients_);
    at_once_.release();
    if (fresh || fresh.code() == Code::authentication) known->fresh = fresh;
    return fresh;
}

Result<FileDone> RewrapJob::run(const PlannedFile& file, bool in_place, Buffers& buffers,
                                Progress& progress) {
    DAEL_LET(input, open_input(file));
    if (in_place && !input.is_file())
        return Error{Code::io, input.name() + " is no regular file that can be replaced"};
    OutputOptions options = options_.output;
    options.for_terminal = false;
    options.replaces_input = in_place;
    DAEL_LET(output, open_output(options, file, input));
    const auto size = input.remaining();
    DAEL_LET(envelope, take_envelope(input));
    if (envelope.bytes.empty())
        return Error{Code::bad_format,
                     input.name() +
                         " was not sealed for recipients or with a passphrase; was it sealed with "
                         "a key? daelstrom reseal changes that"};
    DAEL_TRY(
        check_kind(input, envelope, options_.identities ? Kind::recipients : Kind::passphrase));
    DAEL_TRY(ready());
    auto fresh = fresh_for(envelope.bytes);
    if (!fresh) return not_opened(input, envelope, std::move(fresh).error());
    FileDone done;
    if (size) {
        done.read = *size;
        DAEL_TRY(output.reserve(*size - envelope.bytes.size() + fresh->size()));
    }
    DAEL_TRY(output.write(*fresh));
    FilterOptions whole;
    whole.ahead = !input.is_file() || size.value_or(0) > whole.chunk;
    DAEL_TRY(
        filter(input, output, progress, whole, buffers, [](FilterChunk&) { return Result<>(); }));
    done.written = output.written();
    DAEL_TRY(output.commit());
    return done;
}

}  // namespace dael::cli
