// SPDX-License-Identifier: Apache-2.0
// Envelopes of sealed data, for C.
#include <daelstrom/daelstrom_sealed.h>
#include <daelstrom/sealed_recipients.hpp>

#include <algorithm>
#include <array>

#include "capi/sealed.hpp"
#include "core/wipe_at_end.hpp"

using dael::Code;
using dael::Error;
using dael::Result;
using dael::sealed::Identities;
using dael::sealed::Recipients;
using namespace dael::capi;

struct dael_recipients {
    Recipients recipients;
};
struct dael_identities {
    Identities identities;
};

static_assert(DAEL_USUAL_WORK == dael::sealed::kUsualWork &&
              DAEL_USUAL_WORK_LIMIT == dael::sealed::kUsualWorkLimit &&
              DAEL_MAX_WORK == dael::sealed::kMaxWork &&
              DAEL_MAX_ENVELOPE == dael::sealed::kMaxEnvelope &&
              DAEL_IDENTITY_SIZE == dael::sealed::kIdentitySize &&
              DAEL_RECIPIENT_SIZE == dael::sealed::kRecipientSize &&
              DAEL_HYBRID_IDENTITY_SIZE == dael::sealed::kHybridIdentitySize &&
              DAEL_HYBRID_RECIPIENT_SIZE == dael::sealed::kHybridRecipientSize);

namespace {

std::string_view text_of(const void* data, std::size_t size) noexcept {
    return {static_cast<const char*>(data), size};
}

Result<dael_recipients*> handle(Result<Recipients> made) {
    if (!made) return std::move(made).error();
    return new dael_recipients{*std::move(made)};
}
Result<dael_identities*> handle(Result<Identities> made) {
    if (!made) return std::move(made).error();
    return new dael_identities{*std::move(made)};
}

// Before anything is computed for it.
Result<> has_room(const dael_recipients* recipients, std::size_t size, const char* name) {
    const std::size_t needs = recipients->recipients.envelope_size();
    if (size == needs) return {};
    return Error{Code::invalid_argument, std::string(name) + " is " + std::to_string(size) +
                                             " bytes; this envelope has " + std::to_string(needs)};
}

// Both, or neither, with a zero behind each.
template <std::size_t kIdentity, std::size_t kRecipient>
dael_status make_texts(Result<> (*make)(dael::HostOut), char* identity, char* recipient) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{identity, "identity"}}));
        std::array<char, kIdentity + 1> made{};
        const dael::core::WipeAtEnd wiped(made);
        const auto text = bytes(static_cast<void*>(made.data()), kIdentity);
        DAEL_TRY(make(text));
        if (recipient) {
            DAEL_LET(parsed, Identities::parse(text));
            DAEL_LET(line, parsed.recipients());
            recipient[line.copy(recipient, kRecipient)] = '\0';
        }
        std::ranges::copy(made, identity);
        return {};
    });
}

}  // namespace

extern "C" {

dael_status dael_recipients_parse(const void* text, size_t size, dael_recipients** recipients) {
    return hand_out(recipients, "recipients", [&]() -> Result<dael_recipients*> {
        DAEL_TRY(readable(text, size, "text"));
        return handle(Recipients::parse(text_of(text, size)));
    });
}
dael_status dael_recipients_of_passphrase(const void* passphrase, size_t size, int32_t work,
                                          dael_recipients** recipients) {
    return hand_out(recipients, "recipients", [&]() -> Result<dael_recipients*> {
        DAEL_TRY(readable(passphrase, size, "passphrase"));
        return handle(
            Recipients::of_passphrase(bytes(passphrase, size), work == 0 ? DAEL_USUAL_WORK : work));
    });
}
dael_status dael_recipients_add(dael_recipients* recipients, const dael_recipients* others) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{recipients, "recipients"}, {others, "others"}}));
        return recipients->recipients.add(others->recipients);
    });
}
size_t dael_recipients_envelope_size(const dael_recipients* recipients) {
    return recipients ? recipients->recipients.envelope_size() : 0;
}
void dael_recipients_free(dael_recipients* recipients) {
    release(recipients);
}

