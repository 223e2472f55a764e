// SPDX-License-Identifier: Apache-2.0
// What stands behind daelstrom/sealed_recipients.hpp's classes.
#pragma once

#include <optional>
#include <vector>

#include <daelstrom/sealed_recipients.hpp>

#include "formats/age_crypto.hpp"
#include "formats/secret_bytes.hpp"

namespace dael::formats {

inline constexpr std::size_t kMostRecipients = 1000;  // recipients, or identities

struct Passphrase {
    SecretBytes bytes;
    int work = 0;  // to be done; for identities, the most
};

struct Identity {
    SecretBytes secret;
    CurvePoint recipient{};
};

}  // namespace dael::formats

struct dael::sealed::Recipients::State {
    std::vector<formats::CurvePoint> points;
    std::optional<formats::Passphrase> passphrase;  // then there are no points
};

struct dael::sealed::Identities::State {
    std::vector<formats::Identity> keys;
    std::optional<formats::Passphrase> passphrase;  // then there are no keys
};
