// SPDX-License-Identifier: Apache-2.0
// What is particular to AES as drawing: pictures in several passes, steps apart, forms by name, its
// own thread, and what is left behind. That the bytes are right, every suite over backends shows.
#include <thread>

#include "core/key_schedule.hpp"
#include "core/registry.hpp"
#include "lab/opengl/context.hpp"
#include "lab/opengl/gl.hpp"
#include "lab/opengl/opengl.hpp"
#include "modes/counter.hpp"
#include "support/child.hpp"
#include "support/oracle.hpp"
#include "support/subject.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using opengl::OpenGl;

class OpenGlForm : public SubjectTest {
  protected:
    opengl::Form form() const {
        return GetParam().form == opengl::kFormNames[1] ? opengl::Form::floats
                                                        : opengl::Form::integers;
    }
    std::vector<Cipher> ciphers() const {
        if (form() == opengl::Form::floats) return {{Mode::ecb}};
        return {{Mode::ecb}, {Mode::ecb, Direction::decrypt}, {Mode::ctr}};
    }
    Bytes want(const Cipher& cipher, const Message& message, const Bytes& in) const {
        return oracle(key_bytes_, {cipher.mode, cipher.direction, message.start, message.skip}, in);
    }
    static Message listed(const Bytes& in, Bytes& out, const Block& start = {}) {
        return {.in = in.data(), .out = out.data(), .size = in.size(), .start = start};
    }
    Result<> run(core::Backend& backend, const Cipher& cipher, const Message& message) const {
        return backend.run(cipher, {std::span(&key_, 1)}, std::span(&message, 1), {});
    }

    Random random_{2007};
    const Bytes key_bytes_ = random_.bytes(24);
    const Key key_ = *Key::import(key_bytes_);
};

// Passes of 4 KiB: messages end before, at and after their edges, and the counter goes on from one
// to the next, with carries in the midst of them.
TEST_P(OpenGlForm, SeveralPasses) {
    auto gl = OpenGl::open({.form = form(), .pass = 4096});
    ASSERT_TRUE(gl) << gl.error().message;
    ASSERT_EQ((*gl)->pass(), 4096u);
    for (const Cipher& cipher : ciphers())
        for (const std::size_t size : {1, 16, 4080, 4096, 4097, 4112, 8192, 20480, 30005}) {
            const bool ctr = cipher.mode == Mode::ctr;
            if (!ctr && size % kBlockSize != 0) continue;
            Bytes in = pattern(size), out(size);
            Message message = listed(in, out);
            if (ctr) {
                message.start.fill(0xff);
                message.start[15] = static_cast<std::uint8_t>(random_.below(256));
                message.skip = static_cast<std::uint8_t>(random_.below(16));
            }
            const Bytes expected = want(cipher, message, in);
            const auto done = (*gl)->run(cipher, key_, message);
            ASSERT_TRUE(done) << done.error().message;
            EXPECT_EQ(difference(expected, out), "") << name(cipher.mode) << " " << size;
            message.out = in.data();  // in place
            ASSERT_TRUE((*gl)->run(cipher, key_, message));
            EXPECT_EQ(difference(expected, in), "") << name(cipher.mode) << " " << size;
        }
}

// A pass need not be more than one block; and the driver's limit counts where it is the smaller.
TEST_P(OpenGlForm, SmallestAndLargestPass) {
    {
        auto smallest = OpenGl::open({.form = form(), .pass = 16});
        ASSERT_TRUE(smallest) << smallest.error().message;
        const Cipher cipher = ciphers().back();
        Bytes in = pattern(160), out(in.size());
        const Message message = listed(in, out, random_.block());
        ASSERT_TRUE((*smallest)->run(cipher, key_, message));
        EXPECT_EQ(difference(want(cipher, message, in), out), "");
    }
    auto largest = OpenGl::open({.form = form(), .pass = SIZE_MAX / 16 * 16});
    ASSERT_TRUE(largest) << largest.error().message;
    EXPECT_GE((*largest)->pass(), std::size_t{2048} * 512 * 16);  // by OpenGL ES 3.0's limits
    EXPECT_LT((*largest)->pass(), std::size_t{1} << 48);
}

TEST_P(OpenGlForm, StepByStep) {
    auto gl = OpenGl::open({.form = form()});
    ASSERT_TRUE(gl) << gl.error().message;
    EXPECT_NE((*gl)->description().find(opengl::kFormNames[static_cast<std::size_t>(form())]),
              std::string::npos)
        << (*gl)->description();
    for (const Cipher& cipher : ciphers()) {
        Bytes in = pattern(5008), out(in.size());
        const Message message = listed(in, out, random_.block());
        ASSERT_TRUE((*gl)->upload(in));
        for (int times = 0; times < 3; ++times)  // drawing leaves the input alone
            ASSERT_TRUE((*gl)->draw(cipher, key_, message.start));
        ASSERT_TRUE((*gl)->finish());
        ASSERT_TRUE((*gl)->download(out));
        EXPECT_EQ(difference(want(cipher, message, in), out), "") << name(cipher.mode);
    }
}

