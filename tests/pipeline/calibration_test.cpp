// SPDX-License-Identifier: Apache-2.0
// The calibration's file: stored and read back; ignored when it is damaged, old, or another
// machine's.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <daelstrom/device.hpp>
#include <daelstrom/engine.hpp>
#include <daelstrom/plan.hpp>

#include "core/registry.hpp"
#include "pipeline/calibrate.hpp"
#include "support/host_device.hpp"
#include "support/thorough.hpp"

namespace {

using namespace dael;

class CalibrationFile : public testing::Test {
  protected:
    void SetUp() override {
        char folder[] = "/tmp/daelstrom-test-XXXXXX";
        ASSERT_NE(mkdtemp(folder), nullptr);
        folder_ = folder;
        setenv("XDG_CACHE_HOME", folder, 1);
    }
    void TearDown() override {
        unsetenv("XDG_CACHE_HOME");
        std::filesystem::remove_all(folder_);
    }
    static Calibration sample() {
        Calibration calibration{describe_machine(), "2025-01-31T12:00:00Z", {}, {}};
        calibration.hosts.push_back(
            {"openssl", Mode::ctr, Direction::encrypt, 128, 3.5, 7.25, 3.5, 7.25});
        calibration.devices.push_back({"cuda:0",
                                       "NVIDIA H200, 580.82",
                                       0.3,
                                       4e-5,
                                       55,
                                       54,
                                       49,
                                       20,
                                       1 << 23,
                                       {{Mode::cbc, Direction::decrypt, 256, 500}},
                                       "tables=1"});
        calibration.memory_core = 11.5;
        calibration.memory_all = 21.25;
        return calibration;
    }
    std::string read() const {
        std::ifstream file(calibration_path());
        return (std::stringstream() << file.rdbuf()).str();
    }
    void write(const std::string& text) const { std::ofstream(calibration_path()) << text; }

    std::string folder_;
};

TEST_F(CalibrationFile, ComesBackAsItWasStored) {
    EXPECT_FALSE(load_calibration());
    const auto path = store(sample());
    ASSERT_TRUE(path) << path.error().message;
    EXPECT_EQ(*path, folder_ + "/daelstrom/calibration.json");
    const auto loaded = load_calibration();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->machine, describe_machine());
    EXPECT_EQ(loaded->made, "2025-01-31T12:00:00Z");
    ASSERT_EQ(loaded->hosts.size(), 1u);
    EXPECT_EQ(loaded->hosts[0].all_cores, 7.25);
    EXPECT_EQ(loaded->memory_core, 11.5);
    EXPECT_EQ(loaded->memory_all, 21.25);
    ASSERT_EQ(loaded->devices.size(), 1u);
    EXPECT_EQ(loaded->devices[0].chunk, std::size_t{1} << 23);
    EXPECT_EQ(loaded->devices[0].form, "tables=1");
    EXPECT_EQ(loaded->devices[0].kernels.at(0).mode, Mode::cbc);
    EXPECT_EQ(loaded->devices[0].kernels.at(0).rate, 500);
    // Nothing but the file itself is left in the folder.
    EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_ + "/daelstrom"), {}), 1);
}

TEST_F(CalibrationFile, EveryTruncationCountsAsNone) {
    ASSERT_TRUE(store(sample()));
    const std::string whole = read();
    for (std::size_t size = 0; size + 2 < whole.size(); ++size) {
        write(whole.substr(0, size));
        EXPECT_FALSE(load_calibration()) << size;
    }
    write(whole);
    EXPECT_TRUE(load_calibration());
}

TEST_F(CalibrationFile, NonsenseOtherVersionsAndOtherMachinesCountAsNone) {
    ASSERT_TRUE(store(sample()));
    const std::string whole = read();
    const std::pair<const char*, const char*> changes[] = {
        {"\"version\": 4", "\"version\": 3"},
        {"7.25", "-7.25"},
        {"7.25", "\"fast\""},
        {"\"ctr\"", "\"xyz\""},
        {"\"encrypt\"", "\"up\""},
        {"8388608", "8388609"},
        {"8388608", "134217728"},  // a chunk that would take all memory
        {" cores", " hearts"},
        {"7.25", "1e300"},
        {"21.25", "-1"},
        {"11.5", "null"},
    };
    for (const auto& [from, to] : changes) {
        std::string changed = whole;
        const auto at = changed.find(from);
        ASSERT_NE(at, std::string::npos) << from;
        write(changed.replace(at, std::string(from).size(), to));
        EXPECT_FALSE(load_calibration()) << to;
        EXPECT_TRUE(Engine::open());  // with the built-in figures
    }
}

