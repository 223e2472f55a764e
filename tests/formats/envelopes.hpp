// SPDX-License-Identifier: Apache-2.0
// What the tests of envelopes share.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "formats/keysets.hpp"

namespace dael::test {

inline HostIn words(std::string_view text) {
    return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}
inline std::string text_of(HostIn bytes) {
    return {bytes.begin(), bytes.end()};
}

struct Person {
    std::string identity, recipient;
    sealed::Identities key() const { return must(sealed::Identities::parse(words(identity))); }
    sealed::Recipients address() const { return must(sealed::Recipients::parse(recipient)); }
};
inline Person person() {
    Bytes identity(sealed::kIdentitySize);
    must(sealed::make_identity(identity));
    return {text_of(identity), must(must(sealed::Identities::parse(identity)).recipients())};
}

inline sealed::Recipients for_all(const std::vector<Person>& people) {
    std::string text;
    for (const Person& one : people) text += one.recipient;
    return must(sealed::Recipients::parse(text));
}
// Work that costs nothing.
inline sealed::Recipients for_passphrase(std::string_view passphrase, int work = 1) {
    return must(sealed::Recipients::of_passphrase(words(passphrase), work));
}
inline sealed::Identities by_passphrase(std::string_view passphrase,
                                        int most = sealed::kUsualWorkLimit) {
    return must(sealed::Identities::of_passphrase(words(passphrase), most));
}

// That it fails with this code, and says this.
template <class T>
void expect_error(const Result<T>& result, Code code, const std::string& says) {
    ASSERT_FALSE(result) << says;
    EXPECT_EQ(result.code(), code) << result.error().message;
    EXPECT_NE(result.error().message.find(says), std::string::npos) << result.error().message;
}

}  // namespace dael::test
