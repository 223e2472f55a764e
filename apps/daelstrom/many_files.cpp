// SPDX-License-Identifier: Apache-2.0
#include "many_files.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <vector>

#include "done.hpp"
#include "io/output.hpp"
#include "io/signals.hpp"
#include "io/text.hpp"
#include "io/warnings.hpp"

namespace dael::cli {
namespace {

void report(const ManyOptions& options, const PlannedFile& file, const FileDone& done,
            double seconds) {
    if (options.json)
        print_done({options.command, file.input, file.output.value_or("-"), done.read, done.written,
                    done.doers, seconds});
}

std::string count_of(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " file" : " files");
}

// The folders for the outputs; those that were made and stay empty, since all their files failed,
// go again.
class Folders {
  public:
    Result<> make(const FilePlan& plan) {
        for (const auto& [path, below, mode] : plan.folders) {
            if (below.empty()) {
                DAEL_TRY(make_one(AT_FDCWD, path, path, mode, ""));
                const int fd = ::open(path.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC);
                if (fd < 0)
                    return Error{Code::io, "cannot open the folder " + in_quotes(path) + ": " +
                                               std::strerror(errno)};
                root_ = plan.output_root->open = std::make_shared<const OpenFolder>(fd);
                continue;
            }
            DAEL_LET(parent, plan.output_root->open->below(parent_of(below), path));
            DAEL_TRY(make_one(parent->fd(), name_of(below), path, mode, below));
            DAEL_TRY(plan.output_root->open->below(below, path));  // and no link
        }
        return {};
    }
    ~Folders() {
        if (!has_failed) return;
        for (auto made = made_.rbegin(); made != made_.rend(); ++made) {
            if (!made->in_root) {
                (void)::rmdir(made->path.c_str());
            } else if (const auto parent = root_->below(parent_of(made->path), made->path)) {
                (void)::unlinkat((*parent)->fd(), name_of(made->path).c_str(), AT_REMOVEDIR);
            }
        }
    }
    bool has_failed = true;

  private:
    struct Made {
        std::string path;
        bool in_root;
    };

    static std::string parent_of(const std::string& below) {
        const auto slash = below.rfind('/');
        return slash == below.npos ? "" : below.substr(0, slash);
    }
    static std::string name_of(const std::string& below) {
        return below.substr(below.rfind('/') + 1);
    }

    Result<> make_one(int folder, const std::string& name, const std::string& path, mode_t mode,
                      const std::string& below) {
        // The owner must be able to write into it, whatever the other one was.
        if (::mkdirat(folder, name.c_str(), (mode & 0777) | 0700) == 0) {
            made_.push_back({below.empty() ? path : below, !below.empty()});
            return {};
        }
        const int error = errno;
        struct stat status {};
        if (error == EEXIST && ::fstatat(folder, name.c_str(), &status, 0) == 0 &&
            S_ISDIR(status.st_mode))
            return {};
        return Error{Code::io, "cannot make the folder " + in_quotes(path) + ": " +
                                   std::strerror(error == EEXIST ? ENOTDIR : error)};
    }

    std::shared_ptr<const OpenFolder> root_;
    std::vector<Made> made_;
};

class Run {
  public:
    Run(const FilePlan& plan, const ManyOptions& options, const FileWork& work)
        : plan_(plan),
          options_(options),
          work_(work),
          failed_(plan.failures.size()),
          progress_(options.show, count_of(plan.files.size()), total()) {}

    Result<> all() {
        for (const std::string& failure : plan_.failures) complain(failure);
        for (std::size_t i = 0; i < plan_.files.skipped(); ++i) tell(plan_.files.skipped(i));
        Folders folders;
        DAEL_TRY(folders.make(plan_));
        const unsigned workers = static_cast<unsigned>(
            std::min<std::size_t>({options_.threads, plan_.files.size(), DoomedFile::kMax / 2}));
        // What many threads hold at once stays within some hundred MiB.
        constexpr std::uint64_t kMebi = 1 << 20;
        const std::uint64_t small =
            std::min(chunk_for(options_.threads),
                     std::max<std::uint64_t>(1, 256 / std::max(1u, workers)) * kMebi);
        side_by_side(workers, small / 1024);
        Buffers buffers;
        for (std::size_t i = 0; i < plan_.files.size(); ++i)
            if (plan_.files.is_larger(i, small / 1024)) do_one(i, buffers);
        {
            std::unique_lock lock(mutex_);
            put_in_place(lock);
        }
        folders.has_failed = failed_ > 0;
        return summary();
    }

