# The third-party dependencies of Fluid. All are packages of the distribution (scripts/setup installs them).

find_package(Threads REQUIRED)
find_package(ZLIB REQUIRED)
find_package(JPEG REQUIRED)
find_package(PNG REQUIRED)
find_package(fmt REQUIRED)
find_package(CLI11 REQUIRED)
find_package(nlohmann_json REQUIRED)

# Finds libgomp by name. With clang, find_package(OpenMP) would find libomp, which would start a second thread pool
# beside the one that oneDNN uses.
find_library(FLUID_GOMP_LIBRARY NAMES libgomp.so.1 gomp REQUIRED)
add_library(gomp INTERFACE)
target_link_libraries(gomp INTERFACE ${FLUID_GOMP_LIBRARY})

# Links only the required LLVM components, and statically, so that fluidrun is small and starts fast.
find_package(LLVM ${FLUID_LLVM} QUIET CONFIG
             HINTS /usr/lib/llvm-22/lib/cmake/llvm /usr/lib/llvm-19/lib/cmake/llvm)
if(NOT LLVM_FOUND)
  find_package(LLVM 19.1 REQUIRED CONFIG HINTS /usr/lib/llvm-19/lib/cmake/llvm)
endif()
message(STATUS "LLVM ${LLVM_PACKAGE_VERSION}")
llvm_map_components_to_libnames(FLUID_LLVM_LIBS orcjit native nvptxcodegen nvptxdesc nvptxinfo passes bitreader linker)
add_library(llvm INTERFACE)
target_include_directories(llvm SYSTEM INTERFACE ${LLVM_INCLUDE_DIRS})
target_link_libraries(llvm INTERFACE ${FLUID_LLVM_LIBS})
set(FLUID_LLVM_TOOLS ${LLVM_TOOLS_BINARY_DIR})

# The FlatBuffers library is header-only. flatc compiles the schema.
find_path(FLUID_FLATBUFFERS_INCLUDE flatbuffers/flatbuffers.h REQUIRED)
find_program(FLUID_FLATC flatc REQUIRED)

add_library(json INTERFACE)
target_link_libraries(json INTERFACE nlohmann_json::nlohmann_json)

add_library(xxhash INTERFACE)
target_compile_definitions(xxhash INTERFACE $<BUILD_INTERFACE:XXH_INLINE_ALL>)

if(FLUID_ONEDNN)
  find_library(FLUID_DNNL_LIBRARY dnnl REQUIRED)
  set(FLUID_DNNL_TARGET dnnl)
  add_library(dnnl INTERFACE)
  target_link_libraries(dnnl INTERFACE ${FLUID_DNNL_LIBRARY})
endif()

if(FLUID_GLOO)
  find_path(FLUID_GLOO_INCLUDE gloo/allreduce.h REQUIRED)
  find_library(FLUID_GLOO_LIBRARY gloo REQUIRED)
  set(FLUID_GLOO_TARGET gloo)
  add_library(gloo INTERFACE)
  # --as-needed: a program that never creates a communicator does not load Gloo and its dependencies.
  target_link_libraries(gloo INTERFACE -Wl,--push-state,--as-needed ${FLUID_GLOO_LIBRARY}
                                       -Wl,--pop-state)
endif()

if(FLUID_TESTS)
  find_package(GTest REQUIRED)
  find_package(rapidcheck REQUIRED)
endif()

find_program(FLUID_CCACHE ccache)
if(FLUID_CCACHE)
  # Without this setting ccache does not cache files that use a precompiled header.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
      ${FLUID_CCACHE})
endif()
find_program(FLUID_MOLD mold)
if(FLUID_MOLD)
  add_link_options(-fuse-ld=mold)
endif()
