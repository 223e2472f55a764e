# SPDX-License-Identifier: Apache-2.0
dael_test(vpn_cut_test SOURCES path_cut_test.cpp LABELS vpn)
target_link_libraries(vpn_cut_test PRIVATE dael_vpn_path)
dael_test(vpn_join_test SOURCES path_join_test.cpp LABELS vpn)
target_link_libraries(vpn_join_test PRIVATE dael_vpn_path)
dael_test(vpn_mend_test SOURCES path_mend_test.cpp LABELS vpn)
target_link_libraries(vpn_mend_test PRIVATE dael_vpn_path)
dael_test(vpn_filter_test SOURCES path_filter_test.cpp LABELS vpn)
target_link_libraries(vpn_filter_test PRIVATE dael_vpn_path)
# In network namespaces of its own, where root runs it.
dael_test(vpn_net_test SOURCES path_net_test.cpp LABELS vpn threads)
target_link_libraries(vpn_net_test PRIVATE dael_vpn_path)

# A bad network, for the tests that need one; and whether it is as bad as it says.
add_executable(vpn_relay relay.cpp)
target_include_directories(vpn_relay PRIVATE ${PROJECT_SOURCE_DIR}/tests)
target_link_libraries(vpn_relay PRIVATE dael_vpn_path dael_options)
add_test(NAME vpn.relay COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_LIST_DIR}/relay_test.py)
set_tests_properties(vpn.relay PROPERTIES LABELS vpn ENVIRONMENT "VPN_RELAY=$<TARGET_FILE:vpn_relay>")
