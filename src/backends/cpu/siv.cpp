// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/siv.hpp"

#include <algorithm>

#include "backends/cpu/clear_stack.hpp"
#include "backends/cpu/memory_of_call.hpp"
#include "core/wipe_at_end.hpp"
#include "modes/gcm.hpp"

namespace dael::cpu::siv {

Result<> run(const Form& form, const Cipher& cipher, std::span<const Key> keys,
             std::span<const Message> messages, std::span<Code> codes) {
    const MemoryOfCall<Keys> derived;
    if (!derived) return Error{Code::out_of_memory, "no memory for the keys of a message"};
    for (std::size_t i = 0; i < messages.size(); ++i) {
        const Message& m = messages[i];
        const std::uint8_t* const nonce = m.start.data();
        form.derive(keys[m.key].schedule(), nonce, std::max(m.size, m.aad_size), *derived);
        if (cipher.direction == Direction::encrypt) {
            const Block tag = form.tag(*derived, nonce, m, m.in);
            form.crypt(*derived, tag.data(), m);
            std::copy(tag.begin(), tag.end(), m.tag);
            continue;
        }
        Block tag = form.open(*derived, nonce, m);
        const core::WipeAtEnd wiped(tag);  // what a forged message should have had
        if (modes::equal_tags(tag.data(), m.tag, tag.size())) continue;
        if (m.in == m.out)
            form.crypt(*derived, m.tag, m);
        else if (m.size != 0)
            wipe(m.out, m.size);
        codes[i] = Code::authentication;
    }
    if (form.spills) clear_stack();
    return {};
}

}  // namespace dael::cpu::siv
