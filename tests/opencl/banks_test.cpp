// SPDX-License-Identifier: Apache-2.0
// No lookup leaves its lane's own banks of local memory. The kernels are compiled so that all
// others read as zeros: what comes out is right only if there was no such lookup, and where the
// check is told of the wrong bank, only if there was no lookup at all.
#include <daelstrom/gcm.hpp>

#include "modes/ghash.hpp"
#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;

class OpenClBanks : public OpenClShapeTest {
  protected:
    // Whether a kernel's output is right.
    bool one(Mode mode, Direction direction, std::size_t size) {
        const Bytes raw = random_bytes(32, 1), in = random_bytes(size, 2);
        const Key key = *Key::import(raw);
        const Block iv = random_block(3);
        auto* from = put(in);
        auto* to = allocate(size);
        const Message what = message(from, to, size, iv);
        if (parallel_within_message(mode, direction)) {
            EXPECT_TRUE(run({mode, direction}, key, what));
        } else {
            const auto batch = prepare({mode, direction}, key, what);
            EXPECT_TRUE(batch && device_->run(**batch, {}));
            EXPECT_TRUE(device_->order().wait(Stream{}));
        }
        return difference(oracle(raw, {mode, direction, iv, 0}, in), get(to, size)).empty();
    }
    bool xts(Direction direction) {
        const Bytes raw = random_bytes(64, 4), in = random_bytes(50'000, 5);
        const Key key = *Key::import_xts(raw);
        const xts::Sectors sectors{9, 512, 0};
        auto* memory = put(in);
        EXPECT_TRUE(run({Mode::xts, direction}, key,
                        message(memory, memory, in.size(), xts::start(sectors))));
        return difference(oracle_xts(raw, direction, sectors, in), get(memory, in.size())).empty();
    }
    struct Right {
        bool ciphertext, tag;
    };
    // Long enough for GHASH by tables.
    Right gcm() {
        const Bytes raw = random_bytes(16, 6), nonce = random_bytes(gcm::kNonceSize, 7);
        const Bytes in = random_bytes(200'000, 8), aad = random_bytes(33, 9);
        const Key key = *Key::import(raw);
        auto *memory = put(in), *tag = allocate(gcm::kTagSize);
        Message what = message(memory, memory, in.size());
        what.aad = put(aad);
        what.aad_size = aad.size();
        gcm::set_start(what, nonce.data());
        what.tag = tag;
        const auto batch = prepare(gcm::sealing(), key, what);
        EXPECT_TRUE(batch && device_->run(**batch, {}));
        const Sealed expected = gcm_oracle(raw, nonce, aad, in);
        return {difference(expected.ciphertext, get(memory, in.size())).empty(),
                difference(expected.tag, get(tag, gcm::kTagSize)).empty()};
    }
    // Of a mode whose messages one kernel takes from nonce to tag.
    bool aead(Mode mode) {
        const Bytes raw = random_bytes(16, 14), in = random_bytes(700, 15),
                    aad = random_bytes(33, 16);
        const Key key = *Key::import(raw);
        auto *memory = put(in), *tag = allocate(16);
        Message what = message(memory, memory, in.size());
        std::ranges::copy(random_bytes(12, 17), what.start.begin());
        what.aad = put(aad);
        what.aad_size = aad.size();
        what.tag = tag;
        const auto batch = prepare({mode, Direction::encrypt}, key, what);
        EXPECT_TRUE(batch && device_->run(**batch, {}));
        what.in = in.data();
        what.aad = aad.data();
        const Answer expected = oracle(raw, {mode, Direction::encrypt}, what);
        return difference(expected.out, get(memory, in.size())).empty() &&
               difference(expected.tag, get(tag, 16)).empty();
    }
    bool keyed() {
        const Bytes raw = random_bytes(24, 10), in = random_bytes(1600, 11);
        const Block iv = random_block(12);
        // Under two keys, each of which has a message.
        const Bytes other = random_bytes(24, 13);
        const Key keys[] = {*Key::import(raw), *Key::import(other)};
        auto *memory = put(in), *more = put(in);
        Message list[] = {message(memory, memory, in.size(), iv),
                          message(more, more, in.size(), iv)};
        list[1].key = 1;
        const auto batch = prepare({Mode::cbc, Direction::encrypt}, keys, list);
        EXPECT_TRUE(batch && device_->run(**batch, {}));
        const Use use{Mode::cbc, Direction::encrypt, iv};
        return difference(oracle(raw, use, in), get(memory, in.size())).empty() &&
               difference(oracle(other, use, in), get(more, in.size())).empty();
    }

    // Every kernel that looks up, once.
    void expect_all(bool right) {
        constexpr auto encrypt = Direction::encrypt, decrypt = Direction::decrypt;
        EXPECT_EQ(one(Mode::ecb, encrypt, 16 * 200), right);
        EXPECT_EQ(one(Mode::cbc, decrypt, 16 * 200), right);
        EXPECT_EQ(one(Mode::ctr, encrypt, 16 * 200), right);
        EXPECT_EQ(one(Mode::cfb, encrypt, 16 * 20), right);
        if (!computed()) {
            EXPECT_EQ(one(Mode::ctr, encrypt, std::size_t{4} << 20), right);
        }
        EXPECT_EQ(xts(encrypt), right);
        EXPECT_EQ(xts(decrypt), right);
        EXPECT_EQ(keyed(), right);
        EXPECT_EQ(aead(Mode::aegis128x2), right);
        EXPECT_EQ(aead(Mode::gcm_siv), right);
        const Right sealed = gcm();
        EXPECT_EQ(sealed.ciphertext, right);
        EXPECT_EQ(sealed.tag, right);
    }
};

TEST_P(OpenClBanks, EveryLookupIsInItsLanesOwn) {
    device_->programs().define("-DDAEL_BANK=0 -DDAEL_GHASH_BANK=0");
    expect_all(true);
}

using OpenClBanksChecked = OpenClBanks;

TEST_P(OpenClBanksChecked, SeesLookups) {
    device_->programs().define("-DDAEL_BANK=1 -DDAEL_GHASH_BANK=0");
    expect_all(computed());  // which looks nothing up
}

TEST_P(OpenClBanksChecked, SeesThoseOfGhash) {
    const cl::Device device(static_cast<cl_device_id>(device_->native().device), true);
    if (device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>() < 40 * 1024)
        GTEST_SKIP() << "GHASH's table and what goes with it find no room here";
    device_->programs().define("-DDAEL_BANK=0 -DDAEL_GHASH_BANK=1");
    const Right sealed = gcm();
    EXPECT_TRUE(sealed.ciphertext);
    EXPECT_EQ(sealed.tag, computed());
}

// Reads what the kernels before it left in local memory.
constexpr const char* kLeft = R"(
__kernel __attribute__((reqd_work_group_size(32, 1, 1))) void left(__global uint* out) {
    __local uint words[10240];
    const volatile __local uint* const kept = words;
    for (uint i = get_local_id(0); i < 10240; i += 32) out[get_group_id(0) * 10240 + i] = kept[i];
})";

// H and H^32, of which local memory has the multiples: whoever knows one forges tags.
TEST_P(OpenClBanksChecked, NothingOfAKeyIsLeft) {
    constexpr std::size_t kGroups = 64, kWords = 10240;
    const cl::Device device(static_cast<cl_device_id>(device_->native().device), true);
    if (device.getInfo<CL_DEVICE_LOCAL_MEM_SIZE>() < 4 * kWords) GTEST_SKIP() << "no room";
    const auto program = device_->programs().build("left", kLeft, "");
    ASSERT_TRUE(program) << program.error().message;
    cl::Kernel kernel(*program, "left");
    const cl::Buffer out = buffer(4 * kWords * kGroups);
    const cl::CommandQueue queue(context(), device);
    ASSERT_EQ(kernel.setArg(0, out), CL_SUCCESS);

    const Right sealed = gcm();
    ASSERT_TRUE(sealed.ciphertext && sealed.tag);
    ASSERT_EQ(queue.enqueueNDRangeKernel(kernel, cl::NullRange, {32 * kGroups}, {32}), CL_SUCCESS);
    std::vector<std::uint32_t> left(kWords * kGroups);
    ASSERT_EQ(queue.enqueueReadBuffer(out, CL_TRUE, 0, 4 * left.size(), left.data()), CL_SUCCESS);

    const Bytes zero(16), raw = random_bytes(16, 6);  // gcm()'s key
    const auto h = modes::load_element(oracle(raw, {Mode::ecb, Direction::encrypt}, zero).data());
    auto power = h;
    for (int n = 1; n < 32; ++n) power = modes::multiply(power, h);
    for (const auto& element : {h, power}) {
        Bytes bytes(16);
        modes::store_element(bytes.data(), element);
        std::vector<std::uint32_t> words;
        for (std::size_t i = 0; i < 16; i += 4)
            words.push_back(std::uint32_t{bytes[i]} << 24 | std::uint32_t{bytes[i + 1]} << 16 |
                            std::uint32_t{bytes[i + 2]} << 8 | bytes[i + 3]);
        EXPECT_EQ(std::search(left.begin(), left.end(), words.begin(), words.end()), left.end());
    }
}

// Drivers for CPUs have no local memory of their own, and look nothing up unless they are told to.
TEST_F(OpenClTest, CpusComputeByDefault) {
    const cl::Device device(static_cast<cl_device_id>(device_->native().device), true);
    if (device.getInfo<CL_DEVICE_LOCAL_MEM_TYPE>() == CL_LOCAL) GTEST_SKIP() << "it has its own";
    EXPECT_EQ(device_->in_use().substr(0, 9), "tables=-1");
}

std::string tables_of(const ::testing::TestParamInfo<const char*>& instance) {
    const std::string shape = instance.param;
    const std::string tables = shape.substr(7, shape.find(',') - 7);
    return tables == "-1" ? "computed" : "tables" + tables;
}

INSTANTIATE_TEST_SUITE_P(Shapes, OpenClBanks,
                         ::testing::Values("tables=4,teams=1,groups=1", "tables=2,teams=1,groups=1",
                                           "tables=1,teams=2,groups=2",
                                           "tables=0,teams=2,groups=2"),
                         tables_of);
// Compiling takes long: one shape that looks up, and the one that does not.
INSTANTIATE_TEST_SUITE_P(Shapes, OpenClBanksChecked,
                         ::testing::Values("tables=1,teams=2,groups=2",
                                           "tables=-1,teams=2,groups=2"),
                         tables_of);

}  // namespace
