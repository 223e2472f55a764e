// SPDX-License-Identifier: Apache-2.0
#include "lab/kernel_device.hpp"

#include <daelstrom/device/detail/key_expansion.hpp>
#include <daelstrom/device/detail/ttable.hpp>

namespace dael::lab {

std::uint64_t Shape::local_memory() const {
    const std::uint64_t table = tables == Tables::shared  ? 1024
                                : tables == Tables::banks ? std::uint64_t{1024} * kernels::kLanes
                                                          : 0;
    return table * static_cast<std::uint64_t>(count) + (keys_shared ? sizeof(RoundKeys128) : 0) +
           (state == State::registers ? 0 : std::uint64_t{32} * static_cast<unsigned>(blocks()));
}

RoundKeys128 expand(const std::vector<std::uint8_t>& key) {
    RoundKeys128 keys{};
    for (std::size_t i = 0; i < 4; ++i) keys.words[i] = core::load_le<std::uint32_t>(&key[4 * i]);
    kernels::expand_words(
        4, [&](int i) { return keys.words[i]; },
        [&](int i, std::uint32_t word) { keys.words[i] = word; },
        [](std::uint32_t word) { return core::sub_each(word); });
    return keys;
}

Constants constants_of(const std::vector<std::uint8_t>& key, const Block& start) {
    Constants all{expand(key), {}, {}};
    for (std::size_t i = 0; i < 4; ++i)
        all.start[i] = kernels::byte_swap(core::load_le<std::uint32_t>(&start[4 * i]));
    for (unsigned word = 0; word < 44; ++word)
        for (unsigned bit = 0; bit < 32; ++bit) {
            const unsigned row = bit / 8, column = word % 4;
            const std::uint32_t twice = (all.keys.words[word] >> bit & 1) * 3;
            all.planes[word / 4 * 8 + bit % 8] |= twice << (8 * row + 2 * column);
        }
    return all;
}

std::vector<std::uint32_t> tables() {
    static const kernels::Words256 first = kernels::make_encrypt_table();
    std::vector<std::uint32_t> words;
    for (unsigned table = 0; table < 4; ++table)
        for (const std::uint32_t word : first)
            words.push_back(kernels::Tables<4, false>::table_word(table, word, 0));
    return words;
}

std::vector<std::shared_ptr<KernelDevice>> kernel_devices(measure::Report& report) {
    std::vector<std::shared_ptr<KernelDevice>> devices;
    using Open = Result<std::shared_ptr<KernelDevice>> (*)();
    for (const auto& [name, open] : {std::pair<const char*, Open>{"cuda", open_cuda_kernels},
                                     {"opencl", open_opencl_kernels}}) {
        auto opened = open();
        if (opened)
            devices.push_back(*opened);
        else
            report.skip(std::string(name) + ": " + opened.error().message);
    }
    return devices;
}

}  // namespace dael::lab
