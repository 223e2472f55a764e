// SPDX-License-Identifier: Apache-2.0
// The functions of OpenGL ES 3.0 that daelstrom calls, and what is made of several of them.
#pragma once

#include <GLES3/gl3.h>

#include <array>
#include <atomic>
#include <initializer_list>
#include <string>

#include <daelstrom/error.hpp>

namespace dael::opengl {

#define DAEL_GL_FUNCTIONS(FUNCTION)  \
    FUNCTION(ActiveTexture)          \
    FUNCTION(AttachShader)           \
    FUNCTION(BindFramebuffer)        \
    FUNCTION(BindTexture)            \
    FUNCTION(CheckFramebufferStatus) \
    FUNCTION(ClearBufferfv)          \
    FUNCTION(ClearBufferuiv)         \
    FUNCTION(CompileShader)          \
    FUNCTION(CreateProgram)          \
    FUNCTION(CreateShader)           \
    FUNCTION(DeleteShader)           \
    FUNCTION(Disable)                \
    FUNCTION(DrawArrays)             \
    FUNCTION(DrawBuffers)            \
    FUNCTION(Enable)                 \
    FUNCTION(Finish)                 \
    FUNCTION(Flush)                  \
    FUNCTION(FramebufferTexture2D)   \
    FUNCTION(GenFramebuffers)        \
    FUNCTION(GenTextures)            \
    FUNCTION(GetError)               \
    FUNCTION(GetIntegerv)            \
    FUNCTION(GetProgramInfoLog)      \
    FUNCTION(GetProgramiv)           \
    FUNCTION(GetShaderInfoLog)       \
    FUNCTION(GetShaderiv)            \
    FUNCTION(GetString)              \
    FUNCTION(GetUniformLocation)     \
    FUNCTION(LinkProgram)            \
    FUNCTION(PixelStorei)            \
    FUNCTION(ReadBuffer)             \
    FUNCTION(ReadPixels)             \
    FUNCTION(Scissor)                \
    FUNCTION(ShaderSource)           \
    FUNCTION(TexImage2D)             \
    FUNCTION(TexParameteri)          \
    FUNCTION(TexSubImage2D)          \
    FUNCTION(Uniform1f)              \
    FUNCTION(Uniform1i)              \
    FUNCTION(Uniform1ui)             \
    FUNCTION(Uniform2f)              \
    FUNCTION(Uniform4ui)             \
    FUNCTION(Uniform4uiv)            \
    FUNCTION(UseProgram)             \
    FUNCTION(Viewport)

// How texels of a kind are called: in memory of the device, and in ours.
struct TexelFormat {
    GLint internal;
    GLenum external;
    GLenum type;
};
inline constexpr TexelFormat kFourWords{GL_RGBA32UI, GL_RGBA_INTEGER, GL_UNSIGNED_INT};
inline constexpr TexelFormat kOneWord{GL_R32UI, GL_RED_INTEGER, GL_UNSIGNED_INT};
inline constexpr TexelFormat kFourBytes{GL_RGBA8, GL_RGBA, GL_UNSIGNED_BYTE};
inline constexpr TexelFormat kOneByte{GL_R8, GL_RED, GL_UNSIGNED_BYTE};

struct Gl;
// For tests: makes of a driver's functions those of one that errs.
inline std::atomic<void (*)(Gl&)> alters_driver{nullptr};

// For the context that is current.
struct Gl {
#define DAEL_DECLARE(name) decltype(&gl##name) name = nullptr;
    DAEL_GL_FUNCTIONS(DAEL_DECLARE)
#undef DAEL_DECLARE
    GLenum (*GetGraphicsResetStatus)() = nullptr;  // null where the driver cannot tell
    mutable bool was_reset = false;                // which a driver may tell but once

    static Result<Gl> load();
    // What the driver says of itself; "" where it says nothing.
    std::string text(GLenum name) const;

    // The errors of all calls since the last check, under the name of what they were for; and
    // whether the GPU was reset meanwhile, when a picture may be there only in part.
    Result<> check(const char* step) const;

    // A program that covers the target with this fragment shader, compiled with this word defined
    // (or ""), whose samplers read these units. On failure the error has the compiler's log.
    struct Sampler {
        const char* name;
        GLuint unit;
    };
    Result<GLuint> program(const char* fragment, const std::string& defined,
                           std::initializer_list<Sampler> samplers) const;

    // A texture whose texels are read as they are, bound to this unit.
    GLuint texture(GLuint unit) const;
    // Gives the texture on this unit a size and, unless `data` is null, content.
    void fill(GLuint unit, const TexelFormat& format, int width, int height,
              const void* data) const;
    // Overwrites the content of the texture on this unit, which has this size.
    void overwrite(GLuint unit, const TexelFormat& format, int width, int height,
                   const void* data) const;
};

}  // namespace dael::opengl
