// SPDX-License-Identifier: Apache-2.0
// A driver whose functions or compiler err: it is found out before anything is encrypted, by each
// program and for keys of each size, and left alone from then on, with the reason.
#include "core/known_answers.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>

#include <daelstrom/engine.hpp>

#include "core/registry.hpp"
#include "lab/opengl/gl.hpp"
#include "lab/opengl/opengl.hpp"
#include "support/subject.hpp"

namespace {

using namespace dael;
using namespace dael::test;
using opengl::Form;
using opengl::Gl;
using opengl::OpenGl;

// The driver's own functions, which those of one that errs call.
Gl driver;

// Keys of `Told` rounds get one round less.
template <int Told>
void forget_a_round(Gl& gl) {
    driver = gl;
    gl.Uniform1i = [](GLint place, GLint value) {
        driver.Uniform1i(place, value == Told ? Told - 1 : value);
    };
    gl.Uniform1f = [](GLint place, GLfloat value) {
        driver.Uniform1f(place, value == static_cast<GLfloat>(Told) ? value - 1 : value);
    };
}

// A compiler to which this stands for that.
const char* written = "";
const char* taken = "";
void compile_wrongly(Gl& gl) {
    driver = gl;
    gl.ShaderSource = [](GLuint shader, GLsizei count, const GLchar* const* text, const GLint*) {
        std::string source(text[0]);
        if (const auto at = source.find(written); at != source.npos)
            source.replace(at, std::string(written).size(), taken);
        const GLchar* const altered = source.c_str();
        driver.ShaderSource(shader, count, &altered, nullptr);
    };
}

int no_memory = 0;  // so many of the next steps have none
void run_out_of_memory(Gl& gl) {
    driver = gl;
    gl.GetError = [] {
        return no_memory > 0 && no_memory-- > 0 ? GLenum{GL_OUT_OF_MEMORY} : driver.GetError();
    };
}

class OpenGlKnownAnswers : public testing::Test {
  protected:
    void SetUp() override {
        core::forget_answers();
        std::string why;
        if (opengl::count_devices(&why) != 0) return;
        if (required("opengl")) FAIL() << why;
        GTEST_SKIP() << why;
    }
    void TearDown() override {
        opengl::alters_driver = nullptr;
        core::forget_answers();
    }
    static void expect_wrong(const Error& error, const std::string& what) {
        EXPECT_EQ(error.code, Code::device);
        for (const std::string& word :
             {std::string("opengl:0 ("), "computes wrongly: " + what, std::string("left alone")})
            EXPECT_NE(error.message.find(word), std::string::npos) << error.message;
    }
    Result<> run(core::Backend& backend, const Cipher& cipher, std::size_t key_size, Bytes& data) {
        const Key key = *Key::import(pattern(key_size));
        const Message message{
            .in = data.data(), .out = data.data(), .size = data.size(), .start = {}};
        return backend.run(cipher, {std::span(&key, 1)}, {&message, 1}, {});
    }
};

TEST_F(OpenGlKnownAnswers, EveryProgramIsRight) {
    for (const Form form : {Form::integers, Form::floats})
        for (int time = 0; time < 2; ++time) {
            core::forget_answers();
            const auto clock = [] { return std::chrono::steady_clock::now(); };
            const auto us = [&](auto since) {
                return std::chrono::duration<double, std::micro>(clock() - since).count();
            };
            auto begin = clock();
            auto gl = OpenGl::open({.form = form});
            ASSERT_TRUE(gl) << gl.error().message;
            std::printf("%s, opened and asked: %.0f us\n",
                        opengl::kFormNames[static_cast<std::size_t>(form)].data(), us(begin));
            for (const Cipher& cipher : {Cipher{Mode::ecb}, Cipher{Mode::ecb, Direction::decrypt},
                                         Cipher{Mode::ctr}, Cipher{Mode::ctr, Direction::decrypt}})
                for (const std::size_t size : {16, 24, 32}) {
                    if (!(*gl)->supports(cipher)) continue;
                    const Key key = *Key::import(pattern(size));
                    Bytes block(16);
                    const Message message{
                        .in = block.data(), .out = block.data(), .size = 16, .start = {}};
                    double took[2];
                    for (double& call : took) {
                        begin = clock();
                        const auto ran = (*gl)->run(cipher, key, message);
                        ASSERT_TRUE(ran) << ran.error().message;
                        call = us(begin);
                    }
                    std::printf("  %s %sion, AES-%zu: %.0f us, then %.0f\n",
                                std::string(name(cipher.mode)).c_str(),
                                std::string(name(cipher.direction)).c_str(), 8 * size, took[0],
                                took[1]);
                }
        }
}

// Opened in form gl-int, whose first program is right; the others, and keys of other sizes, are
// asked when they are needed.
TEST_F(OpenGlKnownAnswers, ADriverThatErrsIsLeftAlone) {
    opengl::alters_driver = forget_a_round<14>;
    auto backend = core::open_backend("opengl");
    ASSERT_TRUE(backend) << backend.error().message;
    auto engine = Engine::open({.backend = "opengl"});
    ASSERT_TRUE(engine) << engine.error().message;
    Bytes data = pattern(1 << 16);
    EXPECT_TRUE(run(**backend, {Mode::ctr}, 16, data));
    EXPECT_TRUE((*backend)->usable());
    EXPECT_TRUE(engine->explain({{Mode::ctr}, 256, 1 << 20}).options.front().possible);
    const Bytes before = data;
    const auto refused = run(**backend, {Mode::ctr}, 32, data);
    ASSERT_FALSE(refused);
    expect_wrong(refused.error(), "ctr, AES-256");
    EXPECT_EQ(data, before);
    // Now nothing of it is believed any more, nor by others.
    const auto also = run(**backend, {Mode::ctr}, 16, data);
    ASSERT_FALSE(also);
    expect_wrong(also.error(), "ctr, AES-256");
    EXPECT_EQ(data, before);
    for (const char* form : {"gl-int", "gl-float"}) {
        const auto again = core::open_backend("opengl", {form, 0});
        ASSERT_FALSE(again);
        expect_wrong(again.error(), "ctr, AES-256");
    }
    // Whoever asks hears why.
    expect_wrong((*backend)->usable().error(), "ctr, AES-256");
    const Plan plan = engine->explain({{Mode::ecb}, 128, 1 << 20});
    ASSERT_EQ(plan.options.size(), 1u);
    EXPECT_FALSE(plan.options[0].possible);
    for (const std::string& said : {plan.options[0].why, plan.summary})
        EXPECT_NE(said.find("computes wrongly: ctr, AES-256"), std::string::npos) << said;
    const auto listed = list_backends("opengl");
    ASSERT_FALSE(listed.empty());
    EXPECT_FALSE(listed[0].present);
    expect_wrong({Code::device, listed[0].missing}, "ctr, AES-256");
    core::forget_answers();
    EXPECT_TRUE(run(**backend, {Mode::ctr}, 16, data));
}

// The first program is asked when the device is opened.
TEST_F(OpenGlKnownAnswers, OneThatErrsAtOnceIsNotOpened) {
    for (const char* form : {"gl-int", "gl-float"}) {
        core::forget_answers();
        opengl::alters_driver = forget_a_round<10>;
        const auto opened = core::open_backend("opengl", {form, 0});
        ASSERT_FALSE(opened) << form;
        expect_wrong(opened.error(), "ecb encryption, AES-128");
    }
}

// Compilers that get one program wrong: the inverse cipher, a carry that is seldom had.
TEST_F(OpenGlKnownAnswers, ACompilerThatErrsIsFoundOut) {
    struct Fault {
        const char *written, *taken;
        Cipher cipher;
        const char* what;
    };
    for (const Fault& fault :
         {Fault{"one = state.wxyz, three = state.yzwx",
                "one = state.yzwx, three = state.wxyz",
                {Mode::ecb, Direction::decrypt},
                "ecb decryption, AES-192"},
          Fault{"sum.x += carry", "sum.x += 0u", {Mode::ctr}, "ctr, AES-192"},
          Fault{"carry &= uint(sum.z == 0u)", "carry = 0u", {Mode::ctr}, "ctr, AES-192"},
          Fault{"uint(at.y) * width", "uint(at.y)", {Mode::ctr}, "ctr, AES-192"}}) {
        core::forget_answers();
        written = fault.written;
        taken = fault.taken;
        opengl::alters_driver = compile_wrongly;
        auto backend = core::open_backend("opengl");
        ASSERT_TRUE(backend) << backend.error().message;
        Bytes data = pattern(64);
        const auto refused = run(**backend, fault.cipher, 24, data);
        ASSERT_FALSE(refused) << fault.written;
        expect_wrong(refused.error(), fault.what);
        EXPECT_EQ(data, pattern(64));
    }
}

// What could not be asked, for want of memory, is neither right nor wrong, and is asked again.
TEST_F(OpenGlKnownAnswers, WhatCouldNotBeAskedIsAskedAgain) {
    opengl::alters_driver = run_out_of_memory;
    auto backend = core::open_backend("opengl");
    ASSERT_TRUE(backend) << backend.error().message;
    Bytes data = pattern(64);
    no_memory = 1;
    EXPECT_EQ(run(**backend, {Mode::ctr}, 16, data).code(), Code::out_of_memory);
    EXPECT_EQ(data, pattern(64));
    EXPECT_TRUE((*backend)->usable());
    EXPECT_TRUE(run(**backend, {Mode::ctr}, 16, data));
}

// After a reset the backend says so, whenever it is asked.
TEST_F(OpenGlKnownAnswers, AResetIsAReason) {
    static GLenum status = GL_NO_ERROR;
    opengl::alters_driver = [](Gl& gl) { gl.GetGraphicsResetStatus = [] { return status; }; };
    auto engine = Engine::open({.backend = "opengl"});
    ASSERT_TRUE(engine) << engine.error().message;
    const Key key = *Key::import(pattern(16));
    Bytes data(64);
    const Message message{.in = data.data(), .out = data.data(), .size = data.size(), .start = {}};
    ASSERT_TRUE(engine->run({Mode::ecb}, key, message));
    status = 0x8253;  // GL_GUILTY_CONTEXT_RESET
    EXPECT_EQ(engine->run({Mode::ecb}, key, message).code(), Code::device);
    status = GL_NO_ERROR;  // which a driver tells once
    const Plan plan = engine->explain({{Mode::ecb}, 128, 1 << 20});
    ASSERT_EQ(plan.options.size(), 1u);
    EXPECT_FALSE(plan.options[0].possible);
    EXPECT_NE(plan.options[0].why.find("the GPU was reset"), std::string::npos)
        << plan.options[0].why;
    EXPECT_TRUE(Engine::open({.backend = "opengl"}));  // anew
}

}  // namespace
