# SPDX-License-Identifier: Apache-2.0
function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
    if(status)
        message(FATAL_ERROR "failed: ${ARGN}")
    endif()
endfunction()

set(prefix ${WORK}/prefix)
set(build ${WORK}/build)
file(REMOVE_RECURSE ${prefix} ${build})  # what an earlier run installed must not help this one

run(${CMAKE_COMMAND} --install ${BUILD} --prefix ${prefix})
set(cuda)
if(CUDA)
    set(cuda -D CMAKE_CUDA_COMPILER=${CUDA})
endif()
run(${CMAKE_COMMAND} -G Ninja -S ${SOURCE}/examples -B ${build} -D CMAKE_BUILD_TYPE=${CONFIG}
    -D CMAKE_PREFIX_PATH=${prefix} -D CMAKE_CXX_COMPILER=${CXX} -D CMAKE_C_COMPILER=${CC} ${cuda})
run(${CMAKE_COMMAND} --build ${build})
run(${CMAKE_CTEST_COMMAND} --test-dir ${build} --output-on-failure --no-tests=error)
