// SPDX-License-Identifier: Apache-2.0
#include "support/subject.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <ostream>

#include "core/registry.hpp"
#include "modes/gcm.hpp"
#include "modes/segment.hpp"
#include "modes/xts.hpp"
#include "support/device_subject.hpp"
#include "support/oracle.hpp"

namespace dael::test {
namespace {

using Level = Target::Level;

class BackendSubject final : public Subject {
  public:
    explicit BackendSubject(std::unique_ptr<core::Backend> backend)
        : backend_(std::move(backend)) {}

    bool supports(Mode mode, Direction direction, std::size_t messages) const override {
        return backend_->supports(mode, direction, messages);
    }
    Result<> run(const Key& key, Mode mode, Direction direction,
                 std::span<const Message> messages) override {
        std::vector<core::Segment> segments;
        for (const Message& message : messages) {
            DAEL_TRY(modes::check(mode, message));
            segments.push_back(modes::to_segment(message));
        }
        return backend_->run({mode, direction, &key}, segments);
    }
    bool supports_xts() const override { return backend_->has_xts(); }
    Result<> xts(const XtsKey& key, Direction direction, const XtsSectors& sectors, HostIn in,
                 HostOut out) override {
        DAEL_TRY(modes::check(sectors, in.data(), out.data(), in.size()));
        return backend_->xts({direction, &key, sectors.size},
                             modes::to_segment(sectors, in.data(), out.data(), in.size()));
    }

    Result<> gcm(Direction direction, std::span<const Key> keys,
                 std::span<const core::GcmSegment> messages, std::span<Code> results) override {
        for (const auto& message : messages) DAEL_TRY(modes::check(message, keys.size()));
        const auto prepared = backend_->prepare_keys(keys);
        if (!prepared) return prepared.error();
        return backend_->gcm(direction, **prepared, messages, results);
    }

  private:
    std::unique_ptr<core::Backend> backend_;
};

class EngineSubject final : public Subject {
  public:
    EngineSubject(Engine engine, std::string expected, bool device)
        : engine_(std::move(engine)), expected_(std::move(expected)), device_(device) {}

    bool supports(Mode mode, Direction, std::size_t) const override {
        return expected_ != "opengl" || mode == Mode::ecb || mode == Mode::ctr;
    }
    Result<> run(const Key& key, Mode mode, Direction direction,
                 std::span<const Message> messages) override {
        Result<Ran> ran = Error{};
        const bool alone = messages.size() == 1 && messages[0].in && messages[0].out;
        if (device_ && alone && !parallel_within_message(mode, direction)) {
            // A device takes sequential modes as batches only: give the message company.
            const Message& one = messages[0];
            Bytes copy(one.in, one.in + one.size);
            const Message two[] = {one,
                                   {copy.data(), copy.data(), copy.size(), one.iv, one.offset}};
            ran = engine_.run(key, mode, direction, two);
        } else if (messages.size() == 1) {
            const Message& one = messages[0];
            ran = engine_.run(key, {mode, direction, one.iv, one.offset}, {one.in, one.size},
                              {one.out, one.size});
        } else {
            ran = engine_.run(key, mode, direction, messages);
        }
        return judge(std::move(ran));
    }
    bool supports_xts() const override { return expected_ != "cpu"; }
    Result<> xts(const XtsKey& key, Direction direction, const XtsSectors& sectors, HostIn in,
                 HostOut out) override {
        return judge(direction == Direction::encrypt ? engine_.xts_encrypt(key, sectors, in, out)
                                                     : engine_.xts_decrypt(key, sectors, in, out));
    }

