// SPDX-License-Identifier: Apache-2.0
// Sealed data, keysets, envelopes, recipients and identities that come from elsewhere. Nothing but
// what was sealed may be opened; whatever else comes is refused with an error of the input's kind.
#include <algorithm>

#include <daelstrom/sealed.hpp>
#include <daelstrom/sealed_keys.hpp>

#include "formats/keyset.hpp"
#include "fuzz/fuzz.hpp"

namespace {

using namespace dael;
using namespace dael::fuzz;

Engine& engine() {
    static Engine opened =
        value(Engine::open({.backend = "openssl", .threads = 1}), "the backend openssl");
    return opened;
}

// Segments of a size that lets 4 KiB of input be many.
sealed::Keys keys(FuzzedDataProvider& data) {
    const auto size = data.ConsumeBool() ? 16u : 32u;
    const auto segment = data.ConsumeIntegralInRange<std::uint32_t>(size + 25, 300);
    return value(sealed::Keys::from_key(Bytes(size, 0x2a), segment), "a key of the right size");
}

void refused(const Error& error) {
    require(error.code == Code::authentication || error.code == Code::bad_format,
            "refused for what the input is: " + error.message);
}

// All three ways of opening agree, and a failure leaves nothing.
void check_opening(const sealed::Keys& keys, const Bytes& stream, HostIn aad,
                   const Bytes* original) {
    Bytes opened(stream.size(), 0xa5);
    const auto done = sealed::open(engine(), keys, aad, stream, opened);
    std::size_t at = 0;
    Bytes released;
    const auto streamed = sealed::open(
        engine(), keys, aad,
        [&](HostOut out) -> Result<std::size_t> {
            const std::size_t size = std::min(out.size(), stream.size() - at);
            std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(at), size, out.begin());
            at += size;
            return size;
        },
        [&](HostIn bytes) -> Result<> {
            released.insert(released.end(), bytes.begin(), bytes.end());
            return {};
        });
    require(static_cast<bool>(done) == static_cast<bool>(streamed), "both ways of opening agree");
    if (!done) {
        refused(done.error());
        refused(streamed.error());
        const std::uint8_t left = done.code() == Code::authentication ? 0 : 0xa5;
        require(std::ranges::count(opened, left) == static_cast<std::ptrdiff_t>(opened.size()),
                "a forgery leaves nothing, what is refused unread costs nothing");
    } else {
        opened.resize(done->size);
        require(original && opened == *original && released == opened,
                "only what was sealed opens");
    }
    auto file = sealed::File::open(
        engine(), keys, aad,
        [&](std::uint64_t from, HostOut out) -> Result<> {
            require(from + out.size() <= stream.size(), "nothing behind the end is read");
            std::copy_n(stream.begin() + static_cast<std::ptrdiff_t>(from), out.size(),
                        out.begin());
            return {};
        },
        stream.size());
    if (!file) return refused(file.error());
    Bytes all(file->size());
    const bool whole = file->check_size() && file->read(0, all);
    require(whole == static_cast<bool>(done), "a file is whole if and only if it opens");
    require(!whole || all == opened, "a range is what the whole has there");
}

