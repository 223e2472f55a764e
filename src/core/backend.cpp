// SPDX-License-Identifier: Apache-2.0
// What backends have in common to say.
#include "core/backend.hpp"

#include <atomic>
#include <string>

namespace dael::core {
namespace {

std::string in_words(const Cipher& cipher) {
    return std::string(name(cipher.mode)) + " " + std::string(name(cipher.direction)) + "ion";
}

}  // namespace

// A list that only grows, without a lock, so that a child of fork() finds none held. Two threads
// that bring the same name at once may both enter it.
std::string_view lasting(std::string_view name) {
    struct Known {
        const std::string name;
        Known* next;
    };
    static std::atomic<Known*> first{nullptr};
    for (const Known* known = first.load(std::memory_order_acquire); known; known = known->next)
        if (known->name == name) return known->name;
    auto* const known = new Known{std::string(name), first.load()};
    while (!first.compare_exchange_weak(known->next, known)) {
    }
    return known->name;
}

Result<std::unique_ptr<PacketCipher>> Backend::packets(const Key&) {
    return Error{Code::unsupported, "backend '" + profile().name +
                                        "' has no cipher for packets; use 'cpu' or 'openssl'"};
}

Error opened_before_fork(std::string_view name) {
    return {Code::device, std::string(name) +
                              ": opened before fork(), and of no use after it; use this backend in "
                              "the child alone, or after exec()"};
}

Error sequential_within_message(std::string_view name, const Cipher& cipher) {
    return {Code::unsupported,
            std::string(name) + ": " + in_words(cipher) +
                " is sequential within a message; give many messages as a batch, or use a CPU "
                "backend"};
}

Error made_for_another(std::string_view name, std::string_view what) {
    return {Code::invalid_argument,
            std::string(name) + ": the " + std::string(what) + " are of another backend or device"};
}

Error cannot(std::string_view backend, const Cipher& cipher, const Can& can) {
    return {Code::unsupported, "backend '" + std::string(backend) + "' cannot do " +
                                   in_words(cipher) + ": " + std::string(can.why)};
}

}  // namespace dael::core
