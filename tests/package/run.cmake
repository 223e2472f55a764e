# SPDX-License-Identifier: Apache-2.0
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

set(prefix ${WORK}/prefix)
set(build ${WORK}/build)
# What an earlier run installed must not help this one. What it built is built again where that has changed.
file(REMOVE_RECURSE ${prefix})

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
set(cuda)
if(CUDA)
    set(cuda -D CMAKE_CUDA_COMPILER=${CUDA} -D CMAKE_CUDA_FLAGS=${CUDA_FLAGS})
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples -B ${build} -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} ${cuda})
run(${CMAKE_COMMAND} --build ${build})
run(${CMAKE_CTEST_COMMAND} --test-dir ${build} --output-on-failure --no-tests=error)

# What is installed stands by itself: nothing that others build with points into the clone or its build folder.
file(GLOB_RECURSE texts ${prefix}/*.cmake ${prefix}/*.pc)
foreach(file IN LISTS texts)
    file(READ ${file} text)
    foreach(folder IN ITEMS ${SOURCE} ${BUILD})
        get_filename_component(real ${folder} REALPATH)
        string(FIND "${text}" "${folder}" at)
        string(FIND "${text}" "${real}" really_at)
        if(at GREATER -1 OR really_at GREATER -1 OR text MATCHES "/\\.venv/")
            message(FATAL_ERROR "${file} points into ${folder}:\n${text}")
        endif()
    endforeach()
endforeach()

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

# The examples of the documents that need all this.
if(PYTHON)
    run(${PYTHON} -B ${CMAKE_CURRENT_LIST_DIR}/documents.py ${SOURCE} ${BUILD} ${prefix} ${SHARED} ${WORK}/documents)
endif()
