// SPDX-License-Identifier: Apache-2.0
#include "bench/yardstick.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include <daelstrom/gcm.hpp>

namespace dael::bench {
namespace {

constexpr std::uint64_t kGroup = 64 << 20;       // bytes that are fetched and compared at once
constexpr std::uint64_t kByReference = 1 << 20;  // and what `reference` does in no time

// Neighbouring messages, about kGroup bytes of them.
struct Group {
    std::uint64_t first, count;
};

std::vector<Group> groups(const Work& work) {
    const std::uint64_t each = std::clamp<std::uint64_t>(
        kGroup / std::max<std::uint64_t>(1, work.place_of(1)), 1, work.messages);
    std::vector<Group> all;
    for (std::uint64_t first = 0; first < work.messages; first += each)
        all.push_back({first, std::min(each, work.messages - first)});
    return all;
}

std::size_t room(const Work& work, const Group& group) {
    const std::uint64_t last = group.first + group.count - 1;
    return static_cast<std::size_t>(work.place_of(last) + work.size_of(last) -
                                    work.place_of(group.first));
}

// `expected` lies as the messages do, from the group's first on.
Result<> compare(const Work& work, const Group& group, const Fetch& out,
                 const std::uint8_t* expected, const std::string& whose) {
    std::vector<std::uint8_t> actual(room(work, group));
    DAEL_TRY(
        out(static_cast<std::size_t>(work.place_of(group.first)), actual.data(), actual.size()));
    for (std::uint64_t i = group.first; i < group.first + group.count; ++i) {
        const auto at = static_cast<std::size_t>(work.place_of(i) - work.place_of(group.first));
        const auto size = static_cast<std::size_t>(work.size_of(i));
        if (std::memcmp(actual.data() + at, expected + at, size) == 0) continue;
        const auto wrong =
            std::mismatch(actual.data() + at, actual.data() + at + size, expected + at).first;
        return worthless(work, i,
                         "differs from " + whose + " from byte " +
                             std::to_string(wrong - actual.data() - static_cast<long>(at)) + " on");
    }
    return {};
}

// Another backend that makes the same.
struct Yardstick {
    Engine engine;
    KeySet keys;
    std::string name;
    std::vector<Message> all;

    static Result<Yardstick> open(const Work& work, const std::string& backend,
                                  const std::string& form, const std::uint8_t* in) {
        DAEL_LET(engine, Engine::open({.backend = backend, .form = form}));
        DAEL_LET(keys, make_keys(work));
        DAEL_LET(set, engine.keys(keys));
        return Yardstick{std::move(engine), std::move(set), backend, lay_out(work, in, nullptr)};
    }

    Result<> check(const Work& work, const Group& group, const Fetch& out, const Fetch& tags) {
        const std::size_t begin = static_cast<std::size_t>(work.place_of(group.first));
        std::vector<std::uint8_t> expected(room(work, group), kPoison);
        std::vector<std::uint8_t> made(group.count * gcm::kTagSize), theirs(made.size());
        std::vector<Code> codes(group.count, Code::internal);
        std::vector<Message> messages(all.begin() + static_cast<long>(group.first),
                                      all.begin() + static_cast<long>(group.first + group.count));
        for (std::size_t i = 0; i < messages.size(); ++i) {
            messages[i].out = expected.data() + (work.place_of(group.first + i) - begin);
            messages[i].tag = made.data() + i * gcm::kTagSize;
        }
        DAEL_TRY(engine.run(work.cipher, keys, messages, codes));
        DAEL_TRY(check_codes(work, codes));
        DAEL_TRY(compare(work, group, out, expected.data(), "that of " + name));
        DAEL_TRY(tags(static_cast<std::size_t>(group.first) * gcm::kTagSize, theirs.data(),
                      theirs.size()));
        for (std::size_t i = 0; i < messages.size(); ++i)
            if (std::memcmp(made.data() + i * gcm::kTagSize, theirs.data() + i * gcm::kTagSize,
                            gcm::kTagSize) != 0)
                return worthless(work, group.first + i, "has another tag than that of " + name);
        return {};
    }
};

// All of the work. `unsupported`, `backend_absent` and the like: by this backend it cannot be.
Result<> check_all_by(const Work& work, const std::string& backend, const std::string& form,
                      const std::uint8_t* in, const Fetch& out, const Fetch& tags) {
    DAEL_LET(yardstick, Yardstick::open(work, backend, form, in));
    for (const Group& group : groups(work)) DAEL_TRY(yardstick.check(work, group, out, tags));
    return {};
}

}  // namespace

Result<> check_by_backends(const Work& work, const std::uint8_t* in, const Fetch& out,
                           const Fetch& tags) {
    if (work.bytes() <= kByReference) return check_all_by(work, "reference", {}, in, out, tags);
    DAEL_LET(reference, Yardstick::open(work, "reference", {}, in));
    for (const Window& window : sample_windows(work))
        DAEL_TRY(reference.check(work, {window.message, 1}, out, tags));
    const bool narrow = work.backend == "cpu" && work.form != "sse";
    struct Other {
        const char *backend, *form;
    };
    for (const auto& [backend, form] : {Other{"cpu", narrow ? "sse" : ""}, {"openssl", ""}}) {
        if (work.backend == backend && work.form == form) continue;
        const auto checked = check_all_by(work, backend, form, in, out, tags);
        if (checked.code() != Code::unsupported && checked.code() != Code::backend_absent)
            return checked;
    }
    return check_all_by(work, "reference", {}, in, out, tags);
}

Result<> check_all_opened(const Work& work, const std::uint8_t* plaintext, const Fetch& out) {
    for (const Group& group : groups(work))
        DAEL_TRY(
            compare(work, group, out, plaintext + work.place_of(group.first), "the plaintext"));
    return {};
}

}  // namespace dael::bench
