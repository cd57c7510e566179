# libfluid.so and the install rules: bin/fluidrun with man pages and completions, lib/libfluid.so, the static libraries,
# include/fluid/, and the files of find_package(fluid) and pkg-config. The installed tree is relocatable. `cpack`
# packages it as a .deb and a .tar.gz.

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(FLUID_PARTS fluid_ir fluid_ops fluid_passes fluid_codegen fluid_frontend fluid_executor)
set(FLUID_PUBLIC_HEADERS ${CMAKE_BINARY_DIR}/include)

# Writes the public headers to <build>/include/fluid, in their installed form.
function(fluid_public_headers)
  file(GLOB_RECURSE headers CONFIGURE_DEPENDS ir/*.h ops/*.h passes/*.h codegen/*.h frontend/*.h executor/*.h)
  set(stamp ${CMAKE_BINARY_DIR}/public_headers.stamp)
  add_custom_command(
    OUTPUT ${stamp}
    COMMAND ${CMAKE_COMMAND} -DSOURCE=${CMAKE_SOURCE_DIR} -DOUT=${FLUID_PUBLIC_HEADERS}
            -P ${CMAKE_SOURCE_DIR}/cmake/PublicHeaders.cmake
    COMMAND ${CMAKE_COMMAND} -E touch ${stamp}
    DEPENDS ${headers} ${CMAKE_SOURCE_DIR}/cmake/PublicHeaders.cmake
    COMMENT "Gathering the public headers" VERBATIM)
  add_custom_target(fluid_headers ALL DEPENDS ${stamp})
endfunction()

# libfluid.so: all libraries of Fluid, and LLVM. Exports only the symbols of namespace fluid.
function(fluid_shared_library)
  file(WRITE ${CMAKE_BINARY_DIR}/generated/empty.cpp "")
  set(exports ${CMAKE_SOURCE_DIR}/cmake/libfluid.map)
  add_library(fluid SHARED ${CMAKE_BINARY_DIR}/generated/empty.cpp)
  list(JOIN FLUID_PARTS "," parts)
  target_link_libraries(fluid PRIVATE fluid_executor)
  set_target_properties(fluid PROPERTIES
    LINK_LIBRARY_OVERRIDE "WHOLE_ARCHIVE,${parts}"
    VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} LINK_DEPENDS ${exports} INSTALL_RPATH "\$ORIGIN")
  target_link_options(fluid PRIVATE -Wl,--version-script=${exports} -Wl,-Bsymbolic)
  target_include_directories(fluid INTERFACE $<BUILD_INTERFACE:${FLUID_PUBLIC_HEADERS}>
                                             $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_compile_features(fluid INTERFACE cxx_std_20)
  add_dependencies(fluid fluid_headers)
  # Hides the code generator, whose signatures contain LLVM types: nothing outside libfluid.so calls it.
  set_target_properties(fluid_codegen PROPERTIES CXX_VISIBILITY_PRESET hidden VISIBILITY_INLINES_HIDDEN ON)
endfunction()

# Generates the man pages of fluidrun, and its completion scripts for three shells.
function(fluid_manual_pages out)
  set(files ${out}/man1/fluidrun.1)  # beside it, a page of each command
  set(commands COMMAND fluidrun man --all ${out}/man1)
  foreach(shell bash zsh fish)
    list(APPEND files ${out}/completion.${shell})
    list(APPEND commands COMMAND fluidrun completion ${shell} > ${out}/completion.${shell})
  endforeach()
  file(MAKE_DIRECTORY ${out}/man1)
  add_custom_command(OUTPUT ${files} ${commands} DEPENDS fluidrun COMMENT "Writing man pages and completions" VERBATIM)
  add_custom_target(fluid_manual ALL DEPENDS ${files})
endfunction()

function(fluid_install)
  fluid_public_headers()
  fluid_shared_library()
  set(manual ${CMAKE_BINARY_DIR}/manual)
  fluid_manual_pages(${manual})

  install(TARGETS fluid EXPORT fluid-targets LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  install(TARGETS ${FLUID_PARTS} fluid_flags llvm xxhash json gomp ${FLUID_DNNL_TARGET} ${FLUID_GLOO_TARGET}
          EXPORT fluid-static-targets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
  if(TARGET fluid_cuda)
    install(TARGETS fluid_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
  endif()
  install(TARGETS fluidrun RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  install(DIRECTORY ${FLUID_PUBLIC_HEADERS}/fluid DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
  install(DIRECTORY ${CMAKE_BINARY_DIR}/examples/ DESTINATION ${CMAKE_INSTALL_DATADIR}/fluid/examples
          FILES_MATCHING PATTERN "*.fluid" PATTERN "cifar10" EXCLUDE)
  install(FILES ${CMAKE_SOURCE_DIR}/README.md ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/docs DESTINATION ${CMAKE_INSTALL_DOCDIR})
  install(DIRECTORY ${manual}/man1 DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(FILES ${manual}/completion.bash RENAME fluidrun DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${manual}/completion.zsh RENAME _fluidrun DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
  install(FILES ${manual}/completion.fish RENAME fluidrun.fish DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)

  set(package ${CMAKE_INSTALL_LIBDIR}/cmake/fluid)
  configure_file(cmake/fluid-config.cmake.in fluid-config.cmake @ONLY)
  write_basic_package_version_file(${CMAKE_BINARY_DIR}/fluid-config-version.cmake COMPATIBILITY SameMinorVersion)
  install(FILES ${CMAKE_BINARY_DIR}/fluid-config.cmake ${CMAKE_BINARY_DIR}/fluid-config-version.cmake
          DESTINATION ${package})
  foreach(set fluid-targets fluid-static-targets)
    install(EXPORT ${set} NAMESPACE fluid:: DESTINATION ${package})
    export(EXPORT ${set} NAMESPACE fluid:: FILE ${CMAKE_BINARY_DIR}/${set}.cmake)
  endforeach()
  file(RELATIVE_PATH FLUID_PC_PREFIX /x/${CMAKE_INSTALL_LIBDIR}/pkgconfig /x)
  configure_file(cmake/fluid.pc.in fluid.pc @ONLY)
  install(FILES ${CMAKE_BINARY_DIR}/fluid.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
endfunction()

set(CPACK_GENERATOR DEB TGZ)
set(CPACK_PACKAGE_CONTACT "The developers of Fluid")
set(CPACK_PACKAGING_INSTALL_PREFIX /usr)
set(CPACK_STRIP_FILES ON)
set(CPACK_THREADS 0)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${CMAKE_BINARY_DIR})
set(CPACK_DEBIAN_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_COMPRESSION_TYPE zstd)
include(CPack)
