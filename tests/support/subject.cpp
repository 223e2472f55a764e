// SPDX-License-Identifier: Apache-2.0
#include "support/subject.hpp"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iterator>
#include <map>
#include <mutex>
#include <ostream>

#include "core/registry.hpp"
#include "modes/traits.hpp"
#include "pipeline/engine_state.hpp"
#include "support/device_subject.hpp"
#include "support/engine_subject.hpp"
#include "support/engine_test.hpp"

namespace dael::test {
namespace {

using Level = Target::Level;
using Family = Target::Family;

// A backend that works in host memory.
class BackendSubject final : public Subject {
  public:
    explicit BackendSubject(std::unique_ptr<core::Backend> backend)
        : backend_(std::move(backend)) {}

    core::Can can(const Cipher& cipher, int key_bits) const override {
        return backend_->can(counted(cipher), key_bits);
    }
    // With tables of the keys in half of the calls, and without in the others.
    Result<> run(const Cipher& cipher, std::span<const Key> keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        for (const Key& key : keys) DAEL_TRY(modes::check(cipher, key));
        if (!keys.empty())
            if (const auto can = this->can(cipher, keys[0].bits()); can.answer == core::Can::no)
                return core::cannot(backend_->profile().name, cipher, can);
        std::vector<Message> valid;
        std::vector<std::size_t> places;
        for (std::size_t i = 0; i < messages.size(); ++i) {
            codes[i] = modes::check(cipher, messages[i], keys.size()).code();
            if (codes[i] != Code::ok) continue;
            valid.push_back(messages[i]);
            places.push_back(i);
        }
        std::unique_ptr<core::KeyTables> tables;
        if (toss()) {
            DAEL_LET(made, backend_->tables(keys));
            tables = std::move(made);
        }
        std::vector<Code> ran(valid.size(), Code::ok);
        const bool tells = authenticates(cipher.mode) || toss();
        DAEL_TRY(backend_->run(counted(cipher), {keys, tables.get()}, valid,
                               tells ? std::span(ran) : std::span<Code>()));
        for (std::size_t i = 0; i < valid.size(); ++i) codes[places[i]] = ran[i];
        return {};
    }

  private:
    // As the pipeline has it: once checked, gcm_ctr is ctr.
    static Cipher counted(Cipher cipher) {
        if (cipher.mode == Mode::gcm_ctr) cipher.mode = Mode::ctr;
        return cipher;
    }
    bool toss() {
        const std::lock_guard lock(mutex_);
        return random_.below(2) == 0;
    }

    std::unique_ptr<core::Backend> backend_;
    std::mutex mutex_;
    Random random_{555};
};

// The device made of threads, as a subject that is found wanting if it finds anything.
class ThreadsSubject final : public Subject {
  public:
    explicit ThreadsSubject(const Target& target) {
        const auto engine = [&] { return std::move(*open_engine(target, device_)); };
        subject_ = target.level == Level::memory ? engine_memory_subject(engine(), "threads")
                   : target.level == Level::engine
                       ? engine_subject(engine(), "threads")
                       : device_subject(std::make_unique<HostDeviceBackend>(device_));
    }
    ~ThreadsSubject() override {
        subject_.reset();
        expect_clean(device_);
    }
    core::Can can(const Cipher& cipher, int key_bits) const override {
        return subject_->can(cipher, key_bits);
    }
    Result<> run(const Cipher& cipher, std::span<const Key> keys, std::span<const Message> messages,
                 std::span<Code> codes) override {
        return subject_->run(cipher, keys, messages, codes);
    }
    Result<> run(const Cipher& cipher, const Key& key, const Message& message) override {
        return subject_->run(cipher, key, message);
    }

