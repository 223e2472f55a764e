// SPDX-License-Identifier: Apache-2.0
// Tensors whose ciphertext lies in a file: chunks of AES-GCM without additional data, a key for
// each tensor, tags apart. The parts of a load and of a save that the host's way and the device's
// share.
#pragma once

#include <cstdint>
#include <vector>

#include "engine.hpp"

namespace daelpy {

// As Memory, and of a DeviceMemory too, which has no framework.
Memory memory_of(nb::handle object, Access access, const char* name);

struct WeightTensor {
    std::uint64_t at;    // where its bytes begin in the file
    std::uint8_t* data;  // on the host or on the device; null: no bytes
    std::uint64_t size;
    std::uint32_t key;            // index in the set
    bool plain;                   // not encrypted: copied as it is
    std::uint64_t chunk;          // bytes of a chunk; the last one may be shorter
    std::uint8_t iv[12];          // of chunk 0; later ones count its last four bytes, big-endian
    std::uint8_t* tags;           // 16 bytes for each chunk, on the host
    std::uint32_t count() const;  // those four bytes
    std::uint64_t chunks() const { return size == 0 ? 1 : (size - 1) / chunk + 1; }
};

// A piece of a tensor that is moved and crypted as one.
struct WeightPiece {
    const WeightTensor* tensor;
    std::uint64_t number;    // of its chunk; a plain tensor has one piece
    std::uint64_t at, size;  // within the tensor
    std::uint8_t* data() const { return tensor->data + at; }
    std::uint64_t file_at() const { return tensor->at + at; }
    std::uint8_t* tag() const { return tensor->tags + number * DAEL_TAG_SIZE; }
    // As one of a batch; `tag` is tag(), or where it is on a device.
    dael_message message(const std::uint8_t* in, std::uint8_t* out, std::uint8_t* tag) const;
};

// What went wrong: a status of the library, which the thread's last error tells of unless it is a
// message's own; an errno; or a piece that is not authentic.
struct WeightFault {
    dael_status status = DAEL_OK;
    int error_number = 0;
    const WeightPiece* piece = nullptr;
    bool of_message = false;
    bool any() const { return status != DAEL_OK || error_number != 0 || piece != nullptr; }
    static WeightFault of(dael_status status) { return {status, 0, nullptr, false}; }
};

std::vector<WeightPiece> pieces_of(const std::vector<WeightTensor>& tensors);
// `end`: where the window of pieces ends that begins with `first` and has at least `bytes`, or all.
std::size_t window_of(const std::vector<WeightPiece>& pieces, std::size_t first,
                      std::uint64_t bytes);
// 0 or an errno.
int pwrite_all(int descriptor, const std::uint8_t* from, std::uint64_t size, std::uint64_t at);
// Reads the pieces' bytes, by several threads at once; piece i to `to[i]`. 0 or an errno.
int read_pieces(int descriptor, const WeightPiece* pieces, std::uint8_t* const* to,
                std::size_t count);

// Where the first fails, the tensors hold what it has opened so far: its caller wipes them.
WeightFault open_on_host(const Engine& engine, const KeySet& keys, int descriptor,
                         const std::vector<WeightPiece>& pieces, std::uint64_t window);
WeightFault seal_on_host(const Engine& engine, const KeySet& keys, int descriptor,
                         const std::vector<WeightPiece>& pieces, std::uint64_t window);
WeightFault open_on_device(const Engine& engine, dael_device* device, const KeySet& keys,
                           int descriptor, const std::vector<WeightPiece>& pieces, void* stream,
                           std::uint64_t window);
WeightFault seal_on_device(const Engine& engine, dael_device* device, const KeySet& keys,
                           int descriptor, const std::vector<WeightPiece>& pieces, void* stream,
                           std::uint64_t window);

}  // namespace daelpy
