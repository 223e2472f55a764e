# SPDX-License-Identifier: Apache-2.0
dael_test(noise_test SOURCES noise_test.cpp LABELS vpn)
target_link_libraries(noise_test PRIVATE dael_vpn_handshake)
foreach(name handshake_test handshake_timers_test handshake_walk_test)
    if(EXISTS ${CMAKE_CURRENT_SOURCE_DIR}/${name}.cpp)
        dael_test(${name} SOURCES ${name}.cpp LABELS vpn)
        target_link_libraries(${name} PRIVATE dael_vpn_handshake)
    endif()
endforeach()
