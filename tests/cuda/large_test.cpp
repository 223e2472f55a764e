// SPDX-License-Identifier: Apache-2.0
// Messages of more than 4 GiB, beyond what 32 bits count in bytes: every mode that takes one, on
// the GPU as on the host.
#include <unistd.h>

#include <optional>
#include <utility>

#include <daelstrom/engine.hpp>
#include <daelstrom/gcm.hpp>

#include "cuda/fixture.hpp"
#include "support/must.hpp"

namespace dael::test {
namespace {

constexpr std::size_t kGibi = std::size_t{1} << 30;
constexpr std::size_t kSize = 4 * kGibi + (std::size_t{3} << 20);

class CudaLarge : public CudaTest {
  protected:
    void SetUp() override {
        CudaTest::SetUp();
        if (IsSkipped() || HasFatalFailure()) return;
        const auto free = device_->memory().free_memory();
        ASSERT_TRUE(free) << free.error().message;
        if (*free < 2 * kSize + kGibi) GTEST_SKIP() << "needs 10 GiB of GPU memory";
        // Who asks for more than there is gets it, and is killed when it is used.
        const auto pages = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES));
        if (pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)) < 3 * kSize + kGibi)
            GTEST_SKIP() << "needs 14 GiB of host memory";
        in_.resize(kSize);
        expected_.resize(kSize);
        back_.resize(kSize);
        openssl_.emplace(must(Engine::open({.backend = "openssl"})));
        // The other backend of the host's, where there is one.
        if (auto cpu = Engine::open({.backend = "cpu"})) cpu_.emplace(std::move(*cpu));
        gpu_.emplace(must(Engine::open({.backend = "cuda"})));
        there_in_ = allocate(kSize);
        there_out_ = allocate(kSize);
        there_tag_ = allocate(gcm::kTagSize);
        make_plaintext(in_);
    }

    // Bytes that say where they stand: a keystream.
    void make_plaintext(Bytes& bytes) {
        const Key key = must(Key::import(Bytes(16, 9)));
        must(host().run({Mode::ctr}, key, {.in = nullptr, .out = bytes.data(), .size = kSize}));
    }
    Engine& host() { return cpu_ ? *cpu_ : *openssl_; }

    // On the device as on the host, and nothing else in the device's output.
    void compare(const Cipher& cipher, const Key& key, std::size_t size, const Bytes& in) {
        SCOPED_TRACE(std::string(name(cipher.mode)) + " " + std::string(name(cipher.direction)));
        Block tag{}, there{};
        Message message{.in = in.data(), .out = expected_.data(), .size = size, .start = {1, 2}};
        if (cipher.mode == Mode::gcm) {
            message.tag = tag.data();
            message.start[15] = 1;
        }
        const bool opens = cipher.mode == Mode::gcm && cipher.direction == Direction::decrypt;
        if (opens) tag = tag_;
        must((cipher.mode == Mode::xts ? *openssl_ : host()).run(cipher, key, message));

        put(there_in_, in.data(), size);
        ASSERT_TRUE(device_->memory().fill(there_out_, 0xa5, kSize, stream_));
        if (opens) put(there_tag_, tag_.data(), tag_.size());
        message.in = there_in_;
        message.out = there_out_;
        if (cipher.mode == Mode::gcm) {
            message.tag = there_tag_;
            const KeySet keys = must(gpu_->keys({&key, 1}));
            Batch batch = must(gpu_->prepare(cipher, keys, {.list = &message, .count = 1}));
            must(gpu_->launch(batch, stream_));
            if (opens) EXPECT_EQ(must(batch.results(stream_)).at(0), Code::ok);
            wait();
        } else {
            must(gpu_->run(cipher, key, message, stream_));
        }
        must(device_->memory().copy_out(back_.data(), there_out_, kSize, stream_));
        wait();
        const auto differ = std::mismatch(back_.begin(), back_.begin() + static_cast<long>(size),
                                          expected_.begin());
        EXPECT_EQ(static_cast<std::size_t>(differ.first - back_.begin()), size) << "a byte differs";
        EXPECT_TRUE(std::all_of(back_.begin() + static_cast<long>(size), back_.end(),
                                [](std::uint8_t byte) { return byte == 0xa5; }));
        if (cipher.mode == Mode::gcm && !opens) {
            must(device_->memory().copy_out(there.data(), there_tag_, there.size(), stream_));
            wait();
            EXPECT_EQ(there, tag);
            tag_ = tag;
        }
    }

    std::optional<Engine> cpu_, openssl_, gpu_;
    Bytes in_, expected_, back_;  // no more than these of that size, ever
    std::uint8_t *there_in_ = nullptr, *there_out_ = nullptr, *there_tag_ = nullptr;
    Block tag_{};
};

TEST_F(CudaLarge, MessagesOfMoreThan4GiB) {
    const Key key = must(Key::import(Bytes(32, 7)));
    Bytes raw(64, 3);
    raw[40] = 4;  // the two halves must differ
    const Key xts = must(Key::import_xts(raw));
    constexpr Direction kEncrypt = Direction::encrypt, kDecrypt = Direction::decrypt;
    compare({Mode::ctr}, key, kSize - 5, in_);
    compare({Mode::ecb, kEncrypt}, key, kSize - 16, in_);
    compare({Mode::ecb, kDecrypt}, key, kSize - 16, in_);
    compare({Mode::cbc, kDecrypt}, key, kSize - 16, in_);
    compare({Mode::cfb, kDecrypt}, key, kSize - 5, in_);
    compare({.mode = Mode::xts, .direction = kEncrypt, .sector = 4096}, xts, kSize - 4096, in_);
    compare({.mode = Mode::xts, .direction = kDecrypt, .sector = 512}, xts, kSize - 4096, in_);
    compare({Mode::gcm, kEncrypt}, key, kSize - 5, in_);
    std::swap(in_, expected_);
    compare({Mode::gcm, kDecrypt}, key, kSize - 5, in_);
    make_plaintext(back_);
    EXPECT_TRUE(std::equal(back_.begin(), back_.end() - 5, expected_.begin()));
}

}  // namespace
}  // namespace dael::test
