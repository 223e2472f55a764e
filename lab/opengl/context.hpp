// SPDX-License-Identifier: Apache-2.0
// A context of OpenGL ES 3 without a window or a display server, by way of EGL, which is loaded
// when it is first asked for.
#pragma once

#include <string>

#include <daelstrom/error.hpp>

namespace dael::opengl {

class Context {
  public:
    // How many devices this machine's EGL offers that can draw with OpenGL ES 3, hardware first. On
    // 0, `*why` says what is missing.
    static int count(std::string* why);

    // On the device of this number; current on the calling thread from then on, and until it goes
    // it may be used on that thread alone. Errors: device, and so in a child of fork() whose parent
    // had called any of these.
    static Result<Context> open(int device);

    Context(Context&& other) noexcept;
    Context& operator=(Context&&) = delete;
    ~Context();

    // A function of OpenGL ES by its name; null where there is none.
    static void* function(const char* name) noexcept;

  private:
    Context(void* display, void* context, void* surface) noexcept
        : display_(display), context_(context), surface_(surface) {}
    void* display_;
    void* context_;
    void* surface_;  // one pixel that nobody draws on; null where a context can do without
};

}  // namespace dael::opengl
