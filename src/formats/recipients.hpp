// SPDX-License-Identifier: Apache-2.0
// What stands behind daelstrom/sealed_recipients.hpp's classes.
#pragma once

#include <optional>
#include <vector>

#include <daelstrom/sealed_recipients.hpp>

#include "formats/age_crypto.hpp"
#include "formats/hybrid_kem.hpp"
#include "formats/secret_bytes.hpp"

namespace dael::formats {

inline constexpr std::size_t kMaxRecipients = 1000;  // recipients, or identities

struct Passphrase {
    SecretBytes bytes;
    int work = 0;  // to be done; for identities, the most
};

struct Identity {
    SecretBytes secret;
    CurvePoint recipient{};
};

struct HybridIdentity {
    SecretBytes seed;
    HybridPublic recipient{};
};

}  // namespace dael::formats

struct dael::sealed::Recipients::State {
    std::vector<formats::CurvePoint> points;
    std::vector<formats::HybridPublic> hybrid;      // which are among themselves
    std::optional<formats::Passphrase> passphrase;  // which is alone

    std::size_t count() const noexcept { return points.size() + hybrid.size(); }
};

struct dael::sealed::Identities::State {
    std::vector<formats::Identity> keys;
    std::vector<formats::HybridIdentity> hybrid;
    std::optional<formats::Passphrase> passphrase;  // then there are no keys

    std::size_t count() const noexcept { return keys.size() + hybrid.size(); }
};
