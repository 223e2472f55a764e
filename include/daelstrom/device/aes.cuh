// SPDX-License-Identifier: Apache-2.0
// AES inside your own CUDA kernels: blocks, counter mode, AEGIS, a key for every thread, and
// hashing under a fixed key. Headers only; no library to link, no state, no allocation, no launch.
//
// Safety:
// - All but AEGIS is the bare cipher. It authenticates nothing, and CTR shows your data if a
//   counter block ever repeats under a key. For data in GPU memory that is encrypted as a whole,
//   Engine (<daelstrom/engine.hpp>) is safer and faster, and has GCM.
// - On the device use SharedTables: their lookups take the same time whatever key and data are. On
//   the host use NoTables, which are slow and constant in time.
// - Keys are plain structs. Nothing locks or wipes them; a kernel's registers, shared and local
//   memory keep what it leaves there.
// - Power and emanation are not covered: SIDE-CHANNELS.md.
//
//     #include <daelstrom/device/aes.cuh>
//
//     __global__ void kernel(const __grid_constant__ dael::device::EncryptionKey<128> key, ...) {
//         extern __shared__ __align__(16) unsigned char memory[];
//         const dael::device::SharedTables<2> aes(memory);  // all threads of the block
//         block = aes.encrypt(key, block);
//     }
//
// Host code: expand the key with NoTables, allow the kernel its SharedTables<2>::kBytes of dynamic
// shared memory with cudaFuncSetAttribute, launch it with as many. docs/device-header.md tells the
// whole story; examples/device_header.cu is a program.
//
// C++20, on any GPU from Turing (sm_75) on, with no particular flag of nvcc. Without nvcc the same
// functions compile for the host alone. Little-endian processors only, as all that CUDA runs on.
#pragma once

#include <daelstrom/device/aegis.cuh>   // aegis_seal(), aegis_open()
#include <daelstrom/device/ctr.cuh>     // ctr(), counter_block()
#include <daelstrom/device/keys.cuh>    // Block, EncryptionKey, DecryptionKey, expand_key()
#include <daelstrom/device/mmo.cuh>     // mmo(), mmo_sigma(), tmmo()
#include <daelstrom/device/tables.cuh>  // SharedTables, SharedInverseTables, NoTables
