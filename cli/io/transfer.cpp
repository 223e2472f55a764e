// SPDX-License-Identifier: Apache-2.0
#include "io/transfer.hpp"

#include <sys/mman.h>

#include <array>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <utility>

#include <daelstrom/key.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/modes.hpp>

namespace dael::cli {
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
            return Error{Code::out_of_memory, std::string("cannot start a thread: ") +
                                                  fault.code().message() +
                                                  "; close other programs or raise ulimit -u"};
        }
    }

    // Keeps one chunk back until it is known whether another follows.
    Result<> read_ahead() {
        std::optional<Chunk> held;
        while (auto chunk = free_.take()) {
            auto filled = input_.fill({chunk->data, options_.chunk});
            if (!filled) return std::move(filled).error();
            chunk->size = *filled;
            if (held && chunk->size == 0) {
                held->last = true;
                filled_.put(*held);
                return {};
            }
            if (held) filled_.put(*held);
            if (chunk->size < options_.chunk) {
                chunk->last = true;
                filled_.put(*chunk);
                return {};
            }
            held = chunk;
        }
        return {};
    }

    Result<> work_between(const Work& work) {
        while (auto chunk = filled_.take()) {
            DAEL_TRY(work(*chunk));
            worked_.put(*chunk);
        }
        return {};
    }

    Result<> write_behind() {
        while (auto chunk = worked_.take()) {
            DAEL_TRY(output_.write({chunk->data, chunk->size}));
            progress_.advance(chunk->size);
            free_.put({chunk->data, 0, false});
        }
        return {};
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

}  // namespace dael::cli