// After a call the targets are black, and so is the texture of the data: drawn once more, it yields
// what zeros yield.
TEST_P(OpenGlForm, NothingIsLeftInTheTextures) {
    auto gl = OpenGl::open({.form = form(), .band = 1024});
    ASSERT_TRUE(gl) << gl.error().message;
    for (const Cipher& cipher : ciphers()) {
        Bytes in = pattern(5008), out(in.size());
        const Message message = listed(in, out, random_.block());
        ASSERT_TRUE((*gl)->run(cipher, key_, message));
        ASSERT_TRUE((*gl)->download(out));
        EXPECT_EQ(out, Bytes(out.size())) << name(cipher.mode);
        ASSERT_TRUE((*gl)->draw(cipher, key_, message.start));
        ASSERT_TRUE((*gl)->download(out));
        EXPECT_EQ(difference(want(cipher, message, Bytes(out.size())), out), "")
            << name(cipher.mode);
        (*gl)->wipe();
    }
}

// Bands of one row, of several with a rest, of all and of more than there is.
TEST_P(OpenGlForm, SeveralBands) {
    for (const std::size_t band : {1, 1000, 2000, 5008, 1 << 30}) {
        auto gl = OpenGl::open({.form = form(), .band = band});
        ASSERT_TRUE(gl) << gl.error().message;
        for (const Cipher& cipher : ciphers()) {
            Bytes in = pattern(5008), out(in.size());
            const Message message = listed(in, out, random_.block());
            ASSERT_TRUE((*gl)->run(cipher, key_, message));
            EXPECT_EQ(difference(want(cipher, message, in), out), "")
                << name(cipher.mode) << " in bands of " << band;
        }
    }
}

// gl-int has the round keys in each of its three programs: whichever were used, none has any of
// them still.
TEST(OpenGlInt, NoRoundKeyIsLeft) {
    std::string why;
    if (opengl::count_devices(&why) == 0) GTEST_SKIP() << why;
    auto gl = OpenGl::open({});
    ASSERT_TRUE(gl) << gl.error().message;
    const auto is_program =
        reinterpret_cast<decltype(&glIsProgram)>(opengl::Context::function("glIsProgram"));
    const auto location = reinterpret_cast<decltype(&glGetUniformLocation)>(
        opengl::Context::function("glGetUniformLocation"));
    const auto read =
        reinterpret_cast<decltype(&glGetUniformuiv)>(opengl::Context::function("glGetUniformuiv"));
    ASSERT_TRUE(is_program && location && read);
    // How many round keys are not zeros, of all programs.
    const auto round_keys = [&] {
        int programs = 0, left = 0;
        for (GLuint name = 1; name < 100; ++name) {
            if (!is_program(name) || location(name, "round_keys[0]") < 0) continue;
            ++programs;
            for (int round = 0; round <= core::kMaxRounds; ++round) {
                const std::string key = "round_keys[" + std::to_string(round) + "]";
                GLuint words[4] = {};
                read(name, location(name, key.c_str()), words);
                left += (words[0] | words[1] | words[2] | words[3]) != 0;
            }
        }
        EXPECT_EQ(programs, 3);
        return left;
    };
    const Key key = *Key::import(pattern(32));
    ASSERT_TRUE((*gl)->upload(pattern(64)));
    for (const auto& [mode, direction] :
         {std::pair{Mode::ecb, Direction::encrypt}, std::pair{Mode::ecb, Direction::decrypt},
          std::pair{Mode::ctr, Direction::encrypt}})
        ASSERT_TRUE((*gl)->draw({mode, direction}, key, {}));
    EXPECT_EQ(round_keys(), 3 * (core::kMaxRounds + 1));
    (*gl)->wipe();
    EXPECT_EQ(round_keys(), 0);
}

