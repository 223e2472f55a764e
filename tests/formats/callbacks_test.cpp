// SPDX-License-Identifier: Apache-2.0
// Callbacks that leave by other ways than returning: whatever they throw becomes an error, and a
// thread that is cancelled in one unwinds and ends, and takes nobody with it.
#include <stdexcept>

#include "formats/keysets.hpp"
#include "support/cancelled.hpp"

namespace dael::test {
namespace {

// Every call of daelstrom/sealed.hpp that takes a callback, each with one that does `leave`.
class Callbacks : public ::testing::Test {
  protected:
    struct Call {
        const char* name;
        std::function<Result<>(const std::function<void()>& leave)> run;
    };
    std::vector<Call> calls() {
        return {
            {"seal, reading",
             [this](const auto& leave) {
                 return none(sealed::seal(
                     e_, keys_, {}, [&](HostOut) -> Result<std::size_t> { return leave(), 0; },
                     sink_));
             }},
            {"seal, writing",
             [this](const auto& leave) {
                 return none(sealed::seal(e_, keys_, {}, source(plain_),
                                          [&](HostIn) -> Result<> { return leave(), Result<>(); }));
             }},
            {"open, reading",
             [this](const auto& leave) {
                 return none(sealed::open(
                     e_, keys_, {}, [&](HostOut) -> Result<std::size_t> { return leave(), 0; },
                     sink_));
             }},
            {"open, writing",
             [this](const auto& leave) {
                 return none(sealed::open(e_, keys_, {}, source(sealed_),
                                          [&](HostIn) -> Result<> { return leave(), Result<>(); }));
             }},
            {"File::open",
             [this](const auto& leave) {
                 return none(sealed::File::open(
                     e_, keys_, {},
                     [&](std::uint64_t, HostOut) -> Result<> { return leave(), Result<>(); },
                     sealed_.size()));
             }},
            {"File::read", [this](const auto& leave) { return read(leave, false); }},
            {"File::check_size", [this](const auto& leave) { return read(leave, true); }}};
    }

    Engine e_ = engine();
    sealed::Keys keys_ = small_keys();
    Bytes plain_ = pattern(1000), sealed_ = seal(e_, keys_, plain_), out_;

  private:
    template <class T>
    static Result<> none(Result<T> result) {
        if (!result) return std::move(result).error();
        return {};
    }
    sealed::Read source(const Bytes& bytes) {
        return [&bytes, at = std::size_t{0}](HostOut out) mutable -> Result<std::size_t> {
            const std::size_t size = std::min(out.size(), bytes.size() - at);
            std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), size, out.begin());
            at += size;
            return size;
        };
    }
    Result<> read(const std::function<void()>& leave, bool only_the_end) {
        bool open = false;
        auto file = must(sealed::File::open(
            e_, keys_, {},
            [&](std::uint64_t at, HostOut out) -> Result<> {
                if (open) leave();
                std::copy_n(sealed_.begin() + static_cast<std::ptrdiff_t>(at), out.size(),
                            out.begin());
                return {};
            },
            sealed_.size()));
        open = true;
        if (only_the_end) return file.check_size();
        out_.assign(plain_.size(), 0xa5);
        return none(file.read(0, out_));
    }

    const sealed::Write sink_ = [](HostIn) { return Result<>(); };
};

TEST_F(Callbacks, WhateverTheyThrowBecomesAnError) {
    for (const Call& call : calls()) {
        SCOPED_TRACE(call.name);
        const auto number = call.run([] { throw 7; });
        EXPECT_EQ(number.code(), Code::internal);
        EXPECT_NE(number.error().message.find("exception"), std::string::npos);
        const auto words = call.run([] { throw std::runtime_error("the disk is gone"); });
        EXPECT_EQ(words.code(), Code::internal);
        EXPECT_NE(words.error().message.find("the disk is gone"), std::string::npos);
        EXPECT_EQ(call.run([] { throw std::bad_alloc(); }).code(), Code::out_of_memory);
    }
}

TEST_F(Callbacks, ACancelledThreadUnwinds) {
    for (const Call& call : calls()) {
        SCOPED_TRACE(call.name);
        out_.clear();
        EXPECT_TRUE(cancelled([&] { (void)call.run(cancel_me); }));
        EXPECT_EQ(out_, Bytes(out_.size(), 0)) << "as after any failure, nothing is left";
    }
}

}  // namespace
}  // namespace dael::test