    Result<> gcm(Direction direction, std::span<const Key> keys,
                 std::span<const core::GcmSegment> messages, std::span<Code> results) override {
        const bool seal = direction == Direction::encrypt;
        if (messages.size() == 1 && messages[0].iv_size != kNonceSize) {
            const core::GcmSegment& m = messages[0];
            const Key& key = keys[m.key];
            const std::span iv{m.iv, m.iv_size}, aad{m.aad, m.aad_size}, in{m.in, m.size};
            const std::span out{m.out, m.size}, tag{m.tag, m.tag_size};
            auto ran = seal ? engine_.gcm_seal(key, iv, aad, in, out, tag)
                            : engine_.gcm_open(key, iv, aad, in, out, tag);
            results[0] = ran.code();
            return ran.code() == Code::authentication ? Result<>{} : judge(std::move(ran));
        }
        const auto set = engine_.prepare_keys(keys);
        if (!set) return set.error();
        std::vector<GcmMessage> batch;
        for (const core::GcmSegment& m : messages) {
            batch.push_back({m.in, m.out, m.size, m.aad, m.aad_size, m.tag, {}, m.key});
            std::copy_n(m.iv, kNonceSize, batch.back().nonce.begin());
        }
        const std::size_t tag_size = messages.empty() ? kTagSize : messages[0].tag_size;
        return judge(seal ? engine_.seal_batch(*set, batch, results, tag_size)
                          : engine_.open_batch(*set, batch, results, tag_size));
    }

  private:
    Result<> judge(Result<Ran> ran) const {
        if (!ran) return std::move(ran).error();
        if (!expected_.empty() && ran->backend != expected_ && ran->backend != expected_ + ":0")
            return Error{Code::internal,
                         "asked for " + expected_ + ", but " + ran->backend + " ran"};
        return {};
    }

