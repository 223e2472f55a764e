// SPDX-License-Identifier: Apache-2.0
#include "sealed_job.hpp"

#include <algorithm>
#include <optional>
#include <thread>

#include <daelstrom/gcm.hpp>

#include "io/text.hpp"
#include "io/transfer.hpp"

namespace dael::cli {
namespace {

std::string shown(const std::string& input) {
    return input == "-" ? "standard input" : in_quotes(input);
}

// How a stream's chunks are transformed, one after another and in place.
class SealedStream {
  public:
    static Result<SealedStream> start(const SealedJob& job, Engine& engine,
                                      const sealed::Keys& keys, Input& input) {
        SealedStream stream(input);
        if (job.seals) {
            auto sealer = sealed::Sealer::start(engine, keys, job.aad);
            if (!sealer) return std::move(sealer).error();
            stream.sealer_ = std::move(*sealer);
            return stream;
        }
        const std::size_t wanted = sealed::Opener::head_size(keys);
        const auto head = input.peek(wanted);
        if (!head) return head.error();
        auto opener = sealed::Opener::start(engine, keys, job.aad, *head, head->size() < wanted);
        if (!opener) return in_file(input, std::move(opener).error());
        stream.opener_ = std::move(*opener);
        return stream;
    }

    const sealed::Layout& layout() const { return sealer_ ? sealer_->layout() : opener_->layout(); }

    Result<> operator()(Chunk& chunk) {
        auto ran = sealer_ ? seal(chunk) : open(chunk);
        if (!ran) return in_file(*input_, std::move(ran).error());
        ran_ = std::move(*ran);
        return {};
    }

    std::string by() const {
        if (ran_.threads <= 1) return std::string(ran_.backend);
        return std::string(ran_.backend) + ", " + std::to_string(ran_.threads) + " threads";
    }

  private:
    explicit SealedStream(const Input& input) : input_(&input) {}

    Result<Ran> seal(Chunk& chunk) {
        const auto next = sealer_->next(chunk.size, chunk.last);
        if (!next) return next.error();
        const HostOut bytes(chunk.data, next->sealed.size);
        auto ran = sealer_->seal_in_place(bytes, chunk.size, chunk.last);
        chunk.size = bytes.size();
        return ran;
    }

    Result<Ran> open(Chunk& chunk) {
        const auto next = layout().of_sealed(next_, chunk.size, chunk.last);
        if (!next) return next.error();
        auto ran = opener_->open_in_place(*next, {chunk.data, chunk.size});
        chunk.size = next->plain.size;
        next_ += next->count;
        return ran;
    }

