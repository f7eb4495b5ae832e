# SPDX-License-Identifier: MIT
# cmake -DSOURCE=DIR -DOUTPUT=FILE.cpp -P WriteCommit.cmake: a source file that knows the commit it is built from; left alone while that stays.
cmake_minimum_required(VERSION 3.22)
find_package(Git QUIET)
set(commit "")
if(GIT_FOUND AND EXISTS ${SOURCE}/.git)
  execute_process(COMMAND ${GIT_EXECUTABLE} -C ${SOURCE} describe --always --exclude=* --abbrev=12 --dirty=+ OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT "#include \"build_commit.h\"
std::string mlff::app::build_commit() { return \"@commit@\"; }
")