// What anybody else may have written, or is no file, counts as none, and holds nobody up.
TEST_F(CalibrationFile, OnlyAPlainFileOfTheUsersOwnCounts) {
    ASSERT_TRUE(store(sample()));
    const std::string path = calibration_path(), whole = read();
    ASSERT_TRUE(load_calibration());
    for (const mode_t mode : {0620, 0602, 0666}) {
        ASSERT_EQ(chmod(path.c_str(), mode), 0);
        EXPECT_FALSE(load_calibration()) << mode;
    }
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    ASSERT_TRUE(load_calibration());
    std::filesystem::rename(path, path + ".there");
    std::filesystem::create_symlink(path + ".there", path);
    EXPECT_FALSE(load_calibration());
    std::filesystem::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    EXPECT_FALSE(load_calibration());
    EXPECT_TRUE(Engine::open());
    std::filesystem::remove(path);
    std::filesystem::create_directory(path);
    EXPECT_FALSE(load_calibration());
    std::filesystem::remove(path);
    write(whole + std::string(5 << 20, ' '));
    ASSERT_EQ(chmod(path.c_str(), 0600), 0);
    EXPECT_FALSE(load_calibration()) << "5 MiB";
}

// A form comes from a file, so that only those count which the device offers by itself.
TEST_F(CalibrationFile, AFormThatTheDeviceDoesNotOfferIsNotTaken) {
    for (const bool offered : {true, false}) {
        test::HostDevice device({.forms = {"usual", "good"}});
        {
            Calibration calibration = sample();
            calibration.devices[0].backend = "threads:0";
            calibration.devices[0].device = "threads, ";
            calibration.devices[0].form = offered ? "good" : "unsafe";
            pipeline::Backends hosts;
            hosts.push_back(*core::open_backend("openssl"));
            Engine engine = pipeline::make_auto_engine(
                std::move(hosts),
                [&] {
                    pipeline::Backends backends;
                    backends.push_back(std::make_unique<test::HostDeviceBackend>(device));
                    return backends;
                },
                {.backend = "auto"}, calibration);
            ASSERT_TRUE(dael::device(engine));
            EXPECT_EQ(device.forms()->in_use(), offered ? "good" : "usual");
        }
        test::expect_clean(device);
    }
}

TEST_F(CalibrationFile, AFolderThatCannotBeMadeIsAnError) {
    std::ofstream(folder_ + "/file") << "not a folder";
    setenv("XDG_CACHE_HOME", (folder_ + "/file").c_str(), 1);
    const auto path = store(sample());
    EXPECT_EQ(path.code(), Code::io);
    EXPECT_FALSE(load_calibration());
}

TEST_F(CalibrationFile, WhatJsonCannotHoldIsAnErrorAndNoException) {
    Calibration calibration = sample();
    calibration.machine = "\xff";  // no UTF-8
    EXPECT_EQ(store(calibration).code(), Code::internal);
    EXPECT_FALSE(std::filesystem::exists(folder_ + "/daelstrom"));
}

TEST_F(CalibrationFile, TheEngineGoesByIt) {
    Calibration calibration = sample();
    calibration.hosts.clear();
    for (const char* backend : {"cpu", "openssl"})
        calibration.hosts.push_back(
            {backend, Mode::ctr, Direction::encrypt, 128, 123, 123, 123, 123});
    ASSERT_TRUE(store(calibration));
    const Job job{.cipher = {Mode::ctr}, .size = 1 << 20};
    const Plan measured = Engine::open({.backend = "openssl"})->explain(job);
    EXPECT_EQ(measured.options.at(0).gigabytes_per_second, 123);
    EXPECT_TRUE(measured.options.at(0).measured);
    const Plan built_in = Engine::open({.backend = "openssl", .calibrated = false})->explain(job);
    EXPECT_NE(built_in.options.at(0).gigabytes_per_second, 123);
    EXPECT_FALSE(built_in.options.at(0).measured);
    EXPECT_NE(built_in.summary.find("calibrate"), std::string::npos);
}

// What caches hold is as fast as the cipher; what they do not, no faster than memory.
TEST_F(CalibrationFile, LargeJobsAreAsFastAsMemoryIs) {
    Calibration calibration = sample();
    calibration.devices.clear();
    calibration.hosts = {{"openssl", Mode::ctr, Direction::encrypt, 128, 30, 55, 30, 55},
                         {"openssl", Mode::cbc, Direction::encrypt, 128, 1, 1, 1, 2}};
    const auto planned = [&](int threads, Mode mode, std::uint64_t size) {
        pipeline::Backends hosts;
        hosts.push_back(*core::open_backend("openssl"));
        Engine engine = pipeline::make_auto_engine(
            std::move(hosts), nullptr, {.backend = "auto", .threads = threads}, calibration);
        return engine.explain({.cipher = {mode}, .size = size}).options.at(0);
    };
    EXPECT_EQ(planned(2, Mode::ctr, 4 << 20).gigabytes_per_second, 55);
    const Option large = planned(2, Mode::ctr, 64 << 20);
    EXPECT_EQ(large.gigabytes_per_second, 21.25);
    EXPECT_NE(large.why.find("limited by memory"), std::string::npos) << large.why;
    EXPECT_EQ(planned(1, Mode::ctr, 2 << 20).gigabytes_per_second, 30);
    EXPECT_EQ(planned(1, Mode::ctr, 64 << 20).gigabytes_per_second, 11.5);
    EXPECT_EQ(planned(2, Mode::cbc, 64 << 20).gigabytes_per_second, 1);
    calibration.memory_core = calibration.memory_all = 0;  // not measured
    EXPECT_EQ(planned(2, Mode::ctr, 64 << 20).gigabytes_per_second, 55);
}

