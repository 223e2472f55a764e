# SPDX-License-Identifier: Apache-2.0
dael_test(noise_test SOURCES noise_test.cpp LABELS vpn)
target_link_libraries(noise_test PRIVATE dael_vpn_handshake)
foreach(name handshake_test handshake_timers_test handshake_memory_test handshake_walk_test)
    dael_test(${name} SOURCES ${name}.cpp LABELS vpn)
    target_link_libraries(${name} PRIVATE dael_vpn_handshake)
endforeach()

# Against PyPI's noiseprotocol, which scripts/setup puts into .venv.
if(NOT DAELSTROM_SANITIZE)
    add_executable(dael_handshake_steps handshake_steps.cpp)
    target_link_libraries(dael_handshake_steps PRIVATE dael_vpn_handshake dael_options)
    dael_compile_quickly(dael_handshake_steps)
    add_test(NAME vpn.noise_interop COMMAND ${DAEL_TEST_PYTHON} -B ${CMAKE_CURRENT_SOURCE_DIR}/noise_interop_test.py)
    set_tests_properties(vpn.noise_interop PROPERTIES
        LABELS vpn
        SKIP_RETURN_CODE 77
        ENVIRONMENT "DAEL_HANDSHAKE_STEPS=$<TARGET_FILE:dael_handshake_steps>")
endif()
