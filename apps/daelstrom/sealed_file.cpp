// SPDX-License-Identifier: Apache-2.0
#include "sealed_file.hpp"

#include <algorithm>

#include <daelstrom/gcm.hpp>

#include "io/text.hpp"
#include "recognise.hpp"

namespace dael::cli {

std::uint64_t chunk_for(unsigned threads) {
    constexpr std::uint64_t kMebi = 1 << 20;
    return std::clamp(threads * kMebi, 4 * kMebi, 16 * kMebi);
}

Result<Input> open_input(const PlannedFile& file) {
    if (!file.found) return Input::open(file.input);
    DAEL_LET(folder, file.root->once_below(file.below, file.input));
    return Input::open_in(folder->fd(), last_part(file.input), file.input, *file.found);
}

Result<Output> open_output(OutputOptions options, const PlannedFile& file, const Input& input) {
    options.path = file.output;
    if (!file.root || !file.output) return Output::open(options, input);
    const OpenFolder& root = file.output_root ? *file.output_root->open : *file.root;
    DAEL_LET(folder, root.once_below(file.below, *file.output));
    options.folder = folder->fd();
    options.name_in_folder = last_part(*file.output);
    return Output::open(options, input);
}

namespace {

// How a stream's chunks are transformed, one after another and in place.
class SealedStream {
  public:
    static Result<SealedStream> start(const SealedJob& job, const sealed::Keys& keys, HostIn aad,
                                      Input& input) {
        SealedStream stream(input);
        if (job.seals) {
            auto sealer = sealed::Sealer::start(*job.engine, keys, aad);
            if (!sealer) return std::move(sealer).error();
            stream.sealer_ = std::move(*sealer);
            return stream;
        }
        const std::size_t wanted = sealed::Opener::head_size(keys);
        const auto head = input.peek(wanted);
        if (!head) return head.error();
        auto opener = sealed::Opener::start(*job.engine, keys, aad, *head, head->size() < wanted);
        if (!opener) return in_file(input, with_looks(input, std::move(opener).error()));
        stream.opener_ = std::move(*opener);
        return stream;
    }

    const sealed::Layout& layout() const { return sealer_ ? sealer_->layout() : opener_->layout(); }

    Result<> operator()(FilterChunk& chunk) {
        const std::size_t size = chunk.size;
        auto ran = sealer_ ? seal(chunk) : open(chunk);
        if (!ran) return in_file(*input_, std::move(ran).error());
        done_.doers.add(*ran, size);
        done_.read += size;
        done_.written += chunk.size;
        return {};
    }

    const FileDone& done() const { return done_; }

  private:
    explicit SealedStream(const Input& input) : input_(&input) {}

    Result<Ran> seal(FilterChunk& chunk) {
        const auto next = sealer_->next(chunk.size, chunk.last);
        if (!next) return next.error();
        const HostOut bytes(chunk.data, next->sealed.size);
        auto ran = sealer_->seal_in_place(bytes, chunk.size, chunk.last);
        chunk.size = bytes.size();
        return ran;
    }

