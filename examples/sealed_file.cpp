// SPDX-License-Identifier: Apache-2.0
// Seals a file as a stream, and opens a part of it from the middle.
#include <daelstrom/sealed.hpp>

#include <cstdio>
#include <random>
#include <string_view>
#include <vector>

namespace {

int report(const dael::Error& error) {
    std::fprintf(stderr, "%s\n", error.message.c_str());
    return 1;
}

}  // namespace

int main() {
    std::array<std::uint8_t, 32> bytes;
    std::random_device random;  // a cryptographic source on Linux
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
    std::FILE* plain = std::tmpfile();
    std::FILE* sealed = std::tmpfile();
    if (!plain || !sealed) return 1;
    const std::vector<std::uint8_t> content(10'000'000, 'd');
    std::fwrite(content.data(), 1, content.size(), plain);
    std::rewind(plain);

    auto engine = dael::Engine::open();
    auto keys = dael::sealed::Keys::from_key(bytes);
    dael::wipe(bytes.data(), bytes.size());
    if (!engine) return report(engine.error());
    if (!keys) return report(keys.error());
    const std::string_view name = "notes of May";  // not stored; opening takes the same
    const dael::HostIn aad(reinterpret_cast<const std::uint8_t*>(name.data()), name.size());

    auto done = dael::sealed::seal(
        *engine, *keys, aad,
        [&](dael::HostOut out) -> dael::Result<std::size_t> {
            const std::size_t size = std::fread(out.data(), 1, out.size(), plain);
            if (std::ferror(plain)) return dael::Error{dael::Code::io, "the file cannot be read"};
            return size;  // 0 is the end
        },
        [&](dael::HostIn in) -> dael::Result<> {
            if (std::fwrite(in.data(), 1, in.size(), sealed) == in.size()) return {};
            return dael::Error{dael::Code::io, "the disk is full"};
        });
    if (!done) return report(done.error());
    std::printf("sealed into %llu bytes\n", static_cast<unsigned long long>(done->size));

    // A hundred bytes from the middle: only the segment that holds them is read and verified.
    auto file = dael::sealed::File::open(
        *engine, *keys, aad,
        [&](std::uint64_t at, dael::HostOut out) -> dael::Result<> {
            if (std::fseek(sealed, static_cast<long>(at), SEEK_SET) == 0 &&
                std::fread(out.data(), 1, out.size(), sealed) == out.size())
                return {};
            return dael::Error{dael::Code::io, "the file cannot be read"};
        },
        done->size);
    if (!file) return report(file.error());
    std::vector<std::uint8_t> part(100);
    if (auto read = file->read(5'000'000, part); !read) return report(read.error());

    std::fclose(plain);
    std::fclose(sealed);
    return part == std::vector<std::uint8_t>(100, 'd') ? 0 : 1;
}
