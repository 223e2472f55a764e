# SPDX-License-Identifier: Apache-2.0
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(dael_options INTERFACE)
target_compile_options(dael_options INTERFACE
    $<$<COMPILE_LANGUAGE:CXX>:-Wall;-Wextra;-Wshadow;-Wconversion;-Wno-sign-conversion>
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-Wall,-Wextra;--expt-relaxed-constexpr>)
if(DAELSTROM_SANITIZE)
    target_compile_options(dael_options INTERFACE
        $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=${DAELSTROM_SANITIZE};-fno-omit-frame-pointer;-fno-sanitize-recover=all>)
    target_link_options(dael_options INTERFACE -fsanitize=${DAELSTROM_SANITIZE})
endif()
# What libFuzzer steers by. Tests link the same library, and need none of it in their own code.
add_library(dael_coverage INTERFACE)
if(DAELSTROM_FUZZ)
    target_compile_options(dael_coverage INTERFACE $<$<COMPILE_LANGUAGE:C,CXX>:-fsanitize=fuzzer-no-link>)
endif()

find_program(CCACHE ccache)
if(CCACHE)
    set(CMAKE_C_COMPILER_LAUNCHER ${CCACHE})
    set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
    set(CMAKE_CUDA_COMPILER_LAUNCHER ${CCACHE})
endif()

# What is compiled far more often than it runs gets less optimisation while one works on it.
function(dael_compile_quickly target)
    target_compile_options(${target} PRIVATE $<$<AND:$<COMPILE_LANGUAGE:CXX>,$<CONFIG:RelWithDebInfo>>:-O1>)
endfunction()

# dael_precompile(TARGET HEADER...): large headers of others, compiled once for all of a target's C++ sources.
# The library has none, and compiles each file by what it includes itself.
function(dael_precompile target)
    if(DAELSTROM_PRECOMPILE STREQUAL "ON" OR (DAELSTROM_PRECOMPILE STREQUAL "AUTO" AND NOT CCACHE))
        list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
        target_precompile_headers(${target} PRIVATE ${headers})
    endif()
endfunction()
