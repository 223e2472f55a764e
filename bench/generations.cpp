// SPDX-License-Identifier: Apache-2.0
// The suite "generations": every kind of processor and every way to program it, on the same data in
// one run. CUDA, OpenCL, OpenGL in its two forms, the CPU; in device memory and from host memory;
// and whether the speed depends on the data, as it did on a GeForce 6800: a byte ramp, a constant,
// and random bytes.
#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>

#ifdef DAEL_WITH_OPENGL
#include "backends/opengl/opengl.hpp"
#endif
#include "bench/check.hpp"
#include "bench/device_objects.hpp"
#include "bench/host_engines.hpp"
#include "bench/machine.hpp"
#include "bench/team.hpp"
#include "core/registry.hpp"

namespace dael::bench {
namespace {

// The thesis' data.
constexpr std::array<const char*, 3> kData{"random", "ramp", "constant"};
constexpr std::uint8_t kConstant = 0xaa;

using Input = std::array<HostBuffer, kData.size()>;

Result<Input> make_input(std::size_t size) {
    Input input;
    for (HostBuffer& buffer : input) {
        auto allocated = HostBuffer::allocate(size);
        if (!allocated) return std::move(allocated).error();
        buffer = std::move(*allocated);
    }
    Team team(thread_count(0));
    fill_random(team, input[0].data(), size, 5);
    for (std::size_t i = 0; i < size; ++i) input[1].data()[i] = static_cast<std::uint8_t>(i);
    std::memset(input[2].data(), kConstant, size);
    return input;
}

// A device with room for one message in and out.
struct Resident {
    std::unique_ptr<core::Backend> backend;
    std::string isa;
    DeviceClock clock;
    DeviceMemory in, out;

    core::Device& device() const { return *backend->device(); }
    std::string label() const {
        return std::string(backend->name()) + (isa.empty() ? "" : " " + isa);
    }

    Launch launch(const Work& work, const TestKey& key) const {
        const core::Operation operation{work.mode, work.direction, &key.key};
        const core::Segment segment{in.data(), out.data(), work.size, message_iv(0), 0};
        return [this, operation, segment](Stream s) { return device().run(operation, segment, s); };
    }
    Result<> load(const HostBuffer& host, std::size_t size) const {
        return clock.run(
            [&](Stream s) { return device().copy_in(in.data(), host.data(), size, s); });
    }
    // Runs once, and compares with OpenSSL.
    Result<> verify(const Work& work, const TestKey& key, const HostBuffer& host) const {
        DAEL_TRY(load(host, work.size));
        DAEL_TRY(
            clock.run([&](Stream s) { return device().fill(out.data(), kPoison, work.size, s); }));
        DAEL_TRY(clock.run(launch(work, key)));
        return check_output(work, key, host.data(), clock.fetch_from(out.data()));
    }
};

Result<std::unique_ptr<Resident>> open_resident(const std::string& name, const std::string& isa,
                                                std::size_t size) {
    auto backend = core::open_backend(name, {isa, 0});
    if (!backend) return std::move(backend).error();
    auto resident = std::make_unique<Resident>();
    resident->backend = std::move(*backend);
    resident->isa = isa;
    auto clock = DeviceClock::create(resident->device());
    if (!clock) return std::move(clock).error();
    resident->clock = std::move(*clock);
    for (DeviceMemory* memory : {&resident->in, &resident->out}) {
        auto allocated = DeviceMemory::allocate(resident->device(), MemoryKind::device, size);
        if (!allocated) return std::move(allocated).error();
        *memory = std::move(*allocated);
    }
    return resident;
}

// An engine that takes data in host memory; `threads`: of the CPU.
struct Host {
    std::string backend, isa;
    int threads = 0;
};

class Generations {
  public:
    Generations(Session& session, Input input) : session_(session), input_(std::move(input)) {}

