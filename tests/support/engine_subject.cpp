// SPDX-License-Identifier: Apache-2.0
#include "support/engine_subject.hpp"

#include <daelstrom/device.hpp>

#include <mutex>

#include "modes/traits.hpp"
#include "support/device_subject.hpp"

namespace dael::test {
namespace {

// What an engine says that it can do.
core::Can can_of(const Engine& engine, const Cipher& cipher, int key_bits, Job::From from) {
    Job job{cipher, key_bits, 4096, 1, from};
    std::string why = "there is no backend";
    const auto possible = [&] {
        const Plan plan = engine.explain(job);
        if (plan.options.empty()) return false;
        why = plan.options.front().why;
        return plan.options.front().possible;
    };
    if (possible()) return {};
    job.messages = 64;
    const auto answer = possible() ? core::Can::batches : core::Can::no;
    return {answer, core::lasting(why)};
}

Result<> judge(Result<Ran> ran, const std::string& expected) {
    if (!ran) return std::move(ran).error();
    if (!expected.empty() && ran->backend != expected && ran->backend != expected + ":0")
        return Error{Code::internal,
                     "asked for " + expected + ", but " + std::string(ran->backend) + " ran"};
    return {};
}

class EngineSubject final : public Subject {
  public:
    EngineSubject(Engine engine, std::string expected)
        : engine_(std::move(engine)), expected_(std::move(expected)) {}

    core::Can can(const Cipher& cipher, int key_bits) const override {
        return can_of(engine_, cipher, key_bits, Job::From::host);
    }
    Result<> run(const Cipher& cipher, std::span<const Key> keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        DAEL_LET(set, engine_.keys(keys));
        return judge(engine_.run(cipher, set, messages, codes), expected_);
    }
    // By itself or as a batch of one; what is refused by itself, where the message says more.
    Result<> run(const Cipher& cipher, const Key& key, const Message& message) override {
        const bool valid = modes::check(cipher, key) && modes::check(cipher, message, 1);
        if (valid && (toss() || can(cipher, key.bits()).answer == core::Can::batches))
            return Subject::run(cipher, key, message);
        return judge(engine_.run(cipher, key, message), expected_);
    }

  private:
    bool toss() {
        const std::lock_guard lock(mutex_);
        return random_.below(2) == 0;
    }
    Engine engine_;
    const std::string expected_;
    std::mutex mutex_;
    Random random_{999};
};

class EngineCalls final : public DeviceCalls {
  public:
    EngineCalls(Engine engine, std::string expected)
        : engine_(std::move(engine)), expected_(std::move(expected)), device_(*device(engine_)) {}
    const DeviceInfo& info() const override { return device_.info; }
    Memory& memory() override { return device_.memory; }
    Order& order() override { return device_.order; }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        return can_of(engine_, cipher, key_bits, Job::From::device);
    }
    Result<> one(const Cipher& cipher, const Key& key, const Message& message,
                 Stream stream) override {
        return judge(engine_.run(cipher, key, message, stream), expected_);
    }
    Result<> batch(const Cipher& cipher, std::span<const Key> keys, const Messages& messages,
                   Stream stream, std::span<Code> codes) override {
        DAEL_LET(set, engine_.keys(keys));
        DAEL_LET(batch, engine_.prepare(cipher, set, messages));
        DAEL_TRY(judge(engine_.launch(batch, stream), expected_));
        DAEL_LET(results, batch.results(stream));
        if (results.size() != codes.size())
            return Error{Code::internal, std::to_string(results.size()) + " results"};
        std::ranges::copy(results, codes.begin());
        return {};
    }

  private:
    Engine engine_;
    const std::string expected_;
    const DeviceAccess device_;
};

}  // namespace

std::unique_ptr<Subject> engine_subject(Engine engine, std::string expected) {
    return std::make_unique<EngineSubject>(std::move(engine), std::move(expected));
}

std::unique_ptr<Subject> engine_memory_subject(Engine engine, std::string expected) {
    return device_subject(std::make_unique<EngineCalls>(std::move(engine), std::move(expected)));
}

}  // namespace dael::test
