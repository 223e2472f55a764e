// SPDX-License-Identifier: Apache-2.0
// The calls to the system that put files in their places, seen by the test: this program's own
// linkat(), renameat2() and so on stand before the C library's. For the thread that watches, they
// say what comes, and can fail, or end the process, at any of them. For other threads, and
// otherwise, they are the system's.
#pragma once

#include <functional>
#include <string_view>

namespace dael::test {

// What a file system, a sandbox or a kernel may lack.
struct Lacks {
    bool unnamed = false;     // O_TMPFILE
    bool links = false;       // linkat()
    bool flags = false;       // renameat2() with flags
    bool rights = false;      // fchmod()
    bool owners = false;      // fchown()
    bool proc = false;        // /proc
    bool attributes = false;  // extended ones
};

class Watched {
  public:
    // `before`: called before each call with its name and number from 0 on, in this thread, while
    // this lives. Returns 0, or the error that the call is to fail with.
    using Before = std::function<int(std::string_view call, int number)>;
    explicit Watched(Before before, const Lacks& lacks = {});
    Watched(const Watched&) = delete;
    Watched& operator=(const Watched&) = delete;
    ~Watched();
};

}  // namespace dael::test
