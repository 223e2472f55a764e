# SPDX-License-Identifier: Apache-2.0
# daelstrom within other projects: by add_subdirectory, built and run, and by FetchContent, configured. There it is
# the library alone, which needs neither CLI11 nor json nor GoogleTest; and what a machine may lack leaves out a
# backend each, which also keeps this short.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)

set(lacks)
foreach(package IN ITEMS CLI11 nlohmann_json GTest Git Python3)
    list(APPEND lacks -D CMAKE_DISABLE_FIND_PACKAGE_${package}=ON)
endforeach()
foreach(header IN ITEMS OPENCL_INCLUDE EGL_INCLUDE IPSEC_MB_INCLUDE)
    list(APPEND lacks -D ${header}=OFF)
endforeach()

foreach(way IN ITEMS subdirectory fetched)
    set(folder ${WORK}/${way})
    file(MAKE_DIRECTORY ${folder})
    configure_file(${CMAKE_CURRENT_LIST_DIR}/${way}/CMakeLists.txt ${folder}/CMakeLists.txt COPYONLY)
    configure_file(${SOURCE}/examples/sealed_messages.cpp ${folder}/main.cpp COPYONLY)
    set(where)
    if(way STREQUAL "fetched")
        set(where -D FETCHCONTENT_SOURCE_DIR_DAELSTROM=${SOURCE})
    elseif(NOT EXISTS ${folder}/daelstrom)
        file(CREATE_LINK ${SOURCE} ${folder}/daelstrom SYMBOLIC)
    endif()
    run(${CMAKE_COMMAND} -G Ninja -S ${folder} -B ${folder}/build -D CMAKE_CXX_COMPILER=${CXX}
        -D CMAKE_C_COMPILER=${CC} -D DAELSTROM_CUDA=OFF -D DAELSTROM_TOGETHER=ON ${lacks} ${where})
    # Its targets are the library's, and there are none of its tests.
    execute_process(COMMAND ${CMAKE_COMMAND} --build ${folder}/build --target help OUTPUT_VARIABLE targets
                    COMMAND_ERROR_IS_FATAL ANY)
    if(NOT targets MATCHES "daelstrom_lib" OR targets MATCHES "daelstrom_cli|dael_bench|_test")
        message(FATAL_ERROR "${way}: not the library alone:\n${targets}")
    endif()
    if(EXISTS ${folder}/build/CTestTestfile.cmake)
        execute_process(COMMAND ${CMAKE_CTEST_COMMAND} --test-dir ${folder}/build -N OUTPUT_VARIABLE tests
                        COMMAND_ERROR_IS_FATAL ANY)
        if(NOT tests MATCHES "Total Tests: 0")
            message(FATAL_ERROR "${way}: somebody else's tests have ours among them:\n${tests}")
        endif()
    endif()
endforeach()
run(${CMAKE_COMMAND} --build ${WORK}/subdirectory/build --target yours)
run(${WORK}/subdirectory/build/yours)
# `cmake --install` of that project installs nothing of ours.
run(${CMAKE_COMMAND} --install ${WORK}/subdirectory/build --prefix ${WORK}/nothing)
file(GLOB_RECURSE installed ${WORK}/nothing/*)
if(installed)
    message(FATAL_ERROR "somebody else's installation has ours in it: ${installed}")
endif()
