// SPDX-License-Identifier: Apache-2.0
// One long message of GCM in host memory by several workers, or by all of the host's threads
// (gcm_parts.hpp).
#include <algorithm>
#include <vector>

#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"
#include "pipeline/engine_state.hpp"
#include "pipeline/gcm_parts.hpp"

namespace dael {
namespace {

// Parts are of so many bytes, and a message of fewer than twice as many again stays whole.
constexpr std::uint64_t kPart = std::uint64_t{1} << 20, kLongestPart = std::uint64_t{4} << 20;
constexpr std::uint64_t kWhole = std::uint64_t{8} << 20;
constexpr std::uint64_t kMostParts = 4096;  // of the shortest

}  // namespace

std::optional<Job> pipeline::in_parts(Job job) noexcept {
    if (job.cipher.mode != Mode::gcm || job.messages != 1 || job.size < kWhole ||
        job.size > gcm::kMaxData)
        return std::nullopt;
    const std::uint64_t even = job.size / kMostParts / kBlockSize * kBlockSize;
    const std::uint64_t part = std::clamp(even, kPart, kLongestPart);
    job.messages = (job.size + part - 1) / part;
    job.size = ((job.size + job.messages - 1) / job.messages + 15) / 16 * 16;
    return job;
}

bool pipeline::can_be_in_parts(const Cipher& cipher, const Message& message) noexcept {
    // Decryption is GCM's counter mode, in one piece: only of other IVs than nonces could it wrap.
    return modes::encrypts(cipher) || modes::blocks_before_wrap32(modes::counter_add32(
                                          message.start, 1)) > message.size / kBlockSize;
}

Result<Ran> Engine::State::run_one(const Cipher& cipher, std::span<const Key> keys,
                                   KeySet::State* set, const Message& message) {
    Code code = Code::internal;
    auto ran = run(cipher, keys, set, {&message, 1}, {&code, 1});
    if (ran && code != Code::ok) return Error{code, std::string(describe(code))};
    return ran;
}

// Opening hashes all of the ciphertext first, and decrypts nothing before its tag is known to be
// right.
Result<Ran> Engine::State::run_in_parts(const Cipher& cipher, std::span<const Key> keys,
                                        KeySet::State* set, const Message& message,
                                        std::uint64_t even, Code& code) {
    const bool seals = modes::encrypts(cipher);
    code = Code::out_of_memory;  // as long as nothing is touched
    pipeline::GcmParts in_parts(cipher, message);
    for (std::uint64_t at = 0; at < message.size; at += even)
        in_parts.add(message.in + at, message.out + at, std::min(even, message.size - at));
    const std::span<Message> parts = in_parts.parts();
    const Message blocks = in_parts.blocks();
    std::vector<Code> codes(parts.size());
    if (auto ran = run_one({Mode::ecb}, keys, set, blocks); !ran) {
        code = ran.code();
        return ran;
    }
    if (seals) code = Code::internal;
    auto ran = run({Mode::gcm}, keys, set, parts, codes);
    if (!ran) {
        const bool untouched =
            !seals || std::ranges::all_of(codes, [&](Code its) { return its == ran.code(); });
        code = untouched ? ran.code() : Code::internal;
        return ran;
    }
    Block tag = in_parts.tag_of_all();
    const core::WipeAtEnd no_tag(tag);
    code = Code::ok;
    if (seals) {
        std::copy_n(tag.begin(), cipher.tag, message.tag);
        return ran;
    }
    if (!modes::equal_tags(tag.data(), message.tag, cipher.tag)) {
        code = Code::authentication;
        return ran;
    }
    Message rest = message;
    rest.aad = nullptr;
    rest.aad_size = 0;
    rest.tag = nullptr;
    rest.start = modes::counter_add32(message.start, 1);
    return run({Mode::gcm_ctr, Direction::decrypt}, keys, set, {&rest, 1}, {&code, 1});
}

}  // namespace dael
