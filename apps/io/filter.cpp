// SPDX-License-Identifier: Apache-2.0
#include "io/filter.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <tuple>
#include <utility>

#include <daelstrom/message.hpp>

namespace dael::app {
namespace {

// Two being read, one being worked on, one being written: each stage has one while its neighbours
// wait, and the reader has one more to see whether anything follows.
static_assert(std::tuple_size_v<Buffers> == 5);

// Chunks on their way from one thread to the next.
class Channel {
  public:
    void put(const FilterChunk& chunk) {
        {
            const std::lock_guard lock(mutex_);
            chunks_.push_back(chunk);
        }
        changed_.notify_one();
    }
    // Nothing once the channel is closed, or finished and empty.
    std::optional<FilterChunk> take() {
        std::unique_lock lock(mutex_);
        changed_.wait(lock, [this] { return finished_ || !chunks_.empty(); });
        if (chunks_.empty() || closed_) return std::nullopt;
        const FilterChunk chunk = chunks_.front();
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
    std::deque<FilterChunk> chunks_;
    bool finished_ = false;
    bool closed_ = false;
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

class Filter {
  public:
    Filter(Input& input, Output& output, Progress& progress, const FilterOptions& options,
           Buffers& buffers)
        : input_(input),
          output_(output),
          progress_(progress),
          options_(options),
          buffers_(buffers) {}

    // In the caller's thread. The chunk that is held back and the one that is read take turns.
    Result<> run_alone(const Work& work) {
        std::size_t turn = 0;
        return read_chunks(
            [&]() -> Result<std::optional<FilterChunk>> {
                Buffer& buffer = buffers_[turn++ % 2];
                DAEL_TRY(allocate(buffer));
                return std::optional(FilterChunk{buffer.data(), 0, false});
            },
            [&](FilterChunk chunk) -> Result<> {
                DAEL_TRY(work(chunk));
                return write(chunk);
            });
    }

    Result<> run_ahead(const Work& work) {
        for (Buffer& buffer : buffers_) {
            DAEL_TRY(allocate(buffer));
            free_.put({buffer.data(), 0, false});
        }
        // A stage that fails stops those before it; what has passed it still goes all the way, so
        // that how much comes out does not depend on chance.
        std::thread reader, writer;
        keep_failure(start(reader, [this] {
            keep_failure(
                read_chunks([this]() -> Result<std::optional<FilterChunk>> { return free_.take(); },
                            [this](const FilterChunk& chunk) -> Result<> {
                                filled_.put(chunk);
                                return {};
                            }));
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

    Result<> allocate(Buffer& buffer) {
        return buffer.allocate(options_.chunk + kBlockSize, options_.pinned);
    }

    // Fills the chunks that next() yields, while it does, and hands them on. Keeps one back until
    // it is known whether another follows.
    template <class Next, class Put>
    Result<> read_chunks(Next next, Put put) {
        std::optional<FilterChunk> held;
        for (bool first = true;; first = false) {
            DAEL_LET(chunk, next());
            if (!chunk) return {};
            DAEL_LET(full, fill(*chunk, first));
            if (held && chunk->size == 0) {
                held->last = true;
                return put(*held);
            }
            if (held) DAEL_TRY(put(*held));
            if (!full) {
                chunk->last = true;
                return put(*chunk);
            }
            held = chunk;
        }
    }

    // Whether there was enough to fill every piece.
    Result<bool> fill(FilterChunk& chunk, bool first) {
        bool full = true;
        std::size_t touched = 0;
        DAEL_TRY(for_pieces(options_.in, options_.chunk, first, chunk.data,
                            [&](std::span<std::uint8_t> piece) -> Result<bool> {
                                auto filled = input_.fill(piece);
                                if (!filled) return std::move(filled).error();
                                chunk.size += *filled;
                                // The work may use the gap, and as much behind as padding takes.
                                touched = static_cast<std::size_t>(piece.data() - chunk.data) +
                                          *filled + options_.in.gap + kBlockSize;
                                return full = *filled == piece.size();
                            }));
        const auto mine = std::ranges::find(buffers_, chunk.data, &Buffer::data);
        if (mine != buffers_.end()) mine->touch(touched);
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
        while (auto chunk = worked_.take()) {
            DAEL_TRY(write(*chunk));
            free_.put({chunk->data, 0, false});
        }
        return {};
    }

    Result<> write(const FilterChunk& chunk) {
        DAEL_TRY(write_pieces(chunk));
        began_ = true;
        progress_.advance(chunk.size);
        return {};
    }

    Result<> write_pieces(const FilterChunk& chunk) {
        // Padding makes a chunk longer than its pieces, where these are all in one.
        if (options_.out.stride == 0) return output_.write({chunk.data, chunk.size});
        std::size_t left = chunk.size;
        return for_pieces(options_.out, options_.chunk, !began_, chunk.data,
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
    const FilterOptions& options_;
    Buffers& buffers_;
    bool began_ = false;  // something has been written
    Channel free_, filled_, worked_;
    std::mutex mutex_;
    std::optional<Error> failure_;
};

}  // namespace

Result<> filter(Input& input, Output& output, Progress& progress, const FilterOptions& options,
                Buffers& buffers, const Work& work) {
    Filter filter(input, output, progress, options, buffers);
    return options.ahead ? filter.run_ahead(work) : filter.run_alone(work);
}

Result<> filter(Input& input, Output& output, Progress& progress, const FilterOptions& options,
                const Work& work) {
    Buffers buffers;
    return filter(input, output, progress, options, buffers, work);
}

}  // namespace dael::app