// Whatever is asked of the chunks of a stream: they lie within it, and open or are refused.
void check_chunks(FuzzedDataProvider& data) {
    const sealed::Keys used = keys(data);
    const Bytes plain = bytes(data, data.ConsumeIntegralInRange<std::size_t>(0, 2000));
    Bytes stream(value(sealed::sealed_size(used, plain.size()), "so little has a size"));
    value(sealed::seal(engine(), used, {}, plain, stream), "sealing");
    const std::size_t head = std::min(stream.size(), sealed::Opener::head_size(used));
    const auto opener = value(sealed::Opener::start(engine(), used, {}, HostIn(stream).first(head),
                                                    head == stream.size()),
                              "the right key");
    const auto number = [&] {  // near the edges of the stream, and anything
        return data.ConsumeBool() ? data.ConsumeIntegralInRange<std::uint64_t>(0, 2100)
                                  : data.ConsumeIntegral<std::uint64_t>();
    };
    while (data.remaining_bytes() > 0) {
        const std::uint64_t at = number(), size = number();
        const auto found = opener.layout().covering({at, size}, plain.size());
        require(static_cast<bool>(found) == (at <= plain.size() && size <= plain.size() - at),
                "what is within the plaintext has a chunk");
        if (!found) continue;
        require(found->sealed.at + found->sealed.size <= stream.size(), "chunks lie in the stream");
        Bytes out(found->plain.size);
        const HostIn part = HostIn(stream).subspan(found->sealed.at, found->sealed.size);
        require(static_cast<bool>(opener.open(*found, part, out)), "a chunk opens");
        require(std::equal(out.begin(), out.end(),
                           plain.begin() + static_cast<std::ptrdiff_t>(found->plain.at)),
                "to its plaintext");
        const auto other = opener.layout().of_sealed(number(), part.size(), data.ConsumeBool());
        if (!other || other->plain.size > 4000) continue;
        const bool same = other->first == found->first && other->last == found->last;
        out.resize(other->plain.size);
        require(static_cast<bool>(opener.open(*other, part, out)) == (same || part.empty()),
                "bytes of another place do not open");
    }
}

// A stream, changed as the input says, or the input itself.
void check_stream(FuzzedDataProvider& data) {
    const sealed::Keys used = keys(data);
    const Bytes aad = data.ConsumeBool() ? Bytes(3, 1) : Bytes();
    if (data.ConsumeBool()) {
        check_opening(used, data.ConsumeRemainingBytes<std::uint8_t>(), aad, nullptr);
        return;
    }
    const Bytes plain = bytes(data, data.ConsumeIntegralInRange<std::size_t>(0, 2000));
    Bytes stream(value(sealed::sealed_size(used, plain.size()), "so little has a size"));
    value(sealed::seal(engine(), used, aad, plain, stream), "sealing");
    const Bytes before = stream;
    while (data.remaining_bytes() > 0) {
        const auto at = data.ConsumeIntegralInRange<std::size_t>(0, stream.size());
        const auto from = stream.begin() + static_cast<std::ptrdiff_t>(at);
        const int what = data.ConsumeIntegralInRange(0, 3);
        if (what == 0 && at < stream.size())
            stream[at] ^= data.ConsumeIntegral<std::uint8_t>();
        else if (what == 1)
            stream.resize(at);
        else if (what == 2)
            stream.insert(from, data.ConsumeIntegral<std::uint8_t>());
        else
            std::rotate(stream.begin(), from, stream.end());
    }
    check_opening(used, stream, aad, stream == before ? &plain : nullptr);
}

// What is read to be changed and written again is the same keyset.
void check_editing(const Bytes& text, bool usable) {
    const auto keyset = sealed::Keyset::parse(text);
    require(keyset || !usable, "what seals can be changed");
    if (!keyset) return;
    Bytes again(keyset->json_size()), once_more;
    value(keyset->write_json(again), "writing it");
    const auto reread = value(sealed::Keyset::parse(again), "reading what was written");
    once_more.resize(reread.json_size());
    value(reread.write_json(once_more), "writing it");
    require(again == once_more, "writing and reading change nothing");
    require(keyset->entries().size() == reread.entries().size(), "no key is lost");
    require(static_cast<bool>(sealed::Keys::from_keyset(again)) == usable,
            "what was written is as good as what was read");
}

void check_keyset(const Bytes& text) {
    const auto parsed = sealed::Keys::from_keyset(text);
    check_editing(text, static_cast<bool>(parsed));
    if (!parsed) {
        require(parsed.code() == Code::bad_format || parsed.code() == Code::unsupported ||
                    parsed.code() == Code::limit,
                "refused for what the text is: " + parsed.error().message);
        return;
    }
    for (const auto& key : parsed->state().keys)
        require(static_cast<bool>(formats::check(key)), "keys that were taken make sense");
    require(parsed->segment() <= formats::kMaxSegment, "no key wants more memory than the limit");
}

