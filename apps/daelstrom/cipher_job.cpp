// SPDX-License-Identifier: Apache-2.0
#include "cipher_job.hpp"

#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>

#include <daelstrom/ctr.hpp>
#include <daelstrom/sealed.hpp>
#include <daelstrom/unauthenticated.hpp>

#include "done.hpp"
#include "io/filter.hpp"
#include "io/text.hpp"
#include "recognise.hpp"

namespace dael::cli {
namespace {

// The header of `openssl enc`: the magic, then the salt of PBKDF2.
constexpr std::string_view kMagic = "Salted__";
constexpr std::size_t kSaltSize = 8;
static_assert(kMagic.size() + kSaltSize == kBlockSize);

// What the stream starts from, and the 16 bytes or none that stand in front of it.
struct Start {
    Key key;
    Block iv{};
    std::span<const std::uint8_t> header() const { return {header_.data(), header_size_}; }
    Block header_{};
    std::size_t header_size_ = 0;
};

Result<> random_bytes(std::span<std::uint8_t> bytes) {
    if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1) return {};
    return Error{Code::internal, "the random generator of libcrypto failed"};
}

// PBKDF2-HMAC-SHA-256 (RFC 8018 5.2) gives the key and, behind it, the IV.
Result<Start> derive(const CipherJob& job, const Secret& password, const Block& header) {
    const std::size_t key_size = static_cast<std::size_t>(job.salted->key_bits) / 8;
    std::array<std::uint8_t, 32 + kBlockSize> derived{};
    const auto text = password.bytes();
    const int done =
        PKCS5_PBKDF2_HMAC(reinterpret_cast<const char*>(text.data()), static_cast<int>(text.size()),
                          header.data() + kMagic.size(), kSaltSize, job.salted->iterations,
                          EVP_sha256(), static_cast<int>(key_size + kBlockSize), derived.data());
    auto key = Key::import({derived.data(), key_size});
    Block iv{};
    std::memcpy(iv.data(), derived.data() + key_size, iv.size());
    wipe(derived.data(), derived.size());
    if (done != 1) return Error{Code::internal, "PBKDF2 of libcrypto failed"};
    if (!key) return std::move(key).error();
    return Start{std::move(*key), iv, header, job.encrypts() ? header.size() : 0};
}

// The 16 bytes in front, which stay where they are.
Result<Block> peek_header(Input& input, const char* what) {
    DAEL_LET(start, input.peek(kBlockSize));
    if (start.size() < kBlockSize)
        return Error{Code::bad_format, input.name() + " is truncated: it ends after " +
                                           std::to_string(start.size()) + " of the 16 bytes of " +
                                           what};
    Block header{};
    std::ranges::copy(start, header.begin());
    return header;
}

Result<> skip_header(Input& input) {
    Block header{};
    DAEL_TRY(input.fill(header));
    return {};
}

// What is to be opened in another way, as its beginning surely tells: these modes would make
// garbage of it, and call that done.
Result<> refuse_foreign(const CipherJob& job, Input& input) {
    DAEL_LET(start, input.peek(kTelling));
    const auto wrong = [&](const char* what) {
        return Error{Code::bad_format, input.name() + what};
    };
    switch (looks_by(start)) {
        case Looks::As::age:
            return wrong(
                " was sealed, or is a file of age's: `daelstrom open` opens what seal made");
        case Looks::As::armored_age:
            return wrong(" is a file of age's in letters, which age opens");
        case Looks::As::openssl:
            if (job.salted) return {};
            return wrong(" is from openssl enc with a password: give --openssl");
        default:
            return {};
    }
}

// A stream under a key begins with a byte that random ones begin with too, one time in 128. So it
// is one if its first segment is authentic under this key.
Result<> refuse_stream(const Secret& key, Engine& engine, Input& input) {
    DAEL_LET(start, input.peek(kTelling));
    if (looks_by(start) != Looks::As::stream) return {};
    const auto keys = sealed::Keys::from_key(key.bytes());
    if (!keys) return {};  // of 24 bytes
    const std::size_t wanted = sealed::Opener::head_size(*keys);
    DAEL_LET(head, input.peek(wanted));
    if (!sealed::Opener::start(engine, *keys, {}, head, head.size() < wanted)) return {};
    return Error{Code::bad_format,
                 input.name() + " was sealed with this key: `daelstrom open` opens it"};
}

Result<Start> start_salted(const CipherJob& job, Input& input) {
    Block header{};
    std::ranges::copy(kMagic, header.begin());
    if (job.encrypts()) {
        DAEL_TRY(random_bytes(std::span(header).subspan(kMagic.size())));
    } else {
        auto read = peek_header(input, "the Salted__ header of openssl");
        if (!read) return std::move(read).error();
        if (!std::equal(kMagic.begin(), kMagic.end(), read->begin()))
            return Error{Code::bad_format, input.name() +
                                               " does not begin with Salted__; it is not "
                                               "from openssl enc with a password, or not "
                                               "to be read with --openssl"};
        header = *read;
        DAEL_TRY(skip_header(input));
    }
    auto password = job.salted->password();
    if (!password) return std::move(password).error();
    return derive(job, *password, header);
}

Result<Start> start(const CipherJob& job, Engine& engine, Input& input) {
    Block iv = job.iv.value_or(Block{});
    const bool stored = !job.iv && takes_iv(job.mode);
    // Nobody waits for a pipe's first bytes before they are needed: who sends them may wait for the
    // question about the key.
    const bool at_once = input.is_file() || stored;
    if (!job.encrypts() && at_once) DAEL_TRY(refuse_foreign(job, input));
    if (job.salted) return start_salted(job, input);
    if (stored && !job.encrypts()) {
        auto header = peek_header(input, "the IV in front");
        if (!header) return std::move(header).error();
        iv = *header;
    } else if (stored) {
        DAEL_TRY(random_bytes(iv));
    }
    DAEL_LET(bytes, job.key());
    DAEL_LET(key, Key::import(bytes.bytes()));
    if (!job.encrypts() && !at_once) DAEL_TRY(refuse_foreign(job, input));
    if (!job.encrypts()) DAEL_TRY(refuse_stream(bytes, engine, input));
    if (stored && !job.encrypts()) DAEL_TRY(skip_header(input));
    return Start{std::move(key), iv, iv, stored && job.encrypts() ? iv.size() : 0};
}

Error ragged(const CipherJob& job, const std::string& input, std::uint64_t size) {
    const std::string length = input + " holds " + std::to_string(size) + " bytes of data, ";
    if (job.pads())
        return {Code::ragged_length,
                length +
                    "but padded ciphertext is a multiple of 16, and at least 16; it is truncated, "
                    "or was made in another mode"};
    return {Code::ragged_length,
            length + "which is not a multiple of 16; " + std::string(name(job.mode)) +
                " without padding takes whole blocks: leave --no-padding out, or use --mode ctr"};
}

// Whether a message of `size` bytes can go through as a whole.
Result<> check_length(const CipherJob& job, const std::string& input, std::uint64_t size) {
    if (size > std::numeric_limits<std::uint64_t>::max() - job.offset)
        return Error{Code::limit, input + " with this --offset passes 2^64 bytes; use another IV"};
    if (!whole_blocks_only(job.mode) || (job.encrypts() && job.pads())) return {};
    if (size % kBlockSize == 0 && (size != 0 || !job.pads())) return {};
    return ragged(job, input, size);
}

// The cipher over the chunks of one message: each begins where the one before ended. All but the
// last are whole blocks.
class CipherStream {
  public:
    CipherStream(const CipherJob& job, Engine& engine, const Start& start, std::string input)
        : job_(job), engine_(engine), key_(start.key), input_(std::move(input)), start_(start.iv) {}
    ~CipherStream() { wipe(start_.data(), start_.size()); }  // in OFB it is keystream

