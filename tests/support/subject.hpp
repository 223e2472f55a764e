// SPDX-License-Identifier: Apache-2.0
// What a cross-backend test examines: a backend at one instruction-set level, below or above the
// engine, reached through one call that takes messages in host memory and checks that nothing else
// was written.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <span>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>
#include <daelstrom/error.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/modes.hpp>
#include <daelstrom/xts.hpp>

#include "core/backend.hpp"
#include "support/bytes.hpp"

namespace dael::test {

// Every subject that could be there, on any machine: what a machine lacks is skipped when the test
// runs, with the reason, so that the list of tests is the same everywhere.
struct Target {
    const char* name;      // "cpu_avx512": part of the test's name
    const char* backend;   // "cpu"
    const char* isa = "";  // for the backends cpu and opengl
    enum class Level { backend, engine } level = Level::backend;
    int threads = 0;        // engine: host threads, 0 for all
    std::size_t chunk = 0;  // engine: bytes of a chunk to a device and back, 0 for the usual
    bool slow = false;      // gets smaller sizes: the constant-time reference

    // What they need, which is also the prefix of their tests' names and, in lower case, their
    // label in CTest: nothing, an NVIDIA GPU, a driver for OpenCL, one for OpenGL.
    enum class Family { Host, Gpu, OpenCl, OpenGl } family = Family::Host;
    // Each call costs a trip to another processor: what goes one by one gets fewer.
    bool far() const { return family != Family::Host; }
};
std::vector<Target> targets(Target::Family family);
void PrintTo(const Target& target, std::ostream* stream);

class Subject {
  public:
    virtual ~Subject() = default;
    // Whether a batch of `messages` can be processed in this mode and direction.
    virtual bool supports(Mode mode, Direction direction, std::size_t messages) const = 0;
    virtual Result<> run(const Key& key, Mode mode, Direction direction,
                         std::span<const Message> messages) = 0;
    virtual bool supports_xts() const = 0;
    virtual Result<> xts(const XtsKey& key, Direction direction, const XtsSectors& sectors,
                         HostIn in, HostOut out) = 0;
    // GCM over messages in host memory: all of one tag size, with IVs of 12 bytes if there are
    // several. A result for each, as Engine::seal_batch has them.
    virtual Result<> gcm(Direction direction, std::span<const Key> keys,
                         std::span<const core::GcmSegment> messages, std::span<Code> results) = 0;
};

// Error backend_absent when the machine lacks it.
Result<std::unique_ptr<Subject>> open_subject(const Target& target);

// Whether DAELSTROM_TEST_REQUIRE names it (a list with spaces or commas, or "all"): what is absent
// is then a failure.
bool required(const std::string& name);

// A fixture for tests over targets. An absent target skips, loudly, unless it is required().
class SubjectTest : public ::testing::TestWithParam<Target> {
  protected:
    void SetUp() override;
    Subject& subject() { return *subject_; }
    bool slow() const { return GetParam().slow; }

    // Runs one message through the subject and compares with the oracle. `out_at` and `in_at` are
    // distances from a 64-byte boundary.
    void check(const Bytes& key, const Cipher& cipher, const Bytes& in, std::size_t in_at = 0,
               std::size_t out_at = 0, bool in_place = false);

    std::unique_ptr<Subject> subject_;
};

inline std::string target_name(const ::testing::TestParamInfo<Target>& info) {
    return info.param.name;
}

// Instances for CTest: Host/..., Gpu/..., OpenCl/... and OpenGl/..., labelled by
// tests/CMakeLists.txt.
#define DAEL_FOR_FAMILY(suite, family)                                                    \
    INSTANTIATE_TEST_SUITE_P(                                                             \
        family, suite,                                                                    \
        ::testing::ValuesIn(::dael::test::targets(::dael::test::Target::Family::family)), \
        ::dael::test::target_name)
// Those with every mode, GCM and XTS among them.
#define DAEL_FOR_WHOLE_BACKENDS(suite) \
    DAEL_FOR_FAMILY(suite, Host);      \
    DAEL_FOR_FAMILY(suite, Gpu);       \
    DAEL_FOR_FAMILY(suite, OpenCl)
#define DAEL_FOR_EVERY_BACKEND(suite) \
    DAEL_FOR_WHOLE_BACKENDS(suite);   \
    DAEL_FOR_FAMILY(suite, OpenGl)

}  // namespace dael::test
