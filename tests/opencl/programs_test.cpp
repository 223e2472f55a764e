// SPDX-License-Identifier: Apache-2.0
// Building programs, and keeping what was built on disk.
#include "backends/opencl/programs.hpp"

#include <openssl/evp.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include "opencl/fixture.hpp"
#include "support/environment.hpp"

namespace {

using namespace dael;
using namespace dael::test;
namespace fs = std::filesystem;

constexpr const char* kSource = "__kernel void one(__global uint* x) { x[0] = DAEL_VALUE; }\n";

class OpenClPrograms : public OpenClTest {
  protected:
    void SetUp() override {
        OpenClTest::SetUp();
        if (IsSkipped()) return;
        std::string name = (fs::temp_directory_path() / "daelstrom_cache.XXXXXX").string();
        ASSERT_NE(mkdtemp(name.data()), nullptr);
        home_ = name;
        cache_.emplace("XDG_CACHE_HOME", home_.c_str());
    }
    void TearDown() override {
        cache_.reset();
        if (!home_.empty()) fs::remove_all(home_);
    }
    fs::path folder() const { return home_ / "daelstrom/opencl"; }
    std::vector<fs::path> stored() const {
        std::vector<fs::path> files;
        if (fs::exists(folder()))
            for (const auto& entry : fs::directory_iterator(folder()))
                files.push_back(entry.path());
        return files;
    }
    static Bytes content(const fs::path& path) {
        std::ifstream file(path, std::ios::binary);
        return Bytes(std::istreambuf_iterator<char>(file), {});
    }
    static void replace(const fs::path& path, const Bytes& bytes) {
        std::ofstream(path, std::ios::binary | std::ios::trunc)
            .write(reinterpret_cast<const char*>(bytes.data()),
                   static_cast<std::streamsize>(bytes.size()));
    }
    // Builds as a new process would, and runs; whether the program came from the disk.
    bool build_anew(unsigned value = 7, const std::string& source = kSource) {
        const cl::Device device(static_cast<cl_device_id>(device_->native().device), true);
        opencl::Programs programs(context(), device);
        programs.keep_on_disk(true);
        auto program = programs.build("one", source, "-DDAEL_VALUE=" + std::to_string(value));
        if (!program) {
            ADD_FAILURE() << program.error().message;
            return false;
        }
        const cl::Buffer memory = buffer(4);
        const cl::CommandQueue queue(context(), device);
        cl::Kernel kernel(*program, "one");
        unsigned got = 0;
        EXPECT_EQ(kernel.setArg(0, memory), CL_SUCCESS);
        EXPECT_EQ(queue.enqueueNDRangeKernel(kernel, cl::NullRange, {1}, {1}), CL_SUCCESS);
        EXPECT_EQ(queue.enqueueReadBuffer(memory, CL_TRUE, 0, 4, &got), CL_SUCCESS);
        EXPECT_EQ(got, value);
        return programs.from_disk() == 1;
    }

    fs::path home_;
    std::optional<Environment> cache_;
};

TEST_F(OpenClPrograms, ABrokenSourceComesBackWithTheCompilersWords) {
    const auto built = device_->programs().build(
        "broken", "__kernel void broken(__global uint* x) { x[0] = no_such_thing; }\n", "");
    ASSERT_FALSE(built);
    expect_refused(built.error(), Code::device, "'broken' does not compile");
    expect_refused(built.error(), Code::device, "no_such_thing");
    EXPECT_TRUE(stored().empty());
    EXPECT_FALSE(build_anew());  // what is right still builds
}

TEST_F(OpenClPrograms, TheSecondBuildComesFromTheDisk) {
    EXPECT_FALSE(build_anew());
    ASSERT_EQ(stored().size(), 1u);
    EXPECT_TRUE(build_anew());
    EXPECT_EQ(stored().size(), 1u);
    // Other options and another source are other programs.
    EXPECT_FALSE(build_anew(8));
    EXPECT_FALSE(build_anew(7, std::string(kSource) + "// more\n"));
    EXPECT_EQ(stored().size(), 3u);
    EXPECT_TRUE(build_anew(8));
    EXPECT_TRUE(build_anew(7));
    struct stat status {};
    ASSERT_EQ(stat(folder().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & (S_IWGRP | S_IWOTH), 0u);
}

TEST_F(OpenClPrograms, ADamagedFileIsBuiltAgain) {
    ASSERT_FALSE(build_anew());
    ASSERT_EQ(stored().size(), 1u);
    const fs::path path = stored().front();
    const Bytes whole = content(path);
    ASSERT_GT(whole.size(), 100u);
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{31}, std::size_t{32}, whole.size() / 2, whole.size() - 1}) {
        replace(path, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)));
        EXPECT_FALSE(build_anew()) << "cut to " << size;
        EXPECT_TRUE(build_anew()) << "mended after " << size;
    }
    for (const std::size_t at :
         {std::size_t{0}, std::size_t{31}, std::size_t{32}, whole.size() / 2, whole.size() - 1}) {
        Bytes altered = whole;
        altered[at] ^= 0x10;
        replace(path, altered);
        EXPECT_FALSE(build_anew()) << "altered at " << at;
        EXPECT_TRUE(build_anew()) << "mended at " << at;
    }
}