    Result<Ran> open(FilterChunk& chunk) {
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
    FileDone done_;
};

// Chunks of whole segments; a device wants larger ones, to overlap copies with work within each.
FilterOptions filter_options(const SealedJob& job, const sealed::Layout& layout,
                             const Input& input) {
    constexpr std::uint64_t kForDevice = 64 << 20;
    const auto size = input.remaining();
    const auto backends = job.engine->backends();
    FilterOptions options;
    options.pinned = size.value_or(0) > kForDevice &&
                     std::ranges::any_of(backends, [](const std::string& backend) {
                         return backend.starts_with("cuda");
                     });
    std::uint64_t chunk = options.pinned ? kForDevice : chunk_for(job.threads);
    options.ahead = !input.is_file() || size.value_or(0) > chunk;
    if (size) chunk = std::min(chunk, *size + *size / 100 + layout.segment);
    options.chunk = std::max<std::uint64_t>(1, chunk / layout.segment) * layout.segment;
    const Spacing plain{layout.segment, gcm::kTagSize, layout.header};
    (job.seals ? options.in : options.out) = plain;
    return options;
}

Result<FileDone> whole(const SealedJob& job, const FileKeys& keys, HostIn aad, Input& input,
                       Output& output, Buffers& buffers, Progress& progress) {
    DAEL_LET(stream, SealedStream::start(job, *keys.keys, aad, input));
    const sealed::Layout& layout = stream.layout();
    const std::uint64_t front = job.seals ? keys.front.size() : 0;
    if (const auto size = input.remaining()) {
        auto after = job.seals ? layout.sealed_size(*size) : layout.plain_size(*size);
        if (!after) return in_file(input, std::move(after).error());
        DAEL_TRY(output.reserve(*after + front));
    }
    if (job.seals) DAEL_TRY(output.write(keys.front));
    DAEL_TRY(filter(input, output, progress, filter_options(job, layout, input), buffers,
                    [&stream](FilterChunk& chunk) { return stream(chunk); }));
    DAEL_TRY(output.commit());
    FileDone done = stream.done();
    (job.seals ? done.written : done.read) += keys.front.size();
    return done;
}

Result<FileDone> part(const SealedJob& job, const FileKeys& keys, HostIn aad, Input& input,
                      std::uint64_t size, Output& output, Progress& progress) {
    const std::uint64_t front = keys.front.size();
    auto file = sealed::File::open(
        *job.engine, *keys.keys, aad,
        [&](std::uint64_t at, HostOut out) { return input.read_at(front + at, out); },
        size - front);
    if (!file) return in_file(input, with_looks(input, std::move(file).error()));
    const auto [first, last] = *job.range;
    if (first >= file->size() || (last && *last >= file->size())) {
        // Only the last segment tells whether the file is as long as it was made.
        if (auto checked = file->check_size(); !checked)
            return in_file(input, std::move(checked).error());
        const char* const what = first >= file->size()
                                     ? " bytes of plaintext; the range begins behind them"
                                     : " bytes of plaintext; the range ends behind them: A- reads "
                                       "up to the end";
        return Error{Code::bad_format,
                     input.name() + " holds " + std::to_string(file->size()) + what};
    }
    const std::uint64_t end = last.value_or(file->size() - 1) + 1;
    std::vector<std::uint8_t> buffer(std::min<std::uint64_t>(end - first, 32 << 20));
    FileDone done;
    for (std::uint64_t at = first; at < end;) {
        const auto bytes = HostOut(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
        auto read = file->read(at, bytes);
        auto written = read ? output.write(bytes) : Result<>();
        wipe(buffer.data(), buffer.size());
        if (!read) return in_file(input, std::move(read).error());
        if (!written) return std::move(written).error();
        progress.advance(bytes.size());
        at += bytes.size();
        done.doers.add(*read, bytes.size());
    }
    DAEL_TRY(output.commit());
    done.read = done.written = end - first;
    return done;
}

}  // namespace

Result<std::vector<std::uint8_t>> bound_to(const PlannedFile& file, bool bind_names,
                                           std::vector<std::uint8_t> aad) {
    if (!bind_names) return aad;
    if (file.name.empty())
        return usage("--bind-names: what has no name cannot be bound to one; name the sealed file");
    aad.push_back(0);
    aad.insert(aad.end(), file.name.begin(), file.name.end());
    return aad;
}

Result<FileDone> seal_or_open(const SealedJob& job, const PlannedFile& file, Buffers& buffers,
                              Progress& progress) {
    DAEL_LET(input, open_input(file));
    DAEL_LET(aad, bound_to(file, job.bind_names, job.aad));
    const auto size = input.remaining();
    if (job.range && !input.is_file())
        return Error{Code::io, input.name() +
                                   " can only be read from its beginning; --range "
                                   "takes a file"};
    DAEL_LET(output, open_output(job.output, file, input));
    auto keys = job.seals ? job.keys->to_seal(*job.engine) : job.keys->to_open(*job.engine, input);
    if (!keys && job.seals) return std::move(keys).error();
    if (!keys) return with_looks(input, std::move(keys).error());
    if (job.range) return part(job, *keys, aad, input, size.value_or(0), output, progress);
    return whole(job, *keys, aad, input, output, buffers, progress);
}

}  // namespace dael::cli
