// SPDX-License-Identifier: Apache-2.0
// Where the keys of sealed files come from: one source for all files of a call, whichever kind of
// secret there is. A source yields, for each file, its keys and what stands in front of the stream.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "commands.hpp"
#include "file_plan.hpp"
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
    // Somebody who types a passphrase may be asked again where a file does not open with it: until
    // this is called, and by one thread alone.
    virtual void ask_no_more() {}
    // Before many files are begun: ready(), and for what is typed, whether it opens the first of
    // them that takes a passphrase. Nobody waits for thousands of files that it does not open.
    Result<> ready_to_open(Engine& engine, const PlannedFiles& files);
};

// A key or a keyset, which `read` reads.
std::unique_ptr<KeySource> source_of_keys(std::function<Result<sealed::Keys>()> read);

// A passphrase, which `read` asks for.
//
// scrypt makes each guess dear, and each file would be as dear as one. So the files that are sealed
// in one call get the same envelope, and with it the same key, from which every stream derives one
// of its own (docs/format.md); and an envelope that was opened is remembered for those that are the
// same, with this passphrase or with a wrong one.
struct PassphraseOptions {
    std::uint32_t segment = sealed::kLargeSegment;  // sealing
    int work = sealed::kUsualWork;                  // the same
    int most = sealed::kUsualWorkLimit;             // opening
    bool asks = false;                              // somebody types it
};
std::unique_ptr<KeySource> source_of_passphrase(std::function<Result<Secret>()> read,
                                                const PassphraseOptions& options);

// Recipients, to seal for; each file has a key and an envelope of its own.
std::unique_ptr<KeySource> source_of_recipients(std::function<Result<sealed::Recipients>()> read,
                                                std::uint32_t segment);
// Identities, to open with.
std::unique_ptr<KeySource> source_of_identities(std::function<Result<sealed::Identities>()> read);

// The envelope in front of an input, which is taken out of it; empty bytes where there is none, and
// nothing is taken out. Errors: bad_format, unsupported, limit, io.
struct Envelope {
    std::vector<std::uint8_t> bytes;
    int work = 0;  // 0: it is for recipients
};
Result<Envelope> take_envelope(Input& input);
// Refuses the wrong kind of secret, and says which is right.
enum class Kind { key, passphrase, recipients };
Result<> check_kind(const Input& input, const Envelope& envelope, Kind given);
// What to say of an envelope that did not open, and which option lets it, if that is all.
Error not_opened(const Input& input, const Envelope& envelope, Error error);
// What the library says about data, with the name of what holds it.
Error in_file(const Input& input, Error error);

}  // namespace dael::cli
