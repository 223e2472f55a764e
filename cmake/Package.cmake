# SPDX-License-Identifier: Apache-2.0
# `cpack -G DEB` in a build folder, or all of it by `cmake --workflow --preset deb`: daelstrom (the program, its
# manual and completions) and libdaelstrom-dev (the library, its headers, and what find_package reads).
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_VENDOR daelstrom)
set(CPACK_PACKAGE_CONTACT "The daelstrom maintainers <maintainers@daelstrom.invalid>" CACHE STRING
    "Who is answerable for a package that you hand on: Name <address>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY ${PROJECT_DESCRIPTION})
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_PRIORITY optional)

set(CPACK_COMPONENTS_ALL library)
if(DAELSTROM_PROGRAM)
    list(APPEND CPACK_COMPONENTS_ALL program)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)

set(CPACK_DEBIAN_PROGRAM_PACKAGE_NAME daelstrom)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SECTION utils)
# What it is linked to, by the versions that are here. Drivers for GPUs are loaded where they are found.
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PROGRAM_PACKAGE_SUGGESTS "ocl-icd-libopencl1")
set(CPACK_COMPONENT_PROGRAM_DESCRIPTION
"Encrypts, seals and opens files with AES on the vector units of CPUs and on GPUs.
What is sealed is authenticated, can be read from anywhere, and is what Tink's
streaming AEAD makes; what is encrypted equals OpenSSL's byte for byte.")

set(CPACK_DEBIAN_LIBRARY_PACKAGE_NAME libdaelstrom-dev)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_LIBRARY_PACKAGE_SHLIBDEPS ${BUILD_SHARED_LIBS})
set(CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS "libssl-dev (>= 3.0)")
if(DAELSTROM_WITH_IPSEC_MB AND DAELSTROM_TYPE STREQUAL "STATIC")
    string(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ", libipsec-mb-dev (>= 1.3)")
endif()
if(DAELSTROM_HAS_TOMCRYPT)
    set(CPACK_DEBIAN_LIBRARY_PACKAGE_SUGGESTS "libtomcrypt-dev (>= 1.18)")
endif()
if(DAELSTROM_WITH_LIBCONFIG AND DAELSTROM_TYPE STREQUAL "STATIC")
    string(APPEND CPACK_DEBIAN_LIBRARY_PACKAGE_DEPENDS ", libconfig++-dev")
endif()
set(CPACK_COMPONENT_LIBRARY_DESCRIPTION
"AES in C++20 and C: host memory and GPU memory, one message or thousands in one call.
Headers, the library, and files for CMake's find_package and for pkg-config.")

foreach(component IN ITEMS program library)
    string(TOUPPER ${component} upper)
    install(FILES ${PROJECT_SOURCE_DIR}/LICENSE RENAME copyright COMPONENT ${component}
            DESTINATION ${CMAKE_INSTALL_DATADIR}/doc/${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
endforeach()
include(CPack)
