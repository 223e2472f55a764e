// SPDX-License-Identifier: Apache-2.0
// Seals a message for two people, each of whom opens it with a secret key of their own.
#include <daelstrom/sealed.hpp>

#include <array>
#include <cstdio>
#include <string_view>
#include <vector>

namespace {

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
}

// A person's secret key: here a new one; else the text of their identity file, as age-keygen writes
// it.
dael::Result<dael::sealed::Identities> person() {
    std::array<std::uint8_t, dael::sealed::kIdentitySize> text;
    DAEL_TRY(dael::sealed::make_identity(text));
    auto identity = dael::sealed::Identities::parse(text);
    dael::wipe(text.data(), text.size());
    return identity;
}

}  // namespace

int main() {
    auto engine = dael::Engine::open();
    auto alice = person(), bob = person();
    if (!engine) return report(engine.error());
    if (!alice || !bob) return report(alice ? bob.error() : alice.error());
    auto names = alice->recipients(), more = bob->recipients();  // public: "age1...", a line each
    if (!names || !more) return report(names ? more.error() : names.error());
    std::printf("for\n%s%s", names->c_str(), more->c_str());

    const std::string_view text = "meet me at noon";
    const dael::HostIn plain(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
    auto recipients = dael::sealed::Recipients::parse(*names + *more);
    if (!recipients) return report(recipients.error());
    auto made = dael::sealed::make_envelope(*recipients);
    if (!made) return report(made.error());
    std::vector<std::uint8_t> file = made->envelope;  // and behind it, the stream
    auto size = dael::sealed::sealed_size(made->keys, plain.size());
    if (!size) return report(size.error());
    file.resize(file.size() + *size);
    auto sealed = dael::sealed::seal(*engine, made->keys, {}, plain,
                                     dael::HostOut(file).subspan(made->envelope.size()));
    if (!sealed) return report(sealed.error());

    // Bob has the file and his identity.
    auto front = dael::sealed::read_envelope(file);
    if (!front) return report(front.error());
    auto keys = dael::sealed::open_envelope(*bob, file);
    if (!keys) return report(keys.error());
    const dael::HostIn stream = dael::HostIn(file).subspan(front->size);
    std::vector<std::uint8_t> opened(stream.size());
    auto done = dael::sealed::open(*engine, *keys, {}, stream, opened);
    if (!done) return report(done.error());
    opened.resize(done->size);
    const std::string_view read(reinterpret_cast<const char*>(opened.data()), opened.size());
    std::printf("%.*s\n", static_cast<int>(read.size()), read.data());
    return read == text ? 0 : 1;
}