    // CUDA in its own layout of tables and in the one that OpenCL has room for, and OpenCL.
    Result<> in_device_memory(std::size_t size) {
        std::vector<std::unique_ptr<Resident>> residents;
        for (const auto& [name, isa] :
             {std::pair{"cuda", ""}, std::pair{"cuda", "tables=1"}, std::pair{"opencl", ""}}) {
            auto opened = open_resident(name, isa, size);
            if (opened) {
                describe_device(session_.report.machine, (*opened)->device().info());
                residents.push_back(std::move(*opened));
            } else {
                session_.skip(std::string(name) + ": " + opened.error().message);
            }
        }
        if (residents.empty()) return {};
        for (const int bits : {128, 256})
            for (const auto [mode, direction] : ways(session_.options)) {
                if (!parallel_within_message(mode, direction)) continue;
                DAEL_TRY(race_resident(residents, work_of(mode, direction, bits, size)));
            }
        for (const auto& resident : residents)
            DAEL_TRY(depend_resident(*resident, work_of(Mode::ecb, Direction::encrypt, 128, size)));
        return {};
    }

    // Everything there is, from the same host buffer to the same.
    Result<> from_host_memory(std::size_t size) {
        auto out = HostBuffer::allocate(size);
        if (!out) return std::move(out).error();
        out_ = std::move(*out);
        Work work = work_of(Mode::ecb, Direction::encrypt, 128, size);
        work.where = "host";
        work.measure = "call";
        const auto key = TestKey::make(work.bits);
        if (!key) return key.error();
        for (const Host& host :
             {Host{"cpu", "", 0}, Host{"cpu", "", 1}, Host{"cuda", "", 0}, Host{"opencl", "", 0},
              Host{"opengl", "gl-int", 0}, Host{"opengl", "gl-float", 0}}) {
            auto opened =
                Engine::open({.backend = host.backend, .isa = host.isa, .threads = host.threads});
            if (!opened) {
                session_.skip(host.backend + ", host memory: " + opened.error().message);
                continue;
            }
            const HostEngine engine{host.backend, host.isa,
                                    std::make_shared<Engine>(std::move(*opened))};
            work.backend = host.backend;
            work.isa = host.isa;
            const auto threads = verify(work, engine, *key);
            if (!threads) return threads.error();
            work.threads = *threads;
            const auto sampler = [&](std::size_t data) {
                return wall_clock(engine_call(engine, *key, work, messages(work, data)),
                                  session_.workload.sampling);
            };
            DAEL_TRY(depend(work, sampler));
        }
        return {};
    }

    // OpenGL's drawing by itself, one picture without the way there and back.
    Result<> by_drawing() {
#ifdef DAEL_WITH_OPENGL
        for (const opengl::Form form : {opengl::Form::integers, opengl::Form::floats}) {
            const std::string_view form_name = opengl::kFormNames[static_cast<std::size_t>(form)];
            auto opened = opengl::OpenGl::open({.form = form});
            if (!opened) {
                session_.skip("opengl " + std::string(form_name) +
                              ", drawing: " + opened.error().message);
                continue;
            }
            opengl::OpenGl& gl = **opened;
            session_.report.machine.opengl = gl.description();
            Work work = work_of(Mode::ecb, Direction::encrypt, 128,
                                std::min<std::size_t>(gl.pass(), out_.size()));
            work.backend = "opengl";
            work.isa = form_name;
            work.where = "texture";
            const auto key = TestKey::make(work.bits);
            if (!key) return key.error();
            const core::Operation operation{work.mode, work.direction, &key->key};
            for (const HostBuffer& input : input_) {
                std::memset(out_.data(), kPoison, work.size);
                DAEL_TRY(gl.upload({input.data(), work.size}));
                DAEL_TRY(gl.draw(operation, {}));
                DAEL_TRY(gl.download({out_.data(), work.size}));
                DAEL_TRY(check_output(work, *key, input.data(), out_.data()));
            }
            // What is drawn is timed, what it is drawn from is brought before the clock starts.
            const auto draw = [&](std::size_t data) -> Sampler {
                return [&, data]() -> Result<double> {
                    DAEL_TRY(gl.upload({input_[data].data(), work.size}));
                    DAEL_TRY(gl.finish());
                    const auto start = std::chrono::steady_clock::now();
                    DAEL_TRY(gl.draw(operation, {}));
                    DAEL_TRY(gl.finish());
                    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start)
                        .count();
                };
            };
            DAEL_TRY(depend(work, draw));
            gl.wipe();
        }
#else
        session_.skip("opengl, drawing: this build has no OpenGL");
#endif
        return {};
    }

