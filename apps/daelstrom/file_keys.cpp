// SPDX-License-Identifier: Apache-2.0
#include "file_keys.hpp"

#include <map>
#include <mutex>
#include <optional>
#include <semaphore>

#include "io/warnings.hpp"

namespace dael::cli {
namespace {

// What is read once, when it is first needed.
template <class Value>
class Once {
  public:
    explicit Once(std::function<Result<Value>()> read) : read_(std::move(read)) {}
    Result<const Value*> get() {
        const std::lock_guard guard(mutex_);
        if (!value_) {
            DAEL_LET(value, read_());
            value_ = std::move(value);
        }
        return &*value_;
    }
    // What is read next takes its place, which nobody else may look at meanwhile.
    void forget() { value_.reset(); }

  private:
    std::function<Result<Value>()> read_;
    std::mutex mutex_;
    std::optional<Value> value_;
};

template <class Value>
Result<> done(const Result<Value>& result) {
    if (!result) return result.error();
    return {};
}

std::shared_ptr<const sealed::Keys> shared(sealed::Keys keys) {
    return std::make_shared<const sealed::Keys>(std::move(keys));
}

// A new key, and the envelope that holds it.
Result<FileKeys> made_for(const sealed::Recipients& recipients, std::uint32_t segment) {
    DAEL_LET(made, sealed::make_envelope(recipients, segment));
    return FileKeys{shared(std::move(made.keys)), std::move(made.envelope)};
}

class OfKeys final : public KeySource {
  public:
    explicit OfKeys(std::function<Result<sealed::Keys>()> read)
        : keys_([read = std::move(read)]() -> Result<std::shared_ptr<const sealed::Keys>> {
              DAEL_LET(keys, read());
              return shared(std::move(keys));
          }) {}

    Result<> ready() override { return done(keys_.get()); }

    Result<FileKeys> to_seal(Engine&) override {
        DAEL_LET(keys, keys_.get());
        return FileKeys{*keys, {}};
    }

    Result<FileKeys> to_open(Engine& engine, Input& input) override {
        DAEL_LET(envelope, take_envelope(input));
        DAEL_TRY(check_kind(input, envelope, Kind::key));
        return to_seal(engine);
    }

  private:
    Once<std::shared_ptr<const sealed::Keys>> keys_;
};

class OfRecipients final : public KeySource {
  public:
    OfRecipients(std::function<Result<sealed::Recipients>()> read, std::uint32_t segment)
        : recipients_(std::move(read)), segment_(segment) {}

    Result<> ready() override { return done(recipients_.get()); }

    Result<FileKeys> to_seal(Engine&) override {
        DAEL_LET(recipients, recipients_.get());
        return made_for(*recipients, segment_);
    }

    Result<FileKeys> to_open(Engine&, Input&) override {
        return Error{Code::internal, "recipients open nothing"};
    }

  private:
    Once<sealed::Recipients> recipients_;
    const std::uint32_t segment_;
};

class OfIdentities final : public KeySource {
  public:
    explicit OfIdentities(std::function<Result<sealed::Identities>()> read)
        : identities_(std::move(read)) {}

    Result<> ready() override { return done(identities_.get()); }

    Result<FileKeys> to_seal(Engine&) override {
        return Error{Code::internal, "identities seal nothing"};
    }

    Result<FileKeys> to_open(Engine&, Input& input) override {
        DAEL_LET(envelope, take_envelope(input));
        DAEL_TRY(check_kind(input, envelope, Kind::recipients));
        DAEL_LET(identities, identities_.get());
        auto keys = sealed::open_envelope(*identities, envelope.bytes);
        if (!keys) return not_opened(input, envelope, std::move(keys).error());
        return FileKeys{shared(std::move(*keys)), std::move(envelope.bytes)};
    }

  private:
    Once<sealed::Identities> identities_;
};

class OfPassphrase final : public KeySource {
  public:
    OfPassphrase(std::function<Result<Secret>()> read, const PassphraseOptions& options)
        : passphrase_(std::move(read)), options_(options), may_ask_(options.asks) {}

    Result<> ready() override { return done(passphrase_.get()); }

    Result<FileKeys> to_seal(Engine&) override {
        DAEL_LET(made, sealing_.get());
        return *made;
    }

    Result<FileKeys> to_open(Engine&, Input& input) override {
        DAEL_LET(envelope, take_envelope(input));
        DAEL_TRY(check_kind(input, envelope, Kind::passphrase));
        constexpr int kMaxAsked = 3;
        for (int asked = 1;; ++asked) {
            auto keys = keys_in(envelope.bytes);
            if (keys) return FileKeys{*std::move(keys), std::move(envelope.bytes)};
            const bool again = may_ask_ && asked < kMaxAsked && keys.code() == Code::authentication;
            const Error error = not_opened(input, envelope, std::move(keys).error());
            if (!again) return error;
            complain(error.message + "; try again");
            passphrase_.forget();
            known_.clear();
        }
    }

    void ask_no_more() override { may_ask_ = false; }

  private:
    // By the passphrase so far. Opening costs the same whether it is the right one or not, and
    // either is remembered.
    Result<std::shared_ptr<const sealed::Keys>> keys_in(const std::vector<std::uint8_t>& envelope) {
        DAEL_LET(passphrase, passphrase_.get());
        const auto known = entry_of(envelope);
        const std::lock_guard guard(known->mutex);
        if (known->wrong) return *known->wrong;
        if (known->keys) return known->keys;
        DAEL_LET(identities, sealed::Identities::of_passphrase(passphrase->bytes(), options_.most));
        at_once_.acquire();
        auto keys = sealed::open_envelope(identities, envelope);
        at_once_.release();
        if (keys) return known->keys = shared(std::move(*keys));
        if (keys.code() == Code::authentication) known->wrong = keys.error();
        return std::move(keys).error();
    }

    Result<FileKeys> make() {
        DAEL_LET(passphrase, passphrase_.get());
        DAEL_LET(recipients, sealed::Recipients::of_passphrase(passphrase->bytes(), options_.work));
        return made_for(recipients, options_.segment);
    }

    struct KnownEnvelope {
        std::mutex mutex;
        std::shared_ptr<const sealed::Keys> keys;  // once somebody has them
        std::optional<Error> wrong;                // once somebody knows that it does not open
    };

    // What is known of an envelope. Files of several calls may lie side by side; of very many,
    // some are forgotten.
    std::shared_ptr<KnownEnvelope> entry_of(const std::vector<std::uint8_t>& envelope) {
        constexpr std::size_t kMax = 64;  // their keys take locked memory
        const std::lock_guard guard(mutex_);
        const auto found = known_.find(envelope);
        if (found != known_.end()) return found->second;
        if (known_.size() == kMax) known_.erase(known_.begin());
        return known_[envelope] = std::make_shared<KnownEnvelope>();
    }

    Once<Secret> passphrase_;
    const PassphraseOptions options_;
    bool may_ask_;  // again
    Once<FileKeys> sealing_{[this] { return make(); }};
    std::mutex mutex_;
    std::map<std::vector<std::uint8_t>, std::shared_ptr<KnownEnvelope>> known_;
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

std::unique_ptr<KeySource> source_of_recipients(std::function<Result<sealed::Recipients>()> read,
                                                std::uint32_t segment) {
    return std::make_unique<OfRecipients>(std::move(read), segment);
}

std::unique_ptr<KeySource> source_of_identities(std::function<Result<sealed::Identities>()> read) {
    return std::make_unique<OfIdentities>(std::move(read));
}

}  // namespace dael::cli