// A key, and an envelope for it, which is the same in every run but for its random parts.
struct Mine {
    Bytes text = Bytes(sealed::kIdentitySize);
    sealed::Identities identities = [this] {
        value(sealed::make_identity(text), "an identity");
        return value(sealed::Identities::parse(text), "which is one");
    }();
    sealed::Recipients recipients = value(
        sealed::Recipients::parse(value(identities.recipients(), "its recipient")), "which is one");
    Bytes envelope = value(sealed::make_envelope(recipients), "an envelope").envelope;
};

// Envelopes, from nothing or from a good one: none opens but that, and what the beginning says of
// its size holds. Work is small enough to run; more must be refused at once.
void check_envelope(FuzzedDataProvider& data) {
    static const Mine mine;
    static const auto passphrase =
        value(sealed::Identities::of_passphrase(Bytes(3, 'x'), 4), "a passphrase");
    Bytes file;
    if (data.ConsumeBool()) {
        file = mine.envelope;
        while (data.remaining_bytes() > 0) {
            const auto at = data.ConsumeIntegralInRange<std::size_t>(0, file.size());
            const auto from = file.begin() + static_cast<std::ptrdiff_t>(at);
            const int what = data.ConsumeIntegralInRange(0, 3);
            if (what == 0 && at < file.size())
                file[at] ^= data.ConsumeIntegral<std::uint8_t>();
            else if (what == 1)
                file.resize(at);
            else if (what == 2)
                file.insert(from, data.ConsumeIntegral<std::uint8_t>());
            else {
                constexpr std::string_view kStanza = "-> x\n\n";
                file.insert(from, kStanza.begin(), kStanza.end());
            }
        }
    } else {
        file = data.ConsumeRemainingBytes<std::uint8_t>();
    }
    const auto expected = [](const Error& error) {
        require(error.code == Code::authentication || error.code == Code::bad_format ||
                    error.code == Code::unsupported || error.code == Code::limit ||
                    error.code == Code::invalid_argument,  // the other kind of secret
                "refused for what the envelope is: " + error.message);
    };
    const bool good = file.size() >= mine.envelope.size() &&
                      std::equal(mine.envelope.begin(), mine.envelope.end(), file.begin());
    const auto says = sealed::read_envelope(file);
    if (says) require(says->size <= file.size(), "an envelope lies within the file");
    for (const auto* identities : {&mine.identities, &passphrase}) {
        const auto opened = sealed::open_envelope(*identities, file);
        require(static_cast<bool>(opened) == (good && identities == &mine.identities),
                "only what was made opens");
        if (!opened) expected(opened.error());
        require(!opened || (says && says->size == mine.envelope.size()), "as long as it was made");
    }
}

// Texts of people: what is taken can be written again, and comes out the same.
void check_people(const Bytes& text) {
    const auto identities = sealed::Identities::parse(text);
    if (identities) {
        const auto written = value(identities->recipients(), "their recipients");
        require(static_cast<bool>(sealed::Recipients::parse(written)), "which are recipients");
    }
    const auto recipients =
        sealed::Recipients::parse({reinterpret_cast<const char*>(text.data()), text.size()});
    require(!recipients || !identities, "nothing is both");
    for (const Error* error :
         {identities ? nullptr : &identities.error(), recipients ? nullptr : &recipients.error()})
        require(!error || error->code == Code::bad_format || error->code == Code::unsupported ||
                    error->code == Code::limit,
                "refused for what the text is");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* input, std::size_t size) {
    FuzzedDataProvider data(input, size);
    const int which = data.ConsumeIntegralInRange(0, 4);
    if (which == 0)
        check_stream(data);
    else if (which == 1)
        check_chunks(data);
    else if (which == 2)
        check_keyset(data.ConsumeRemainingBytes<std::uint8_t>());
    else if (which == 3)
        check_envelope(data);
    else
        check_people(data.ConsumeRemainingBytes<std::uint8_t>());
    return 0;
}
