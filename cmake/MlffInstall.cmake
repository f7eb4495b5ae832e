# SPDX-License-Identifier: MIT
# Installation, the find_package(mlff) and pkg-config files, and packages.

include(CMakePackageConfigHelpers)

install(TARGETS mlff mace_wrapper EXPORT mlff-targets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS mlff_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
if(TARGET mlff_h5md)
  install(TARGETS mlff_h5md LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mlff)
endif()
if(TARGET mlff_python)
  install(TARGETS mlff_python LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}/mlff)
  install(TARGETS mlff_python_host RUNTIME DESTINATION ${CMAKE_INSTALL_LIBEXECDIR}/mlff)
endif()
if(MLFF_MAN_DIR)
  install(DIRECTORY ${MLFF_MAN_DIR}/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN *.1)
endif()
install(FILES include/mlff/mlff.h include/mlff/mlff.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/mlff)
install(FILES include/mace_wrapper.h DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(FILES bindings/fortran/mlff.f90 bindings/fortran/water.f90 bindings/fortran/README.md DESTINATION ${CMAKE_INSTALL_DATADIR}/mlff/fortran)
install(FILES LICENSE README.md CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
install(DIRECTORY docs examples DESTINATION ${CMAKE_INSTALL_DOCDIR} PATTERN build EXCLUDE)  # as in the source tree, so that README's links lead there

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/mlff)
install(EXPORT mlff-targets NAMESPACE mlff:: DESTINATION ${package_dir})
export(EXPORT mlff-targets NAMESPACE mlff:: FILE ${PROJECT_BINARY_DIR}/mlff-targets.cmake)  # find_package(mlff) takes the build folder too
configure_package_config_file(cmake/mlff-config.cmake.in ${PROJECT_BINARY_DIR}/mlff-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/mlff-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/mlff-config.cmake ${PROJECT_BINARY_DIR}/mlff-config-version.cmake DESTINATION ${package_dir})

# pkg-config finds the prefix from where mlff.pc lies, so that an installed tree may be moved.
file(RELATIVE_PATH prefix_from_pkgconfig /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" prefix_from_pkgconfig ${prefix_from_pkgconfig})
set(wrapper_needs Requires.private)  # a program links what it calls; a static library what that calls too
if(NOT BUILD_SHARED_LIBS)
  set(wrapper_needs Requires)
  set(static_libs " -lz -lstdc++ -lpthread -ldl -lm")
  if(MLFF_HAS_CUDA)
    string(APPEND static_libs " -lcudart_static -lrt")
  endif()
endif()
# mlff_write_pkgconfig_files(DIRECTORY PREFIX INCLUDEDIR LIBDIR)
function(mlff_write_pkgconfig_files directory pkgconfig_prefix pkgconfig_includedir pkgconfig_libdir)
  foreach(name mlff mace_wrapper)
    configure_file(cmake/${name}.pc.in ${directory}/${name}.pc @ONLY)
  endforeach()
endfunction()
mlff_write_pkgconfig_files(${PROJECT_BINARY_DIR}
  "\${pcfiledir}/${prefix_from_pkgconfig}" "\${prefix}/${CMAKE_INSTALL_INCLUDEDIR}" "\${prefix}/${CMAKE_INSTALL_LIBDIR}")
# The build folder for programs that scripts/app runs.
mlff_write_pkgconfig_files(${PROJECT_BINARY_DIR}/pkgconfig ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR}/include ${PROJECT_BINARY_DIR}/src)
install(FILES ${PROJECT_BINARY_DIR}/mlff.pc ${PROJECT_BINARY_DIR}/mace_wrapper.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

set(CPACK_GENERATOR "DEB;TGZ")
set(CPACK_PACKAGE_NAME mlff)
set(CPACK_PACKAGE_CONTACT "the mlff authors <mlff@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "Machine-learned force fields: library and command")
set(CPACK_RESOURCE_FILE_LICENSE ${PROJECT_SOURCE_DIR}/LICENSE)
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGE_FILE_NAME mlff-${PROJECT_VERSION}-${CMAKE_SYSTEM_NAME}-${CMAKE_SYSTEM_PROCESSOR})
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
if(PROJECT_IS_TOP_LEVEL)  # else the packages are those of the project around us
  include(CPack)
endif()
