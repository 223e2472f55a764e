// SPDX-License-Identifier: Apache-2.0
// A sealed file in the page cache, opened straight into device memory, by one thread that reads and
// by several; held against copies to the device of as many bytes that are page-locked already.
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <daelstrom/sealed.hpp>

#include "bench/suite.hpp"
#include "measure/device.hpp"
#include "measure/memory.hpp"

namespace dael::bench {
namespace {

using measure::DeviceBuffer;
using measure::DeviceClock;
using measure::DeviceStream;
using measure::Heat;
using measure::MemoryKind;

Error failed(const char* call) {
    return {Code::io, std::string("a file in memory: ") + call + ": " + std::strerror(errno)};
}

// A file of the page cache, which no disk has.
class CachedFile {
  public:
    static Result<CachedFile> create(std::size_t size) {
        CachedFile file;
        file.number_ = memfd_create("daelstrom-bench", MFD_CLOEXEC);
        if (file.number_ < 0) return failed("memfd_create");
        if (ftruncate(file.number_, static_cast<off_t>(size)) != 0) return failed("ftruncate");
        return file;
    }
    CachedFile(CachedFile&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
    ~CachedFile() {
        if (number_ >= 0) close(number_);
    }
    Result<> write(std::uint64_t at, HostIn bytes) const {
        while (!bytes.empty()) {
            const ssize_t put = pwrite(number_, bytes.data(), bytes.size(), static_cast<off_t>(at));
            if (put < 0) return failed("pwrite");
            at += static_cast<std::uint64_t>(put);
            bytes = bytes.subspan(static_cast<std::size_t>(put));
        }
        return {};
    }
    Result<> read(std::uint64_t at, HostOut out) const {
        while (!out.empty()) {
            const ssize_t got = pread(number_, out.data(), out.size(), static_cast<off_t>(at));
            if (got <= 0) return failed("pread");
            at += static_cast<std::uint64_t>(got);
            out = out.subspan(static_cast<std::size_t>(got));
        }
        return {};
    }

  private:
    CachedFile() = default;
    int number_ = -1;
};

struct SealedIn {
    DeviceUnderTest subject;
    measure::Sampling sampling;
    DeviceClock clock;
    DeviceStream stream;
    DeviceBuffer out, pinned;
    std::shared_ptr<CachedFile> disk;
    std::shared_ptr<sealed::File> file;
    std::vector<std::uint8_t> plain;

    Result<> make(std::uint64_t size, int bits) {
        plain.resize(size);
        measure::Team team(measure::thread_count(0));
        measure::fill_random(team, plain.data(), size, 6);
        std::vector<std::uint8_t> raw(static_cast<std::size_t>(bits) / 8, 0x35);
        DAEL_LET(keys, sealed::Keys::from_key(raw));
        DAEL_LET(host, Engine::open({.backend = "openssl"}));
        DAEL_LET(sealed_size, sealed::sealed_size(keys, size));
        DAEL_LET(made, CachedFile::create(sealed_size));
        disk = std::make_shared<CachedFile>(std::move(made));
        std::uint64_t from = 0, to = 0;
        const sealed::Read read = [&](HostOut bytes) -> Result<std::size_t> {
            const auto count = std::min<std::uint64_t>(bytes.size(), size - from);
            std::memcpy(bytes.data(), plain.data() + from, count);
            from += count;
            return static_cast<std::size_t>(count);
        };
        const sealed::Write write = [&](HostIn bytes) -> Result<> {
            DAEL_TRY(disk->write(to, bytes));
            to += bytes.size();
            return {};
        };
        DAEL_TRY(sealed::seal(host, keys, {}, read, write));
        DAEL_LET(opened,
                 sealed::File::open(
                     *subject.engine, keys, {},
                     [its = disk](std::uint64_t at, HostOut bytes) { return its->read(at, bytes); },
                     sealed_size));
        file = std::make_shared<sealed::File>(std::move(opened));
        return {};
    }

    Result<Heat> prepare(Work work) {
        work.backend = subject.name;
        work.measure = "open";
        Heat heat;
        const auto ceiling = heat.enter(
            "copy of page-locked memory to the device",
            measure::wall_clock(
                [=, this]() -> Result<> {
                    Memory& memory = subject.device.memory;
                    for (std::uint64_t at = 0; at < work.size; at += pinned.size())
                        DAEL_TRY(memory.copy_in(
                            out.data() + at, pinned.data(),
                            std::min<std::uint64_t>(pinned.size(), work.size - at), stream.get()));
                    return subject.device.order.wait(stream.get());
                },
                sampling));
        const auto call = [=, this]() -> Result<> {
            DAEL_TRY(file->read_all({out.data(), work.size}, stream.get(), work.threads));
            return {};
        };
        const auto check = [=, this]() -> Result<> {
            DAEL_TRY(clock.fill(out.data(), 0xa5, work.size));
            DAEL_TRY(call());
            const auto fetch = clock.fetch_from(out.data());
            std::vector<std::uint8_t> back(std::size_t{1} << 20);
            for (std::uint64_t at = 0; at < work.size; at += back.size()) {
                const auto count = std::min<std::uint64_t>(back.size(), work.size - at);
                DAEL_TRY(fetch(at, back.data(), count));
                if (std::memcmp(back.data(), plain.data() + at, count) != 0)
                    return Error{Code::internal, describe(work) + ": other bytes came out"};
            }
            return {};
        };
        heat.enter("open", measure::wall_clock(call, sampling), check, work.point(),
                   static_cast<double>(work.size), {ceiling});
        return heat;
    }
};

}  // namespace

Result<Benchmark> sealed_in(const Suite& suite, const DeviceUnderTest& subject) {
    const std::uint64_t size = suite.workload.sealed_file;
    DAEL_LET(clock, DeviceClock::create(subject.device));
    DAEL_LET(stream, DeviceStream::create(subject.device));
    const auto state = std::make_shared<SealedIn>(
        SealedIn{subject, suite.workload.sampling, clock, stream, {}, {}, {}, {}, {}});
    DAEL_LET(out, DeviceBuffer::allocate(subject.device, MemoryKind::device, size));
    DAEL_LET(pinned, DeviceBuffer::allocate(subject.device, MemoryKind::pinned,
                                            std::min<std::uint64_t>(size, 32 << 20)));
    state->out = out;
    state->pinned = pinned;
    DAEL_TRY(state->make(size, 128));
    return Benchmark{subject.name + ", sealed files",
                     {measure::Axis{Point{{"where", "file"}}},
                      measure::axis("bits", std::vector<int>{128}),
                      ways(suite.options),
                      {shape(size, 1, 1)},
                      measure::axis("threads", std::vector<int>{1, 8, 16})},
                     [](const Point& point) {
                         const Work work(point);
                         return work.is(Mode::gcm) && !work.mac_only &&
                                work.cipher.direction == Direction::decrypt;
                     },
                     [state](const Point& point) { return state->prepare(Work(point)); }};
}

}  // namespace dael::bench
