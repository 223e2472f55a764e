// SPDX-License-Identifier: Apache-2.0
// A device that disappears while a program encrypts: from some call on, the driver's functions fail
// as drivers' do whose device is gone. The driver is a real one for OpenCL, PoCL's; its table of
// functions, which every object of it begins with, gets others.
#include <CL/cl_icd.h>
#include <dlfcn.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

#include "evp.hpp"

namespace {

using namespace dael::test;

template <class... Arguments>
void lose(cl_int(CL_API_CALL*& function)(Arguments...)) {
    function = [](Arguments...) -> cl_int { return CL_OUT_OF_RESOURCES; };
}

// The library of the driver that the engine has loaded; "": none.
std::string loaded_driver() {
    std::string found;
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* to) {
            if (std::strstr(info->dlpi_name, "libpocl.so"))
                *static_cast<std::string*>(to) = info->dlpi_name;
            return 0;
        },
        &found);
    return found;
}

bool lose_the_device() {
    void* const library = dlopen(loaded_driver().c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (!library) return false;
    using GetPlatforms = cl_int (*)(cl_uint, cl_platform_id*, cl_uint*);
    using AddressOf = void* (*)(const char*);
    const auto address_of =
        reinterpret_cast<AddressOf>(dlsym(library, "clGetExtensionFunctionAddress"));
    if (!address_of) return false;
    const auto get = reinterpret_cast<GetPlatforms>(address_of("clIcdGetPlatformIDsKHR"));
    cl_platform_id platform = nullptr;
    if (!get || get(1, &platform, nullptr) != CL_SUCCESS) return false;
    cl_icd_dispatch* const table = *reinterpret_cast<cl_icd_dispatch**>(platform);
    const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
    const std::uintptr_t from = reinterpret_cast<std::uintptr_t>(table) / page * page;
    const std::uintptr_t to = reinterpret_cast<std::uintptr_t>(table + 1);
    if (mprotect(reinterpret_cast<void*>(from), to - from, PROT_READ | PROT_WRITE) != 0)
        return false;
    lose(table->clEnqueueNDRangeKernel);
    lose(table->clEnqueueWriteBuffer);
    lose(table->clEnqueueReadBuffer);
    lose(table->clEnqueueCopyBuffer);
    lose(table->clFinish);
    return true;
}

TEST(ALostDevice, IsSaidOnceAndDoneWithout) {
    const std::string log = testing::TempDir() + "lost_device_" + std::to_string(getpid());
    setenv("DAELSTROM_PROVIDER_BACKEND", "opencl", 1);
    setenv("DAELSTROM_PROVIDER_LOG", log.c_str(), 1);
    ASSERT_TRUE(ours().daelstrom && theirs().standard);
    Numbers numbers(1);
    const Bytes key = numbers.bytes(32), iv = numbers.bytes(16), data = numbers.bytes(300000);
    const int size = static_cast<int>(data.size());
    auto right = context(), mine = context();
    ASSERT_EQ(EVP_EncryptInit_ex2(right.get(), fetch(theirs(), "AES-256-CTR").get(), key.data(),
                                  iv.data(), nullptr),
              1);
    ASSERT_EQ(EVP_EncryptInit_ex2(mine.get(), fetch(ours(), "AES-256-CTR").get(), key.data(),
                                  iv.data(), nullptr),
              1);
    Bytes a(data.size()), b(data.size());
    int made = 0;
    const auto both_update = [&] {
        EXPECT_EQ(EVP_EncryptUpdate(right.get(), a.data(), &made, data.data(), size), 1);
        EXPECT_EQ(EVP_EncryptUpdate(mine.get(), b.data(), &made, data.data(), size), 1);
        EXPECT_EQ(made, size);
        EXPECT_TRUE(a == b);
    };
    both_update();
    if (loaded_driver().empty() || counter("daelstrom-parallel-updates") == 0)
        GTEST_SKIP() << "no PoCL, the driver for OpenCL on CPUs, is installed here";
    EXPECT_EQ(counter("daelstrom-failures"), 0u);
    ASSERT_TRUE(lose_the_device());
    // Apart from its input an update is made good, and the message goes on.
    both_update();
    EXPECT_EQ(counter("daelstrom-failures"), 1u);
    both_update();
    EXPECT_EQ(counter("daelstrom-failures"), 1u);  // nobody asks the device again
    // In place too, and in another mode.
    b = data;
    EXPECT_EQ(EVP_EncryptUpdate(right.get(), a.data(), &made, data.data(), size), 1);
    EXPECT_EQ(EVP_EncryptUpdate(mine.get(), b.data(), &made, b.data(), size), 1);
    EXPECT_TRUE(a == b);
    const Bytes big = numbers.bytes(1 << 20);
    Bytes out[2];
    for (int side = 0; side < 2; ++side) {
        auto x = context();
        out[side].resize(big.size() + 16);
        EXPECT_EQ(
            EVP_EncryptInit_ex2(x.get(), fetch(side == 0 ? theirs() : ours(), "AES-256-GCM").get(),
                                key.data(), iv.data(), nullptr),
            1);
        EXPECT_EQ(EVP_EncryptUpdate(x.get(), out[side].data(), &made, big.data(), 1 << 20), 1);
        EXPECT_EQ(EVP_EncryptFinal_ex(x.get(), out[side].data(), &made), 1);
        EVP_CIPHER_CTX_ctrl(x.get(), EVP_CTRL_AEAD_GET_TAG, 16, &out[side][1 << 20]);
    }
    EXPECT_TRUE(out[0] == out[1]);
    // And the log says so, once.
    std::ifstream file(log);
    std::stringstream text;
    text << file.rdbuf();
    const std::string said = text.str(), line = "the device failed and is left alone from now on";
    const auto at = said.find(line);
    EXPECT_NE(at, said.npos) << said;
    EXPECT_EQ(said.find(line, at + 1), said.npos) << said;
    unlink(log.c_str());
}

// What was in place when it happened cannot be made good: it fails, and so does all that would go
// on from there, until there is another IV.
TEST(ALostDevice, FailsWhatWasInPlaceUntilAnotherIv) {
    // Of a process of its own, where the device is there to the moment.
    setenv("DAELSTROM_PROVIDER_BACKEND", "opencl", 1);
    ASSERT_TRUE(ours().daelstrom && theirs().standard);
    Numbers numbers(2);
    const Bytes key = numbers.bytes(32), iv = numbers.bytes(16);
    Bytes data = numbers.bytes(300000);
    const Bytes before = data;
    const int size = static_cast<int>(data.size());
    const auto cipher = fetch(ours(), "AES-256-CTR");
    auto x = context();
    int made = 0;
    ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), cipher.get(), key.data(), iv.data(), nullptr), 1);
    ASSERT_EQ(EVP_EncryptUpdate(x.get(), data.data(), &made, data.data(), size), 1);
    if (loaded_driver().empty() || counter("daelstrom-parallel-updates") == 0)
        GTEST_SKIP() << "no PoCL, the driver for OpenCL on CPUs, is installed here";
    if (counter("daelstrom-failures") != 0)
        GTEST_SKIP() << "another case has lost the device of this process";
    ASSERT_TRUE(lose_the_device());
    EXPECT_NE(EVP_EncryptUpdate(x.get(), data.data(), &made, data.data(), size), 1);
    EXPECT_NE(ERR_get_error(), 0u);
    EXPECT_NE(EVP_EncryptUpdate(x.get(), data.data(), &made, before.data(), 16), 1);
    EXPECT_NE(EVP_EncryptUpdate(x.get(), data.data(), &made, before.data(), size), 1);
    ERR_clear_error();
    ASSERT_EQ(EVP_EncryptInit_ex2(x.get(), nullptr, nullptr, iv.data(), nullptr), 1);
    data = before;
    Bytes right(data.size());
    ASSERT_EQ(EVP_EncryptUpdate(x.get(), data.data(), &made, data.data(), size), 1);
    auto y = context();
    ASSERT_EQ(EVP_EncryptInit_ex2(y.get(), fetch(theirs(), "AES-256-CTR").get(), key.data(),
                                  iv.data(), nullptr),
              1);
    ASSERT_EQ(EVP_EncryptUpdate(y.get(), right.data(), &made, before.data(), size), 1);
    EXPECT_TRUE(data == right);
}

}  // namespace
