# SPDX-License-Identifier: Apache-2.0
# `cmake --install`: the program, the library, its headers, and what find_package(daelstrom) reads. The program
# with what belongs to it (apps/daelstrom) is one component, the library the other: Package.cmake makes a package
# of each.
include(CMakePackageConfigHelpers)

set(installed daelstrom_lib)
if(BUILD_SHARED_LIBS AND TARGET daelstrom_shared)
    set(installed daelstrom_shared)
endif()
install(TARGETS ${installed}
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT library)
install(DIRECTORY include/daelstrom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT library)
if(DAELSTROM_PROGRAM)
    install(TARGETS daelstrom_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT program)
    file(RELATIVE_PATH to_libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
    set_target_properties(daelstrom_cli PROPERTIES INSTALL_RPATH $ORIGIN/${to_libraries})
endif()

# The package's target is written by hand (daelstromConfig.cmake.in), not exported: an exported target
# would ask everyone who links the library to have CUDA's compiler, where its run-time library is enough.
get_target_property(library_name ${installed} OUTPUT_NAME)
get_target_property(library_type ${installed} TYPE)
string(REPLACE _LIBRARY "" DAELSTROM_TYPE ${library_type})  # STATIC or SHARED
set(DAELSTROM_FILE
    ${CMAKE_${DAELSTROM_TYPE}_LIBRARY_PREFIX}${library_name}${CMAKE_${DAELSTROM_TYPE}_LIBRARY_SUFFIX})
# CUDA's run-time library goes along with a static library, which is not linked to it yet: the compiler may have
# come into the clone's .venv, and what is installed must not need the clone.
if(DAELSTROM_WITH_CUDA AND DAELSTROM_TYPE STREQUAL "STATIC")
    install(FILES ${DAELSTROM_CUDART} DESTINATION ${CMAKE_INSTALL_LIBDIR}/daelstrom COMPONENT library)
    get_filename_component(DAELSTROM_CUDART_FILE ${DAELSTROM_CUDART} NAME)
endif()
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/daelstrom)
configure_package_config_file(cmake/daelstromConfig.cmake.in
    ${CMAKE_CURRENT_BINARY_DIR}/daelstromConfig.cmake
    INSTALL_DESTINATION ${package_dir}
    PATH_VARS CMAKE_INSTALL_INCLUDEDIR CMAKE_INSTALL_LIBDIR)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/daelstromConfigVersion.cmake
    COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/daelstromConfig.cmake
              ${CMAKE_CURRENT_BINARY_DIR}/daelstromConfigVersion.cmake
        DESTINATION ${package_dir} COMPONENT library)

# For those who build without CMake. A static library names what it needs itself.
file(RELATIVE_PATH DAELSTROM_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" DAELSTROM_PC_PREFIX ${DAELSTROM_PC_PREFIX})
set(DAELSTROM_PC_LIBS "")
set(DAELSTROM_PC_PRIVATE ".private")
if(DAELSTROM_TYPE STREQUAL "STATIC")
    set(DAELSTROM_PC_PRIVATE "")
    set(DAELSTROM_PC_LIBS " -pthread -ldl -lstdc++ -lm")
    if(DAELSTROM_WITH_IPSEC_MB)
        string(APPEND DAELSTROM_PC_LIBS " ${IPSEC_MB_LIBRARY}")
    endif()
    if(DAELSTROM_WITH_LIBCONFIG)
        string(APPEND DAELSTROM_PC_LIBS " ${LIBCONFIG_LIBRARY}")
    endif()
    if(DAELSTROM_WITH_CUDA)
        string(APPEND DAELSTROM_PC_LIBS " \${libdir}/daelstrom/${DAELSTROM_CUDART_FILE} -lrt")
    endif()
endif()
configure_file(cmake/daelstrom.pc.in ${CMAKE_CURRENT_BINARY_DIR}/daelstrom.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/daelstrom.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT library)
