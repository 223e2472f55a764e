// SPDX-License-Identifier: Apache-2.0
#include "lab/opengl/opengl.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "lab/opengl/context.hpp"
#include "lab/opengl/form.hpp"
#include "lab/opengl/gl.hpp"
#include "modes/counter.hpp"

namespace dael::opengl {
namespace {

constexpr std::size_t divide_up(std::size_t a, std::size_t b) {
    return (a + b - 1) / b;
}

}  // namespace

Extent fit(std::size_t blocks, Extent most) noexcept {
    const auto side = static_cast<std::size_t>(std::sqrt(static_cast<double>(blocks)));
    const std::size_t least_rows = divide_up(blocks, static_cast<std::size_t>(most.width));
    const std::size_t rows = std::min(std::max({side, least_rows, std::size_t{1}}),
                                      static_cast<std::size_t>(most.height));
    return {static_cast<int>(divide_up(blocks, rows)), static_cast<int>(rows)};
}

int count_devices(std::string* why) {
    return Context::count(why);
}

// The data's texture, which is drawn from, and the targets, which are drawn on. They are made for a
// pass and kept for the next, which is often of the same size.
struct OpenGl::State {
    State(Context current, const Gl& functions) : context(std::move(current)), gl(functions) {}

    Result<> make(Form which) {
        gl.Disable(GL_DITHER);  // which would add noise to colours of 8 bits
        gl.PixelStorei(GL_PACK_ALIGNMENT, 1);
        gl.PixelStorei(GL_UNPACK_ALIGNMENT, 1);
        auto made = which == Form::integers ? make_int_form(gl) : make_float_form(gl);
        if (!made) return std::move(made).error();
        form = std::move(*made);
        layout = form->layout();

        attach(clearing, {gl.texture(kDataUnit)});
        std::vector<GLuint> targets;
        for (GLuint i = 0; i < layout.targets; ++i) targets.push_back(gl.texture(kTargetUnit + i));
        attach(drawing, targets);
        DAEL_TRY(gl.check("making the framebuffers"));

        GLint side = 0, viewport[2] = {};
        gl.GetIntegerv(GL_MAX_TEXTURE_SIZE, &side);
        gl.GetIntegerv(GL_MAX_VIEWPORT_DIMS, viewport);
        most = {std::min(side / layout.texels, viewport[0]), std::min(side, viewport[1])};
        description = std::string(kFormNames[static_cast<std::size_t>(which)]) + " on " +
                      gl.text(GL_RENDERER) + ", " + gl.text(GL_VERSION) + ", textures to " +
                      std::to_string(side) + " x " + std::to_string(side);
        return {};
    }

    void attach(GLuint& framebuffer, const std::vector<GLuint>& textures) {
        gl.GenFramebuffers(1, &framebuffer);
        gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        std::vector<GLenum> points;
        for (const GLuint texture : textures) {
            points.push_back(GL_COLOR_ATTACHMENT0 + static_cast<GLenum>(points.size()));
            gl.FramebufferTexture2D(GL_FRAMEBUFFER, points.back(), GL_TEXTURE_2D, texture, 0);
        }
        gl.DrawBuffers(static_cast<GLsizei>(points.size()), points.data());
    }

    // Makes textures of this size, and staging memory.
    Result<> resize(Extent wanted) {
        if (wanted == extent) return {};
        wipe();
        extent = {};
        gl.fill(kDataUnit, layout.format, wanted.width * layout.texels, wanted.height, nullptr);
        for (GLuint i = 0; i < layout.targets; ++i)
            gl.fill(kTargetUnit + i, layout.format, wanted.width, wanted.height, nullptr);
        DAEL_TRY(gl.check("the textures"));
        for (const GLuint framebuffer : {clearing, drawing}) {
            gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
            const GLenum status = gl.CheckFramebufferStatus(GL_FRAMEBUFFER);
            if (status != GL_FRAMEBUFFER_COMPLETE)
                return Error{Code::device,
                             "opengl: this driver does not draw on such textures (framebuffer "
                             "status " +
                                 std::to_string(status) + "); use another device or driver"};
        }
        staging.reserve(wanted.blocks() * kBlockSize);  // exactly, where it has to grow
        staging.resize(wanted.blocks() * kBlockSize);
        extent = wanted;
        return {};
    }

    void wipe() {
        if (extent.blocks() != 0) {
            clear(clearing, 1);
            clear(drawing, layout.targets);
        }
        dael::wipe(staging.data(), staging.size());
    }

    void clear(GLuint framebuffer, GLuint attachments) {
        static constexpr GLuint kNoWords[4] = {};
        static constexpr GLfloat kBlack[4] = {};
        gl.BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        for (GLuint i = 0; i < attachments; ++i)
            if (layout.format.type == GL_UNSIGNED_INT)
                gl.ClearBufferuiv(GL_COLOR, static_cast<GLint>(i), kNoWords);
            else
                gl.ClearBufferfv(GL_COLOR, static_cast<GLint>(i), kBlack);
    }

