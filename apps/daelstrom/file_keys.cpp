// SPDX-License-Identifier: Apache-2.0
#include "file_keys.hpp"

#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <semaphore>
#include <string>

namespace dael::cli {

Error in_file(const Input& input, Error error) {
    const bool about_data = error.code == Code::authentication || error.code == Code::bad_format ||
                            error.code == Code::limit || error.code == Code::unsupported;
    if (about_data) error.message = input.name() + ": " + error.message;
    return error;
}

Result<sealed::Lock> read_lock(Input& input) {
    sealed::Lock lock{};
    const auto start = input.peek(lock.size());
    if (!start) return start.error();
    if (!sealed::is_lock(*start))
        return Error{Code::bad_format, input.name() +
                                           " was not sealed with a passphrase; was it sealed with "
                                           "a key? Give --key-file or --keyset"};
    auto got = input.fill(lock);
    if (!got) return std::move(got).error();
    if (*got < lock.size())
        return Error{Code::bad_format, input.name() + " is cut off: it ends after " +
                                           std::to_string(*got) + " of the 108 bytes of its lock"};
    return lock;
}

Error not_unlocked(const Input& input, const sealed::Lock& lock, Error error) {
    if (error.code == Code::limit) {
        const auto [log2_n, r, p] = sealed::cost_of(lock);
        const double memory = std::ldexp(r, log2_n - 3), steps = memory * p;  // 2^N and p of --cost
        const bool at_all = memory <= 1 << 20 && steps <= 1 << 22;
        int needed = 10;
        while (needed < 20 && steps > std::ldexp(1, needed)) ++needed;
        if (at_all) error.message += " (--max-cost " + std::to_string(needed) + ")";
    }
    return in_file(input, std::move(error));
}

namespace {

class OfKeys final : public KeySource {
  public:
    explicit OfKeys(std::function<Result<sealed::Keys>()> read) : read_(std::move(read)) {}

    Result<> ready() override {
        const std::lock_guard lock(mutex_);
        if (keys_) return {};
        DAEL_LET(keys, read_());
        keys_ = std::make_shared<const sealed::Keys>(std::move(keys));
        return {};
    }

    Result<FileKeys> to_seal(Engine&) override {
        DAEL_TRY(ready());
        return FileKeys{keys_, {}};
    }

    Result<FileKeys> to_open(Engine& engine, Input& input) override {
        DAEL_LET(start, input.peek(sealed::kLockSize));
        if (sealed::is_lock(start))
            return Error{Code::bad_format, input.name() +
                                               " was sealed with a passphrase, not with a key; "
                                               "leave the key out"};
        return to_seal(engine);
    }

  private:
    std::function<Result<sealed::Keys>()> read_;
    std::mutex mutex_;
    std::shared_ptr<const sealed::Keys> keys_;
};

class OfPassphrase final : public KeySource {
  public:
    OfPassphrase(std::function<Result<Secret>()> read, const PassphraseOptions& options)
        : read_(std::move(read)), options_(options) {}

    Result<> ready() override {
        const std::lock_guard lock(mutex_);
        if (!passphrase_.empty()) return {};
        DAEL_LET(passphrase, read_());
        passphrase_ = std::move(passphrase);
        return {};
    }

    Result<FileKeys> to_seal(Engine& engine) override {
        DAEL_TRY(ready());
        const std::lock_guard lock(sealing_.mutex);
        if (sealing_.keys) return FileKeys{sealing_.keys, sealing_front_};
        DAEL_LET(locked,
                 sealed::make_lock(engine, passphrase_.bytes(), options_.segment, options_.cost));
        sealing_.keys = std::make_shared<const sealed::Keys>(std::move(locked.keys));
        sealing_front_.assign(locked.lock.begin(), locked.lock.end());
        return FileKeys{sealing_.keys, sealing_front_};
    }

    Result<FileKeys> to_open(Engine& engine, Input& input) override {
        DAEL_LET(lock, read_lock(input));
        DAEL_TRY(ready());
        const auto known = entry_of(lock);
        const std::lock_guard guard(known->mutex);
        if (!known->keys) {
            at_once_.acquire();
            auto keys = sealed::unlock(engine, passphrase_.bytes(), lock, options_.most);
            at_once_.release();
            if (!keys) return not_unlocked(input, lock, std::move(keys).error());
            known->keys = std::make_shared<const sealed::Keys>(std::move(*keys));
        }
        return FileKeys{known->keys, {lock.begin(), lock.end()}};
    }

  private:
    struct Entry {
        std::mutex mutex;
        std::shared_ptr<const sealed::Keys> keys;  // once somebody has them
    };

    // What is known of a lock. Files of several calls may lie side by side; of very many, those
    // whose turn comes first are forgotten.
    std::shared_ptr<Entry> entry_of(const sealed::Lock& lock) {
        constexpr std::size_t kMost = 64;  // their keys take locked memory
        const std::lock_guard guard(mutex_);
        auto& entry = known_[lock];
        if (!entry) entry = std::make_shared<Entry>();
        const auto found = entry;
        if (known_.size() > kMost)
            known_.erase(known_.begin()->first == lock ? std::prev(known_.end()) : known_.begin());
        return found;
    }

    std::function<Result<Secret>()> read_;
    const PassphraseOptions options_;
    std::mutex mutex_;
    Secret passphrase_;
    Entry sealing_;
    std::vector<std::uint8_t> sealing_front_;
    std::map<sealed::Lock, std::shared_ptr<Entry>> known_;
    std::counting_semaphore<4> at_once_{4};  // each takes some hundred MiB
};

}  // namespace

std::unique_ptr<KeySource> source_of_keys(std::function<Result<sealed::Keys>()> read) {
    return std::make_unique<OfKeys>(std::move(read));
}

std::unique_ptr<KeySource> source_of_passphrase(std::function<Result<Secret>()> read,
                                                const PassphraseOptions& options) {
    return std::make_unique<OfPassphrase>(std::move(read), options);
}

}  // namespace dael::cli