    const Input* input_;
    std::optional<sealed::Sealer> sealer_;
    std::optional<sealed::Opener> opener_;
    std::uint64_t next_ = 0;  // segment to be opened
    Ran ran_;
};

// Chunks of whole segments: some for every thread, and yet small enough for the caches of most
// processors; a device wants larger ones, to overlap copies with work within each.
TransferOptions transfer_options(const SealedJob& job, const Engine& engine,
                                 const sealed::Layout& layout, std::optional<std::uint64_t> size) {
    constexpr std::uint64_t kMebi = 1 << 20, kForDevice = 64 * kMebi;
    const unsigned threads = job.engine.threads > 0 ? static_cast<unsigned>(job.engine.threads)
                                                    : std::thread::hardware_concurrency();
    const auto backends = engine.backends();
    TransferOptions options;
    options.pinned = size.value_or(0) > kForDevice &&
                     std::ranges::any_of(backends, [](const std::string& backend) {
                         return backend.starts_with("cuda");
                     });
    std::uint64_t chunk =
        options.pinned ? kForDevice : std::clamp(threads * kMebi, 4 * kMebi, 16 * kMebi);
    if (size) chunk = std::min(chunk, *size + *size / 100 + layout.segment);
    options.chunk = std::max<std::uint64_t>(1, chunk / layout.segment) * layout.segment;
    const Spacing plain{layout.segment, gcm::kTagSize, layout.header};
    (job.seals ? options.in : options.out) = plain;
    return options;
}

Result<> whole(const SealedJob& job, Engine& engine, const FileKeys& keys, Input& input,
               Output& output) {
    auto stream = SealedStream::start(job, engine, *keys.keys, input);
    if (!stream) return std::move(stream).error();
    const sealed::Layout& layout = stream->layout();
    const auto size = input.remaining();
    if (size) {
        auto after = job.seals ? layout.sealed_size(*size) : layout.plain_size(*size);
        if (!after) return in_file(input, std::move(after).error());
        DAEL_TRY(output.reserve(*after + (job.seals ? keys.front.size() : 0)));
    }
    if (job.seals) DAEL_TRY(output.write(keys.front));
    Progress progress(job.show, shown(job.input), size);
    if (auto done = transfer(input, output, progress, transfer_options(job, engine, layout, size),
                             [&stream](Chunk& chunk) { return (*stream)(chunk); });
        !done) {
        progress.clear();
        return done;
    }
    DAEL_TRY(output.commit());
    progress.finish(stream->by());
    return {};
}

Result<> part(const SealedJob& job, Engine& engine, const FileKeys& keys, const Input& input,
              std::uint64_t size, Output& output) {
    const std::uint64_t front = keys.front.size();
    auto file = sealed::File::open(
        engine, *keys.keys, job.aad,
        [&](std::uint64_t at, HostOut out) { return input.read_at(front + at, out); }, size);
    if (!file) return in_file(input, std::move(file).error());
    const auto [first, last] = *job.range;
    if (first >= file->size()) {
        // Only the last segment tells whether the file is as long as it was made.
        if (auto checked = file->check_size(); !checked)
            return in_file(input, std::move(checked).error());
        return Error{Code::bad_format, input.name() + " holds " + std::to_string(file->size()) +
                                           " bytes of plaintext; the range begins behind them"};
    }
    const std::uint64_t end = std::min(file->size() - 1, last.value_or(file->size() - 1)) + 1;
    Progress progress(job.show, shown(job.input), end - first);
    std::vector<std::uint8_t> buffer(std::min<std::uint64_t>(end - first, 32 << 20));
    Ran ran;
    for (std::uint64_t at = first; at < end;) {
        const auto bytes = HostOut(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
        auto read = file->read(at, bytes);
        auto written = read ? output.write(bytes) : Result<>();
        wipe(buffer.data(), buffer.size());
        if (!read || !written) {
            progress.clear();
            return read ? written : in_file(input, std::move(read).error());
        }
        progress.advance(bytes.size());
        at += bytes.size();
        ran = std::move(*read);
    }
    DAEL_TRY(output.commit());
    progress.finish(ran.backend);
    return {};
}

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

Result<> run(const SealedJob& job) {
    auto input = Input::open(job.input);
    if (!input) return std::move(input).error();
    const auto size = input->remaining();
    if (job.range && !input->is_file())
        return Error{Code::io, input->name() +
                                   " can only be read from its beginning; --range "
                                   "takes a file"};
    auto output = Output::open(job.output, *input);
    if (!output) return std::move(output).error();
    auto engine = job.engine.open();
    if (!engine) return std::move(engine).error();
    auto keys = job.seals ? job.keys->to_seal(*engine) : job.keys->to_open(*engine, *input);
    if (!keys) return std::move(keys).error();
    if (!job.range) return whole(job, *engine, *keys, *input, *output);
    return part(job, *engine, *keys, *input, size.value_or(0) - keys->front.size(), *output);
}

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
                         " has no envelope: it was sealed with a key, which `daelstrom reseal` "
                         "changes"};
    DAEL_TRY(check_kind(*input, envelope, job.identities ? Kind::recipients : Kind::passphrase));
    DAEL_LET(identities, identities_of(job));
    DAEL_LET(recipients, recipients_of(job));
    auto fresh = sealed::rewrap_envelope(identities, envelope.bytes, recipients);
    if (!fresh) return not_opened(*input, envelope, std::move(fresh).error());
    if (size) DAEL_TRY(output->reserve(*size - envelope.bytes.size() + fresh->size()));
    DAEL_TRY(output->write(*fresh));
    Progress progress(job.show, shown(job.input), size);
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