TEST_F(CalibrationFile, CalibratingMeasuresEveryHostBackend) {
    double last = -1;
    const auto calibration = calibrate([&](std::string_view what, double done) {
        EXPECT_FALSE(what.empty());
        EXPECT_GE(done, last);
        EXPECT_LE(done, 1.0);
        last = done;
    });
    ASSERT_TRUE(calibration) << calibration.error().message;
    EXPECT_EQ(last, 1);
    EXPECT_GE(calibration->hosts.size(), 24u);
    EXPECT_GT(calibration->memory_core, 0);
    EXPECT_GE(calibration->memory_all, calibration->memory_core);
    for (const auto& rate : calibration->hosts) EXPECT_GT(rate.one_core, 0) << rate.backend;
    for (const Mode mode : {Mode::ctr, Mode::gcm, Mode::xts})
        EXPECT_TRUE(std::ranges::any_of(calibration->hosts, [&](const HostRate& rate) {
            return rate.backend == "openssl" && rate.mode == mode;
        })) << name(mode);
    ASSERT_TRUE(store(*calibration));
    EXPECT_TRUE(load_calibration());
}

// So much that there are figures for every chunk; and as little as will do where they do not
// matter.
constexpr pipeline::Effort kSome{.figure = std::chrono::milliseconds(1),
                                 .memory = 1 << 20,
                                 .bus = std::size_t{test::thorough(64, 4)} << 20,
                                 .kernel = 1 << 20,
                                 .sequential = 1 << 20};
constexpr pipeline::Effort kLittle{.figure = std::chrono::milliseconds(1),
                                   .memory = 1 << 20,
                                   .bus = std::size_t{4} << 20,
                                   .kernel = 1 << 16,
                                   .sequential = 1 << 16};

// A calibration of devices alone.
Result<Calibration> calibrate_devices(std::initializer_list<test::HostDevice*> devices,
                                      const pipeline::Effort& effort) {
    return pipeline::calibrate_backends(
        {},
        [&] {
            pipeline::Backends backends;
            for (test::HostDevice* device : devices)
                backends.push_back(std::make_unique<test::HostDeviceBackend>(*device));
            return backends;
        },
        {}, effort);
}

// A device that takes a tenth of a millisecond or more for whatever it does: the figures must say
// so.
TEST_F(CalibrationFile, CalibratingMeasuresDevices) {
    test::HostDevice device({.delay = std::chrono::microseconds(100)});
    const auto calibration = calibrate_devices({&device}, kSome);
    ASSERT_TRUE(calibration) << calibration.error().message;
    ASSERT_EQ(calibration->devices.size(), 1u);
    const DeviceRates& rates = calibration->devices[0];
    EXPECT_EQ(rates.backend, "threads:0");
    // ECB, CBC, CFB both ways, OFB, CTR and GCM one, of three key sizes; XTS both, of two.
    // AEGIS and XAES-256-GCM have one size of keys, GCM-SIV two.
    EXPECT_EQ(rates.kernels.size(), 9u * 3 + 2 * 2 + 5 + 2);
    for (const KernelRate& kernel : rates.kernels)
        EXPECT_LE(kernel.rate, (1 << 20) / 100e-6 * 1e-9) << name(kernel.mode);
    EXPECT_GE(rates.start_seconds, 1e-3);
    EXPECT_GE(rates.setup_seconds, 300e-6);  // in, kernel, out
    EXPECT_GT(rates.duplex, 0);
    EXPECT_GT(rates.pageable, 0);
    test::expect_clean(device);
    ASSERT_TRUE(store(*calibration));
    EXPECT_TRUE(load_calibration());  // every figure is one that a file may hold
    EXPECT_TRUE(calibration->left_out.empty());
}

TEST_F(CalibrationFile, FormsThatADeviceRefusesArePassedOver) {
    test::HostDevice device({.forms = {"wide", "good", "high"}, .refused = {"wide", "high"}});
    const auto calibration = calibrate_devices({&device}, kLittle);
    ASSERT_TRUE(calibration) << calibration.error().message;
    ASSERT_EQ(calibration->devices.size(), 1u);
    EXPECT_EQ(calibration->devices[0].form, "good");
}

TEST_F(CalibrationFile, ADeviceThatFailsIsLeftOutAndTheRestIsKept) {
    test::HostDevice stubborn({.forms = {"wide", "high"}, .refused = {"wide", "high"}});
    test::HostDevice broken({.fail_at = 5}), good;
    const auto calibration = calibrate_devices({&stubborn, &broken, &good}, kLittle);
    ASSERT_TRUE(calibration) << calibration.error().message;
    EXPECT_EQ(calibration->devices.size(), 1u);
    ASSERT_EQ(calibration->left_out.size(), 2u);
    EXPECT_EQ(calibration->left_out[0], "threads:0: no kernels in form high");
    EXPECT_NE(calibration->left_out[1].find(broken.failed_call()), std::string::npos)
        << calibration->left_out[1];
}

}  // namespace
