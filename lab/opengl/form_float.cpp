// SPDX-License-Identifier: Apache-2.0
// gl-float: colours from 0 to 1, and a texture for each thing that they cannot compute. ECB
// encryption, as a GeForce 6800 did it.
#include <daelstrom/device/detail/aes_math.hpp>

#include "core/key_schedule.hpp"
#include "lab/opengl/form.hpp"
#include "lab/opengl/shaders.hpp"

namespace dael::opengl {
namespace {

constexpr GLuint kKeyUnit = 1, kSBoxUnit = 2, kDoublingUnit = 3, kSumsUnit = 4;

class FloatForm final : public CipherForm {
  public:
    static Result<std::unique_ptr<CipherForm>> make(const Gl& gl) {
        std::unique_ptr<FloatForm> form(new FloatForm(gl));
        auto program = gl.program(kGlFloatFrag, "",
                                  {{"blocks", kDataUnit},
                                   {"round_keys", kKeyUnit},
                                   {"s_box", kSBoxUnit},
                                   {"doubling", kDoublingUnit},
                                   {"sums", kSumsUnit}});
        if (!program) return std::move(program).error();
        form->size_ = gl.GetUniformLocation(*program, "size");
        form->rounds_ = gl.GetUniformLocation(*program, "rounds");
        form->make_tables();
        DAEL_TRY(gl.check("making the tables"));
        return std::unique_ptr<CipherForm>(std::move(form));
    }

    Layout layout() const override { return {kFourBytes, 4, 4}; }
    bool supports(const Cipher& cipher) const override {
        return cipher.mode == Mode::ecb && cipher.direction == Direction::encrypt;
    }

    void use(const Cipher&, const Key& key, const Block&, Extent extent) override {
        const core::KeySchedule& schedule = key.schedule();
        gl_.overwrite(kKeyUnit, kFourBytes, 4, core::kMaxRounds + 1, schedule.encrypt.data());
        gl_.Uniform1f(rounds_, static_cast<float>(schedule.rounds));
        gl_.Uniform2f(size_, static_cast<float>(extent.width), static_cast<float>(extent.height));
    }

    void forget() override {
        static constexpr std::array<std::uint8_t, 16 * (core::kMaxRounds + 1)> kZeros{};
        gl_.overwrite(kKeyUnit, kFourBytes, 4, core::kMaxRounds + 1, kZeros.data());
    }

  private:
    explicit FloatForm(const Gl& gl) : gl_(gl) {}

    void make_tables() {
        std::array<std::uint8_t, 256> s_box{}, doubling{};
        std::vector<std::uint8_t> sums(256 * 256);
        for (std::size_t x = 0; x < 256; ++x) {
            s_box[x] = core::sub_byte(static_cast<std::uint8_t>(x));
            doubling[x] = core::xtime(static_cast<std::uint8_t>(x));
            for (std::size_t y = 0; y < 256; ++y)
                sums[256 * y + x] = static_cast<std::uint8_t>(x ^ y);
        }
        for (const GLuint unit : {kKeyUnit, kSBoxUnit, kDoublingUnit, kSumsUnit}) gl_.texture(unit);
        gl_.fill(kKeyUnit, kFourBytes, 4, core::kMaxRounds + 1, nullptr);
        gl_.fill(kSBoxUnit, kOneByte, 256, 1, s_box.data());
        gl_.fill(kDoublingUnit, kOneByte, 256, 1, doubling.data());
        gl_.fill(kSumsUnit, kOneByte, 256, 256, sums.data());
    }

    const Gl& gl_;
    GLint size_ = -1, rounds_ = -1;
};

}  // namespace

Result<std::unique_ptr<CipherForm>> make_float_form(const Gl& gl) {
    return FloatForm::make(gl);
}

}  // namespace dael::opengl
