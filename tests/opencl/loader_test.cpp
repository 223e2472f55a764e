// SPDX-License-Identifier: Apache-2.0
// Drivers: which are registered, and which are loaded for whom. Machines without OpenCL, or with
// other drivers for it, are made of this one by a child's environment.
#include <stdlib.h>
#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <optional>

#include "opencl/fixture.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using opencl::DriverKind;
namespace fs = std::filesystem;

class OpenClLoader : public ::testing::Test {
  protected:
    void SetUp() override {
        std::string name = (fs::temp_directory_path() / "daelstrom_opencl.XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        folder_ = name;
        for (Variable& variable : variables_)
            if (const char* set = std::getenv(variable.name)) variable.before = set;
        // Which names more drivers, and is set where a container has no registrations.
        unsetenv("OCL_ICD_FILENAMES");
    }
    void TearDown() override {
        fs::remove_all(folder_);
        for (const Variable& variable : variables_)
            if (variable.before)
                setenv(variable.name, variable.before->c_str(), 1);
            else
                unsetenv(variable.name);
    }

    static fs::path beside_us(const char* name) {
        return fs::read_symlink("/proc/self/exe").parent_path() / name;
    }
    // A driver's registration.
    void write(const char* file, const std::string& content) const {
        std::ofstream(folder_ / file) << content;
    }
    // What opencl_count prints where the environment has this variable, too.
    static std::string count(const std::string& variable, const char* argument = "") {
        const std::string program = beside_us("opencl_count").string();
        std::FILE* const child = popen((variable + " '" + program + "' " + argument).c_str(), "r");
        std::string printed;
        std::array<char, 256> part{};
        while (child && std::fgets(part.data(), part.size(), child)) printed += part.data();
        EXPECT_EQ(child ? pclose(child) : -1, 0);
        return printed;
    }
    std::string vendors() const { return "OCL_ICD_VENDORS='" + folder_.string() + "'"; }

    struct Variable {
        const char* name;
        std::optional<std::string> before;
    };
    fs::path folder_;
    std::array<Variable, 2> variables_{{{"OCL_ICD_VENDORS", {}}, {"OCL_ICD_FILENAMES", {}}}};
};

TEST_F(OpenClLoader, WithoutADriverItSaysSo) {
    const std::string printed = count(vendors());
    EXPECT_EQ(printed.substr(0, 2), "0\n") << printed;
    EXPECT_NE(printed.find("no driver for OpenCL is registered"), std::string::npos) << printed;
    EXPECT_NE(printed.find("PoCL"), std::string::npos) << printed;
}

// PoCL has no device where it finds no place for its cache.
TEST_F(OpenClLoader, WithoutADeviceItSaysSo) {
    const std::string printed = count("POCL_CACHE_DIR=/dev/null/none");
    if (printed.find("has no device") == std::string::npos)
        GTEST_SKIP() << "another driver, or another PoCL, or none: " << printed;
    EXPECT_NE(printed.find("has no device here of OpenCL 1.2 or later;"), std::string::npos)
        << printed;
    EXPECT_NE(printed.find("POCL_CACHE_DIR"), std::string::npos) << printed;
}

TEST_F(OpenClLoader, WhatIsNoDriverIsLeftOut) {
    write("missing.icd", "libdaelstrom-has-no-such-driver.so\n");
    write("empty.icd", "");
    write("no_library.icd", (folder_ / "empty.icd").string() + "\n");
    write("notes.txt", beside_us("libopencl_fake_driver.so").string());
    const std::string printed = count(vendors());
    EXPECT_EQ(printed.substr(0, 2), "0\n") << printed;
    EXPECT_NE(printed.find("'libdaelstrom-has-no-such-driver.so', cannot be loaded"),
              std::string::npos)
        << printed;
}

// PoCL brings a compiler into the process, and may end it as soon as its device is opened; nobody
// pays for that who has not asked for OpenCL.
TEST_F(OpenClLoader, ADriverForCpusIsLoadedForThoseWhoAskForOpenCl) {
    const std::string fake = beside_us("libopencl_fake_driver.so").string();
    write("pocl.icd", fake);
    EXPECT_EQ(count(vendors(), "offered"), "0\n");
    EXPECT_EQ(count(vendors()).substr(0, 9), "loaded\n0\n");
    write("another.icd", fake);
    EXPECT_EQ(count(vendors(), "offered"), "loaded\n0\n");
}

// A child that is forked while another thread loads a driver hears so, and does not wait for that
// thread, which it has not got; EGL's library, which the fake one stands in for, likewise.
TEST_F(OpenClLoader, AChildForkedAmidLoadingDoesNotWait) {
    const fs::path fake = beside_us("libopencl_fake_driver.so");
    write("pocl.icd", fake.string());
    const std::string forked = count(vendors(), "forked opencl");
    EXPECT_EQ(forked.substr(0, 9), "loaded\n0\n") << forked;
    EXPECT_NE(forked.find("before fork()"), std::string::npos) << forked;
    EXPECT_NE(forked.find("child 0\n"), std::string::npos) << forked;

    fs::create_symlink(fake, folder_ / "libEGL.so.1");
    const std::string drawn = count("LD_LIBRARY_PATH='" + folder_.string() + "'", "forked opengl");
    if (drawn.find("loaded") == std::string::npos) return;  // a build without OpenGL
    EXPECT_EQ(drawn.substr(0, 9), "loaded\n0\n") << drawn;
    EXPECT_NE(drawn.find("when this process was forked"), std::string::npos) << drawn;
    EXPECT_NE(drawn.find("child 0\n"), std::string::npos) << drawn;
    EXPECT_NE(drawn.find("has no egl"), std::string::npos) << drawn;
}

// Nor for one that has not come to a driver yet: here it is amid the first registration, which is
// a pipe.
TEST_F(OpenClLoader, AChildForkedAmidLookingDoesNotWait) {
    const std::string pipe = (folder_ / "a.icd").string();
    ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
    const std::string forked = count(vendors(), ("looking '" + pipe + "'").c_str());
    EXPECT_EQ(forked.substr(0, 2), "0\n") << forked;
    EXPECT_NE(forked.find("before fork()"), std::string::npos) << forked;
    EXPECT_NE(forked.find("child 0\n"), std::string::npos) << forked;
    // Whoever looked goes on.
    EXPECT_NE(forked.find("no driver for OpenCL is registered"), std::string::npos) << forked;
}

TEST_F(OpenClLoader, DriversStandInTheOrderOfTheirFiles) {
    write("b.icd", "  libb.so \r\n");
    write("c.icd", "/opt/intel/lib/libintelocl.so\n");
    write("a.icd", "libpocl.so.2.10.0");
    const auto libraries = [] {
        std::vector<std::string> names;
        for (const auto& driver : opencl::registered_drivers()) names.push_back(driver.library);
        return names;
    };
    setenv("OCL_ICD_VENDORS", folder_.c_str(), 1);
    using Names = std::vector<std::string>;
    EXPECT_EQ(libraries(),
              (Names{"libpocl.so.2.10.0", "libb.so", "/opt/intel/lib/libintelocl.so"}));
    setenv("OCL_ICD_VENDORS", (folder_ / "b.icd").c_str(), 1);
    EXPECT_EQ(libraries(), Names{"libb.so"});
    setenv("OCL_ICD_VENDORS", "libnvidia-opencl.so.1", 1);
    EXPECT_EQ(libraries(), Names{"libnvidia-opencl.so.1"});
    setenv("OCL_ICD_VENDORS", (folder_ / "none").c_str(), 1);
    setenv("OCL_ICD_FILENAMES", "libd.so::libe.so", 1);
    EXPECT_EQ(libraries(), (Names{"libd.so", "libe.so"}));
}

TEST_F(OpenClLoader, DriversForCpusAreKnownByName) {
    for (const char* name : {"libpocl.so.2", "/usr/lib/libintelocl.so", "liboclgrind-rt-icd.so"})
        EXPECT_EQ(opencl::kind_of(name, "a.icd"), DriverKind::cpu) << name;
    for (const char* name : {"libnvidia-opencl.so.1", "libamdocl64.so", "libMesaOpenCL.so.1",
                             "/usr/lib/intel-opencl/libigdrcl.so", "/home/pocl/libx.so"})
        EXPECT_EQ(opencl::kind_of(name, "a.icd"), DriverKind::gpu) << name;
    EXPECT_EQ(opencl::kind_of("libx.so", "pocl.icd"), DriverKind::cpu);
}

}  // namespace