// gl-float has them in a texture, four texels each.
TEST(OpenGlFloat, NoRoundKeyIsLeft) {
    std::string why;
    if (opengl::count_devices(&why) == 0) GTEST_SKIP() << why;
    auto opened = OpenGl::open({.form = opengl::Form::floats});
    ASSERT_TRUE(opened) << opened.error().message;
    const auto gl = opengl::Gl::load();
    ASSERT_TRUE(gl) << gl.error().message;
    const auto round_keys = [&] {
        GLint texture = 0;
        gl->ActiveTexture(GL_TEXTURE1);
        gl->GetIntegerv(GL_TEXTURE_BINDING_2D, &texture);
        GLuint framebuffer = 0;
        gl->GenFramebuffers(1, &framebuffer);
        gl->BindFramebuffer(GL_FRAMEBUFFER, framebuffer);
        gl->FramebufferTexture2D(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_TEXTURE_2D,
                                 static_cast<GLuint>(texture), 0);
        gl->ReadBuffer(GL_COLOR_ATTACHMENT0);
        Bytes texels = pattern(kBlockSize * (core::kMaxRounds + 1));
        gl->ReadPixels(0, 0, 4, core::kMaxRounds + 1, GL_RGBA, GL_UNSIGNED_BYTE, texels.data());
        EXPECT_TRUE(gl->check("reading the round keys"));
        return texels;
    };
    const Key key = *Key::import(pattern(32));
    ASSERT_TRUE((*opened)->upload(pattern(64)));
    ASSERT_TRUE((*opened)->draw({Mode::ecb}, key, {}));
    const auto& schedule = key.schedule().encrypt;
    const auto* const bytes = reinterpret_cast<const std::uint8_t*>(schedule.data());
    EXPECT_EQ(round_keys(), Bytes(bytes, bytes + kBlockSize * (core::kMaxRounds + 1)));
    (*opened)->wipe();
    EXPECT_EQ(round_keys(), Bytes(kBlockSize * (core::kMaxRounds + 1)));
}

// Work that a reset of the GPU may have cut short is an error. No driver here can be made to reset,
// so one that says that it was stands in for it.
TEST(OpenGlReset, IsAnError) {
    std::string why;
    if (opengl::count_devices(&why) == 0) GTEST_SKIP() << why;
    const auto context = opengl::Context::open(0);
    ASSERT_TRUE(context) << context.error().message;
    auto gl = opengl::Gl::load();
    ASSERT_TRUE(gl) << gl.error().message;
    EXPECT_TRUE(gl->check("nothing"));
    gl->GetGraphicsResetStatus = [] { return GLenum{0x8253}; };  // GL_GUILTY_CONTEXT_RESET
    const auto checked = gl->check("drawing");
    ASSERT_EQ(checked.code(), Code::device);
    EXPECT_NE(checked.error().message.find("reset"), std::string::npos) << checked.error().message;
    gl->GetGraphicsResetStatus = [] { return GLenum{GL_NO_ERROR}; };
    EXPECT_EQ(gl->check("drawing again").code(), Code::device);  // the context is still lost
}

TEST_P(OpenGlForm, ManyThreadsAtOnce) {
    auto backend = core::open_backend("opengl", {GetParam().form, 0});
    ASSERT_TRUE(backend) << backend.error().message;
    std::vector<std::string> faults(4);
    {
        std::vector<std::jthread> threads;
        for (std::size_t t = 0; t < faults.size(); ++t)
            threads.emplace_back([&, t] {
                Random random(t);
                for (int round = 0; round < 10 && faults[t].empty(); ++round)
                    for (const Cipher& cipher : ciphers()) {
                        const Bytes bytes = random.bytes(8 * (2 + random.below(3)));
                        const auto key = Key::import(bytes);
                        const Bytes in = pattern(16 * (1 + random.below(500)), t);
                        Bytes out(in.size());
                        const Message message = listed(in, out, random.block());
                        const auto done = (*backend)->run(cipher, {std::span(&*key, 1)},
                                                          std::span(&message, 1), {});
                        const Use use{cipher.mode, cipher.direction, message.start};
                        faults[t] +=
                            done ? difference(oracle(bytes, use, in), out) : done.error().message;
                    }
            });
    }
    for (const std::string& fault : faults) EXPECT_EQ(fault, "");
}

// A caller may draw pictures of its own, in a context that is current on its thread.
TEST_P(OpenGlForm, TheCallersContextStaysAsItIs) {
    auto mine = opengl::Context::open(0);
    ASSERT_TRUE(mine) << mine.error().message;
    const auto gl = opengl::Gl::load();
    ASSERT_TRUE(gl) << gl.error().message;
    GLuint texture = 0;
    for (int i = 0; i < 40; ++i) texture = gl->texture(0);  // a name that the backend has not got
    GLint bound = 0;
    {
        auto backend = core::open_backend("opengl", {GetParam().form, 0});
        ASSERT_TRUE(backend) << backend.error().message;
        Bytes data(4096);
        ASSERT_TRUE(run(**backend, ciphers().front(), listed(data, data)));
        gl->GetIntegerv(GL_TEXTURE_BINDING_2D, &bound);
        EXPECT_EQ(static_cast<GLuint>(bound), texture);
    }
    bound = 0;
    gl->GetIntegerv(GL_TEXTURE_BINDING_2D, &bound);
    EXPECT_EQ(static_cast<GLuint>(bound), texture);
    EXPECT_TRUE(gl->check("the caller's own calls"));
}