  private:
    HostDevice device_;
    std::unique_ptr<Subject> subject_;
};

// What the list of backends does not say about some of them. One that is not here runs on the host
// at full size.
struct Hint {
    std::string_view backend;
    Family family = Family::Host;
    bool slow = false;
    // Every call costs threads their sleep where OpenCL's driver is a CPU's: one form gets every
    // size, and the engine uses that.
    std::string_view quick_form = {};
};
constexpr Hint kHints[] = {{"reference", Family::Host, true},
                           {"cuda", Family::Gpu},
                           {"opencl", Family::OpenCl, true, "tables=1"},
                           {"opengl", Family::OpenGl}};

Hint hint_of(std::string_view backend) {
    const auto* const found = std::ranges::find(kHints, backend, &Hint::backend);
    return found == std::end(kHints) ? Hint{backend} : *found;
}

// "tables=4,teams=4" becomes "tables4_teams4", which a test may be called.
std::string in_a_name(std::string_view form) {
    std::string name;
    for (const char c : form) {
        if (std::isalnum(static_cast<unsigned char>(c)))
            name += c;
        else if (c != '=')
            name += '_';
    }
    return name;
}

void add_targets(std::vector<Target>& list, const core::BackendEntry& entry) {
    const std::string name = entry.name;
    const Hint hint = hint_of(name);
    const bool device = entry.device_name != nullptr;
    const auto forms = entry.forms ? entry.forms() : std::vector<std::string>{};
    const auto is_slow = [&](const std::string& form) {
        return hint.slow && (hint.quick_form.empty() || form != hint.quick_form);
    };
    // On a device the form that it takes by itself, which differs from one to the next; a host
    // backend takes one of its forms.
    if (device || forms.empty())
        list.push_back({.name = name,
                        .backend = name,
                        .slow = is_slow(""),
                        .on_device = device,
                        .family = hint.family});
    for (const std::string& form : forms)
        list.push_back({.name = name + "_" + in_a_name(form),
                        .backend = name,
                        .form = form,
                        .slow = is_slow(form),
                        .on_device = device,
                        .family = hint.family});
    Target engine{.name = "engine_" + name,
                  .backend = name,
                  .form = std::string(hint.quick_form),
                  .level = Level::engine,
                  .slow = hint.slow,
                  .family = hint.family};
    if (device || hint.slow || hint.family != Family::Host) {
        list.push_back(engine);
    } else {
        for (const int threads : {1, 3, 0}) {
            Target some = engine;
            some.name += threads ? "_" + std::to_string(threads) : "_all";
            some.threads = threads;
            list.push_back(some);
        }
    }
    if (!device) return;
    Target chunks = engine;
    chunks.name += "_chunks";
    chunks.chunk = 64 << 10;
    list.push_back(chunks);
    Target memory = engine;
    memory.name += "_memory";
    memory.level = Level::memory;
    memory.on_device = true;
    list.push_back(memory);
}

const std::vector<Target>& all_targets() {
    static const std::vector<Target> list = [] {
        std::vector<Target> targets;
        for (const core::BackendEntry& entry : core::backend_list()) add_targets(targets, entry);
        targets.push_back({.name = "engine_auto", .backend = "auto", .level = Level::engine});
        const std::string threads = "threads";
        targets.push_back({.name = threads, .backend = threads, .on_device = true});
        targets.push_back({.name = "engine_threads_chunks",
                           .backend = threads,
                           .level = Level::engine,
                           .threads = 3,
                           .chunk = 64 << 10});
        targets.push_back({.name = "engine_threads_memory",
                           .backend = threads,
                           .level = Level::memory,
                           .slow = true,
                           .on_device = true});
        return targets;
    }();
    return list;
}

}  // namespace

Result<> Subject::run(const Cipher& cipher, const Key& key, const Message& message) {
    DAEL_TRY(modes::check(cipher, key));
    DAEL_TRY(modes::check(cipher, message, 1));
    Code code = Code::ok;
    DAEL_TRY(run(cipher, std::span(&key, 1), std::span(&message, 1), std::span(&code, 1)));
    if (code == Code::ok) return {};
    return Error{code, std::string(describe(code))};
}

bool required(const std::string& name) {
    const char* list = std::getenv("DAELSTROM_TEST_REQUIRE");
    if (!list) return false;
    std::string padded = " " + std::string(list) + " ";
    std::ranges::replace(padded, ',', ' ');
    return padded == " all " || padded.find(" " + name + " ") != padded.npos;
}

std::vector<Target> targets(Family family) {
    std::vector<Target> found;
    std::ranges::copy_if(all_targets(), std::back_inserter(found),
                         [&](const Target& target) { return target.family == family; });
    return found;
}

std::vector<Target> targets_for_known_answers(Family family) {
    auto found = targets(family);
    if (family == Family::OpenCl)
        std::erase_if(found, [](const Target& target) {
            return target.level != Level::backend ||
                   (!target.form.empty() && target.form != hint_of(target.backend).quick_form);
        });
    return found;
}

std::vector<Target> targets_in_host_memory(Family family) {
    auto found = targets(family);
    std::erase_if(found, [](const Target& target) { return target.on_device; });
    return found;
}

void PrintTo(const Target& target, std::ostream* stream) {
    *stream << target.name;
}

std::vector<Target> engine_targets(Family family) {
    auto found = targets(family);
    std::erase_if(found, [](const Target& target) { return target.level != Level::engine; });
    return found;
}

Result<Engine> open_engine(const Target& target, HostDevice& threads) {
    EngineOptions options{.backend = target.backend,
                          .form = target.form,
                          .threads = target.threads,
                          .chunk = target.chunk,
                          .calibrated = false};
    if (target.backend != "threads") return Engine::open(std::move(options));
    return pipeline::make_engine(std::make_unique<HostDeviceBackend>(threads), std::move(options));
}

Result<std::unique_ptr<Subject>> open_subject(const Target& target) {
    if (target.backend == "threads")
        return std::unique_ptr<Subject>(std::make_unique<ThreadsSubject>(target));
    if (target.level == Level::backend) {
        DAEL_LET(backend, core::open_backend(target.backend, {target.form, 0}));
        if (backend->device()) return device_subject(std::move(backend));
        return std::unique_ptr<Subject>(std::make_unique<BackendSubject>(std::move(backend)));
    }
    HostDevice none;
    DAEL_LET(engine, open_engine(target, none));
    const std::string expected = target.backend == "auto" ? "" : target.backend;
    return target.level == Level::memory ? engine_memory_subject(std::move(engine), expected)
                                         : engine_subject(std::move(engine), expected);
}

namespace {

// Skips a test whose target is not here, or fails where it is required.
void without(const Target& target, const Error& error) {
    const std::string reason = target.name + ": " + error.message;
    // A device may have too little local memory for a form of its kernels.
    const bool lacking = error.code == Code::backend_absent ||
                         (target.family == Family::OpenCl && error.code == Code::unsupported);
    if (!lacking || required(target.name)) FAIL() << reason;
    GTEST_SKIP() << reason;
}

}  // namespace

namespace {

using Kept = std::map<std::string, std::shared_ptr<Subject>>;
Kept& kept() {
    static Kept subjects;
    return subjects;
}

}  // namespace

Result<std::shared_ptr<Subject>> SubjectTest::subject_of(const Target& target) {
    if (const auto found = kept().find(target.name); found != kept().end()) return found->second;
    DAEL_LET(opened, open_subject(target));
    const std::shared_ptr<Subject> subject = std::move(opened);
    if (target.far()) kept()[target.name] = subject;
    return subject;
}

// Before the drivers go, as they do where a process ends.
void SubjectTest::TearDownTestSuite() {
    kept().clear();
}

void SubjectTest::SetUp() {
    auto opened = subject_of(GetParam());
    if (!opened) return without(GetParam(), opened.error());
    subject_ = std::move(*opened);
}

void EngineTest::SetUp() {
    auto opened = open_engine(GetParam(), device_);
    if (!opened) return without(GetParam(), opened.error());
    engine_.emplace(std::move(*opened));
}

}  // namespace dael::test