  private:
    static Work work_of(Mode mode, Direction direction, int bits, std::size_t size) {
        Work work;
        work.mode = mode;
        work.direction = direction;
        work.bits = bits;
        work.size = size;
        work.where = "device";
        work.measure = "kernel";
        return work;
    }

    // Against a copy on the first device, and each of the others.
    Result<> race_resident(const std::vector<std::unique_ptr<Resident>>& residents, Work work) {
        const auto key = TestKey::make(work.bits);
        if (!key) return key.error();
        Heat heat;
        std::vector<std::size_t> numbers;
        const Resident& first = *residents.front();
        const auto copy =
            heat.enter("copy within device memory", first.clock.by_events([&](Stream s) {
                return first.device().copy_within(first.out.data(), first.in.data(), work.size, s);
            }));
        for (const auto& resident : residents) {
            DAEL_TRY(resident->verify(work, *key, input_[0]));
            numbers.push_back(heat.enter(resident->label(),
                                         resident->clock.by_events(resident->launch(work, *key))));
        }
        for (std::size_t i = 0; i < residents.size(); ++i) {
            work.backend = residents[i]->backend->name();
            work.isa = residents[i]->isa;
            std::vector<std::size_t> yardsticks{copy};
            for (std::size_t other = 0; other < i; ++other) yardsticks.push_back(numbers[other]);
            heat.row(work, numbers[i], std::move(yardsticks));
        }
        return heat.run(session_);
    }

    Result<> depend_resident(const Resident& resident, Work work) {
        work.backend = resident.backend->name();
        work.isa = resident.isa;
        const auto key = TestKey::make(work.bits);
        if (!key) return key.error();
        for (const HostBuffer& input : input_) DAEL_TRY(resident.verify(work, *key, input));
        const Sampler launched = resident.clock.by_events(resident.launch(work, *key));
        const auto sampler = [&](std::size_t data) -> Sampler {
            return [&, data]() -> Result<double> {
                DAEL_TRY(resident.load(input_[data], work.size));
                return launched();
            };
        };
        return depend(work, sampler);
    }

    // One contestant for each kind of data, in turns: the others against random data, and random
    // data against them, unless race_resident() has a row for it.
    Result<> depend(Work work, const std::function<Sampler(std::size_t data)>& sampler) {
        Heat heat;
        for (std::size_t data = 0; data < kData.size(); ++data) {
            work.data = kData[data];
            const std::size_t number =
                heat.enter(std::string(kData[data]) + " data", sampler(data));
            if (data != 0) heat.row(work, number, {0});
        }
        work.data = kData[0];
        if (work.where != "device") heat.row(work, 0, {1, 2});
        return heat.run(session_);
    }

    std::vector<Message> messages(const Work& work, std::size_t data) const {
        return lay_out(work, input_[data].data(), out_.data());
    }

    // Checks what comes of each kind of data; returns how many threads were at work.
    Result<int> verify(const Work& work, const HostEngine& engine, const TestKey& key) const {
        int threads = 1;
        for (std::size_t data = 0; data < kData.size(); ++data) {
            std::memset(out_.data(), kPoison, work.size);
            const auto ran =
                engine.engine->run(key.key, work.mode, work.direction, messages(work, data));
            if (!ran) return ran.error();
            threads = ran->threads;
            DAEL_TRY(check_output(work, key, input_[data].data(), out_.data()));
        }
        return threads;
    }

    Session& session_;
    Input input_;
    HostBuffer out_;
};

}  // namespace

Result<> measure_generations(Session& session) {
    // What has to fit into host memory at once: the three inputs with room to spare; and from host
    // memory the three, an output, and the pipelines' staging memory.
    const std::uint64_t device = fitting(session, session.workload.device, 4);
    const std::uint64_t host = std::min(device, fitting(session, session.workload.through, 5));
    auto input = make_input(device);
    if (!input) return std::move(input).error();
    Generations generations(session, std::move(*input));
    DAEL_TRY(generations.in_device_memory(device));
    DAEL_TRY(generations.from_host_memory(host));
    return generations.by_drawing();
}

}  // namespace dael::bench
