// SPDX-License-Identifier: Apache-2.0
#include "io/transfer.hpp"

#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <daelstrom/cipher.hpp>
#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>

namespace dael::app {
namespace {

// Two being read, one being worked on, one being written: each stage has one while its neighbours
// wait, and the reader has one more to see whether anything follows.
constexpr std::size_t kBuffers = 5;

// Chunks on their way from one thread to the next.
class Channel {
  public:
    void put(const Chunk& chunk) {
        {
            const std::lock_guard lock(mutex_);
            chunks_.push_back(chunk);
        }
        changed_.notify_one();
    }
    // Nothing once the channel is closed, or finished and empty.
    std::optional<Chunk> take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return finished_ || !chunks_.empty(); });
        if (chunks_.empty() || closed_) return std::nullopt;
        const Chunk chunk = chunks_.front();
        chunks_.pop_front();
        return chunk;
    }
    void finish() { end(false); }  // nothing more will be put
    void close() { end(true); }    // and what is there is not wanted either

  private:
    void end(bool drop) {
        {
            const std::lock_guard lock(mutex_);
            finished_ = true;
            closed_ = closed_ || drop;
        }
        changed_.notify_all();
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Chunk> chunks_;
    bool finished_ = false;
    bool closed_ = false;
};

// Page-aligned memory for one chunk and its padding; wiped, since it held plaintext.
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    ~Buffer() {
        if (!data_) return;
        wipe(data_, size_);
        pinned_ ? release_pinned(data_) : static_cast<void>(::munmap(data_, size_));
    }
    Result<> allocate(std::size_t size, bool pinned) {
        pinned_ = pinned;
        size_ = size;
        void* memory = pinned ? allocate_pinned(size)
                              : ::mmap(nullptr, size, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (memory == MAP_FAILED || !memory)
            return Error{Code::out_of_memory,
                         "no memory for buffers of " + std::to_string(size) +
                             " bytes; close other programs or use --backend cpu"};
        data_ = static_cast<std::uint8_t*>(memory);
        return {};
    }
    std::uint8_t* data() const { return data_; }

  private:
    std::uint8_t* data_ = nullptr;
    std::size_t size_ = 0;
    bool pinned_ = false;
};

// What stands in the way of a new thread: the memory for its stack, where that is limited.
std::string mend_for_threads() {
    rlimit space{};
    const bool limited = ::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY;
    return limited ? "; raise the limit on its memory, ulimit -v"
                   : "; close other programs or raise ulimit -u";
}

// Calls work(piece) for the pieces of a chunk's buffer in order, while it returns true.
template <class PieceWork>
Result<> for_pieces(const Spacing& pieces, std::size_t chunk, bool first, std::uint8_t* data,
                    PieceWork work) {
    const std::size_t stride = pieces.stride ? pieces.stride : chunk;
    for (std::size_t at = 0; at < chunk; at += stride) {
        const std::size_t front = first && at == 0 ? pieces.front : 0;
        auto more = work(std::span(data + at + front, stride - pieces.gap - front));
        if (!more) return std::move(more).error();
        if (!*more) break;
    }
    return {};
}

class Transfer {
  public:
    Transfer(Input& input, Output& output, Progress& progress, const TransferOptions& options)
        : input_(input), output_(output), progress_(progress), options_(options) {}

    Result<> run(const Work& work) {
        for (Buffer& buffer : buffers_) {
            DAEL_TRY(buffer.allocate(options_.chunk + kBlockSize, options_.pinned));
            free_.put({buffer.data(), 0, false});
        }
        // A stage that fails stops those before it; what has passed it still goes all the way, so
        // that how much comes out does not depend on chance.
        std::thread reader, writer;
        keep_failure(start(reader, [this] {
            keep_failure(read_ahead());
            filled_.finish();
        }));
        keep_failure(start(writer, [this] {
            if (!keep_failure(write_behind())) stop_reading();
        }));
        const bool started = reader.joinable() && writer.joinable();
        if (!started || !keep_failure(work_between(work))) stop_reading();
        worked_.finish();
        for (std::thread* thread : {&writer, &reader})
            if (thread->joinable()) thread->join();
        if (failure_) return *std::move(failure_);
        return {};
    }

  private:
    template <class Body>
    static Result<> start(std::thread& thread, Body body) {
        try {
            thread = std::thread(std::move(body));
            return {};
        } catch (const std::system_error& fault) {
            return Error{Code::out_of_memory,
                         "cannot start a thread: " + fault.code().message() + mend_for_threads()};
        }
    }

    // Keeps one chunk back until it is known whether another follows.
    Result<> read_ahead() {
        std::optional<Chunk> held;
        for (bool first = true; auto chunk = free_.take(); first = false) {
            auto full = fill(*chunk, first);
            if (!full) return std::move(full).error();
            if (held && chunk->size == 0) {
                held->last = true;
                filled_.put(*held);
                return {};
            }
            if (held) filled_.put(*held);
            if (!*full) {
                chunk->last = true;
                filled_.put(*chunk);
                return {};
            }
            held = chunk;
        }
        return {};
    }

    // Whether there was enough to fill every piece.
    Result<bool> fill(Chunk& chunk, bool first) {
        bool full = true;
        DAEL_TRY(for_pieces(options_.in, options_.chunk, first, chunk.data,
                            [&](std::span<std::uint8_t> piece) -> Result<bool> {
                                auto filled = input_.fill(piece);
                                if (!filled) return std::move(filled).error();
                                chunk.size += *filled;
                                return full = *filled == piece.size();
                            }));
        return full;
    }

    Result<> work_between(const Work& work) {
        while (auto chunk = filled_.take()) {
            DAEL_TRY(work(*chunk));
            worked_.put(*chunk);
        }
        return {};
    }

    Result<> write_behind() {
        for (bool first = true; auto chunk = worked_.take(); first = false) {
            DAEL_TRY(write(*chunk, first));
            progress_.advance(chunk->size);
            free_.put({chunk->data, 0, false});
        }
        return {};
    }

    Result<> write(const Chunk& chunk, bool first) {
        // Padding makes a chunk longer than its pieces, where these are all in one.
        if (options_.out.stride == 0) return output_.write({chunk.data, chunk.size});
        std::size_t left = chunk.size;
        return for_pieces(options_.out, options_.chunk, first, chunk.data,
                          [&](std::span<std::uint8_t> piece) -> Result<bool> {
                              piece = piece.first(std::min(left, piece.size()));
                              auto written = output_.write(piece);
                              if (!written) return std::move(written).error();
                              left -= piece.size();
                              return left != 0;
                          });
    }

    // The first failure is the one that is told. Returns whether there was none.
    bool keep_failure(Result<> result) {
        if (result) return true;
        const std::lock_guard lock(mutex_);
        if (!failure_) failure_ = std::move(result).error();
        return false;
    }

    void stop_reading() {
        free_.close();
        filled_.close();
        input_.stop();
    }

    Input& input_;
    Output& output_;
    Progress& progress_;
    const TransferOptions& options_;
    std::array<Buffer, kBuffers> buffers_;
    Channel free_, filled_, worked_;
    std::mutex mutex_;
    std::optional<Error> failure_;
};

}  // namespace

Result<> transfer(Input& input, Output& output, Progress& progress, const TransferOptions& options,
                  const Work& work) {
    return Transfer(input, output, progress, options).run(work);
}

}  // namespace dael::app