dael_status dael_identities_parse(const void* text, size_t size, dael_identities** identities) {
    return hand_out(identities, "identities", [&]() -> Result<dael_identities*> {
        DAEL_TRY(readable(text, size, "text"));
        return handle(Identities::parse(bytes(text, size)));
    });
}
dael_status dael_identities_of_passphrase(const void* passphrase, size_t size, int32_t most,
                                          dael_identities** identities) {
    return hand_out(identities, "identities", [&]() -> Result<dael_identities*> {
        DAEL_TRY(readable(passphrase, size, "passphrase"));
        return handle(Identities::of_passphrase(bytes(passphrase, size),
                                                most == 0 ? DAEL_USUAL_WORK_LIMIT : most));
    });
}
dael_status dael_identities_add(dael_identities* identities, const dael_identities* others) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{identities, "identities"}, {others, "others"}}));
        return identities->identities.add(others->identities);
    });
}
dael_status dael_identities_recipients(const dael_identities* identities,
                                       dael_recipients** recipients) {
    return hand_out(recipients, "recipients", [&]() -> Result<dael_recipients*> {
        DAEL_TRY(given({{identities, "identities"}}));
        DAEL_LET(text, identities->identities.recipients());
        if (text.empty())
            return Error{Code::invalid_argument,
                         "a passphrase has no recipient; give it to dael_recipients_of_passphrase"};
        return handle(Recipients::parse(text));
    });
}
void dael_identities_free(dael_identities* identities) {
    release(identities);
}

dael_status dael_identity_make(char identity[DAEL_IDENTITY_SIZE + 1],
                               char recipient[DAEL_RECIPIENT_SIZE + 1]) {
    return make_texts<DAEL_IDENTITY_SIZE, DAEL_RECIPIENT_SIZE>(&dael::sealed::make_identity,
                                                               identity, recipient);
}
dael_status dael_identity_make_hybrid(char identity[DAEL_HYBRID_IDENTITY_SIZE + 1],
                                      char recipient[DAEL_HYBRID_RECIPIENT_SIZE + 1]) {
    return make_texts<DAEL_HYBRID_IDENTITY_SIZE, DAEL_HYBRID_RECIPIENT_SIZE>(
        &dael::sealed::make_hybrid_identity, identity, recipient);
}

int dael_is_envelope(const void* start, size_t size) {
    return start && dael::sealed::is_envelope(bytes(start, size));
}
dael_status dael_envelope_read(const void* start, size_t size, dael_envelope_info* info) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{info, "info"}}));
        DAEL_TRY(readable(start, size, "start"));
        DAEL_LET(says, dael::sealed::read_envelope(bytes(start, size)));
        return fill_sized(info, "info",
                          {.struct_size = 0,
                           .size = says.size,
                           .stanzas = says.stanzas,
                           .work = says.work,
                           .unused = 0});
    });
}

dael_status dael_envelope_make(const dael_recipients* recipients, uint32_t segment, void* envelope,
                               size_t size, dael_sealed_keys** keys) {
    return hand_out(keys, "keys", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{recipients, "recipients"}, {envelope, "envelope"}}));
        DAEL_TRY(has_room(recipients, size, "envelope"));
        DAEL_LET(made,
                 dael::sealed::make_envelope(recipients->recipients, segment_or_large(segment)));
        DAEL_LET(handle, make_keys(std::move(made.keys)));
        std::ranges::copy(made.envelope, static_cast<std::uint8_t*>(envelope));
        return handle;
    });
}
dael_status dael_envelope_open(const dael_identities* identities, const void* start, size_t size,
                               uint32_t segment, dael_sealed_keys** keys) {
    return hand_out(keys, "keys", [&]() -> Result<dael_sealed_keys*> {
        DAEL_TRY(given({{identities, "identities"}}));
        DAEL_TRY(readable(start, size, "start"));
        return make_keys(dael::sealed::open_envelope(identities->identities, bytes(start, size),
                                                     segment_or_large(segment)));
    });
}
dael_status dael_envelope_rewrap(const dael_identities* identities, const void* start, size_t size,
                                 const dael_recipients* recipients, void* fresh,
                                 size_t fresh_size) {
    return call([&]() -> Result<> {
        DAEL_TRY(given({{identities, "identities"}, {recipients, "recipients"}, {fresh, "fresh"}}));
        DAEL_TRY(readable(start, size, "start"));
        DAEL_TRY(has_room(recipients, fresh_size, "fresh"));
        DAEL_LET(made, dael::sealed::rewrap_envelope(identities->identities, bytes(start, size),
                                                     recipients->recipients));
        std::ranges::copy(made, static_cast<std::uint8_t*>(fresh));
        return {};
    });
}

}  // extern "C"
