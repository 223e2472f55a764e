// SPDX-License-Identifier: Apache-2.0
// One file sealed, opened or sealed anew, given where its keys come from: Tink's streaming AEAD,
// with what holds the key in front where that is not held by hand (docs/format.md).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <daelstrom/sealed.hpp>

#include "done.hpp"
#include "engine_options.hpp"
#include "file_keys.hpp"
#include "file_plan.hpp"
#include "io/buffers.hpp"
#include "io/filter.hpp"
#include "io/output.hpp"
#include "io/progress.hpp"

namespace dael::cli {

// What a call says of every file.
struct SealedJob {
    bool seals = true;
    Engine* engine = nullptr;
    unsigned threads = 1;  // that the engine may take
    std::vector<std::uint8_t> aad;
    bool bind_names = false;
    std::unique_ptr<KeySource> keys;
    struct ByteRange {
        std::uint64_t first = 0;
        std::optional<std::uint64_t> last;  // the byte itself included; none: to the end
    };
    std::optional<ByteRange> range;  // opening: this part of the plaintext
    OutputOptions output;            // but for the path
};

// What became of a file.
struct FileDone {
    std::string skipped;                  // why nothing was done; empty: it was
    std::uint64_t read = 0, written = 0;  // bytes
    Doers doers;
};

// Chunks of this size keep all threads busy, and yet fit into the caches of most processors.
std::uint64_t chunk_for(unsigned threads);

// Opens the input that was planned, and refuses what is not the file that was found.
Result<Input> open_input(const PlannedFile& file);
// Opens its output, but for what `options` say otherwise.
Result<Output> open_output(OutputOptions options, const PlannedFile& file, const Input& input);

// A file's associated data: what the options say, and with --bind-names a zero and its name behind
// it. A name has no zero, so that no two of these are the same. Errors: invalid_argument for what
// has no name.
Result<std::vector<std::uint8_t>> bound_to(const PlannedFile& file, bool bind_names,
                                           std::vector<std::uint8_t> aad);

// Seals or opens a file. One that fits into a chunk is done in the caller's thread alone. Any
// number of threads may do files of one job at once, each with buffers of its own.
Result<FileDone> seal_or_open(const SealedJob& job, const PlannedFile& file, Buffers& buffers,
                              Progress& progress);

// A file sealed anew, in its place.
struct ResealJob {
    Engine* engine = nullptr;
    unsigned threads = 1;
    std::vector<std::uint8_t> aad;
    bool bind_names = false;
    std::unique_ptr<KeySource> from, to;  // what opens it, and what seals it then
    // What to say of those that `to` opens already; none: each is sealed with a key of its own.
    std::optional<std::string> already;
    OutputOptions output;
};

// Everything is verified before the new file takes the old one's place.
Result<FileDone> reseal(const ResealJob& job, const PlannedFile& file, Buffers& buffers,
                        Progress& progress);

}  // namespace dael::cli
