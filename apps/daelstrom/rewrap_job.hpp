// SPDX-License-Identifier: Apache-2.0
// Other envelopes for sealed files, whose streams stay as they are.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <semaphore>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "commands.hpp"
#include "file_keys.hpp"
#include "io/output.hpp"
#include "sealed_file.hpp"

namespace dael::cli {

struct RewrapOptions {
    OutputOptions output;  // but for the path
    // What opens the old envelopes and what the new ones are for: those that are not set are
    // passphrases.
    std::function<Result<sealed::Identities>()> identities;
    std::function<Result<sealed::Recipients>()> recipients;
    std::function<Result<Secret>()> old_passphrase, new_passphrase;
    int work = sealed::kUsualWork;       // of a new passphrase
    int most = sealed::kUsualWorkLimit;  // that the old one may take
};

// Any number of threads may do files of one job at once.
class RewrapJob {
  public:
    explicit RewrapJob(const RewrapOptions& options) : options_(options) {}
    // Reads or asks for the secrets, unless that is done; a single file does so when all else that
    // can be refused has been checked.
    Result<> ready();
    Result<FileDone> run(const PlannedFile& file, bool in_place, Buffers& buffers,
                         Progress& progress);

  private:
    // What became of an envelope. With a passphrase on either side, files that had the same one get
    // the same one, and scrypt is paid once for all of them, whether it opened or not.
    struct RewrappedEnvelope {
        std::mutex mutex;
        std::optional<Result<std::vector<std::uint8_t>>> fresh;
    };
    Result<std::vector<std::uint8_t>> fresh_for(const std::vector<std::uint8_t>& envelope);
    std::shared_ptr<RewrappedEnvelope> entry_of(const std::vector<std::uint8_t>& envelope);

    const RewrapOptions& options_;
    std::mutex reading_, mutex_;
    std::optional<sealed::Identities> identities_;
    std::optional<sealed::Recipients> recipients_;
    std::map<std::vector<std::uint8_t>, std::shared_ptr<RewrappedEnvelope>> known_;
    std::counting_semaphore<4> at_once_{4};  // scrypt takes some hundred MiB
};

}  // namespace dael::cli
