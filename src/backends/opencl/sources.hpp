// SPDX-License-Identifier: Apache-2.0
// The text of kernels/*.cl, put into the library by CMakeLists.txt.
#pragma once

#include <string_view>

namespace dael::opencl::sources {

extern const std::string_view aead;
extern const std::string_view aegis;
extern const std::string_view aes;
extern const std::string_view blocks;
extern const std::string_view counter_cache;
extern const std::string_view ctr_stream;
extern const std::string_view derived;
extern const std::string_view gcm;
extern const std::string_view gcm_ctr;
extern const std::string_view gcm_tag;
extern const std::string_view ghash;
extern const std::string_view segment;
extern const std::string_view serial;
extern const std::string_view xts;
extern const std::string_view xts_tweaks;

}  // namespace dael::opencl::sources
