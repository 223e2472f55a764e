// SPDX-License-Identifier: Apache-2.0
// The opengl backend: an OpenGl on a thread of its own, since a context belongs to one thread at a
// time, and the callers' threads may have contexts of theirs.
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <deque>
#include <functional>
#include <future>
#include <mutex>
#include <system_error>
#include <thread>

#include "core/known_answers.hpp"
#include "core/process.hpp"
#include "lab/opengl/entry.hpp"
#include "lab/opengl/opengl.hpp"

namespace dael::opengl {
namespace {

// No signal comes to the calling thread, nor to those that it starts, while this lives.
class NoSignals {
  public:
    NoSignals() noexcept {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~NoSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    NoSignals(const NoSignals&) = delete;
    NoSignals& operator=(const NoSignals&) = delete;

  private:
    sigset_t before_;
};

// One thread that does what any number of others ask of it, in turn, and `last` before it ends. It
// takes no signals, so that Ctrl-C reaches the program's own threads.
class ContextThread {
  public:
    using Work = std::function<Result<>()>;

    explicit ContextThread(std::function<void()> last) : last_(std::move(last)) {
        const NoSignals while_starting;
        thread_ = std::thread([this] { serve(); });
    }
    ~ContextThread() {
        {
            const std::lock_guard lock(mutex_);
            closing_ = true;
        }
        changed_.notify_one();
        thread_.join();
    }

    // A child of fork() has not got its parent's thread, and could only wait for it forever.
    bool forked() const noexcept { return process_ != core::this_process(); }

    // Returns what `work` returned, when it has. What it throws is thrown here.
    Result<> run(Work work) {
        std::packaged_task<Result<>()> task(std::move(work));
        auto done = task.get_future();
        {
            const std::lock_guard lock(mutex_);
            tasks_.push_back(std::move(task));
        }
        changed_.notify_one();
        return done.get();
    }

  private:
    void serve() {
        std::unique_lock lock(mutex_);
        for (;;) {
            changed_.wait(lock, [this] { return closing_ || !tasks_.empty(); });
            if (tasks_.empty()) break;
            auto task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task();
            lock.lock();
        }
        last_();
    }

    const std::uint32_t process_ = core::this_process();
    const std::function<void()> last_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::packaged_task<Result<>()>> tasks_;
    bool closing_ = false;
    std::thread thread_;
};

// Keys need no making ready: shaders get the round keys of each call.
class NoTables final : public core::KeyTables {
  public:
    Result<> replace(std::uint32_t, const Key&, Stream) override { return {}; }
};

class OpenGlBackend final : public core::Backend {
  public:
    explicit OpenGlBackend(int device)
        : profile_{"opengl:" + std::to_string(device), {}, /*shared_by_threads=*/false} {}
    ~OpenGlBackend() override {
        if (context_thread_->forked()) {  // left behind on purpose
            static_cast<void>(gl_.release());
            static_cast<void>(context_thread_.release());
        }
    }

    Result<> open(const Options& options) {
        return context_thread_->run([&]() -> Result<> {
            auto opened = OpenGl::open(options);
            if (!opened) return std::move(opened).error();
            gl_ = std::move(*opened);
            profile_.description = gl_->description();
            return {};
        });
    }

    const core::Profile& profile() const override { return profile_; }
    Result<> usable() const override {
        if (context_thread_->forked()) return core::opened_before_fork(profile_.name);
        DAEL_TRY(core::believed(gl_->name()));
        if (was_reset_)
            return Error{Code::device, gl_->name() + ": the GPU was reset; open the engine anew"};
        return {};
    }
    core::Can can(const Cipher& cipher, int) const override {
        if (gl_->supports(cipher)) return {};
        return {core::Can::no,
                "gl-int has ecb and ctr both ways, gl-float ecb encryption; use the backend 'auto' "
                "or 'openssl' for the rest"};
    }

    Result<std::unique_ptr<core::KeyTables>> tables(std::span<const Key>) override {
        return std::unique_ptr<core::KeyTables>(std::make_unique<NoTables>());
    }

    Result<> run(const Cipher& cipher, const core::KeyList& keys, std::span<const Message> messages,
                 std::span<Code>) override {
        if (std::ranges::all_of(messages, [](const auto& message) { return message.size == 0; }))
            return {};
        if (const core::Can answer = can(cipher, 128); answer.answer == core::Can::no)
            return core::cannot(profile_.name, cipher, answer);
        if (context_thread_->forked()) return core::opened_before_fork(profile_.name);
        return context_thread_->run([&]() -> Result<> {
            Result<> done;
            for (std::size_t i = 0; i < messages.size() && done; ++i)
                if (messages[i].size != 0)
                    done = gl_->run(cipher, keys.list[messages[i].key], messages[i]);
            was_reset_ = gl_->was_reset();
            return done;
        });
    }

    Result<std::unique_ptr<core::Pieces>> begin(const Cipher& cipher, const core::KeyList&,
                                                std::uint32_t, const Start&) override {
        return core::cannot(profile_.name, cipher, can(cipher, 128));
    }

  private:
    core::Profile profile_;
    std::atomic<bool> was_reset_{false};
    std::unique_ptr<OpenGl> gl_;  // that thread's
    std::unique_ptr<ContextThread> context_thread_ =
        std::make_unique<ContextThread>([this] { gl_.reset(); });
};

int count(std::string* why) {
    if constexpr (std::endian::native != std::endian::little) {
        *why = "its shaders take words of a little-endian processor";
        return 0;
    }
    return count_devices(why);
}

Result<std::unique_ptr<core::Backend>> open(const core::BackendOptions& options) try {
    Options how{.device = options.index};
    if (!options.form.empty()) {
        const auto form = std::ranges::find(kFormNames, options.form);
        if (form == kFormNames.end())
            return Error{Code::invalid_argument, "opengl has no form '" + options.form +
                                                     "'; there are gl-int and gl-float"};
        how.form = static_cast<Form>(form - kFormNames.begin());
    }
    auto backend = std::make_unique<OpenGlBackend>(options.index);
    DAEL_TRY(backend->open(how));
    return std::unique_ptr<core::Backend>(std::move(backend));
} catch (const std::system_error& fault) {
    return Error{Code::device, std::string("opengl: no thread to draw on: ") + fault.what()};
}

std::vector<std::string> forms() {
    return {kFormNames.begin(), kFormNames.end()};
}

}  // namespace

constinit const core::BackendEntry kEntry{.name = "opengl",
                                          .summary = "OpenGL ES: AES as drawing, an exhibit",
                                          .count = count,
                                          .open = open,
                                          .forms = forms};

}  // namespace dael::opengl
