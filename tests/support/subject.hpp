// SPDX-License-Identifier: Apache-2.0
// What a cross-backend test examines: a backend in one of its forms, below or above the engine,
// reached through one call that takes messages of any mode in host memory.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>

#include "core/backend.hpp"
#include "support/bytes.hpp"
#include "support/thorough.hpp"

namespace dael::test {

// Of keys that the mode takes, where their size makes no difference.
constexpr int usual_bits(Mode mode) noexcept {
    return mode == Mode::aegis256 || mode == Mode::xaes256gcm ? 256 : 128;
}

// Every subject that could be there: of each backend in the list, each of its forms, and engines on
// it. What a machine lacks is skipped when the test runs, with the reason.
struct Target {
    std::string name;     // "cpu_avx512": part of the test's name
    std::string backend;  // "cpu"
    std::string form = {};
    enum class Level {
        backend,
        engine,  // from host memory
        memory,  // an engine on a device, whose memory holds the messages
    } level = Level::backend;
    int threads = 0;         // engine: host threads, 0 for all
    std::size_t chunk = 0;   // engine: bytes of a chunk to a device and back, 0 for the usual
    bool slow = false;       // gets smaller sizes: the constant-time reference
    bool on_device = false;  // the test itself puts the messages into device memory

    // What they need, which is also the prefix of their tests' names and, in lower case, their
    // label in CTest: nothing, an NVIDIA GPU, a driver for OpenCL, one for OpenGL.
    enum class Family { Host, Gpu, OpenCl, OpenGl } family = Family::Host;
    // Each call costs a trip to another processor: what goes one by one gets fewer.
    bool far() const { return family != Family::Host; }
    // Sweeps over lengths, alignments and the like take samples: of what is slow; of OpenCL, whose
    // driver may be a CPU's with half a millisecond for a call; of an engine on a device whose
    // kernels are swept below the engine; and under sanitizers.
    bool sampled() const {
        return kSanitized || slow || family == Family::OpenCl || (far() && level != Level::backend);
    }
    // Sweeps over short lengths and alignments take samples of engines, too, whose backends have
    // each of them below the engine.
    bool sparse() const { return sampled() || level != Level::backend; }
    // Each call takes a driver's time, and there is a form of the same backend with larger samples.
    bool rare() const { return far() && slow; }
    // Many MiB take no time, as they do under sanitizers and where a driver may be a CPU's.
    bool quick() const {
        return !kSanitized && !slow && (family == Family::Host || family == Family::Gpu);
    }
};
std::vector<Target> targets(Target::Family family);
// Those for known answers, which are there to show that a kernel computes AES: where OpenCL's
// driver is a CPU's they need no more of its forms than the one that it takes by itself and the
// quickest. The other ways to the same kernels are compared byte for byte across backends.
std::vector<Target> targets_for_known_answers(Target::Family family);
// Those that work on the messages where they are.
std::vector<Target> targets_in_host_memory(Target::Family family);
void PrintTo(const Target& target, std::ostream* stream);

class Subject {
  public:
    virtual ~Subject() = default;
    virtual core::Can can(const Cipher& cipher, int key_bits) const = 0;
    // Any number of messages under any of the keys. As Engine::run has it: an error for what is
    // wrong with the call as a whole, and a code for each message. Every way of the backend's to do
    // the same (with keys made ready and without, alone and in a batch, lists in either memory)
    // gets its share of the calls.
    virtual Result<> run(const Cipher& cipher, std::span<const Key> keys,
                         std::span<const Message> messages, std::span<Code> codes) = 0;
    // One message, whose code comes as an error.
    virtual Result<> run(const Cipher& cipher, const Key& key, const Message& message);
};

// Error backend_absent when the machine lacks it.
Result<std::unique_ptr<Subject>> open_subject(const Target& target);

// Whether DAELSTROM_TEST_REQUIRE names it (a list with spaces or commas, or "all"): what is absent
// is then a failure.
bool required(const std::string& name);

// A fixture for tests over targets. An absent target skips, loudly, unless it is required(). Those
// on devices stay open for the other tests of the suite: to start a driver and to have it compile
// its kernels takes a second.
class SubjectTest : public ::testing::TestWithParam<Target> {
  public:
    static void TearDownTestSuite();

  protected:
    void SetUp() override;
    Subject& subject() { return *subject_; }
    bool slow() const { return GetParam().slow; }
    bool sampled() const { return GetParam().sampled(); }
    bool sparse() const { return GetParam().sparse(); }
    // From a length in a sweep to the next: each one to four blocks, and from there each one or
    // samples, which come by every remainder of a block; of engines around powers of two, too. Of
    // rare() ones each to a block, and samples from there.
    std::size_t next_length(std::size_t length) const {
        if (!sparse() || length < (GetParam().rare() ? 17 : 64)) return length + 1;
        if (GetParam().rare()) return length + (length < 64 ? 7 : 157);
        std::size_t next = length + 61;
        if (!sampled())
            for (std::size_t edge = 128; edge <= length + 62; edge *= 2)
                for (const std::size_t near : {edge + 1, edge, edge - 1})
                    if (near > length && near < next) next = near;
        return next;
    }
    bool can(Mode mode, Direction direction) {
        return subject().can({mode, direction}, usual_bits(mode)).answer != core::Can::no;
    }

    // Of any target, for the time of a test or longer.
    static Result<std::shared_ptr<Subject>> subject_of(const Target& target);

    std::shared_ptr<Subject> subject_;
};

inline std::string target_name(const ::testing::TestParamInfo<Target>& info) {
    return info.param.name;
}

// Instances for CTest: Host/..., Gpu/..., OpenCl/... and OpenGl/..., labelled by
// tests/CMakeLists.txt. `list`: targets, or a function that gives some of them.
#define DAEL_FOR_FAMILY(suite, list, family)                                           \
    INSTANTIATE_TEST_SUITE_P(                                                          \
        family, suite,                                                                 \
        ::testing::ValuesIn(::dael::test::list(::dael::test::Target::Family::family)), \
        ::dael::test::target_name)
#define DAEL_FOR_FAMILIES(suite, list)                    \
    GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(suite); \
    DAEL_FOR_FAMILY(suite, list, Host);                   \
    DAEL_FOR_FAMILY(suite, list, Gpu);                    \
    DAEL_FOR_FAMILY(suite, list, OpenCl);                 \
    DAEL_FOR_FAMILY(suite, list, OpenGl)
#define DAEL_FOR_EVERY_BACKEND(suite) DAEL_FOR_FAMILIES(suite, targets)
#define DAEL_FOR_KNOWN_ANSWERS(suite) DAEL_FOR_FAMILIES(suite, targets_for_known_answers)

}  // namespace dael::test
