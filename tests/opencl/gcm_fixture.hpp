// SPDX-License-Identifier: Apache-2.0
// GCM over OpenCL's buffers, for tests: five keys, and messages whose parts lie anywhere.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include <daelstrom/gcm.hpp>

#include "core/device.hpp"
#include "core/registry.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace dael::test {

// A message whose parts lie in buffers of their own, or share those of the one before it.
struct Scattered {
    std::size_t key;
    Bytes nonce, aad, plain;
    std::uint8_t *in = nullptr, *out = nullptr, *at_aad = nullptr, *tag = nullptr;
};

class GcmOpenCl : public ::testing::TestWithParam<const char*> {
  protected:
    void SetUp() override {
        auto opened = core::open_backend("opencl", {GetParam(), 0});
        if (!opened) {
            // A layout that the device has no room for is no fault.
            if (opened.code() != Code::unsupported && required("opencl"))
                FAIL() << opened.error().message;
            GTEST_SKIP() << opened.error().message;
        }
        backend_ = std::move(*opened);
        device_ = backend_->device();
        for (const std::size_t size : {16, 24, 32, 16, 16}) {
            raw_.push_back(random_.bytes(size));
            keys_.push_back(*Key::import(raw_.back()));
        }
        auto made = backend_->tables(keys_);
        ASSERT_TRUE(made) << made.error().message;
        tables_ = std::move(*made);
    }
    void TearDown() override {
        for (void* memory : held_) device_->memory().release(memory);
    }

    std::uint8_t* buffer(std::size_t size) {
        auto made = device_->memory().allocate(std::max<std::size_t>(size, 1));
        EXPECT_TRUE(made) << made.error().message;
        held_.push_back(*made);
        return static_cast<std::uint8_t*>(*made);
    }
    void put(void* to, const Bytes& bytes) {
        ASSERT_TRUE(device_->memory().copy_in(to, bytes.data(), bytes.size(), {}));
    }
    Bytes take(const void* from, std::size_t size) {
        Bytes bytes(size);
        EXPECT_TRUE(device_->memory().copy_out(bytes.data(), from, size, {}));
        EXPECT_TRUE(device_->order().wait(Stream{}));
        return bytes;
    }

    Scattered message(std::size_t key, std::size_t size, std::size_t aad_size) {
        Scattered m{key, random_.bytes(gcm::kNonceSize), random_.bytes(aad_size),
                    random_.bytes(size)};
        m.in = buffer(size);
        m.out = buffer(size);
        m.at_aad = buffer(aad_size);
        m.tag = buffer(gcm::kTagSize);
        return m;
    }
    Sealed expected(const Scattered& m) const {
        return gcm_oracle(raw_[m.key], m.nonce, m.aad, m.plain);
    }
    static Message listed(const Scattered& m) {
        Message message{.in = m.in,
                        .out = m.out,
                        .size = m.plain.size(),
                        .aad = m.at_aad,
                        .aad_size = m.aad.size(),
                        .tag = m.tag,
                        .key = static_cast<std::uint32_t>(m.key)};
        gcm::set_start(message, m.nonce.data());
        return message;
    }
    Result<std::unique_ptr<core::Prepared>> prepare(const Cipher& cipher,
                                                    std::span<const Message> list) {
        return device_->prepare(cipher, {keys_, tables_.get()},
                                {list.data(), static_cast<std::uint32_t>(list.size())});
    }

    std::vector<std::uint32_t> run(Direction direction, const std::vector<Scattered>& messages) {
        std::vector<Message> list;
        for (const Scattered& m : messages) list.push_back(listed(m));
        auto batch = prepare({Mode::gcm, direction}, list);
        EXPECT_TRUE(batch) << batch.error().message;
        if (!batch) return {};
        auto ran = device_->run(**batch, {});
        EXPECT_TRUE(ran) << ran.error().message;
        std::vector<std::uint32_t> codes(messages.size(), 99);
        EXPECT_TRUE(device_->memory().copy_out(codes.data(), (*batch)->results(),
                                               codes.size() * sizeof codes[0], {}));
        EXPECT_TRUE(device_->order().wait(Stream{}));
        return codes;
    }

    Random random_{20261122};
    std::unique_ptr<core::Backend> backend_;
    core::Device* device_ = nullptr;
    std::vector<Bytes> raw_;
    std::vector<Key> keys_;
    std::unique_ptr<core::KeyTables> tables_;
    std::vector<void*> held_;
};

inline constexpr std::uint32_t kOk = static_cast<std::uint32_t>(Code::ok);
inline constexpr std::uint32_t kForged = static_cast<std::uint32_t>(Code::authentication);

}  // namespace dael::test
