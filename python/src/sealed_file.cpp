// SPDX-License-Identifier: Apache-2.0
// A sealed stream in a file: read here, by its descriptor, while other threads of Python run.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>

#include "beside.hpp"
#include "scratch.hpp"
#include "sealed.hpp"
#include "weights.hpp"

namespace daelpy {
namespace {

constexpr int kReaders = 16;  // of a file, at once, or as many as the engine has threads
constexpr int kShorter = -1;  // instead of an errno: the file has become shorter

[[noreturn]] void raise_errno(int failed) {
    if (failed == kShorter) {
        PyErr_SetString(PyExc_OSError,
                        "the file has become shorter since it was opened; open it again");
    } else {
        errno = failed;
        PyErr_SetFromErrno(PyExc_OSError);
    }
    throw nb::python_error();
}

class Descriptor {
  public:
    explicit Descriptor(int of) : number_(fcntl(of, F_DUPFD_CLOEXEC, 0)) {
        if (number_ < 0) raise_errno(errno);
    }
    ~Descriptor() { ::close(number_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const { return number_; }

  private:
    int number_;
};

class File {
  public:
    // `size` bytes from byte `at` on are the stream.
    File(const SealedKeys& keys, nb::handle aad, int descriptor, std::uint64_t at,
         std::uint64_t size, const Engine* engine)
        : engine_(Engine::or_usual(engine)),
          keys_(keys),
          at_(at),
          sealed_(size),
          descriptor_(descriptor) {
        const Memory bound(aad, Access::read, "aad");
        if (bound.size != 0) aad_.assign(bound.data, bound.data + bound.size);
        const std::uint64_t wanted = dael_opener_head_size(keys.get());
        const Scratch head(std::min(size, wanted), Scratch::open);
        if (const int failed = read(0, head.get(), std::min(size, wanted))) raise_errno(failed);
        stream_ = SealedStream::start(engine_.get(), keys, bound, head.get(),
                                      std::min(size, wanted), size < wanted);
        plain_ = stream_.plain_size(size);
    }

    std::uint64_t segment() const { return stream_.layout.segment; }
    std::uint64_t size() const { return plain_; }

    // Where the segments begin in the plaintext that hold `size` bytes from byte `at` on, and how
    // many bytes they have.
    nb::tuple around(std::uint64_t at, std::uint64_t size) const {
        dael_sealed_chunk chunk{};
        check(stream_.covering(at, size, plain_, &chunk));
        return nb::make_tuple(chunk.plain.at, chunk.plain.size);
    }

    void read_into(std::uint64_t at, nb::handle out) const {
        const Memory to(out, Access::write, "out");
        if (to.on_device) value_error("out lies in a device's memory: open_into() fills that");
        run(at, to.data, to.size);
    }
    nb::bytes read_bytes(std::uint64_t at, std::uint64_t size) const {
        in_range(at, size);
        const nb::bytes bytes = new_bytes(size);
        run(at, inside(bytes), size);
        return bytes;
    }
    void check_size() const { run(plain_, nullptr, 0); }

    // All of it, to where `out` lies.
    void read_all(nb::handle out, nb::handle stream) {
        const Memory to = memory_of(out, Access::write, "out");
        if (to.size != plain_)
            value_error("the plaintext has " + std::to_string(plain_) + " bytes, the output " +
                        std::to_string(to.size));
        if (!to.on_device) return run(0, to.data, to.size);
        const Order order(engine_, to, stream);
        dael_sealed_file* file = nullptr;
        dael_status status;
        ForDevice reading{this, 0};
        {
            const Released released;
            status = dael_sealed_file_open(engine_.get(), keys_.get(), aad_.data(), aad_.size(),
                                           read_for_device, &reading, sealed_, &file);
            if (status == DAEL_OK)
                status = dael_sealed_file_read_all(file, to.data, to.size, order.stream(), kReaders,
                                                   nullptr);
            dael_sealed_file_close(file);
        }
        if (status == DAEL_IO && reading.failed != 0) raise_errno(reading.failed);
        check(status);
    }

  private:
    struct Outcome {
        dael_status status = DAEL_OK;
        int failed = 0;
        bool good() const { return status == DAEL_OK && failed == 0; }
    };

    // `size` bytes of the stream from byte `at` on. 0, an errno, or kShorter.
    int read(std::uint64_t at, std::uint8_t* out, std::uint64_t size) const {
        while (size != 0) {
            const ssize_t got = pread(descriptor_.get(), out, size, static_cast<off_t>(at_ + at));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return errno;
            if (got == 0) return kShorter;
            at += static_cast<std::uint64_t>(got);
            out += got;
            size -= static_cast<std::uint64_t>(got);
        }
        return 0;
    }
    // One call's own, so that no lock is there which a child of fork() could find taken.
    struct ForDevice {
        const File* file;
        std::atomic<int> failed;
    };
    static int read_for_device(void* context, std::uint64_t at, void* out, std::size_t size) {
        auto* const reading = static_cast<ForDevice*>(context);
        const int failed = reading->file->read(at, static_cast<std::uint8_t*>(out), size);
        if (failed != 0) reading->failed = failed;
        return failed;
    }

    void in_range(std::uint64_t at, std::uint64_t size) const {
        if (at > plain_ || size > plain_ - at)
            value_error("the range passes the end of the plaintext, which has " +
                        std::to_string(plain_) + " bytes");
    }
    void run(std::uint64_t at, std::uint8_t* out, std::uint64_t size) const {
        in_range(at, size);
        Outcome outcome;
        {
            const Released released;
            outcome = read_range(at, out, size);
            if (!outcome.good()) dael_wipe(out, size);
        }
        if (outcome.failed != 0) raise_errno(outcome.failed);
        check(outcome.status);
    }

    // What is wanted from byte `from` on, as far as one window goes.
    dael_status window(std::uint64_t from, std::uint64_t end, dael_sealed_chunk* chunk) const {
        dael_sealed_chunk first{};
        const auto status = stream_.covering(from, from < plain_ ? 1 : 0, plain_, &first);
        if (status != DAEL_OK) return status;
        const std::uint64_t whole = per_window() * (segment() - DAEL_TAG_SIZE) -
                                    (first.first == 0 ? stream_.layout.header : 0);
        const std::uint64_t to = std::min(end, first.plain.at + whole);
        return stream_.covering(from, to - from, plain_, chunk);
    }
    // In segments: enough for every thread, and not much more than caches hold.
    std::uint64_t per_window() const {
        constexpr std::uint64_t kBytes = 8 << 20;
        return std::max<std::uint64_t>(1, kBytes / segment());
    }

    // Window by window: while one is opened, the next one is read.
    Outcome read_range(std::uint64_t at, std::uint8_t* out, std::uint64_t size) const {
        Outcome outcome;
        const std::uint64_t end = at + size;
        dael_sealed_chunk now{};
        outcome.status = window(at, end, &now);
        if (!outcome.good()) return outcome;
        const bool more = now.plain.at + now.plain.size < end;
        const std::uint64_t room = more ? per_window() * segment() : now.sealed.size;
        const Scratch one(room, Scratch::open), other(more ? room : 0, Scratch::open);
        std::array<std::uint8_t*, 2> buffers{one.get(), other.get()};
        outcome.failed = read(now.sealed.at, buffers[0], now.sealed.size);
        for (std::uint64_t from = at; outcome.good();) {
            const std::uint64_t to = std::min(end, now.plain.at + now.plain.size);
            dael_sealed_chunk next{};
            std::future<int> reading;
            if (to < end) {
                outcome.status = window(to, end, &next);
                if (!outcome.good()) break;
                reading = std::async(kBeside, [&, to_here = buffers[1]] {
                    return read(next.sealed.at, to_here, next.sealed.size);
                });
            }
            outcome.status = stream_.open(plain_, now, buffers[0], from,
                                          size ? out + (from - at) : nullptr, to - from);
            if (!reading.valid()) break;
            outcome.failed = reading.get();
            std::swap(buffers[0], buffers[1]);
            now = next;
            from = to;
        }
        return outcome;
    }

    Engine engine_;
    SealedKeys keys_;
    std::vector<std::uint8_t> aad_;
    std::uint64_t at_, sealed_, plain_ = 0;
    Descriptor descriptor_;
    SealedStream stream_;
};

}  // namespace

void bind_sealed_file(nb::module_& m) {
    nb::class_<File>(m, "SealedFile")
        .def(nb::init<const SealedKeys&, nb::handle, int, std::uint64_t, std::uint64_t,
                      const Engine*>(),
             nb::arg("keys"), nb::arg("aad"), nb::arg("descriptor"), nb::arg("at"), nb::arg("size"),
             nb::kw_only(), nb::arg("engine") = nb::none())
        .def_prop_ro("segment", &File::segment)
        .def_prop_ro("size", &File::size)
        .def("around", &File::around, nb::arg("at"), nb::arg("size"))
        .def("read_into", &File::read_into, nb::arg("at"), nb::arg("out"))
        .def("read", &File::read_bytes, nb::arg("at"), nb::arg("size"))
        .def("check_size", &File::check_size)
        .def("read_all", &File::read_all, nb::arg("out"), nb::kw_only(),
             nb::arg("stream") = nb::none());
}

}  // namespace daelpy
