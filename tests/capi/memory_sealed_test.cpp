// SPDX-License-Identifier: Apache-2.0
// The same for sealed data: keys, streams, chunks, files, recipients and envelopes. What fails to
// open for want of memory leaves no plaintext.
#include <gtest/gtest.h>

#include <daelstrom/daelstrom_sealed.h>

#include <algorithm>
#include <cstring>

#include "capi/little_memory_sealed.hpp"

namespace {

using dael::test::all_are;
using dael::test::Bytes;
using dael::test::LittleMemorySealed;
using dael::test::making;
using dael::test::pattern;
using dael::test::with_little_memory;

constexpr std::size_t kPlain = 10'000;

TEST_F(LittleMemorySealed, Keys) {
    making<dael_sealed_keys>(
        "dael_sealed_keys_import",
        [&](dael_sealed_keys** keys) {
            return dael_sealed_keys_import(raw_.data(), 32, 4096, keys);
        },
        dael_sealed_keys_free);
    making<dael_sealed_keys>(
        "dael_sealed_keys_sealing",
        [&](dael_sealed_keys** keys) { return dael_sealed_keys_sealing(keys_, keys); },
        dael_sealed_keys_free);
}

TEST_F(LittleMemorySealed, FromMemoryToMemory) {
    Bytes sealed(sealed_.size()), out(kPlain);
    with_little_memory("dael_sealed_seal", [&] {
        return dael_sealed_seal(engine_, keys_, nullptr, 0, plain_.data(), kPlain, sealed.data(),
                                sealed.size(), nullptr);
    });
    std::uint64_t size = 0;
    with_little_memory("dael_sealed_size", [&] { return dael_sealed_size(keys_, kPlain, &size); });
    EXPECT_EQ(size, sealed.size());
    with_little_memory(
        "dael_sealed_open",
        [&] {
            const int status =
                dael_sealed_open(engine_, keys_, nullptr, 0, sealed_.data(), sealed_.size(),
                                 out.data(), out.size(), &size, nullptr);
            EXPECT_TRUE(status == DAEL_OK ? out == plain_ : all_are(out, 0));
            return status;
        },
        [&] { std::ranges::fill(out, std::uint8_t{0}); });
}

TEST_F(LittleMemorySealed, Chunks) {
    Bytes chunk(sealed_.size() + 64), out(kPlain);
    with_little_memory("dael_sealer", [&] {
        dael_sealer* sealer = nullptr;
        int status = dael_sealer_start(engine_, keys_, nullptr, 0, &sealer);
        EXPECT_EQ(status == DAEL_OK, sealer != nullptr);
        if (status == DAEL_OK)
            status = dael_sealer_seal(sealer, plain_.data(), kPlain, chunk.data(), chunk.size(), 1,
                                      nullptr);
        dael_sealer_free(sealer);
        return status;
    });
    with_little_memory("dael_opener", [&] {
        dael_opener* opener = nullptr;
        int status = dael_opener_start(engine_, keys_, nullptr, 0, sealed_.data(), sealed_.size(),
                                       1, &opener);
        EXPECT_EQ(status == DAEL_OK, opener != nullptr);
        dael_sealed_layout layout;
        dael_sealed_chunk all;
        if (status == DAEL_OK) status = dael_opener_layout(opener, &layout);
        if (status == DAEL_OK) status = dael_sealed_chunk_of(&layout, 0, sealed_.size(), 1, &all);
        if (status == DAEL_OK)
            status = dael_opener_open(opener, &all, sealed_.data(), sealed_.size(), out.data(),
                                      kPlain, nullptr);
        EXPECT_TRUE(status != DAEL_OK || out == plain_);
        dael_opener_free(opener);
        return status;
    });
}

TEST_F(LittleMemorySealed, RecipientsAndEnvelopes) {
    char identity[DAEL_IDENTITY_SIZE + 1], recipient[DAEL_RECIPIENT_SIZE + 1];
    with_little_memory("dael_identity_make",
                       [&] { return dael_identity_make(identity, recipient); });
    making<dael_recipients>(
        "dael_recipients_parse",
        [&](dael_recipients** made) {
            return dael_recipients_parse(recipient, std::strlen(recipient), made);
        },
        dael_recipients_free);
    making<dael_identities>(
        "dael_identities_parse",
        [&](dael_identities** made) {
            return dael_identities_parse(identity, std::strlen(identity), made);
        },
        dael_identities_free);
    dael_recipients* to = nullptr;
    dael_identities* by = nullptr;
    ASSERT_EQ(dael_recipients_parse(recipient, std::strlen(recipient), &to), DAEL_OK);
    ASSERT_EQ(dael_identities_parse(identity, std::strlen(identity), &by), DAEL_OK);
    making<dael_recipients>(
        "dael_identities_recipients",
        [&](dael_recipients** made) { return dael_identities_recipients(by, made); },
        dael_recipients_free);
    Bytes envelope(dael_recipients_envelope_size(to));
    making<dael_sealed_keys>(
        "dael_envelope_make",
        [&](dael_sealed_keys** made) {
            return dael_envelope_make(to, 4096, envelope.data(), envelope.size(), made);
        },
        dael_sealed_keys_free);
    making<dael_sealed_keys>(
        "dael_envelope_open",
        [&](dael_sealed_keys** made) {
            return dael_envelope_open(by, envelope.data(), envelope.size(), 4096, made);
        },
        dael_sealed_keys_free);
    Bytes fresh(envelope.size());
    with_little_memory("dael_envelope_rewrap", [&] {
        return dael_envelope_rewrap(by, envelope.data(), envelope.size(), to, fresh.data(),
                                    fresh.size());
    });
    dael_recipients_free(to);
    dael_identities_free(by);
}

}  // namespace
