// SPDX-License-Identifier: Apache-2.0
// Where the keys of sealed files come from: one source for all files of a call, whichever kind of
// secret there is. A source yields, for each file, its keys and what stands in front of the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "commands.hpp"
#include "io/input.hpp"

namespace dael::cli {

struct FileKeys {
    std::shared_ptr<const sealed::Keys> keys;
    std::vector<std::uint8_t> front;  // of the file, before the stream; empty under a bare key
};

// Any number of threads may ask one at once.
class KeySource {
  public:
    virtual ~KeySource() = default;
    // Reads or asks for the secret, unless that is done. The others do so when they need it, after
    // everything else that can be refused has been checked, so that nobody types a passphrase in
    // vain; before many files are begun, this does.
    virtual Result<> ready() = 0;
    virtual Result<FileKeys> to_seal(Engine& engine) = 0;
    // Looks at the beginning of the input first, and takes what stands in front of the stream out
    // of it.
    virtual Result<FileKeys> to_open(Engine& engine, Input& input) = 0;
};

// A key or a keyset, which `read` reads.
std::unique_ptr<KeySource> source_of_keys(std::function<Result<sealed::Keys>()> read);

// A passphrase, which `read` asks for.
//
// scrypt makes each guess dear, and each file would be as dear as one. So the files that are sealed
// in one call get the same lock, and with it the same key, from which every stream derives one of
// its own (docs/format.md); and a lock that was opened is remembered for those that are the same.
struct PassphraseOptions {
    std::uint32_t segment = sealed::kLargeSegment;  // sealing
    sealed::Cost cost;                              // the same
    sealed::Cost most = sealed::kUsualLimit;        // opening
};
std::unique_ptr<KeySource> source_of_passphrase(std::function<Result<Secret>()> read,
                                                const PassphraseOptions& options);

// The lock in front of an input, which is taken out of it. Errors: bad_format, io.
Result<sealed::Lock> read_lock(Input& input);
// What to say of a lock that did not open, and which option lets it, if that is all.
Error not_unlocked(const Input& input, const sealed::Lock& lock, Error error);
// What the library says about data, with the name of what holds it.
Error in_file(const Input& input, Error error);

}  // namespace dael::cli
