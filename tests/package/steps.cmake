# SPDX-License-Identifier: Apache-2.0
function(run)
    execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE status)
    if(status)
        message(FATAL_ERROR "failed: ${ARGN}")
    endif()
endfunction()