  private:
    struct Waiting {  // for the disk
        PlannedFile file;
        FileDone done;
        double seconds;
        Output output;
    };

    std::optional<std::uint64_t> total() const {
        const std::uint64_t sum = plan_.files.bytes();
        return options_.whole_sizes && sum > 0 ? std::optional(sum) : std::nullopt;
    }

    // Those of at most so many KiB.
    void side_by_side(unsigned workers, std::uint64_t small) {
        const auto serve = [this, small] {
            Buffers buffers;
            for (std::size_t i; (i = next_++) < plan_.files.size();)
                if (!plan_.files.is_larger(i, small)) do_one(i, buffers);
        };
        std::size_t count = 0;
        for (std::size_t i = 0; i < plan_.files.size() && count < workers; ++i)
            count += !plan_.files.is_larger(i, small);
        std::vector<std::thread> threads;
        try {
            for (unsigned i = 1; i < count; ++i)
                threads.emplace_back([&serve] {
                    block_signals();
                    serve();
                });
        } catch (const std::exception&) {  // no more threads, or no memory for them: fewer will do
        }
        serve();
        for (std::thread& thread : threads) thread.join();
    }

    void do_one(std::size_t i, Buffers& buffers) {
        std::optional<PlannedFile> file;
        try {
            file = plan_.files[i];
        } catch (const std::bad_alloc&) {
            const std::lock_guard lock(mutex_);
            return fail(
                [] { return "memory ran out at a file of this call; close other programs"; });
        }
        do_one(*file, buffers);
    }

    void do_one(const PlannedFile& file, Buffers& buffers) try {
        const Stopwatch time;
        Deferral deferral;
        auto done = work_(file, buffers, progress_);
        std::unique_lock lock(mutex_);
        if (!done) {
            fail([&] { return done.error().message; });
        } else if (!done->skipped.empty()) {
            ++skipped_;
            tell(in_quotes(file.input) + " " + done->skipped);
        } else if (deferral.put_off) {
            waiting_.push_back(
                {file, *std::move(done), time.seconds(), *std::move(deferral.put_off)});
            if (waiting_.size() < most_waiting_) return;
            lock.unlock();
            const std::lock_guard one_at_a_time(placing_);
            lock.lock();
            if (waiting_.size() >= most_waiting_) put_in_place(lock);
            lock.unlock();
        } else {
            tell_done(file, *done, time.seconds());
        }
    } catch (const std::bad_alloc&) {
        const std::lock_guard lock(mutex_);
        fail_without_memory(file);
    } catch (const std::exception& fault) {  // which would end the program in a thread of ours
        const std::lock_guard lock(mutex_);
        fail([&] { return in_quotes(file.input) + ": unexpected: " + fault.what(); });
    }

    // Counted last: who finds no memory to say so has failed, and is counted as that.
    void tell_done(const PlannedFile& file, const FileDone& done, double seconds) {
        Doers doers = doers_;
        doers.add(done.doers);
        report(options_, file, done, seconds);
        doers_ = std::move(doers);
        ++done_;
    }

    // Those that wait for the disk, at one go, while other threads write the next ones. Each is
    // counted, whatever runs out.
    void put_in_place(std::unique_lock<std::mutex>& lock) {
        std::vector<Waiting> waiting;
        waiting.swap(waiting_);
        lock.unlock();
        std::vector<Result<>> committed;
        try {
            std::vector<Output*> outputs;
            for (Waiting& one : waiting) outputs.push_back(&one.output);
            committed = Deferral::commit(outputs);
        } catch (const std::bad_alloc&) {  // before the first had its name
        }
        lock.lock();
        const Result<> no_memory = Error{Code::out_of_memory, ""};
        for (std::size_t i = 0; i < waiting.size(); ++i)
            count(waiting[i], i < committed.size() ? committed[i] : no_memory);
    }

