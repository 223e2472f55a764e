# SPDX-License-Identifier: Apache-2.0
# Debian's names are in scripts/setup, which installs them.
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto)

# libipsec-mb exists for x86-64 only, and takes jobs in bursts from 1.3 on (Debian 12, Ubuntu 24.04);
# elsewhere the openssl backend serves.
find_path(IPSEC_MB_INCLUDE intel-ipsec-mb.h)
find_library(IPSEC_MB_LIBRARY NAMES libIPSec_MB.a IPSec_MB)
set(ipsec_mb_version 0)
if(IPSEC_MB_INCLUDE)
    file(STRINGS ${IPSEC_MB_INCLUDE}/intel-ipsec-mb.h ipsec_mb_version REGEX "define IMB_VERSION_STR ")
    string(REGEX REPLACE ".*\"([0-9.]+).*" "\\1" ipsec_mb_version "${ipsec_mb_version}")
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64" AND IPSEC_MB_LIBRARY
   AND ipsec_mb_version VERSION_GREATER_EQUAL 1.3)
    set(DAELSTROM_WITH_IPSEC_MB ON)
    add_library(dael_ipsec_mb INTERFACE)
    target_include_directories(dael_ipsec_mb SYSTEM INTERFACE ${IPSEC_MB_INCLUDE})
    target_link_libraries(dael_ipsec_mb INTERFACE ${IPSEC_MB_LIBRARY})
    message(STATUS "libipsec-mb: ${IPSEC_MB_LIBRARY}, ${ipsec_mb_version}")
else()
    set(DAELSTROM_WITH_IPSEC_MB OFF)
    message(STATUS "libipsec-mb: no version 1.3 or later, the backend 'cpu' is left out")
endif()

# Files that list security associations; the shared library, as its licence (LGPL) wants.
find_path(LIBCONFIG_INCLUDE libconfig.h++)
find_library(LIBCONFIG_LIBRARY NAMES config++)
if(LIBCONFIG_INCLUDE AND LIBCONFIG_LIBRARY AND NOT DAELSTROM_LIBCONFIG STREQUAL "OFF")
    set(DAELSTROM_WITH_LIBCONFIG ON)
    add_library(dael_libconfig INTERFACE)
    target_include_directories(dael_libconfig SYSTEM INTERFACE ${LIBCONFIG_INCLUDE})
    target_link_libraries(dael_libconfig INTERFACE ${LIBCONFIG_LIBRARY})
    message(STATUS "libconfig++: ${LIBCONFIG_LIBRARY}")
else()
    set(DAELSTROM_WITH_LIBCONFIG OFF)
    message(STATUS "libconfig++: none, files of security associations cannot be read")
endif()

# OpenCL's headers; its library is loaded at run time.
find_path(OPENCL_INCLUDE CL/opencl.hpp)
if(OPENCL_INCLUDE)
    set(DAELSTROM_WITH_OPENCL ON)
    message(STATUS "OpenCL: ${OPENCL_INCLUDE}/CL/opencl.hpp")
else()
    set(DAELSTROM_WITH_OPENCL OFF)
    message(STATUS "OpenCL: no CL/opencl.hpp, the backend 'opencl' is left out")
endif()

# Headers only: the libraries are loaded when the backend 'opengl' is first asked for.
find_path(EGL_INCLUDE EGL/eglext.h)
find_path(GLES_INCLUDE GLES3/gl3.h)
if(EGL_INCLUDE AND GLES_INCLUDE)
    set(DAELSTROM_WITH_OPENGL ON)
    set(OPENGL_INCLUDE ${EGL_INCLUDE} ${GLES_INCLUDE})
    message(STATUS "OpenGL: ${EGL_INCLUDE}/EGL, ${GLES_INCLUDE}/GLES3")
else()
    set(DAELSTROM_WITH_OPENGL OFF)
    message(STATUS "OpenGL: no headers of EGL and OpenGL ES 3, the backend 'opengl' is left out")
endif()

if(DAELSTROM_PROGRAM)
    find_package(CLI11 2.1 REQUIRED)
    find_package(nlohmann_json 3.9 REQUIRED)
endif()
if(DAELSTROM_TESTS)
    find_package(GTest REQUIRED)
endif()
