# SPDX-License-Identifier: Apache-2.0
dael_test(vpn_cut_test SOURCES path_cut_test.cpp LABELS formats)
target_link_libraries(vpn_cut_test PRIVATE dael_vpn_path)
dael_test(vpn_join_test SOURCES path_join_test.cpp LABELS formats)
target_link_libraries(vpn_join_test PRIVATE dael_vpn_path)
dael_test(vpn_mend_test SOURCES path_mend_test.cpp LABELS formats)
target_link_libraries(vpn_mend_test PRIVATE dael_vpn_path)
# In network namespaces of its own, where root runs it.
dael_test(vpn_net_test SOURCES path_net_test.cpp LABELS formats threads)
target_link_libraries(vpn_net_test PRIVATE dael_vpn_path)
