# SPDX-License-Identifier: Apache-2.0
# Writes HEADER, which says what commit SOURCE is at, and whether it was changed since. A script: cmake -P.
cmake_policy(VERSION 3.25)
set(commit unknown)
if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE} describe --always --dirty --abbrev=12 --exclude=*
                    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
    if(failed EQUAL 0)
        set(commit ${described})
    endif()
endif()
# Left as it is where it says so already, so that nothing is compiled again.
file(CONFIGURE OUTPUT ${HEADER} CONTENT "#define DAEL_COMMIT \"@commit@\"\n" @ONLY)
