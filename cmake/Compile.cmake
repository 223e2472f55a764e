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

# The preset `fuzz` optimises nothing else: with what sanitizers add, that takes clang longer than all the rest.
function(dael_runs_much target)
    if(DAELSTROM_SANITIZE)
        target_compile_options(${target} PRIVATE -O1)
    endif()
endfunction()

# Most of what a file takes to compile is what it includes, which these compile once for many.
if(DAELSTROM_TOGETHER STREQUAL "ON" OR (DAELSTROM_TOGETHER STREQUAL "AUTO" AND NOT CCACHE))
    set(together ON)
else()
    set(together OFF)
endif()

# A target's C++ sources, ten in one go: their names must differ, in anonymous namespaces too.
function(dael_compile_together target)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ${together} UNITY_BUILD_BATCH_SIZE 10)
    if(together)  # GCC takes what is included for a header, whose classes may not use anonymous namespaces
        target_compile_options(${target} PRIVATE $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Wno-subobject-linkage>)
    endif()
endfunction()

# The same for the library: each folder's sources in one go.
function(dael_compile_rooms_together target)
    dael_compile_together(${target})
    set_target_properties(${target} PROPERTIES UNITY_BUILD_MODE GROUP)
    get_target_property(sources ${target} SOURCES)
    foreach(source IN LISTS sources)
        get_filename_component(room ${source} DIRECTORY)
        file(RELATIVE_PATH room ${CMAKE_CURRENT_SOURCE_DIR} ${room})
        string(MAKE_C_IDENTIFIER "${room}" room)
        set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${room})
    endforeach()
endfunction()

# dael_precompile(TARGET HEADER...): large headers of others, compiled once for all of a target's C++ sources.
function(dael_precompile target)
    if(together)
        list(TRANSFORM ARGN REPLACE "(.+)" "$<$<COMPILE_LANGUAGE:CXX>:<\\1$<ANGLE-R>>" OUTPUT_VARIABLE headers)
        target_precompile_headers(${target} PRIVATE ${headers})
    endif()
endfunction()
