// SPDX-License-Identifier: Apache-2.0
// Versions and errors of the C ABI.
#include "capi/shared.hpp"

#include <daelstrom/key.hpp>

namespace dael::capi {
namespace {

// Plain memory of the thread's, with neither constructor nor destructor: keeping a message, even
// that memory ran out, must not need memory.
constexpr std::size_t kMaxWords = 1000;
thread_local char last_error[kMaxWords + 1];

// What a structure may measure that some later version could have. More is a size that nobody set.
constexpr std::size_t kMaxSized = 4096;

}  // namespace

dael_status failed(const Error& error) noexcept {
    // Where memory ran out there may have been none for words.
    const std::string_view words = error.message.empty() ? describe(error.code) : error.message;
    const std::size_t size = words.copy(last_error, kMaxWords);
    last_error[size] = '\0';
    if (size < words.size()) std::memset(last_error + size - 3, '.', 3);
    return static_cast<dael_status>(error.code);
}

Result<> report(const Result<Ran>& ran, dael_ran* out) {
    if (!ran) return ran.error();
    if (!out) return {};
    *out = {};
    ran->backend.copy(out->backend, sizeof out->backend - 1);
    out->threads = ran->threads;
    out->chunks = ran->chunks;
    out->replaced = ran->replaced ? 1 : 0;
    std::ranges::copy(ran->percent, out->percent);
    return {};
}

Result<> read_sized(const void* given, const char* name, void* known, std::size_t size) {
    if (!given) return {};
    std::size_t theirs = 0;
    std::memcpy(&theirs, given, sizeof theirs);
    if (theirs < sizeof theirs || theirs > kMaxSized)
        return Error{Code::invalid_argument, std::string(name) + " says that it has " +
                                                 std::to_string(theirs) +
                                                 " bytes; set struct_size to sizeof(" + name + ")"};
    const auto* const bytes = static_cast<const unsigned char*>(given);
    for (std::size_t i = size; i < theirs; ++i)
        if (bytes[i] != 0)
            return Error{Code::unsupported, std::string(name) + " asks for something at byte " +
                                                std::to_string(i) +
                                                " that this version of daelstrom does not know"};
    std::memcpy(known, given, std::min(theirs, size));
    return {};
}

}  // namespace dael::capi

extern "C" {

unsigned dael_abi_version(void) {
    return DAEL_ABI_VERSION;
}
const char* dael_version(void) {
    return DAELSTROM_VERSION;
}

const char* dael_strerror(int status) {
    if (status < 0 || status >= dael::kCodeCount) return "unknown status";
    return dael::describe(static_cast<dael::Code>(status)).data();  // literals, which end in a zero
}
const char* dael_last_error(void) {
    return dael::capi::last_error;
}

void dael_wipe(void* memory, size_t size) {
    if (memory) dael::wipe(memory, size);
}
void* dael_pinned_alloc(size_t size) {
    return dael::allocate_pinned(size);
}
void dael_pinned_free(void* memory) {
    dael::release_pinned(memory);
}

}  // extern "C"
