// SPDX-License-Identifier: Apache-2.0
// What the provider was told: by its section of openssl.cnf, and by the environment, which wins.
// And its log, which is off unless somebody asks for it.
#pragma once

#include <openssl/core.h>
#include <openssl/core_dispatch.h>

#include <cstddef>
#include <cstdint>

namespace dael::provider {

struct Settings {
    char backend[64] = "";              // "": the engine's own choice
    int threads = 0;                    // 0: all cores
    std::size_t threshold = 256 << 10;  // bytes of an update from which it goes to all cores
    std::uint64_t warmup = 32 << 20;    // bytes in a process before its engine is opened
    bool vectors = true;                // small and middling requests by code of our own
    char log[256] = "off";
    char fault[160] = "";  // the first value that is left out, and why
};

// The process's: those of the provider that was loaded first, which the engine is opened with.
const Settings& settings() noexcept;
// Reads them, once for a process; they stand when it returns. `get_params` may be null.
// Thread-safe, without a lock.
void read_settings(const OSSL_CORE_HANDLE* handle,
                   OSSL_FUNC_core_get_params_fn* get_params) noexcept;

// One line in the log, if there is one. `detail` may be null. No secrets.
void log_line(const char* what, const char* detail) noexcept;

}  // namespace dael::provider
