// SPDX-License-Identifier: Apache-2.0
// What backends have in common to say.
#include "core/backend.hpp"

#include <mutex>
#include <set>
#include <string>

namespace dael::core {
namespace {

std::string in_words(const Cipher& cipher) {
    return std::string(name(cipher.mode)) + " " + std::string(name(cipher.direction)) + "ion";
}

}  // namespace

std::string_view lasting(std::string_view name) {
    static std::mutex mutex;
    static auto* const names = new std::set<std::string, std::less<>>;
    const std::lock_guard lock(mutex);
    return *names->emplace(name).first;
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
