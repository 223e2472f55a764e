# SPDX-License-Identifier: Apache-2.0
function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
    if(status)
        message(FATAL_ERROR "failed: ${ARGN}")
    endif()
endfunction()

set(prefix ${WORK}/prefix)
set(build ${WORK}/build)
# What an earlier run installed must not help this one. What it built is built again where that has changed.
file(REMOVE_RECURSE ${prefix})

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
set(cuda)
if(CUDA)
    set(cuda -D CMAKE_CUDA_COMPILER=${CUDA})
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples -B ${build} -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} ${cuda})
run(${CMAKE_COMMAND} --build ${build})
run(${CMAKE_CTEST_COMMAND} --test-dir ${build} --output-on-failure --no-tests=error)

# And without CMake, by what pkg-config says.
find_program(PKG_CONFIG NAMES pkg-config pkgconf)
file(GLOB_RECURSE pc ${prefix}/*/daelstrom.pc)
if(PKG_CONFIG)
    get_filename_component(pc_dir ${pc} DIRECTORY)
    set(ENV{PKG_CONFIG_PATH} ${pc_dir})
    execute_process(COMMAND ${PKG_CONFIG} --cflags --libs daelstrom OUTPUT_VARIABLE flags
                    OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    separate_arguments(flags UNIX_COMMAND "${flags}")
    run(${CC} -std=c11 ${SOURCE}/examples/sealed_message.c -o ${build}/by_pkg_config ${flags})
    get_filename_component(lib_dir ${pc_dir} DIRECTORY)
    set(ENV{LD_LIBRARY_PATH} ${lib_dir})
    run(${build}/by_pkg_config)
endif()
