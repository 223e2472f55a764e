// SPDX-License-Identifier: Apache-2.0
#include "lab/opengl/context.hpp"

#define EGL_NO_PLATFORM_SPECIFIC_TYPES  // no window system's headers
#include <EGL/egl.h>
#include <EGL/eglext.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "core/process.hpp"

namespace dael::opengl {
namespace {

#define DAEL_EGL_FUNCTIONS(FUNCTION) \
    FUNCTION(BindAPI)                \
    FUNCTION(ChooseConfig)           \
    FUNCTION(CreateContext)          \
    FUNCTION(CreatePbufferSurface)   \
    FUNCTION(DestroyContext)         \
    FUNCTION(DestroySurface)         \
    FUNCTION(GetError)               \
    FUNCTION(GetProcAddress)         \
    FUNCTION(Initialize)             \
    FUNCTION(MakeCurrent)            \
    FUNCTION(QueryString)

struct Egl {
#define DAEL_DECLARE(name) decltype(&egl##name) name = nullptr;
    DAEL_EGL_FUNCTIONS(DAEL_DECLARE)
#undef DAEL_DECLARE

    template <class Function>
    Function extension(const char* name) const {
        return reinterpret_cast<Function>(GetProcAddress(name));
    }
};

// A display that is initialised, and a configuration with OpenGL ES 3 on it.
struct Device {
    EGLDisplay display;
    EGLConfig config;
    bool surfaceless;   // a context may be current without a surface
    bool tells_resets;  // on request, whether it was reset
    bool software;
};

// Whether a list of words has this one.
bool has(const char* list, std::string_view word) {
    const std::string padded = " " + std::string(list ? list : "") + " ";
    return padded.find(" " + std::string(word) + " ") != padded.npos;
}

// What this process has of EGL, looked for once. Libraries stay loaded and displays initialised:
// EGL hands the same display to everyone in the process, and terminating it would end their
// contexts.
struct Machine {
    explicit Machine(const char* why_not) : missing(why_not) {}
    Machine() {
        void* const egl_library = dlopen("libEGL.so.1", RTLD_NOW);
        gles_library = dlopen("libGLESv2.so.2", RTLD_NOW);
        if (!egl_library || !gles_library) {
            missing = std::string(egl_library ? "libGLESv2.so.2" : "libEGL.so.1") +
                      " is missing: install the GPU's driver, or Mesa (Debian: libegl1, libgles2, "
                      "libegl-mesa0, libgl1-mesa-dri)";
            return;
        }
#define DAEL_LOAD(name)                                                               \
    egl.name = reinterpret_cast<decltype(egl.name)>(dlsym(egl_library, "egl" #name)); \
    if (!egl.name) {                                                                  \
        missing = "libEGL.so.1 has no egl" #name ": install another one";             \
        return;                                                                       \
    }
        DAEL_EGL_FUNCTIONS(DAEL_LOAD)
#undef DAEL_LOAD
        find_devices();
        if (devices.empty())
            missing =
                "EGL has no device here that draws with OpenGL ES 3 without a window: install the "
                "GPU's driver, or Mesa (Debian: libegl-mesa0, libgl1-mesa-dri)";
    }

    void find_devices() {
        const char* const offers = egl.QueryString(EGL_NO_DISPLAY, EGL_EXTENSIONS);
        const auto get_display =
            egl.extension<PFNEGLGETPLATFORMDISPLAYEXTPROC>("eglGetPlatformDisplayEXT");
        const auto query_devices = egl.extension<PFNEGLQUERYDEVICESEXTPROC>("eglQueryDevicesEXT");
        const auto query_string =
            egl.extension<PFNEGLQUERYDEVICESTRINGEXTPROC>("eglQueryDeviceStringEXT");
        if (has(offers, "EGL_EXT_platform_device") && get_display && query_devices &&
            query_string) {
            std::array<EGLDeviceEXT, 32> found{};
            EGLint count = 0;
            query_devices(static_cast<EGLint>(found.size()), found.data(), &count);
            for (EGLint i = 0; i < count; ++i) {
                EGLDeviceEXT device = found[static_cast<std::size_t>(i)];
                const bool software =
                    has(query_string(device, EGL_EXTENSIONS), "EGL_MESA_device_software");
                add(get_display(EGL_PLATFORM_DEVICE_EXT, device, nullptr), software);
            }
        }
        if (devices.empty() && has(offers, "EGL_MESA_platform_surfaceless") && get_display)
            add(get_display(EGL_PLATFORM_SURFACELESS_MESA, EGL_DEFAULT_DISPLAY, nullptr), true);
        std::stable_partition(devices.begin(), devices.end(),
                              [](const Device& device) { return !device.software; });
    }

    // Leaves out what this process may not open, and what cannot do OpenGL ES 3.
    void add(EGLDisplay display, bool software) {
        if (display == EGL_NO_DISPLAY || !egl.Initialize(display, nullptr, nullptr)) return;
        const char* const offers = egl.QueryString(display, EGL_EXTENSIONS);
        const bool surfaceless = has(offers, "EGL_KHR_surfaceless_context");
        const EGLint wanted[] = {EGL_RENDERABLE_TYPE, EGL_OPENGL_ES3_BIT, EGL_SURFACE_TYPE,
                                 surfaceless ? 0 : EGL_PBUFFER_BIT, EGL_NONE};
        EGLConfig config = nullptr;
        EGLint configs = 0;
        if (egl.ChooseConfig(display, wanted, &config, 1, &configs) && configs == 1)
            devices.push_back({display, config, surfaceless,
                               has(offers, "EGL_EXT_create_context_robustness"), software});
    }

    const std::uint32_t process = core::this_process();
    Egl egl;
    void* gles_library = nullptr;
    std::vector<Device> devices;
    std::string missing;
};

// Not a static of a function's: a child that is forked while a thread looks for EGL would wait for
// that thread. Nor does it look again: EGL is half loaded in it.
const Machine& machine() {
    static std::atomic<const Machine*> known{nullptr};
    static std::atomic<std::uint32_t> looking{0};  // the process that is at it, or was
    static core::ProcessLock one_at_a_time;
    if (const Machine* const here = known.load(std::memory_order_acquire)) return *here;
    const std::lock_guard lock(one_at_a_time);
    if (const Machine* const here = known.load(std::memory_order_acquire)) return *here;
    const std::uint32_t mine = core::this_process();
    std::unique_ptr<const Machine> made;
    if (looking != 0 && looking != mine) {
        made = std::make_unique<const Machine>(
            "EGL was being loaded when this process was forked; use this backend in the child "
            "alone, or after exec()");
    } else {
        struct Looking {
            std::atomic<std::uint32_t>& process;
            bool done = false;
            ~Looking() {
                if (!done) process = 0;
            }
        } now{looking};
        looking = mine;
        made = std::make_unique<const Machine>();
        now.done = true;
    }
    known.store(made.get(), std::memory_order_release);
    return *made.release();
}

Error failure(const char* call) {
    const auto code = static_cast<unsigned>(machine().egl.GetError());
    constexpr char kDigits[] = "0123456789abcdef";
    std::string hex = "0x";
    for (int shift = 12; shift >= 0; shift -= 4) hex += kDigits[code >> shift & 0xf];
    return {Code::device, std::string("opengl: ") + call + " failed with EGL's error " + hex};
}

}  // namespace

int Context::count(std::string* why) {
    *why = machine().missing;
    return static_cast<int>(machine().devices.size());
}

Result<Context> Context::open(int device) {
    const Egl& egl = machine().egl;
    // A child of fork() has the displays, but not their drivers' threads, and would wait for them.
    if (machine().process != core::this_process())
        return Error{Code::device,
                     "opengl: EGL was used before fork(), and does not work after it; use this "
                     "backend in the child alone, or after exec()"};
    if (device < 0 || static_cast<std::size_t>(device) >= machine().devices.size())
        return Error{Code::backend_absent, "opengl: there is no device " + std::to_string(device)};
    const auto& [display, config, surfaceless, tells_resets, software] =
        machine().devices[static_cast<std::size_t>(device)];
    if (!egl.BindAPI(EGL_OPENGL_ES_API)) return failure("eglBindAPI");
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_NONE};
    // Unless it is asked to, a context never tells that a reset cut its work short.
    const EGLint telling[] = {EGL_CONTEXT_MAJOR_VERSION, 3,
                              EGL_CONTEXT_OPENGL_RESET_NOTIFICATION_STRATEGY_EXT,
                              EGL_LOSE_CONTEXT_ON_RESET_EXT, EGL_NONE};
    EGLContext context = EGL_NO_CONTEXT;
    if (tells_resets) context = egl.CreateContext(display, config, EGL_NO_CONTEXT, telling);
    if (!context) context = egl.CreateContext(display, config, EGL_NO_CONTEXT, version);
    Context made(display, context, EGL_NO_SURFACE);
    if (!made.context_) return failure("eglCreateContext");
    if (!surfaceless) {
        const EGLint one_pixel[] = {EGL_WIDTH, 1, EGL_HEIGHT, 1, EGL_NONE};
        made.surface_ = egl.CreatePbufferSurface(display, config, one_pixel);
        if (!made.surface_) return failure("eglCreatePbufferSurface");
    }
    if (!egl.MakeCurrent(display, made.surface_, made.surface_, made.context_))
        return failure("eglMakeCurrent");
    return made;
}

Context::Context(Context&& other) noexcept
    : display_(other.display_),
      context_(std::exchange(other.context_, EGL_NO_CONTEXT)),
      surface_(std::exchange(other.surface_, EGL_NO_SURFACE)) {}

Context::~Context() {
    if (!context_) return;
    const Egl& egl = machine().egl;
    egl.MakeCurrent(display_, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    if (surface_) egl.DestroySurface(display_, surface_);
    egl.DestroyContext(display_, context_);
}

void* Context::function(const char* name) noexcept {
    // EGL before 1.5 hands out extensions alone, so the library itself is asked first.
    if (void* exported = dlsym(machine().gles_library, name)) return exported;
    return reinterpret_cast<void*>(machine().egl.GetProcAddress(name));
}

}  // namespace dael::opengl
