// SPDX-License-Identifier: Apache-2.0
// What OpenSSL would make of a configuration and of our provider, tried in library contexts of
// their own: nothing of this process's use of OpenSSL changes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <daelstrom/error.hpp>

namespace dael::cli {

// The module's file: `given`, or where it lies beside this program (installed or built), or in
// OpenSSL's folder of modules. "" where it is nowhere; `looked` then has the places.
std::string find_module(const std::string& given, std::vector<std::string>& looked);
// The configuration that programs read: OPENSSL_CONF, or OpenSSL's own.
std::string configuration_file();

// What a provider tells of itself: names, with texts or numbers.
struct Facts {
    std::vector<std::pair<std::string, std::string>> texts;
    std::vector<std::pair<std::string, std::uint64_t>> numbers;
};
// Loads the module from its file and asks it. Errors: what OpenSSL says.
Result<Facts> ask_module(const std::string& file);

// A configuration, read as a program reads it that starts.
struct Reading {
    std::string fault;  // what OpenSSL says of it; programs carry on and say nothing
    bool daelstrom = false, standard = false;  // active
    std::string cipher_from;   // whose AES-256-GCM a program gets that says no more; "": none
    std::string digest_from;   // and SHA-256
    std::string engine_fault;  // of the provider
};
Reading read_configuration(const std::string& file);

}  // namespace dael::cli
