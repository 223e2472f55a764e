// SPDX-License-Identifier: Apache-2.0
// What each program is asked, for keys of each size, before its first use (core/known_answers.hpp).
#include "core/known_answers.hpp"

#include "lab/opengl/opengl.hpp"

namespace dael::opengl {
namespace {

// A picture of several rows and one of a row; of counters one that is not whole blocks, and
// carries.
core::Question question_of(const Cipher& cipher, int bits) {
    static constexpr const char* kNames[kPrograms] = {"ecb encryption", "ecb decryption", "ctr"};
    const bool counts = cipher.mode == Mode::ctr;
    return {.name = kNames[program_of(cipher)],
            .cipher = cipher,
            .bits = bits,
            .by = core::Question::By::message,
            .sizes = {counts ? 1030u : 1040u, 48},
            .wraps = counts};
}

}  // namespace

Result<> OpenGl::believe(const Cipher& asked, int bits) {
    if (core::asking()) return {};
    bool& believed = believed_[program_of(asked) * 3 + static_cast<std::size_t>(bits / 64 - 2)];
    if (believed && heard_.all()) return {};
    const std::uint32_t verdicts = core::verdicts;  // before it asks
    // Counters are encrypted whichever way.
    const Cipher cipher{asked.mode, asked.mode == Mode::ctr ? Direction::encrypt : asked.direction};
    const core::Question question = question_of(cipher, bits);
    const core::RunOnHost run = [&](std::span<const Key> keys,
                                    std::span<const Message> messages) -> Result<> {
        for (const Message& message : messages)
            DAEL_TRY(run_unasked(cipher, keys[message.key], message));
        return {};
    };
    DAEL_TRY(
        core::believe(name_, description(), question, [&] { return core::ask(run, question); }));
    believed = true;
    heard_.of(verdicts);
    return {};
}

}  // namespace dael::opengl