    void count(const Waiting& one, const Result<>& committed) try {
        if (committed)
            tell_done(one.file, one.done, one.seconds);
        else if (committed.code() == Code::out_of_memory)
            fail_without_memory(one.file);
        else
            fail([&] { return committed.error().message; });
    } catch (const std::bad_alloc&) {
        fail_without_memory(one.file);
    }

    // `text` makes what is said. Where there is no memory for that either, less is.
    template <class Text>
    void fail(const Text& text) noexcept {
        ++failed_;
        try {
            complain(text());
        } catch (const std::exception&) {
            constexpr std::string_view kShort = "daelstrom: memory ran out at a file\n";
            (void)!write(STDERR_FILENO, kShort.data(), kShort.size());
        }
    }
    void fail_without_memory(const PlannedFile& file) noexcept {
        fail([&] {
            return "memory ran out at " + in_quotes(file.input) + "; close other programs";
        });
    }

    Result<> summary() {
        const std::uint64_t skipped = skipped_ + plan_.files.skipped() + plan_.other_names;
        std::string text = count_of(done_) + " " + options_.verb;
        if (skipped > 0) text += ", " + std::to_string(skipped) + " left alone";
        if (failed_ > 0) text += ", " + std::to_string(failed_) + " failed";
        if (failed_ > 0) {
            progress_.clear();
            return Error{Code::io, text};
        }
        progress_.finish(by(doers_));
        if (skipped > 0 || done_ == 0) tell(text);
        return {};
    }

    static constexpr std::size_t kMaxWaiting = 64;
    static_assert(2 * kMaxWaiting + DoomedFile::kMax / 2 <= DoomedFile::kMax);

    // Each holds four descriptors, of which a process usually has 1024; while some are put in their
    // places, as many may come to wait.
    static std::size_t most_waiting() {
        rlimit limit{};
        if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
            return kMaxWaiting;
        return std::clamp<std::size_t>(limit.rlim_cur / 24, 1, kMaxWaiting);
    }

    const FilePlan& plan_;
    const ManyOptions& options_;
    const FileWork& work_;
    const std::size_t most_waiting_ = most_waiting();
    std::atomic<std::size_t> next_{0};
    std::mutex placing_;  // before mutex_
    std::mutex mutex_;
    std::vector<Waiting> waiting_;
    std::uint64_t done_ = 0, skipped_ = 0, failed_;
    Doers doers_;
    Progress progress_;
};

Result<> do_single(const FilePlan& plan, const ManyOptions& options, const FileWork& work) {
    if (!plan.failures.empty()) return Error{Code::io, plan.failures.front()};
    Folders folders;
    DAEL_TRY(folders.make(plan));
    const PlannedFile file = plan.files[0];
    const std::string name = input_name(file.input);
    Progress progress(
        options.show, name,
        options.whole_sizes && file.size > 0 ? std::optional(file.size) : std::nullopt);
    Buffers buffers;
    const Stopwatch time;
    auto done = work(file, buffers, progress);
    if (!done) {
        progress.clear();
        return std::move(done).error();
    }
    folders.has_failed = false;
    if (!done->skipped.empty()) {
        tell(name + " " + done->skipped);
        return {};
    }
    progress.finish(by(done->doers));
    report(options, file, *done, time.seconds());
    return {};
}

}  // namespace

Result<> do_files(const FilePlan& plan, const ManyOptions& options, const FileWork& work) {
    for (const PlannedFile& file : plan.files.named())
        DAEL_TRY(check_json(options.json, file.output));
    return plan.single ? do_single(plan, options, work) : Run(plan, options, work).all();
}

}  // namespace dael::cli
