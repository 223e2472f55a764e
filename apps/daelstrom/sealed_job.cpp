// SPDX-License-Identifier: Apache-2.0
#include "sealed_job.hpp"

#include <algorithm>
#include <cmath>
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

// What the library says about data, with the name of what holds it.
Error in_file(const Input& input, Error error) {
    const bool about_data = error.code == Code::authentication || error.code == Code::bad_format ||
                            error.code == Code::limit || error.code == Code::unsupported;
    if (about_data) error.message = input.name() + ": " + error.message;
    return error;
}

Result<sealed::Lock> read_lock(Input& input) {
    sealed::Lock lock{};
    const auto start = input.peek(lock.size());
    if (!start) return start.error();
    if (!sealed::is_lock(*start))
        return Error{Code::bad_format, input.name() +
                                           " was not sealed with a passphrase; was it sealed with "
                                           "a key? Give --key-file or --keyset"};
    auto got = input.fill(lock);
    if (!got) return std::move(got).error();
    if (*got < lock.size())
        return Error{Code::bad_format, input.name() + " is cut off: it ends after " +
                                           std::to_string(*got) + " of the 108 bytes of its lock"};
    return lock;
}

// A lock that did not open, and which option lets it, if that is all.
Error not_unlocked(const Input& input, const sealed::Lock& lock, Error error) {
    if (error.code == Code::limit) {
        const auto [log2_n, r, p] = sealed::cost_of(lock);
        const double memory = std::ldexp(r, log2_n - 3), steps = memory * p;  // 2^N and p of --cost
        const bool at_all = memory <= 1 << 20 && steps <= 1 << 22;
        int needed = 10;
        while (needed < 20 && steps > std::ldexp(1, needed)) ++needed;
        if (at_all) error.message += " (--max-cost " + std::to_string(needed) + ")";
    }
    return in_file(input, std::move(error));
}

// The keys, and for a passphrase the lock that stands in front.
struct Secrets {
    sealed::Keys keys;
    std::optional<sealed::Lock> lock;
};

Result<Secrets> secrets_of(const SealedJob& job, Engine& engine, Input& input) {
    if (job.keys) {
        if (!job.seals) {
            const auto start = input.peek(sealed::kLockSize);
            if (!start) return start.error();
            if (sealed::is_lock(*start))
                return Error{Code::bad_format, input.name() +
                                                   " was sealed with a passphrase, not with a key; "
                                                   "leave the key out"};
        }
        auto keys = job.keys();
        if (!keys) return std::move(keys).error();
        return Secrets{std::move(*keys), std::nullopt};
    }
    std::optional<sealed::Lock> lock;
    if (!job.seals) {
        auto read = read_lock(input);
        if (!read) return std::move(read).error();
        lock = *read;
    }
    auto passphrase = job.passphrase();
    if (!passphrase) return std::move(passphrase).error();
    if (lock) {
        auto keys = sealed::unlock(engine, passphrase->bytes(), *lock, job.most);
        if (!keys) return not_unlocked(input, *lock, std::move(keys).error());
        return Secrets{std::move(*keys), lock};
    }
    auto locked = sealed::make_lock(engine, passphrase->bytes(), job.segment, job.cost);
    if (!locked) return std::move(locked).error();
    return Secrets{std::move(locked->keys), locked->lock};
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

Result<> whole(const SealedJob& job, Engine& engine, const Secrets& secrets, Input& input,
               Output& output) {
    auto stream = SealedStream::start(job, engine, secrets.keys, input);
    if (!stream) return std::move(stream).error();
    const sealed::Layout& layout = stream->layout();
    const auto size = input.remaining();
    std::uint64_t front = 0;
    if (size) {
        auto after = job.seals ? layout.sealed_size(*size) : layout.plain_size(*size);
        if (!after) return in_file(input, std::move(after).error());
        if (job.seals && secrets.lock) front = secrets.lock->size();
        DAEL_TRY(output.reserve(*after + front));
    }
    if (job.seals && secrets.lock) DAEL_TRY(output.write(*secrets.lock));
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

Result<> part(const SealedJob& job, Engine& engine, const Secrets& secrets, const Input& input,
              std::uint64_t size, Output& output) {
    const std::uint64_t front = secrets.lock ? secrets.lock->size() : 0;
    auto file = sealed::File::open(
        engine, secrets.keys, job.aad,
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
    auto secrets = secrets_of(job, *engine, *input);
    if (!secrets) return std::move(secrets).error();
    if (!job.range) return whole(job, *engine, *secrets, *input, *output);
    const std::uint64_t front = secrets->lock ? secrets->lock->size() : 0;
    return part(job, *engine, *secrets, *input, size.value_or(0) - front, *output);
}

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
