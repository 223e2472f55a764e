// SPDX-License-Identifier: Apache-2.0
// What each program, in each of its forms, is asked before its first use (core/known_answers.hpp).
#include "core/known_answers.hpp"

#include "backends/opencl/device.hpp"

namespace dael::opencl {
namespace {

thread_local const Programs::Variant* asked = nullptr;

// While a thread asks about a variant.
struct Asked {
    explicit Asked(const Programs::Variant& variant) { asked = &variant; }
    Asked(const Asked&) = delete;
    ~Asked() { asked = nullptr; }
};

// As core::believe() names devices: what is believed is programs, which devices of one name share.
std::string name_of(const DeviceInfo& info) {
    return "opencl (" + info.name + ")";
}

std::string name_of(const Cipher& cipher, const Programs::Variant& v) {
    std::string text(name(cipher.mode));
    if (!makes_keystream(cipher.mode) && cipher.mode != Mode::ofb)
        text += cipher.direction == Direction::encrypt ? " encryption" : " decryption";
    if (v.batch) text += " of batches";
    if (v.keys) text += " with many keys";
    if (v.in_place) text += " in place";
    if (v.keystream) text += " without input";
    if (v.stream) text += " of long data";
    if (v.table) text += " with tables for GHASH";
    if (v.divided) text += ", divided";
    return text;
}

core::Question question_of(const Cipher& cipher, int rounds, const Programs::Variant& v) {
    core::Question question{.name = name_of(cipher, v),
                            .cipher = cipher,
                            .bits = 32 * (rounds - 6),
                            .by = v.batch ? core::Question::By::batch : core::Question::By::message,
                            .keys = v.keys ? 2u : 1u,
                            .in_place = v.in_place,
                            .keystream = v.keystream};
    question.cipher.tag = 16;
    question.wraps = cipher.mode == Mode::ctr;
    if (authenticates(cipher.mode)) {
        question.aad = 21;
        question.sizes = {0, 16, 61, 1500};
        if (v.divided) question.sizes.back() = 5000;
    } else if (v.stream) {
        question.sizes = {20000};
    } else if (cipher.mode == Mode::xts) {
        question.cipher.sector = 512;
        question.sizes = {1024, 1000};
    } else if (whole_blocks_only(cipher.mode)) {
        question.sizes = {1040, 48};
    } else {
        question.sizes = {1030, 48};
    }
    return question;
}

}  // namespace

const Programs::Variant* Programs::variant_asked() {
    return asked;
}

Result<> OpenClDevice::usable() const {
    if (after_fork()) return fork_failure();
    return core::believed(name_of(info_));
}

Result<> OpenClDevice::believe(const Cipher& cipher, int rounds, const Programs::Variant& v) {
    if (core::asking()) return {};
    const auto mode = static_cast<unsigned>(cipher.mode),
               direction = static_cast<unsigned>(cipher.direction);
    const unsigned id =
        ((((mode * 2 + direction) * 3 + static_cast<unsigned>(rounds - 10) / 2) * 2 + v.batch) * 2 +
         v.keys) *
            2 +
        v.in_place;
    const unsigned whole = (((id * 2 + v.keystream) * 2 + v.stream) * 2 + v.table) * 2 + v.divided;
    const std::string form = to_string(v.tuning);
    {
        const std::lock_guard lock(mutex_);
        if (believed_.contains({whole, form}) && heard_.all()) return {};
    }
    const std::uint32_t verdicts = core::verdicts;  // before it asks
    const core::Question question = question_of(cipher, rounds, v);
    const core::MakeTables make =
        [this](std::span<const Key> keys) -> Result<std::unique_ptr<core::KeyTables>> {
        DAEL_LET(made, OpenClKeys::create(*this, keys));
        return std::unique_ptr<core::KeyTables>(std::move(made));
    };
    DAEL_TRY(core::believe(name_of(info_), info_.driver + ", " + form, question, [&] {
        const Asked about(v);
        return core::ask(*this, make, question);
    }));
    const std::lock_guard lock(mutex_);
    believed_.insert({whole, form});
    heard_.of(verdicts);
    return {};
}

}  // namespace dael::opencl