    Result<> operator()(FilterChunk& chunk) {
        const std::uint64_t before = total_;
        total_ += chunk.size;
        if (chunk.last) DAEL_TRY(check_length(job_, input_, total_));
        if (chunk.last && job_.pads() && job_.encrypts()) {
            const std::size_t tail = chunk.size % kBlockSize;
            const Block block = pad({chunk.data + chunk.size - tail, tail});
            std::ranges::copy(block, chunk.data + chunk.size - tail);
            chunk.size += kBlockSize - tail;
        }
        if (chunk.size != 0) DAEL_TRY(crypt({chunk.data, chunk.size}, job_.offset + before));
        if (chunk.last && job_.pads() && !job_.encrypts()) {
            Block block;
            std::copy_n(chunk.data + chunk.size - kBlockSize, kBlockSize, block.begin());
            const auto kept = unpad(block);
            wipe(block.data(), block.size());
            if (!kept) return kept.error();
            chunk.size -= kBlockSize - *kept;
        }
        return {};
    }

    const Doers& doers() const { return doers_; }

  private:
    Result<> crypt(std::span<std::uint8_t> data, std::uint64_t position) {
        if (job_.mode == Mode::ctr)
            return keep(ctr::crypt(engine_, key_, start_, data, data, position), data.size());
        const std::size_t behind = data.size() - std::min(data.size(), kBlockSize);
        Block input{};  // the last block, which work in place overwrites
        std::ranges::copy(data.subspan(behind), input.begin());
        DAEL_TRY(
            keep(engine_.run(
                     {job_.mode, job_.direction}, key_,
                     {.in = data.data(), .out = data.data(), .size = data.size(), .start = start_}),
                 data.size()));
        // What the next block is chained to (SP 800-38A 6.2 to 6.4): ciphertext, or in OFB
        // keystream.
        Block output{};
        std::ranges::copy(data.subspan(behind), output.begin());
        for (std::size_t i = 0; i < kBlockSize; ++i)
            start_[i] = job_.mode == Mode::ofb ? input[i] ^ output[i]
                        : job_.encrypts()      ? output[i]
                                               : input[i];
        wipe(input.data(), input.size());
        wipe(output.data(), output.size());
        return {};
    }

