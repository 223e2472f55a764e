// SPDX-License-Identifier: Apache-2.0
// Machines without OpenCL, or without a driver for it, made of this one by a child's environment.
#include <stdlib.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
namespace fs = std::filesystem;

class OpenClLoader : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "daelstrom_opencl.XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
    }
    void TearDown() override { fs::remove_all(folder_); }

    // What opencl_count prints where the environment has this variable, too.
    static std::string count(const std::string& variable) {
        const fs::path program = fs::read_symlink("/proc/self/exe").parent_path() / "opencl_count";
        std::FILE* const child = popen((variable + " '" + program.string() + "'").c_str(), "r");
        std::string printed;
        std::array<char, 256> part{};
        while (child && std::fgets(part.data(), part.size(), child)) printed += part.data();
        EXPECT_EQ(child ? pclose(child) : -1, 0);
        return printed;
    }

    fs::path folder_;
};

TEST_F(OpenClLoader, WithoutADriverItSaysSo) {
    if (!opencl::library_is_here()) GTEST_SKIP() << "libOpenCL.so.1 is not here";
    const std::string printed = count("OCL_ICD_VENDORS='" + folder_.string() + "'");
    EXPECT_EQ(printed.substr(0, 2), "0\n") << printed;
    EXPECT_NE(printed.find("no driver is registered"), std::string::npos) << printed;
    EXPECT_NE(printed.find("PoCL"), std::string::npos) << printed;
}

// PoCL has no device where it finds no place for its cache.
TEST_F(OpenClLoader, WithoutADeviceItSaysSo) {
    if (!opencl::library_is_here()) GTEST_SKIP() << "libOpenCL.so.1 is not here";
    const std::string printed = count("POCL_CACHE_DIR=/dev/null/none");
    if (printed.substr(0, 2) != "0\n") GTEST_SKIP() << "another driver, or another PoCL";
    EXPECT_NE(printed.find("has no device here of OpenCL 1.2 or later;"), std::string::npos)
        << printed;
    EXPECT_NE(printed.find("POCL_CACHE_DIR"), std::string::npos) << printed;
}

// A file that is no library stands before the real one on the loader's path.
TEST_F(OpenClLoader, WithoutTheLibraryItSaysSo) {
    std::ofstream(folder_ / "libOpenCL.so.1") << "";
    const std::string printed = count("LD_LIBRARY_PATH='" + folder_.string() + "'");
    EXPECT_EQ(printed.substr(0, 2), "0\n") << printed;
    EXPECT_NE(printed.find("install ocl-icd-libopencl1"), std::string::npos) << printed;
}

}  // namespace
