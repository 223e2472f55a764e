// SPDX-License-Identifier: Apache-2.0
// A file opened under one key and sealed under another, a chunk at a time: the segments of the two
// streams may have other sizes, so plaintext waits in between until it fills some.
#include <algorithm>
#include <cstring>

#include <daelstrom/sealed.hpp>

#include "io/text.hpp"
#include "sealed_file.hpp"

namespace dael::cli {
namespace {

// Whether the keys open the file's first segment; that of an empty plaintext is its only one.
Result<bool> opens(Engine& engine, const sealed::Keys& keys, HostIn aad, const Input& input,
                   std::uint64_t size) {
    const auto no = [](Error error) -> Result<bool> {
        if (error.code == Code::authentication || error.code == Code::bad_format) return false;
        return error;
    };
    auto file = sealed::File::open(
        engine, keys, aad,
        [&input](std::uint64_t at, HostOut out) { return input.read_at(at, out); }, size);
    if (!file) return no(std::move(file).error());
    std::uint8_t byte = 0;
    if (file->size() == 0) {
        if (auto checked = file->check_size(); !checked) return no(std::move(checked).error());
    } else {
        auto read = file->read(0, {&byte, 1});
        wipe(&byte, 1);
        if (!read) return no(std::move(read).error());
    }
    return true;
}

class Resealer {
  public:
    Resealer(const ResealJob& job, Input& input, Output& output, Buffers& buffers,
             sealed::Opener opener, sealed::Sealer sealer)
        : input_(input),
          output_(output),
          sealed_(buffers[0]),
          plain_(buffers[1]),
          resealed_(buffers[2]),
          opener_(std::move(opener)),
          sealer_(std::move(sealer)) {
        const std::uint64_t segment = opener_.layout().segment;
        chunk_ = std::max<std::uint64_t>(1, chunk_for(job.threads) / segment) * segment;
    }

    Result<FileDone> run(std::uint64_t size, Progress& progress) {
        chunk_ = std::min(chunk_, size);
        // What waits is at most a segment, and so is what a chunk grows by in its turn.
        DAEL_TRY(sealed_.allocate(chunk_ + 1));
        DAEL_TRY(plain_.allocate(chunk_ + sealer_.layout().segment));
        for (std::uint64_t at = 0; at < size;) {
            const std::uint64_t now = std::min(chunk_, size - at);
            at += now;
            DAEL_TRY(open(now, at == size));
            DAEL_TRY(seal(at == size));
            progress.advance(now);
        }
        done_.read = size;
        return done_;
    }

  private:
    Result<> open(std::uint64_t size, bool last) {
        // With one byte more, to see whether the file has grown.
        const HostOut room(sealed_.data(), size + (last ? 1 : 0));
        DAEL_LET(got, input_.fill(room));
        sealed_.touch(got);
        if (got != size)
            return Error{Code::io, input_.name() +
                                       " changed its size while it was read; try again when it "
                                       "rests"};
        DAEL_LET(chunk, opener_.layout().of_sealed(next_to_open_, size, last));
        plain_.touch(waiting_ + chunk.plain.size);
        DAEL_TRY(
            opener_.open(chunk, room.first(size), {plain_.data() + waiting_, chunk.plain.size}));
        next_to_open_ += chunk.count;
        waiting_ += chunk.plain.size;
        return {};
    }

    // All that fills segments; but the last one of a stream may not be empty unless it is the only
    // one, so something is kept back until the end is known.
    Result<> seal(bool last) {
        const sealed::Layout& layout = sealer_.layout();
        std::uint64_t size = waiting_;
        if (!last) {
            const std::uint64_t from = layout.plain_at(next_to_seal_);
            const std::uint64_t whole = layout.segment_of(from + waiting_ - 1);
            size = waiting_ == 0 ? 0 : layout.plain_at(whole) - from;
            if (size == 0) return {};
            next_to_seal_ = whole;
        }
        DAEL_LET(next, sealer_.next(size, last));
        DAEL_TRY(resealed_.allocate(next.sealed.size));
        resealed_.touch(next.sealed.size);
        const HostOut out(resealed_.data(), next.sealed.size);
        DAEL_LET(ran, sealer_.seal({plain_.data(), size}, out, last));
        DAEL_TRY(output_.write(out));
        std::memmove(plain_.data(), plain_.data() + size, waiting_ - size);
        waiting_ -= size;
        done_.written += out.size();
        done_.doers.add(ran, size);
        return {};
    }

    Input& input_;
    Output& output_;
    Buffer &sealed_, &plain_, &resealed_;
    sealed::Opener opener_;
    sealed::Sealer sealer_;
    std::uint64_t chunk_ = 0;         // bytes of the old stream
    std::uint64_t next_to_open_ = 0;  // segments
    std::uint64_t next_to_seal_ = 0;
    std::uint64_t waiting_ = 0;  // bytes of plaintext
    FileDone done_;
};

}  // namespace

Result<FileDone> reseal(const ResealJob& job, const PlannedFile& file, Buffers& buffers,
                        Progress& progress) {
    DAEL_LET(input, open_input(file));
    if (!input.is_file())
        return Error{Code::io, input.name() + " is no regular file that can be replaced"};
    OutputOptions options = job.output;
    options.replaces_input = true;
    DAEL_LET(aad, bound_to(file, job.bind_names, job.aad));
    const std::uint64_t whole = input.remaining().value_or(0);
    if (job.already) {  // with keys, which open no envelope
        DAEL_LET(start, input.peek(32));
        if (sealed::is_envelope(start))
            return Error{Code::bad_format,
                         input.name() +
                             " was sealed for recipients or with a passphrase, not with a key; "
                             "`daelstrom rewrap` changes that, or for recipients -i and -r"};
    }
    auto from = job.from->to_open(*job.engine, input);
    if (!from) return std::move(from).error();
    const std::uint64_t size = input.remaining().value_or(0);
    DAEL_LET(to, job.to->to_seal(*job.engine));
    if (job.already) {
        DAEL_LET(is_new, opens(*job.engine, *to.keys, aad, input, size));
        if (is_new) {
            progress.advance(size);
            FileDone done;
            done.skipped = *job.already;
            return done;
        }
    }
    DAEL_LET(output, open_output(options, file, input));
    const std::size_t wanted = sealed::Opener::head_size(*from->keys);
    DAEL_LET(head, input.peek(wanted));
    auto opener = sealed::Opener::start(*job.engine, *from->keys, aad, head, head.size() < wanted);
    if (!opener) return in_file(input, std::move(opener).error());
    DAEL_LET(sealer, sealed::Sealer::start(*job.engine, *to.keys, aad));
    const auto plain = opener->layout().plain_size(size);
    if (!plain) return in_file(input, plain.error());
    DAEL_LET(after, sealer.layout().sealed_size(*plain));
    DAEL_TRY(output.reserve(after + to.front.size()));
    DAEL_TRY(output.write(to.front));
    auto done = Resealer(job, input, output, buffers, std::move(*opener), std::move(sealer))
                    .run(size, progress);
    if (!done) return in_file(input, std::move(done).error());
    done->read = whole;
    done->written = output.written();
    DAEL_TRY(output.commit());
    return done;
}

}  // namespace dael::cli
