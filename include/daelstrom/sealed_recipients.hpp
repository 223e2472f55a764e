// SPDX-License-Identifier: Apache-2.0
// Sealed data (sealed.hpp) for people: an envelope stands in front of the stream and holds its own
// random key, for everybody who has one of several secret keys, or for one passphrase. An envelope
// is a whole age v1 file (age-encryption.org/v1), so the keys of age and of those who read its
// files work, and `age -d` gets the stream's key out; docs/format.md has its bytes.
//
// Safety: whoever has the envelope and one of the secrets has the stream's key for good: to write
// a new envelope takes nothing away from copies of the old one. An envelope does not say who sealed
// it: anybody can make one for a public recipient. It shows how many recipients it has, not who
// they are. A passphrase is as hard to guess as it is, times what a guess costs; what opening costs
// stands in the envelope and is verified only once that is spent, hence the limit.
//
// Limits: 1,000 recipients or identities, and envelopes of 128 KiB, which 80 post-quantum
// recipients fill. Calls block until done.
//
// Threads: any number may use one Recipients or Identities at once, but for add(). Closing during
// use: destroy one when no call on it is running. Children of fork() may use what their parent
// made. Secrets lie in locked memory that wipes itself; wiping what is passed in is up to the
// caller.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <daelstrom/export.h>
#include <daelstrom/error.hpp>
#include <daelstrom/memory.hpp>
#include <daelstrom/sealed_keys.hpp>

namespace dael::sealed {

// What a guess at a passphrase costs, and so what opening does: scrypt (RFC 7914) with N = 2^work,
// r = 8 and p = 1 takes 2^work KiB of memory and as many steps of some microseconds, on one core.
inline constexpr int kUsualWork = 17;       // 128 MiB, some tenths of a second
inline constexpr int kUsualWorkLimit = 18;  // when opening, where nothing else is said
inline constexpr int kMaxWork = 20;         // 1 GiB, some seconds
// No envelope is longer.
inline constexpr std::size_t kMaxEnvelope = 128 << 10;

// Whom an envelope is for: the holders of secret keys, or of one passphrase.
class DAEL_API Recipients {
  public:
    // As a recipients file has them: "age1...", or age 1.3's post-quantum "age1pq1...", on each
    // line, but for empty ones and those that begin with #. The two kinds do not go together
    // (invalid_argument). UTF-8, or UTF-16 with its mark. Errors: bad_format, naming the line;
    // unsupported for other kinds (SSH keys, age's plugins), and for post-quantum ones where
    // libcrypto is older than OpenSSL 3.5; limit.
    static Result<Recipients> parse(std::string_view text);
    // Errors: invalid_argument for an empty passphrase, or work that is not 1 to kMaxWork.
    static Result<Recipients> of_passphrase(HostIn passphrase, int work = kUsualWork);
    // Those of `others` too. Errors: invalid_argument for a passphrase, which is always alone;
    // limit.
    Result<> add(const Recipients& others);
    // Bytes of what is made for them; more than kMaxEnvelope is not made (limit).
    std::size_t envelope_size() const noexcept;

    struct DAEL_HIDDEN State;
    Recipients(Recipients&&) noexcept;
    Recipients& operator=(Recipients&&) noexcept;
    ~Recipients();
    explicit Recipients(std::unique_ptr<State> state) noexcept;  // src/formats
    const State& state() const noexcept { return *state_; }

  private:
    std::unique_ptr<State> state_;
};

// What opens an envelope: secret keys, or one passphrase.
class DAEL_API Identities {
  public:
    // As an identity file has them: "AGE-SECRET-KEY-1..." or "AGE-SECRET-KEY-PQ-1..." on each line,
    // but for empty ones and those that begin with #. Those of age's plugins, and of a kind that
    // this libcrypto lacks, are passed over if others remain. Errors: as Recipients::parse(). No
    // message holds any of the text.
    static Result<Identities> parse(HostIn text);
    // `most`: work that is refused before anything is computed if an envelope asks for more. What
    // is opened under a raised limit may keep a core busy for seconds. Errors: as of_passphrase().
    static Result<Identities> of_passphrase(HostIn passphrase, int most = kUsualWorkLimit);
    // Those of `others` too. Errors: as Recipients::add().
    Result<> add(const Identities& others);
    // Their public half, a line each, as Recipients::parse() takes it; empty for a passphrase.
    Result<std::string> recipients() const;

    struct DAEL_HIDDEN State;
    Identities(Identities&&) noexcept;
    Identities& operator=(Identities&&) noexcept;
    ~Identities();
    explicit Identities(std::unique_ptr<State> state) noexcept;  // src/formats
    const State& state() const noexcept { return *state_; }

  private:
    std::unique_ptr<State> state_;
};

// Characters of "AGE-SECRET-KEY-1..." and of "age1...".
inline constexpr std::size_t kIdentitySize = 74, kRecipientSize = 62;
// And of "AGE-SECRET-KEY-PQ-1..." and "age1pq1...".
inline constexpr std::size_t kHybridIdentitySize = 77, kHybridRecipientSize = 1959;
// A new secret key, as text without an end of line, into `identity`, which has room for
// kIdentitySize characters and holds the secret from then on. Identities::parse() reads it, and
// Identities::recipients() tells whom to name. Errors: invalid_argument, internal.
DAEL_API Result<> make_identity(HostOut identity);
// The same, post-quantum: ML-KEM-768 and X25519 together. Errors: unsupported where libcrypto is
// older than OpenSSL 3.5.
DAEL_API Result<> make_hybrid_identity(HostOut identity);

// What the beginning of a file tells of the envelope there. Nothing of it is verified yet.
struct EnvelopeInfo {
    std::size_t size = 0;     // bytes; the stream begins behind them. 0: give more of the file
    std::size_t stanzas = 0;  // at most so many recipients; 1 for a passphrase
    int work = 0;             // what it asks of scrypt; 0: it takes identities, not a passphrase
};

// Whether a file begins as an envelope does, or any other age file; 22 bytes tell.
DAEL_API bool is_envelope(HostIn start) noexcept;
// Where size comes out as 0 and there is no more, the file is cut off, or an age file that holds no
// sealed data. Errors: bad_format, unsupported for another version, limit: no more need be read.
DAEL_API Result<EnvelopeInfo> read_envelope(HostIn start);

struct Enveloped {
    std::vector<std::uint8_t> envelope;
    Keys keys;  // for this one stream
};
// A new random key, and an envelope with it. Errors: invalid_argument for a segment that cannot be;
// out_of_memory for scrypt's.
DAEL_API Result<Enveloped> make_envelope(const Recipients& recipients,
                                         std::uint32_t segment = kLargeSegment);

// The keys in an envelope, which is the beginning of a file; what follows is not looked at.
// `segment`: as Keys::from_key(), both usual sizes open without it. Errors: authentication for
// other identities, another passphrase, or an envelope that was altered, and for age files that
// hold something else; invalid_argument for identities where it takes a passphrase, and the
// reverse; bad_format; limit for what it asks of scrypt; unsupported.
DAEL_API Result<Keys> open_envelope(const Identities& identities, HostIn start,
                                    std::uint32_t segment = kLargeSegment);
// Another envelope for the same key: the stream behind it stays as it is. Errors: as above.
DAEL_API Result<std::vector<std::uint8_t>> rewrap_envelope(const Identities& identities,
                                                           HostIn start,
                                                           const Recipients& recipients);

}  // namespace dael::sealed
