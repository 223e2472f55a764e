// SPDX-License-Identifier: Apache-2.0
// gl-int: textures of integers, T-tables. ECB both ways, and CTR.
#include <daelstrom/device/detail/ttable.hpp>

#include "core/key_schedule.hpp"
#include "lab/opengl/form.hpp"
#include "lab/opengl/shaders.hpp"

namespace dael::opengl {
namespace {

constexpr GLuint kEncryptUnit = 1, kDecryptUnit = 2;

// gl_int.frag's 256 x 8 words: T0 to T3, each its predecessor turned by a row, and the S-box (or
// its inverse) alone in row 0 to 3 of the column.
std::array<std::uint32_t, 8 * 256> make_tables(bool inverse) {
    std::array<std::uint32_t, 8 * 256> tables{};
    for (std::uint32_t x = 0; x < 256; ++x) {
        std::uint32_t t = inverse ? kernels::decrypt_entry(x) : kernels::encrypt_entry(x);
        const auto byte = static_cast<std::uint8_t>(x);
        std::uint32_t s = inverse ? core::inv_sub_byte(byte) : core::sub_byte(byte);
        for (std::size_t row = 0; row < 4; ++row) {
            tables[row * 256 + x] = t;
            tables[(row + 4) * 256 + x] = s;
            t = kernels::rotate8(t);
            s = kernels::rotate8(s);
        }
    }
    return tables;
}

class IntForm final : public CipherForm {
  public:
    static Result<std::unique_ptr<CipherForm>> make(const Gl& gl) {
        std::unique_ptr<IntForm> form(new IntForm(gl));
        DAEL_TRY(form->encrypt_.make(gl, "", kEncryptUnit));
        DAEL_TRY(form->decrypt_.make(gl, "DECRYPT", kDecryptUnit));
        DAEL_TRY(form->counter_.make(gl, "COUNTER", kEncryptUnit));
        gl.texture(kEncryptUnit);
        gl.fill(kEncryptUnit, kOneWord, 256, 8, make_tables(false).data());
        gl.texture(kDecryptUnit);
        gl.fill(kDecryptUnit, kOneWord, 256, 8, make_tables(true).data());
        DAEL_TRY(gl.check("making the tables"));
        return std::unique_ptr<CipherForm>(std::move(form));
    }

    Layout layout() const override { return {kFourWords, 1, 1}; }
    bool supports(const Cipher& cipher) const override {
        return cipher.mode == Mode::ecb || cipher.mode == Mode::ctr;
    }

    void use(const Cipher& cipher, const Key& key, const Block& counter, Extent extent) override {
        const core::KeySchedule& schedule = key.schedule();
        const bool inverse = cipher.mode == Mode::ecb && cipher.direction == Direction::decrypt;
        const Program& used = cipher.mode == Mode::ctr ? counter_ : inverse ? decrypt_ : encrypt_;
        const auto& round_keys = inverse ? schedule.decrypt : schedule.encrypt;
        gl_.UseProgram(used.program);
        gl_.Uniform4uiv(used.round_keys, schedule.rounds + 1,
                        reinterpret_cast<const GLuint*>(round_keys.data()));
        gl_.Uniform1i(used.rounds, schedule.rounds);
        gl_.Uniform4ui(used.counter, big_endian(&counter[0]), big_endian(&counter[4]),
                       big_endian(&counter[8]), big_endian(&counter[12]));
        gl_.Uniform1ui(used.width, static_cast<GLuint>(extent.width));
    }

    void forget() override {
        static constexpr GLuint kZeros[4 * (core::kMaxRounds + 1)] = {};
        for (const Program* program : {&encrypt_, &decrypt_, &counter_}) {
            gl_.UseProgram(program->program);
            gl_.Uniform4uiv(program->round_keys, core::kMaxRounds + 1, kZeros);
        }
    }

  private:
    // gl_int.frag in one of its three ways, and where its uniforms are.
    struct Program {
        GLuint program = 0;
        GLint round_keys = -1, rounds = -1, counter = -1, width = -1;

        Result<> make(const Gl& gl, const char* way, GLuint tables) {
            auto made = gl.program(kGlIntFrag, way, {{"blocks", kDataUnit}, {"tables", tables}});
            if (!made) return std::move(made).error();
            program = *made;
            round_keys = gl.GetUniformLocation(program, "round_keys");
            rounds = gl.GetUniformLocation(program, "rounds");
            counter = gl.GetUniformLocation(program, "counter");
            width = gl.GetUniformLocation(program, "width");
            return {};
        }
    };

    explicit IntForm(const Gl& gl) : gl_(gl) {}

    static GLuint big_endian(const std::uint8_t* bytes) {
        return GLuint{bytes[0]} << 24 | GLuint{bytes[1]} << 16 | GLuint{bytes[2]} << 8 | bytes[3];
    }

    const Gl& gl_;
    Program encrypt_, decrypt_, counter_;
};

}  // namespace

Result<std::unique_ptr<CipherForm>> make_int_form(const Gl& gl) {
    return IntForm::make(gl);
}

}  // namespace dael::opengl
