# SPDX-License-Identifier: MIT
# CUDA when it is wanted and there. The runtime is linked statically, so that the same library loads on machines without
# a GPU or a driver. Sets MLFF_HAS_CUDA.

set(MLFF_HAS_CUDA OFF)
if(MLFF_CUDA)
  include(CheckLanguage)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES AND DEFINED ENV{CUDAARCHS})
      set(CMAKE_CUDA_ARCHITECTURES $ENV{CUDAARCHS})
    elseif(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
      set(CMAKE_CUDA_ARCHITECTURES 80-real 90-real 90-virtual)  # A100, H100/H200, and PTX for what comes after
    endif()
    set(CMAKE_CUDA_RUNTIME_LIBRARY Static)
    enable_language(CUDA)
    if(CMAKE_CUDA_FLAGS MATCHES "-Ofc=")  # asked to compile kernels fast (.ci/run), nvcc has host code compiled fast as well: its -O is of host code only
      set(CMAKE_CUDA_FLAGS_RELEASE "-O0 -DNDEBUG")
    endif()
    if(NOT CMAKE_CUDA20_STANDARD_COMPILE_OPTION)  # CMake before 3.26 does not know that nvcc has C++20
      set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION -std=c++20)
      set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION -std=c++20)
    endif()
    set(MLFF_HAS_CUDA ON)
  endif()
endif()
message(STATUS "mlff: CUDA ${MLFF_HAS_CUDA}")
