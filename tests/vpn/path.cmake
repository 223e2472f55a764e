# SPDX-License-Identifier: Apache-2.0
dael_test(vpn_cut_test SOURCES path_cut_test.cpp LABELS formats)
target_link_libraries(vpn_cut_test PRIVATE dael_vpn_path)
dael_test(vpn_join_test SOURCES path_join_test.cpp LABELS formats)
target_link_libraries(vpn_join_test PRIVATE dael_vpn_path)
