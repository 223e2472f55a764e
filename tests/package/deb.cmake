# SPDX-License-Identifier: Apache-2.0
# The Debian packages that CPack makes of this build: what is in them, what they ask for, and that the program of
# theirs runs.
include(${CMAKE_CURRENT_LIST_DIR}/steps.cmake)
find_program(DPKG_DEB dpkg-deb)
find_program(SHLIBDEPS dpkg-shlibdeps)
find_program(FILE_TYPE file)
if(NOT DPKG_DEB OR NOT SHLIBDEPS OR NOT FILE_TYPE)
    message("SKIPPED: dpkg-deb, dpkg-shlibdeps and file are not all here (Debian: dpkg-dev, file)")
    return()
endif()

file(REMOVE_RECURSE ${WORK}/deb)
run(${CMAKE_CPACK_COMMAND} -G DEB -B ${WORK}/deb --config ${BUILD}/CPackConfig.cmake -D CPACK_DEBIAN_COMPRESSION_TYPE=none)

# package(NAME DEPENDS... FILES...): that NAME asks for these, and holds these.
function(package name)
    cmake_parse_arguments(ARG "" "" "DEPENDS;FILES" ${ARGN})
    file(GLOB deb ${WORK}/deb/${name}_*.deb)
    list(LENGTH deb count)
    if(NOT count EQUAL 1)
        message(FATAL_ERROR "there is not one package ${name}: ${deb}")
    endif()
    execute_process(COMMAND ${DPKG_DEB} -f ${deb} OUTPUT_VARIABLE control COMMAND_ERROR_IS_FATAL ANY)
    execute_process(COMMAND ${DPKG_DEB} -c ${deb} OUTPUT_VARIABLE files COMMAND_ERROR_IS_FATAL ANY)
    message("${control}")
    foreach(depends IN LISTS ARG_DEPENDS)
        if(NOT control MATCHES "\nDepends: [^\n]*${depends}")
            message(FATAL_ERROR "${name} does not depend on ${depends}")
        endif()
    endforeach()
    foreach(file IN LISTS ARG_FILES)
        if(NOT files MATCHES "root/root[^\n]* \\./usr/[^\n]*${file}\n")
            message(FATAL_ERROR "${name} has no ${file}, or it is not root's:\n${files}")
        endif()
    endforeach()
    run(${DPKG_DEB} -x ${deb} ${WORK}/deb/root)
endfunction()

package(daelstrom DEPENDS libssl3 libc6 FILES bin/daelstrom share/man/man1/daelstrom\\.1
        bash-completion/completions/daelstrom /_daelstrom vendor_completions\\.d/daelstrom\\.fish
        ossl-modules/daelstrom\\.so share/daelstrom/daelstrom-openssl\\.cnf share/doc/daelstrom/copyright)
package(libdaelstrom-dev DEPENDS libssl-dev FILES include/daelstrom/daelstrom\\.h libdaelstrom\\.a
        cmake/daelstrom/daelstromConfig\\.cmake pkgconfig/daelstrom\\.pc share/doc/libdaelstrom-dev/copyright)
run(${WORK}/deb/root/usr/bin/daelstrom --version)