    Result<> keep(const Result<Ran>& ran, std::uint64_t bytes) {
        if (!ran) return ran.error();
        doers_.add(*ran, bytes);
        return {};
    }

    const CipherJob& job_;
    Engine& engine_;
    const Key& key_;
    std::string input_;
    Block start_;
    std::uint64_t total_ = 0;
    Doers doers_;
};

// Large enough to keep the processor busy, small enough to stay in its caches on the way through;
// a device wants larger ones, to overlap copies with work within each.
FilterOptions filter_options(const CipherJob& job, const Engine& engine, int key_bits,
                             std::optional<std::uint64_t> size) {
    constexpr std::size_t kForCpu = std::size_t{4} << 20, kForDevice = std::size_t{64} << 20;
    FilterOptions options;
    if (size.value_or(0) > kForDevice) {
        const dael::Plan plan = engine.explain({.cipher = {job.mode, job.direction},
                                                .key_bits = key_bits,
                                                .size = kForDevice,
                                                .from = Job::From::pinned,
                                                .in_place = true});
        options.pinned = plan.options.front().possible && plan.options.front().chunk != 0;
    }
    options.chunk = options.pinned ? kForDevice : kForCpu;
    if (size && *size < options.chunk)
        options.chunk = (static_cast<std::size_t>(*size) / 4096 + 1) * 4096;
    return options;
}

}  // namespace

Result<> run(const CipherJob& job) {
    auto input = Input::open(job.input);
    if (!input) return std::move(input).error();
    auto output = Output::open(job.output, *input);
    if (!output) return std::move(output).error();
    auto engine = job.engine.open();
    if (!engine) return std::move(engine).error();
    auto first = start(job, *engine, *input);
    if (!first) return std::move(first).error();

    const auto size = input->remaining();
    if (size) DAEL_TRY(check_length(job, input->name(), *size));
    if (size)
        DAEL_TRY(output->reserve(*size + first->header().size() + (job.pads() ? kBlockSize : 0)));
    DAEL_TRY(output->write(first->header()));

    const Stopwatch time;
    Progress progress(job.show, input_name(job.input), size);
    CipherStream stream(job, *engine, *first, input->name());
    if (auto done =
            filter(*input, *output, progress, filter_options(job, *engine, first->key.bits(), size),
                   [&stream](FilterChunk& chunk) { return stream(chunk); });
        !done) {
        progress.clear();
        return done;
    }
    DAEL_TRY(output->commit());
    progress.finish(by(stream.doers()));
    if (job.json)
        print_done({std::string(name(job.direction)), job.input, *job.output.path, input->taken(),
                    output->written(), stream.doers(), time.seconds()});
    return {};
}

}  // namespace dael::cli
