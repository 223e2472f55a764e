// SPDX-License-Identifier: Apache-2.0
// Messages sealed on one core: for each line on standard input, for a tenth of a second; prints the
// nanoseconds that one took. A list in one call by daelstrom, or one after the other by OpenSSL's
// EVP, as a program does that keeps its context. compare.py lets several of these take turns.
//
//     aead_messages ours MODE BITS BYTES MESSAGES
//     aead_messages evp NAME BYTES            AES-128-GCM-SIV: OpenSSL 3.2 or later
//     aead_messages libaegis FILE NAME BYTES  libaegis as a shared library; aegis128l, aegis256,
//     ...
#include <dlfcn.h>
#include <openssl/evp.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <daelstrom/engine.hpp>
#include <daelstrom/gcm.hpp>

namespace {

using Bytes = std::vector<std::uint8_t>;

[[noreturn]] void fail(const std::string& why) {
    std::fprintf(stderr, "aead_messages: %s\n", why.c_str());
    std::exit(1);
}
template <class T>
T must(dael::Result<T> result) {
    if (!result) fail(result.error().message);
    return std::move(*result);
}

// Input and output of the same place in a page for everybody, and not of one place both.
struct Data {
    explicit Data(std::size_t size) {
        const std::size_t half = (size + kPage - 1) / kPage * kPage + kPage;
        in = static_cast<std::uint8_t*>(std::aligned_alloc(kPage, 2 * half));
        if (!in) fail("no memory");
        out = in + half + kPage / 4;
        std::memset(in, 0, 2 * half);
    }
    Data(const Data&) = delete;
    Data& operator=(const Data&) = delete;
    ~Data() { std::free(in); }
    static constexpr std::size_t kPage = 4096;
    std::uint8_t *in, *out;
};

// Seals `count` messages, under nonces of which none comes twice.
std::function<void()> ours(const std::string& name, std::size_t bits, std::size_t size,
                           std::size_t count) {
    const auto mode = dael::mode_by_name(name);
    if (!mode || !dael::authenticates(*mode)) fail("no mode that authenticates: " + name);
    const auto engine =
        std::make_shared<dael::Engine>(must(dael::Engine::open({.backend = "cpu", .threads = 1})));
    const Bytes raw(bits / 8, 7);
    std::vector<dael::Key> keys;
    keys.push_back(must(dael::Key::import(raw)));
    const auto set = std::make_shared<dael::KeySet>(must(engine->keys(keys)));
    struct List : Data {
        explicit List(std::size_t size_, std::size_t count_)
            : Data(size_ * count_), tags(16 * count_), messages(count_), codes(count_) {}
        Bytes tags;
        std::vector<dael::Message> messages;
        std::vector<dael::Code> codes;
        std::uint64_t next = 0;
    };
    const auto data = std::make_shared<List>(size, count);
    for (std::size_t i = 0; i < count; ++i) {
        data->messages[i].in = data->in + i * size;
        data->messages[i].out = data->out + i * size;
        data->messages[i].size = size;
        data->messages[i].tag = &data->tags[16 * i];
    }
    return [=, cipher = dael::Cipher{*mode, dael::Direction::encrypt}] {
        for (dael::Message& message : data->messages) {
            dael::gcm::Nonce nonce{};
            const std::uint64_t number = data->next++;
            for (std::size_t i = 0; i < 8; ++i)
                nonce[i] = static_cast<std::uint8_t>(number >> 8 * i);
            message.start = dael::gcm::start(nonce);
            if (*mode != dael::Mode::gcm) message.start.back() = 0;
        }
        must(engine->run(cipher, *set, data->messages, data->codes));
    };
}

std::function<void()> evp(const std::string& name, std::size_t size) {
    EVP_CIPHER* const cipher = EVP_CIPHER_fetch(nullptr, name.c_str(), nullptr);
    if (!cipher) fail(std::string(OpenSSL_version(OPENSSL_VERSION)) + " has no " + name);
    EVP_CIPHER_CTX* const context = EVP_CIPHER_CTX_new();
    const Bytes key(32, 7);
    EVP_EncryptInit_ex2(context, cipher, key.data(), nullptr, nullptr);
    const auto data = std::make_shared<Data>(size + 16);
    return [=, next = std::uint64_t{0}]() mutable {
        std::uint8_t nonce[12] = {}, tag[16];
        for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<std::uint8_t>(next >> 8 * i);
        ++next;
        int written = 0;
        if (EVP_EncryptInit_ex2(context, nullptr, nullptr, nonce, nullptr) != 1 ||
            EVP_EncryptUpdate(context, data->out, &written, data->in, static_cast<int>(size)) !=
                1 ||
            EVP_EncryptFinal_ex(context, data->out + size, &written) != 1 ||
            EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag) != 1)
            fail("EVP failed");
    };
}

std::function<void()> libaegis(const std::string& file, const std::string& name, std::size_t size) {
    using Seal = int (*)(std::uint8_t * c, std::uint8_t * tag, std::size_t tag_size,
                         const std::uint8_t* m, std::size_t size, const std::uint8_t* aad,
                         std::size_t aad_size, const std::uint8_t* nonce, const std::uint8_t* key);
    void* const library = dlopen(file.c_str(), RTLD_NOW);
    if (!library) fail(dlerror());
    const auto find = [&](const std::string& symbol) {
        void* const found = dlsym(library, symbol.c_str());
        if (!found) fail(file + " has no " + symbol);
        return found;
    };
    reinterpret_cast<int (*)()>(find("aegis_init"))();
    const auto seal = reinterpret_cast<Seal>(find(name + "_encrypt_detached"));
    const auto data = std::make_shared<Data>(size);
    return [=, key = Bytes(32, 7), next = std::uint64_t{0}]() mutable {
        std::uint8_t nonce[32] = {}, tag[16];
        for (std::size_t i = 0; i < 8; ++i) nonce[i] = static_cast<std::uint8_t>(next >> 8 * i);
        ++next;
        seal(data->out, tag, sizeof tag, data->in, size, nullptr, 0, nonce, key.data());
    };
}

}  // namespace

int main(int count, char** arguments) {
    const std::vector<std::string> said(arguments + 1, arguments + count);
    std::size_t messages = 1;
    std::function<void()> seal;
    if (said.size() == 5 && said[0] == "ours") {
        messages = std::stoul(said[4]);
        seal = ours(said[1], std::stoul(said[2]), std::stoul(said[3]), messages);
    } else if (said.size() == 3 && said[0] == "evp") {
        seal = evp(said[1], std::stoul(said[2]));
    } else if (said.size() == 4 && said[0] == "libaegis") {
        seal = libaegis(said[1], said[2], std::stoul(said[3]));
    } else {
        fail("ours MODE BITS BYTES MESSAGES | evp NAME BYTES | libaegis FILE NAME BYTES");
    }
    for (std::string line; std::getline(std::cin, line);) {
        using Clock = std::chrono::steady_clock;
        const auto begin = Clock::now();
        std::chrono::duration<double, std::nano> passed{};
        std::size_t calls = 0;
        while (passed < std::chrono::milliseconds(100)) {
            for (int i = 0; i < 16; ++i) seal();
            calls += 16;
            passed = Clock::now() - begin;
        }
        std::printf("%.3f\n", passed.count() / static_cast<double>(calls * messages));
        std::fflush(stdout);
    }
}