TEST_F(OpenClPrograms, AFolderThatOthersMayWriteToIsLeftAlone) {
    ASSERT_FALSE(build_anew());
    ASSERT_TRUE(build_anew());
    for (const mode_t mode : {0770, 0707, 0777}) {
        ASSERT_EQ(chmod(folder().c_str(), mode), 0);
        EXPECT_FALSE(build_anew()) << std::oct << mode;
        EXPECT_FALSE(build_anew(9)) << std::oct << mode;
        EXPECT_EQ(stored().size(), 1u);
    }
    ASSERT_EQ(chmod(folder().c_str(), 0700), 0);
    EXPECT_TRUE(build_anew());
}

// Not even where one file has come in another's place.
TEST_F(OpenClPrograms, AFileOfAnotherSourceIsNotTaken) {
    ASSERT_FALSE(build_anew(7));
    const Bytes seven = content(stored().front());
    fs::remove(stored().front());
    ASSERT_FALSE(build_anew(8));
    ASSERT_EQ(stored().size(), 1u);
    replace(stored().front(), seven);
    EXPECT_FALSE(build_anew(8));  // which also looks at what the program does
    EXPECT_TRUE(build_anew(8));
}

// OpenSSL may be set up without SHA-256 in this process; ours is in a context of its own.
TEST_F(OpenClPrograms, OpensslsConfigurationDoesNotMatter) {
    ASSERT_FALSE(build_anew(7));
    ASSERT_EQ(EVP_set_default_properties(nullptr, "provider=none"), 1);
    ASSERT_EQ(EVP_Digest("", 0, Bytes(32).data(), nullptr, EVP_sha256(), nullptr), 0);
    EXPECT_TRUE(build_anew(7));
    ASSERT_EQ(EVP_set_default_properties(nullptr, ""), 1);
}

TEST_F(OpenClPrograms, LinksAndFilesThatOthersMayWriteToAreLeftAlone) {
    ASSERT_FALSE(build_anew());
    const fs::path file = stored().front(), elsewhere = home_ / "elsewhere";
    ASSERT_EQ(chmod(file.c_str(), 0620), 0);
    EXPECT_FALSE(build_anew());
    EXPECT_TRUE(build_anew());  // another was put in its place
    fs::rename(file, elsewhere);
    fs::create_symlink(elsewhere, file);
    EXPECT_FALSE(build_anew());
    EXPECT_TRUE(build_anew());
    EXPECT_FALSE(fs::is_symlink(file));
    fs::remove(elsewhere);
    fs::rename(folder(), elsewhere);
    fs::create_directory_symlink(elsewhere, folder());
    EXPECT_FALSE(build_anew());
    EXPECT_FALSE(build_anew());
}

// The folder that it makes itself is its own, whatever the umask.
TEST_F(OpenClPrograms, AGenerousUmaskIsNoObstacle) {
    const mode_t before = umask(0002);
    EXPECT_FALSE(build_anew());
    EXPECT_TRUE(build_anew());
    umask(before);
}

TEST_F(OpenClPrograms, NoFolderIsNoObstacle) {
    {
        const Environment no_cache("XDG_CACHE_HOME", nullptr), no_home("HOME", nullptr);
        EXPECT_FALSE(build_anew());
        EXPECT_FALSE(build_anew());
    }
    replace(home_ / "file", {1});
    const Environment is_file("XDG_CACHE_HOME", (home_ / "file").c_str());
    EXPECT_FALSE(build_anew());
    EXPECT_FALSE(build_anew());
    EXPECT_TRUE(stored().empty());
}

// Whole kernels from the disk do what they did.
TEST_F(OpenClPrograms, ADeviceWorksWithStoredPrograms) {
    const Bytes raw = pattern(32), in = pattern(100'000);
    const Key key = *Key::import(raw);
    for (const int expected : {0, 1}) {
        device_ = open();
        device_->programs().keep_on_disk(true);
        auto* data = put(in);
        const auto ran = run({Mode::ctr}, key, message(data, data, in.size(), random_block(1)));
        ASSERT_TRUE(ran) << ran.error().message;
        EXPECT_EQ(device_->programs().from_disk(), expected);
        EXPECT_EQ(difference(oracle(raw, {Mode::ctr, Direction::encrypt, random_block(1), 0}, in),
                             get(data, in.size())),
                  "");
    }
}

}  // namespace