    Engine engine_;
    std::string expected_;  // the backend that must have run; empty for "auto"
    bool device_;
};

}  // namespace

bool required(const std::string& name) {
    const char* list = std::getenv("DAELSTROM_TEST_REQUIRE");
    if (!list) return false;
    std::string padded = " " + std::string(list) + " ";
    std::ranges::replace(padded, ',', ' ');
    return padded == " all " || padded.find(" " + name + " ") != padded.npos;
}

namespace {

using Family = Target::Family;

const std::vector<Target>& all_targets() {
    static const std::vector<Target> list{
        {.name = "reference", .backend = "reference", .slow = true},
        {.name = "openssl", .backend = "openssl"},
        {.name = "cpu_sse", .backend = "cpu", .isa = "sse"},
        {.name = "cpu_avx2", .backend = "cpu", .isa = "avx2"},
        {.name = "cpu_avx512", .backend = "cpu", .isa = "avx512"},
        {.name = "engine_reference", .backend = "reference", .level = Level::engine, .slow = true},
        {.name = "engine_openssl_1", .backend = "openssl", .level = Level::engine, .threads = 1},
        {.name = "engine_openssl_3", .backend = "openssl", .level = Level::engine, .threads = 3},
        {.name = "engine_cpu_all", .backend = "cpu", .level = Level::engine},
        {.name = "engine_cpu_5", .backend = "cpu", .level = Level::engine, .threads = 5},
        {.name = "engine_auto", .backend = "auto", .level = Level::engine},

        {.name = "cuda", .backend = "cuda", .family = Family::Gpu},
        {.name = "engine_cuda", .backend = "cuda", .level = Level::engine, .family = Family::Gpu},
        {.name = "engine_cuda_chunks",
         .backend = "cuda",
         .level = Level::engine,
         .chunk = 64 * 1024,
         .family = Family::Gpu},

        // The shape that the device has by itself, each layout of tables, odd numbers of teams.
        // Every call costs threads their sleep where the driver is a CPU's, so only two go through
        // all.
        {.name = "opencl", .backend = "opencl", .slow = true, .family = Family::OpenCl},
        {.name = "opencl_tables4",
         .backend = "opencl",
         .isa = "tables=4,teams=4",
         .slow = true,
         .family = Family::OpenCl},
        {.name = "opencl_tables2",
         .backend = "opencl",
         .isa = "tables=2,teams=2,held=8",
         .slow = true,
         .family = Family::OpenCl},
        {.name = "opencl_tables1",
         .backend = "opencl",
         .isa = "tables=1",
         .family = Family::OpenCl},
        {.name = "opencl_sbox",
         .backend = "opencl",
         .isa = "tables=0,teams=1,groups=3",
         .slow = true,
         .family = Family::OpenCl},
        {.name = "engine_opencl",
         .backend = "opencl",
         .isa = "tables=1",
         .level = Level::engine,
         .slow = true,
         .family = Family::OpenCl},
        {.name = "engine_opencl_chunks",
         .backend = "opencl",
         .isa = "tables=1",
         .level = Level::engine,
         .chunk = 64 * 1024,
         .family = Family::OpenCl},
        {.name = "opengl_int", .backend = "opengl", .isa = "gl-int", .family = Family::OpenGl},
        {.name = "opengl_float", .backend = "opengl", .isa = "gl-float", .family = Family::OpenGl},
        {.name = "engine_opengl",
         .backend = "opengl",
         .level = Level::engine,
         .family = Family::OpenGl},
    };
    return list;
}

}  // namespace

std::vector<Target> targets(Family family) {
    std::vector<Target> found;
    std::ranges::copy_if(all_targets(), std::back_inserter(found),
                         [&](const Target& target) { return target.family == family; });
    return found;
}

void PrintTo(const Target& target, std::ostream* stream) {
    *stream << target.name;
}

Result<std::unique_ptr<Subject>> open_subject(const Target& target) {
    if (target.level == Level::engine) {
        auto engine = Engine::open({.backend = target.backend,
                                    .isa = target.isa,
                                    .threads = target.threads,
                                    .chunk = target.chunk,
                                    .calibrated = false});
        if (!engine) return std::move(engine).error();
        const std::string expected = target.backend == std::string("auto") ? "" : target.backend;
        return std::unique_ptr<Subject>(
            std::make_unique<EngineSubject>(std::move(*engine), expected, target.far()));
    }
    auto backend = core::open_backend(target.backend, {target.isa, 0});
    if (!backend) return std::move(backend).error();
    if ((*backend)->device()) return device_subject(std::move(*backend));
    return std::unique_ptr<Subject>(std::make_unique<BackendSubject>(std::move(*backend)));
}

void SubjectTest::SetUp() {
    auto opened = open_subject(GetParam());
    if (opened) {
        subject_ = std::move(*opened);
        return;
    }
    const std::string reason = std::string(GetParam().name) + ": " + opened.error().message;
    // A device may have too little local memory for a layout.
    const bool lacking =
        opened.code() == Code::backend_absent ||
        (GetParam().family == Family::OpenCl && opened.code() == Code::unsupported);
    if (!lacking || required(GetParam().name)) FAIL() << reason;
    GTEST_SKIP() << reason;
}

void SubjectTest::check(const Bytes& key_bytes, const Cipher& cipher, const Bytes& in,
                        std::size_t in_at, std::size_t out_at, bool in_place) {
    if (!subject().supports(cipher.mode, cipher.direction, 1)) return;
    const auto key = Key::import(key_bytes);
    ASSERT_TRUE(key);
    Poisoned source(in, in_at), apart(in.size(), out_at);
    Poisoned& target = in_place ? source : apart;
    const Message message{source.data(), target.data(), in.size(), cipher.iv, cipher.offset};
    const auto done = subject().run(*key, cipher.mode, cipher.direction, std::span(&message, 1));
    const auto what = [&] {
        return std::string(name(cipher.mode)) + " " + std::string(name(cipher.direction)) + ", " +
               std::to_string(8 * key_bytes.size()) + " bits, " + std::to_string(in.size()) +
               " bytes, offset " + std::to_string(cipher.offset) + ", in at " +
               std::to_string(in_at) +
               (in_place ? ", in place" : ", out at " + std::to_string(out_at));
    };
    ASSERT_TRUE(done) << what() << ": " << done.error().message;
    ASSERT_EQ(difference(oracle(key_bytes, cipher, in), target.span()), "") << what();
    ASSERT_TRUE(target.intact()) << what() << ": wrote outside of the output";
    if (!in_place) {
        ASSERT_EQ(source.bytes(), in) << what() << ": wrote to the input";
    }
}

}  // namespace dael::test
