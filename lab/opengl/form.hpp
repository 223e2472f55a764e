// SPDX-License-Identifier: Apache-2.0
// What the two forms of the cipher differ in: how blocks lie in textures, the tables, the shaders
// and what they are told of the key.
#pragma once

#include <memory>

#include "lab/opengl/gl.hpp"
#include "lab/opengl/opengl.hpp"

namespace dael::opengl {

// Texture units: the data's texture is on the first, and the targets are bound, but not read, from
// the ninth on; between them a form has its tables.
inline constexpr GLuint kDataUnit = 0, kTargetUnit = 8;

// How blocks lie in textures. Together a block's texels are 16 bytes, on either side.
struct Layout {
    TexelFormat format;
    int texels;      // that a block takes in the data's texture, side by side
    GLuint targets;  // that are drawn on at once, each of which gets a texel of the block
};

// Belongs to the context that was current when it was made.
class CipherForm {
  public:
    virtual ~CipherForm() = default;
    virtual Layout layout() const = 0;
    virtual bool supports(const Cipher& cipher) const = 0;
    // Chooses the program, and tells it the key and where it is. `counter` is the first block's.
    virtual void use(const Cipher& cipher, const Key& key, const Block& counter, Extent extent) = 0;
    // Overwrites the round keys that use() left behind.
    virtual void forget() = 0;
};

Result<std::unique_ptr<CipherForm>> make_int_form(const Gl& gl);
Result<std::unique_ptr<CipherForm>> make_float_form(const Gl& gl);

}  // namespace dael::opengl
