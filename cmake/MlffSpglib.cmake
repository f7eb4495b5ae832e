# SPDX-License-Identifier: MIT
# spglib, which finds the symmetry of crystals for `mlff phonons`: SPGLIB_LIBRARY and SPGLIB_INCLUDE_DIR, both empty where
# it is missing. The static library, if it can be linked into the command, so that packages need nothing more.
# -DSPGLIB_LIBRARY=OFF leaves it out.
if(NOT CMAKE_CROSSCOMPILING AND NOT "${SPGLIB_LIBRARY}" STREQUAL "OFF")
  find_path(SPGLIB_INCLUDE_DIR spglib.h)
  find_library(SPGLIB_STATIC_LIBRARY NAMES libsymspg.a)
  find_library(SPGLIB_SHARED_LIBRARY NAMES symspg)
  mark_as_advanced(SPGLIB_INCLUDE_DIR SPGLIB_STATIC_LIBRARY SPGLIB_SHARED_LIBRARY)
  if(SPGLIB_INCLUDE_DIR AND SPGLIB_STATIC_LIBRARY)
    include(CheckCXXSourceCompiles)
    set(CMAKE_REQUIRED_INCLUDES ${SPGLIB_INCLUDE_DIR})
    set(CMAKE_REQUIRED_LIBRARIES ${SPGLIB_STATIC_LIBRARY} m)
    check_cxx_source_compiles("#include <spglib.h>
      #include \"${PROJECT_SOURCE_DIR}/src/properties/phonons/serial_openmp.h\"
      int main() { return spg_get_major_version(); }" MLFF_STATIC_SPGLIB)
    unset(CMAKE_REQUIRED_INCLUDES)
    unset(CMAKE_REQUIRED_LIBRARIES)
  endif()
  if(MLFF_STATIC_SPGLIB)
    set(SPGLIB_LIBRARY ${SPGLIB_STATIC_LIBRARY} m)
  elseif(SPGLIB_INCLUDE_DIR AND SPGLIB_SHARED_LIBRARY)
    set(SPGLIB_LIBRARY ${SPGLIB_SHARED_LIBRARY})
  endif()
endif()
if(SPGLIB_LIBRARY)
  set(MLFF_HAS_SPGLIB ON)
else()
  set(MLFF_HAS_SPGLIB OFF)
  message(STATUS "no spglib: mlff phonons will know only the translations of a crystal")
endif()