    Context context;
    const Gl gl;
    std::unique_ptr<CipherForm> form;
    Layout layout{};
    std::string description;
    Extent most;          // of a picture
    Extent extent;        // of the textures as they are
    GLuint drawing = 0;   // the framebuffer of the targets
    GLuint clearing = 0;  // that of the data's texture, which is drawn on only to clear it
    std::vector<std::uint8_t> staging;  // the picture in our memory
};

OpenGl::OpenGl(std::unique_ptr<State> state, std::string name, std::size_t pass, std::size_t band)
    : state_(std::move(state)), name_(std::move(name)), pass_(pass), band_(band) {}

OpenGl::~OpenGl() {
    wipe();
}

Result<std::unique_ptr<OpenGl>> OpenGl::open(const Options& options) {
    auto context = Context::open(options.device);
    if (!context) return std::move(context).error();
    const auto gl = Gl::load();
    if (!gl) return gl.error();
    auto state = std::make_unique<State>(std::move(*context), *gl);
    DAEL_TRY(state->make(options.form));
    const std::size_t pass = std::min(options.pass, state->most.blocks() * kBlockSize);
    std::string name =
        "opengl:" + std::to_string(options.device) + " (" + state->gl.text(GL_RENDERER) + ")";
    std::unique_ptr<OpenGl> opened(
        new OpenGl(std::move(state), std::move(name), pass, options.band));
    DAEL_TRY(opened->believe({Mode::ecb}, 128));
    return opened;
}

std::string OpenGl::description() const {
    return state_->description;
}

bool OpenGl::supports(const Cipher& cipher) const {
    return state_->form->supports(cipher);
}

bool OpenGl::was_reset() const noexcept {
    return state_->gl.was_reset;
}

Result<> OpenGl::run(const Cipher& cipher, const Key& key, const Message& message) {
    DAEL_TRY(believe(cipher, key.bits()));
    return run_unasked(cipher, key, message);
}

Result<> OpenGl::run_unasked(const Cipher& cipher, const Key& key, const Message& message) {
    const struct Wiper {
        OpenGl& gl;
        ~Wiper() { gl.wipe(); }
    } wiper{*this};
    Block counter = message.start;
    std::size_t skip = message.skip;
    for (std::uint64_t done = 0; done < message.size;) {
        const auto size =
            static_cast<std::size_t>(std::min<std::uint64_t>(pass_ - skip, message.size - done));
        DAEL_TRY(upload({message.in ? message.in + done : nullptr, size}, skip));
        DAEL_TRY(draw(cipher, key, counter));
        DAEL_TRY(download({message.out + done, size}, skip));
        counter = modes::counter_add(counter, pass_ / kBlockSize);
        done += size;
        skip = 0;
    }
    return {};
}

Result<> OpenGl::upload(std::span<const std::uint8_t> in, std::size_t skip) {
    State& s = *state_;
    DAEL_TRY(s.resize(fit(divide_up(skip + in.size(), kBlockSize), s.most)));
    const auto begin = s.staging.begin() + static_cast<std::ptrdiff_t>(skip);
    if (in.data())
        std::ranges::copy(in, begin);
    else
        std::fill_n(begin, in.size(), std::uint8_t{0});
    s.gl.overwrite(kDataUnit, s.layout.format, s.extent.width * s.layout.texels, s.extent.height,
                   s.staging.data());
    return s.gl.check("uploading");
}

Result<> OpenGl::draw(const Cipher& cipher, const Key& key, const Block& counter) {
    State& s = *state_;
    s.gl.BindFramebuffer(GL_FRAMEBUFFER, s.drawing);
    s.gl.Viewport(0, 0, s.extent.width, s.extent.height);
    s.form->use(cipher, key, counter, s.extent);
    // In bands that are handed over one by one: drivers reset a GPU that is busy with one piece of
    // work for some seconds, some of them after half a second.
    const auto row = static_cast<std::size_t>(s.extent.width) * kBlockSize;
    const int rows = static_cast<int>(
        std::clamp<std::size_t>(band_ / row, 1, static_cast<std::size_t>(s.extent.height)));
    s.gl.Enable(GL_SCISSOR_TEST);
    for (int y = 0; y < s.extent.height; y += rows) {
        s.gl.Scissor(0, y, s.extent.width, rows);
        s.gl.DrawArrays(GL_TRIANGLES, 0, 3);
        s.gl.Flush();
    }
    s.gl.Disable(GL_SCISSOR_TEST);  // clearing would keep to the band as well
    return s.gl.check("drawing");
}

Result<> OpenGl::finish() {
    state_->gl.Finish();
    return state_->gl.check("drawing");
}

Result<> OpenGl::download(std::span<std::uint8_t> out, std::size_t skip) {
    State& s = *state_;
    const std::size_t target_size = s.staging.size() / s.layout.targets;
    s.gl.BindFramebuffer(GL_FRAMEBUFFER, s.drawing);
    for (GLuint i = 0; i < s.layout.targets; ++i) {
        s.gl.ReadBuffer(GL_COLOR_ATTACHMENT0 + i);
        s.gl.ReadPixels(0, 0, s.extent.width, s.extent.height, s.layout.format.external,
                        s.layout.format.type, s.staging.data() + i * target_size);
    }
    DAEL_TRY(s.gl.check("downloading"));
    if (s.layout.targets == 1) {
        std::memcpy(out.data(), s.staging.data() + skip, out.size());
        return {};
    }
    // A block's columns come together again, each from its target.
    const std::size_t column = kBlockSize / s.layout.targets;
    for (std::size_t at = 0; at < out.size(); at += column) {
        const std::size_t block = at / kBlockSize, target = at % kBlockSize / column;
        std::memcpy(&out[at], &s.staging[target * target_size + block * column], column);
    }
    return {};
}

void OpenGl::wipe() noexcept {
    state_->form->forget();
    state_->wipe();
    state_->gl.Finish();
    (void)state_->gl.check("wiping");  // an error here is not the next call's
}

}  // namespace dael::opengl
