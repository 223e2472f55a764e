// SPDX-License-Identifier: Apache-2.0
// How far a sweep goes. Sanitizers make everything several times as slow, and find what they look
// for without the ten-thousandth length or the sixteenth mebibyte; right answers are what builds
// without them are for.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DAEL_SANITIZED
#elif defined(__has_feature)  // clang's way to say so
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DAEL_SANITIZED
#endif
#endif

namespace dael::test {

#ifdef DAEL_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// AddressSanitizer's allocator has locks that a child of fork() finds as its parent's threads held
// them: a child that allocates there may wait for ever.
#if defined(__SANITIZE_ADDRESS__)
#define DAEL_ADDRESS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define DAEL_ADDRESS_SANITIZED
#endif
#endif
#ifdef DAEL_ADDRESS_SANITIZED
inline constexpr bool kBusyProcessesFork = false;
#else
inline constexpr bool kBusyProcessesFork = true;
#endif

// `all`, or under a sanitizer `fewer`.
template <class T>
constexpr T thorough(T all, T fewer) {
    return kSanitized ? fewer : all;
}

}  // namespace dael::test