// A child of fork() has neither the thread nor a context: it hears so at once, and can let go.
TEST_P(OpenGlForm, SaysSoAfterAFork) {
    auto backend = core::open_backend("opengl", {GetParam().form, 0});
    ASSERT_TRUE(backend) << backend.error().message;
    Bytes data(64);
    expect_in_a_child([&] {
        const auto done = run(**backend, ciphers().front(), listed(data, data));
        const bool told =
            done.code() == Code::device && done.error().message.find("fork") != std::string::npos;
        backend->reset();
        // Nor is another one of any use.
        const auto another = core::open_backend("opengl", {GetParam().form, 0});
        const bool refused = another.code() == Code::device &&
                             another.error().message.find("fork") != std::string::npos;
        return told && refused;
    });
    EXPECT_TRUE(run(**backend, ciphers().front(), listed(data, data)));
}

TEST_P(OpenGlForm, RefusesWhatItHasNotAndNamesTheMend) {
    auto engine = Engine::open({.backend = "opengl", .form = GetParam().form});
    ASSERT_TRUE(engine) << engine.error().message;
    Bytes data = pattern(4096);
    for (const Mode mode : kModes)
        for (const Direction direction : {Direction::encrypt, Direction::decrypt}) {
            const Cipher cipher{mode, direction};
            // In pieces of another kind than a message: XTS's keys, and what is ctr in the end.
            if (can(mode, direction) || mode == Mode::xts || mode == Mode::gcm_ctr) continue;
            if (authenticates(mode) && mode != Mode::gcm) continue;  // which refuse such keys
            Message message = listed(data, data);
            Bytes tag(16);
            if (mode == Mode::gcm) message.tag = tag.data();
            const auto ran = engine->run(cipher, key_, message);
            ASSERT_EQ(ran.code(), Code::unsupported) << name(mode);
            for (const char* word : {"opengl:0", "gl-int", "gl-float", "'auto'"})
                EXPECT_NE(ran.error().message.find(word), std::string::npos) << ran.error().message;
            EXPECT_FALSE(engine->explain({cipher, 192, 4096}).options.front().possible);
        }
    EXPECT_EQ(data, pattern(4096));
}

// The keystream by itself: what zeros would become.
TEST_P(OpenGlForm, KeystreamWithoutInput) {
    if (form() == opengl::Form::floats) GTEST_SKIP() << "gl-float has no counter mode";
    auto gl = OpenGl::open({.form = form(), .pass = 4096});
    ASSERT_TRUE(gl) << gl.error().message;
    Bytes out = pattern(10'000);
    Message message = listed(out, out, random_.block());
    message.in = nullptr;
    ASSERT_TRUE((*gl)->run({Mode::ctr}, key_, message));
    EXPECT_EQ(difference(want({Mode::ctr}, message, Bytes(out.size())), out), "");
}

// It is parallel by itself: the host's threads do not cut its messages up.
TEST_P(OpenGlForm, GetsWholeMessagesOfTheEngine) {
    auto engine = Engine::open({.backend = "opengl", .form = GetParam().form, .threads = 4});
    ASSERT_TRUE(engine) << engine.error().message;
    Bytes data = pattern(1 << 20);
    const auto ran = engine->run(ciphers().front(), key_, listed(data, data));
    ASSERT_TRUE(ran) << ran.error().message;
    EXPECT_EQ(ran->threads, 1);
    EXPECT_EQ(ran->backend, "opengl:0");
}

TEST(OpenGlNames, FormsAndDevicesThatThereAreNot) {
    std::string why;
    if (opengl::count_devices(&why) == 0) {
        EXPECT_NE(why.find("install"), std::string::npos) << why;
        GTEST_SKIP() << why;
    }
    const auto form = Engine::open({.backend = "opengl", .form = "gl-double"});
    ASSERT_EQ(form.code(), Code::invalid_argument);
    for (const char* word : {"gl-double", "gl-int", "gl-float"})
        EXPECT_NE(form.error().message.find(word), std::string::npos) << form.error().message;
    EXPECT_EQ(Engine::open({.backend = "opengl:0", .form = "avx2"}).code(), Code::invalid_argument);
    EXPECT_EQ(Engine::open({.backend = "opengl:99"}).code(), Code::backend_absent);
    EXPECT_EQ(Engine::open({.backend = "openssl", .form = "gl-int"}).code(),
              Code::invalid_argument);
}

std::vector<Target> forms() {
    std::vector<Target> found = targets(Target::Family::OpenGl);
    std::erase_if(found, [](const Target& t) { return t.level != Target::Level::backend; });
    return found;
}
INSTANTIATE_TEST_SUITE_P(OpenGl, OpenGlForm, ::testing::ValuesIn(forms()), target_name);

}  // namespace
