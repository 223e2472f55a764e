# SPDX-License-Identifier: Apache-2.0
install(TARGETS daelstrom_lib daelstrom_cli
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
        RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(DIRECTORY include/daelstrom DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
