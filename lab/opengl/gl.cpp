// SPDX-License-Identifier: Apache-2.0
#include "lab/opengl/gl.hpp"

#include <string_view>

#include "lab/opengl/context.hpp"
#include "lab/opengl/shaders.hpp"

namespace dael::opengl {
namespace {

// One line, since it becomes an error's message.
std::string in_one_line(std::string log) {
    while (!log.empty() && (log.back() == '\n' || log.back() == '\0')) log.pop_back();
    for (char& c : log)
        if (c == '\n') c = ';';
    return log;
}

// Whether a shader compiled or a program linked; the driver's log goes into the error.
template <class Get, class GetLog>
Result<> check_built(GLuint object, GLenum status, Get get, GetLog get_log, const char* what) {
    GLint built = GL_FALSE, length = 0;
    get(object, status, &built);
    if (built) return {};
    get(object, GL_INFO_LOG_LENGTH, &length);
    std::string log(static_cast<std::size_t>(length), '\0');
    get_log(object, length, nullptr, log.data());
    return Error{Code::device, std::string("opengl: ") + what + ": " + in_one_line(std::move(log))};
}

Result<> compile(const Gl& gl, GLuint shader, const std::string& source) {
    const char* const text = source.c_str();
    gl.ShaderSource(shader, 1, &text, nullptr);
    gl.CompileShader(shader);
    return check_built(shader, GL_COMPILE_STATUS, gl.GetShaderiv, gl.GetShaderInfoLog,
                       "a shader did not compile");
}

Result<> link(const Gl& gl, GLuint program) {
    gl.LinkProgram(program);
    return check_built(program, GL_LINK_STATUS, gl.GetProgramiv, gl.GetProgramInfoLog,
                       "the shaders did not link");
}

}  // namespace

Result<Gl> Gl::load() {
    Gl gl;
#define DAEL_LOAD(name)                                                           \
    gl.name = reinterpret_cast<decltype(gl.name)>(Context::function("gl" #name)); \
    if (!gl.name) return Error{Code::device, "opengl: this driver has no gl" #name};
    DAEL_GL_FUNCTIONS(DAEL_LOAD)
#undef DAEL_LOAD
    const std::string offers = gl.text(GL_EXTENSIONS);
    for (const char* maker : {"KHR", "EXT"})
        if (!gl.GetGraphicsResetStatus &&
            offers.find("GL_" + std::string(maker) + "_robustness") != offers.npos)
            gl.GetGraphicsResetStatus = reinterpret_cast<decltype(gl.GetGraphicsResetStatus)>(
                Context::function(("glGetGraphicsResetStatus" + std::string(maker)).c_str()));
    if (const auto alter = alters_driver.load()) alter(gl);
    return gl;
}

std::string Gl::text(GLenum name) const {
    const GLubyte* const said = GetString(name);  // null of a context that is lost
    return said ? reinterpret_cast<const char*>(said) : "";
}

Result<> Gl::check(const char* step) const {
    const GLenum first = GetError();
    was_reset |= GetGraphicsResetStatus && GetGraphicsResetStatus() != GL_NO_ERROR;
    if (was_reset)
        return Error{Code::device,
                     std::string("opengl: the GPU was reset (") + step +
                         "); open the engine anew, or use another backend if it happens again"};
    if (first == GL_NO_ERROR) return {};
    for (int more = 0; more < 8 && GetError() != GL_NO_ERROR; ++more) {
        // A driver may keep several; one that is lost has no end of them.
    }
    if (first == GL_OUT_OF_MEMORY)
        return Error{Code::out_of_memory, std::string("opengl: no memory for ") + step};
    return Error{Code::device, std::string("opengl: ") + step + " failed with OpenGL's error " +
                                   std::to_string(first)};
}

Result<GLuint> Gl::program(const char* fragment, const std::string& defined,
                           std::initializer_list<Sampler> samplers) const {
    const std::string version = "#version 300 es\n";
    const std::string define = defined.empty() ? "" : "#define " + defined + "\n";
    const GLuint program = CreateProgram();
    for (const auto& [type, source] :
         {std::pair{GL_VERTEX_SHADER, version + kWholeVert},
          std::pair{GL_FRAGMENT_SHADER, version + define + fragment}}) {
        const GLuint shader = CreateShader(static_cast<GLenum>(type));
        DAEL_TRY(compile(*this, shader, source));
        AttachShader(program, shader);
        DeleteShader(shader);  // when the program goes
    }
    DAEL_TRY(link(*this, program));
    UseProgram(program);
    for (const auto& [name, unit] : samplers)
        Uniform1i(GetUniformLocation(program, name), static_cast<GLint>(unit));
    return program;
}

GLuint Gl::texture(GLuint unit) const {
    GLuint name = 0;
    GenTextures(1, &name);
    ActiveTexture(GL_TEXTURE0 + unit);
    BindTexture(GL_TEXTURE_2D, name);
    TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MIN_FILTER, GL_NEAREST);
    TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_MAG_FILTER, GL_NEAREST);
    TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_S, GL_CLAMP_TO_EDGE);
    TexParameteri(GL_TEXTURE_2D, GL_TEXTURE_WRAP_T, GL_CLAMP_TO_EDGE);
    return name;
}

void Gl::fill(GLuint unit, const TexelFormat& format, int width, int height,
              const void* data) const {
    ActiveTexture(GL_TEXTURE0 + unit);
    TexImage2D(GL_TEXTURE_2D, 0, format.internal, width, height, 0, format.external, format.type,
               data);
}

void Gl::overwrite(GLuint unit, const TexelFormat& format, int width, int height,
                   const void* data) const {
    ActiveTexture(GL_TEXTURE0 + unit);
    TexSubImage2D(GL_TEXTURE_2D, 0, 0, 0, width, height, format.external, format.type, data);
}

}  // namespace dael::opengl
