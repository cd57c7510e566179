# Functions that define Fluid's libraries, programs and tests from its folders.

add_library(fluid_flags INTERFACE)
target_include_directories(fluid_flags INTERFACE $<BUILD_INTERFACE:${CMAKE_SOURCE_DIR}>
                                                 $<BUILD_INTERFACE:${CMAKE_BINARY_DIR}/generated>)
target_compile_options(fluid_flags INTERFACE
                       $<BUILD_INTERFACE:-Wall;-Wextra;-Wno-missing-field-initializers;-ffp-contract=off>)
# At -O3, GCC 12 gives false warnings about overflows in std::string and uninitialised std::optional (GCC bugs 105329,
# 105651, 105562). The dev preset keeps these warnings.
target_compile_options(fluid_flags INTERFACE
                       $<BUILD_INTERFACE:$<$<AND:$<CXX_COMPILER_ID:GNU>,$<CONFIG:Release>>:-Wno-stringop-overflow;-Wno-stringop-overread;-Wno-restrict;-Wno-array-bounds;-Wno-maybe-uninitialized>>)
# clang warns about deprecated functions that the algorithms of libstdc++ 12 call.
target_compile_options(fluid_flags INTERFACE $<BUILD_INTERFACE:$<$<CXX_COMPILER_ID:Clang>:-Wno-deprecated-declarations>>)
if(FLUID_WERROR)
  target_compile_options(fluid_flags INTERFACE $<BUILD_INTERFACE:-Werror>)
endif()
if(FLUID_SANITIZE)
  target_compile_options(fluid_flags INTERFACE
                         "$<$<NOT:$<BOOL:$<TARGET_PROPERTY:FLUID_UNINSTRUMENTED>>>:-fsanitize=${FLUID_SANITIZE};-fno-sanitize-recover=all>"
                         -fno-omit-frame-pointer
                         -fno-sanitize=vptr,object-size,null)  # slow to compile; the address sanitizer covers their errors
  target_link_options(fluid_flags INTERFACE -fsanitize=${FLUID_SANITIZE})
  # The compiler's own macros are undefined in test code, which is not instrumented.
  target_compile_definitions(fluid_flags INTERFACE FLUID_SANITIZED)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")  # instrumented code gives the same false warnings
    target_compile_options(fluid_flags INTERFACE -Wno-maybe-uninitialized -Wno-array-bounds -Wno-restrict
                                                 -Wno-stringop-overflow)
  else()  # clang's check of a call reads the bytes before the function, where JIT-compiled code has none
    target_compile_options(fluid_flags INTERFACE -fno-sanitize=function)
  endif()
endif()

# Precompiled standard headers, which nearly every file includes.
set(FLUID_PCH <algorithm> <functional> <map> <memory> <optional> <span> <string> <variant> <vector>)

# Compiles programs at -O1, which saves a third of their compile time. They do little work at run time and instantiate
# large templates.
function(fluid_compile_quickly)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endforeach()
endfunction()

# Compiles code of tests at `level` (-O0, -O1) and without the address and undefined-behaviour sanitizers, which saves
# half to two thirds of its compile time. The libraries that it tests are instrumented.
function(fluid_compile_test_code level)
  foreach(target ${ARGN})
    target_compile_options(${target} PRIVATE ${level})
    if(FLUID_SANITIZE MATCHES address)
      set_target_properties(${target} PROPERTIES FLUID_UNINSTRUMENTED ON)
    endif()
  endforeach()
endfunction()

# With FLUID_UNITY, compiles 48 files of a target as one. A full build is several times faster (and a quarter faster than
# with 16 files), an incremental build is slower.
function(fluid_compile_together)
  if(FLUID_UNITY)
    set_target_properties(${ARGN} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 48)
  endif()
endfunction()

# Removes the files that need oneDNN or Gloo from a list of sources, in builds without that library.
function(fluid_without_disabled_libraries list)
  set(kept ${${list}})
  if(NOT FLUID_ONEDNN)
    list(FILTER kept EXCLUDE REGEX "/onednn")
  endif()
  if(NOT FLUID_GLOO)
    list(FILTER kept EXCLUDE REGEX "/(gloo[._]|data_parallel_|parallel_)")
  endif()
  set(${list} ${kept} PARENT_SCOPE)
endfunction()

# fluid_library(<folder> [O2] LINKS <targets>): a static library of every .cpp below the folder, except examples, tools,
# executor/launcher, executor/fluidrun and executor/cuda. O2: compiles at -O2 instead of -O3, which saves a fifth of
# the compile time; for code without loops over tensor elements.
function(fluid_library folder)
  cmake_parse_arguments(ARG "O2" "" "LINKS" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  list(FILTER sources EXCLUDE REGEX "/examples/|/tools/|/executor/fluidrun|/executor/launcher|/executor/cuda/")
  fluid_without_disabled_libraries(sources)
  if(NOT sources)
    file(WRITE ${CMAKE_BINARY_DIR}/generated/empty.cpp "")
    set(sources ${CMAKE_BINARY_DIR}/generated/empty.cpp)
  endif()
  add_library(fluid_${folder} STATIC ${sources})
  target_link_libraries(fluid_${folder} PUBLIC fluid_flags ${ARG_LINKS} Threads::Threads)
  target_precompile_headers(fluid_${folder} PRIVATE ${FLUID_PCH})
  if(ARG_O2)
    target_compile_options(fluid_${folder} PRIVATE $<$<CONFIG:Release>:-O2>)
  endif()
  fluid_compile_together(fluid_${folder})
endfunction()

# Generates <folder>/<suffix>_table.{h,cpp} from the functions `<type> <name>_<suffix>()` in the files of the folder
# that match `pattern`. The header declares them; `std::vector<type> <function>()` calls them in the order of their
# names.
function(fluid_generate_table folder pattern type suffix function header)
  file(GLOB files CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/${folder}/${pattern})
  list(FILTER files EXCLUDE REGEX "/tools/")
  set(out ${CMAKE_BINARY_DIR}/generated/${folder}/${suffix}_table)
  add_custom_command(
    OUTPUT ${out}.cpp ${out}.h
    COMMAND ${CMAKE_COMMAND} -DOUT=${out} -DTYPE=${type} -DSUFFIX=${suffix} -DFUNCTION=${function} -DHEADER=${header}
            "-DFILES=${files}" -P ${CMAKE_SOURCE_DIR}/cmake/Table.cmake
    DEPENDS ${files} ${CMAKE_SOURCE_DIR}/cmake/Table.cmake
    COMMENT "Gathering the table of ${function}" VERBATIM)
  target_sources(fluid_${folder} PRIVATE ${out}.cpp ${out}.h)
endfunction()

# Compiles a FlatBuffers schema to generated/<name>_generated.h for `target`, with flatc's object API.
function(fluid_flatbuffers target schema)
  get_filename_component(stem ${schema} NAME_WE)
  set(out ${CMAKE_BINARY_DIR}/generated/${stem}_generated.h)
  add_custom_command(
    OUTPUT ${out}
    COMMAND ${FLUID_FLATC} --cpp --scoped-enums --gen-object-api -o ${CMAKE_BINARY_DIR}/generated ${CMAKE_SOURCE_DIR}/${schema}
    DEPENDS ${CMAKE_SOURCE_DIR}/${schema} VERBATIM)
  target_sources(${target} PRIVATE ${out})
endfunction()

# Sets the RPATH of a program to the folder `lib` beside it, where scripts/bundle puts the libraries.
function(fluid_takes_libraries_along name)
  set_target_properties(${name} PROPERTIES BUILD_RPATH "\$ORIGIN/lib")
  target_link_options(${name} PRIVATE -Wl,--disable-new-dtags)  # DT_RPATH, which also applies to libraries of libraries
endfunction()

# fluid_program(<name> FOLDERS <folders> LINKS <targets>): a program of every .cpp in the folders.
function(fluid_program name)
  cmake_parse_arguments(ARG "" "" "FOLDERS;LINKS" ${ARGN})
  list(TRANSFORM ARG_FOLDERS APPEND /*.cpp)
  file(GLOB sources CONFIGURE_DEPENDS ${ARG_FOLDERS})
  add_executable(${name} ${sources})
  target_link_libraries(${name} PRIVATE fluid_executor ${ARG_LINKS})
  target_precompile_headers(${name} PRIVATE ${FLUID_PCH})
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
  fluid_takes_libraries_along(${name})
  fluid_compile_quickly(${name})
  fluid_compile_together(${name})
endfunction()

# Builds every .cpp of the folder as a program. After the build, runs it to record <build>/examples/<name>.fluid. A test
# trains it for a few steps.
function(fluid_examples folder)
  # Two records in the format of CIFAR-10: a byte for the label, then 3072 bytes of an image.
  set(records "")
  foreach(label 1 2)
    string(ASCII ${label} byte)
    string(REPEAT "${label}0aZ~ 5*(K!x" 256 image)
    string(APPEND records "${byte}${image}")
  endforeach()
  file(WRITE ${CMAKE_BINARY_DIR}/examples/cifar10/data_batch_1.bin "${records}")
  # Tables of small integers, the label first.
  foreach(columns 8 39)
    set(rows "label")
    foreach(column RANGE 1 ${columns})
      string(APPEND rows ",x${column}")
    endforeach()
    foreach(row RANGE 63)
      math(EXPR label "${row} % 2")
      string(APPEND rows "\n${label}")
      foreach(column RANGE 1 ${columns})
        math(EXPR cell "(${row} * ${column} + ${row}) % 17")
        string(APPEND rows ",${cell}")
      endforeach()
    endforeach()
    file(WRITE ${CMAKE_BINARY_DIR}/examples/columns_${columns}.csv "${rows}\n")
  endforeach()
  file(GLOB sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  set(first)  # example whose precompiled header the others use
  foreach(source ${sources})
    get_filename_component(name ${source} NAME_WE)
    add_executable(${name} ${source})
    target_link_libraries(${name} PRIVATE fluid_executor)
    set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    fluid_compile_quickly(${name})
    if(first)
      target_precompile_headers(${name} REUSE_FROM ${first})
    else()
      set(first ${name})
      target_precompile_headers(${name} PRIVATE ${CMAKE_SOURCE_DIR}/frontend/fluid.h)
    endif()
    add_custom_command(TARGET ${name} POST_BUILD
                       COMMAND ${name} --save ${CMAKE_BINARY_DIR}/examples/${name}.fluid VERBATIM)
    set(data digits?limit=1000)
    set(arguments --steps 2)
    if(name STREQUAL linear_regression)
      set(data synthetic-linear?limit=10000)
    elseif(name STREQUAL california_housing)
      set(data csv:columns_8.csv?label=label&val=0.2)
    elseif(name STREQUAL dlrm)
      set(data csv:columns_39.csv?label=label)
    elseif(name MATCHES "^(resnet18|resnet50|alexnet_cifar10|mobilenet_v3_small|vit_tiny)$")
      set(data cifar10:cifar10)
    elseif(name MATCHES "^(char_gpt|lstm_text)$")
      set(data text:${CMAKE_SOURCE_DIR}/docs/internals.md)
      if(name STREQUAL lstm_text)
        string(APPEND data "?length=128")
      endif()
      set(arguments --steps 2 --prompt Fluid --bytes 2)
    elseif(name STREQUAL bert_tiny)
      set(data text:${CMAKE_SOURCE_DIR}/docs/internals.md)
    endif()
    if(FLUID_TESTS)
      add_test(NAME example.${name} COMMAND ${name} --data ${data} ${arguments}
               WORKING_DIRECTORY ${CMAKE_BINARY_DIR}/examples)
    endif()
  endforeach()
endfunction()

# Makes each gtest case of the program a ctest case. ctest lists the cases when it starts. The timeout is long enough to
# load the CUDA libraries from a slow disk.
macro(fluid_discover_tests target prefix)
  include(GoogleTest)
  gtest_discover_tests(${target} TEST_PREFIX ${prefix}. DISCOVERY_MODE PRE_TEST DISCOVERY_TIMEOUT 300 ${ARGN})
endmacro()

# fluid_tests(<part> [LINKS <targets>] [ALONE <filter>] [SHARDED <filter>] [ENVIRONMENT <NAME=value>]): builds
# tests/<part>/*.cpp as the program test_<part>. Each gtest case is a ctest case. LINKS: libraries to link instead of
# fluid_test_support, which links all of Fluid. ALONE: cases that measure time, which ctest runs one at a time.
# SHARDED: cases that ctest runs in 64 processes, because starting a process takes as long as a case.
function(fluid_tests part)
  cmake_parse_arguments(ARG "" "ALONE;SHARDED;ENVIRONMENT" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/${part}/*.cpp)
  fluid_without_disabled_libraries(sources)
  if(NOT sources)
    return()
  endif()
  if(NOT TARGET fluid_test_support)
    file(GLOB support CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/support/*.cpp)
    if(support)
      # The host that stands in for a GPU, which is also a library of its own (fluid_made_up_gpus).
      set(host_gpu ${support})
      list(FILTER host_gpu INCLUDE REGEX "/(host_gpu|ptx_)[^/]*$")
      list(REMOVE_ITEM support ${host_gpu})
      add_library(fluid_host_gpu OBJECT ${host_gpu})
      target_link_libraries(fluid_host_gpu PUBLIC fluid_ir)
      target_precompile_headers(fluid_host_gpu PRIVATE ${FLUID_PCH})
      fluid_compile_test_code(-O2 fluid_host_gpu)
      fluid_compile_together(fluid_host_gpu)
      add_library(fluid_test_support STATIC ${support} $<TARGET_OBJECTS:fluid_host_gpu>)
      target_link_libraries(fluid_test_support PUBLIC fluid_executor GTest::gtest)
      target_compile_definitions(fluid_test_support PRIVATE FLUID_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
      target_precompile_headers(fluid_test_support PRIVATE ${FLUID_PCH} <gtest/gtest.h>)
      fluid_compile_test_code(-O2 fluid_test_support)  # interpreters of programs, kernels and PTX
      fluid_compile_together(fluid_test_support)
      # Headers that the test programs precompile once.
      file(WRITE ${CMAKE_BINARY_DIR}/generated/test_headers.cpp "")
      add_library(fluid_test_headers OBJECT ${CMAKE_BINARY_DIR}/generated/test_headers.cpp)
      target_link_libraries(fluid_test_headers PRIVATE fluid_test_support)
      target_precompile_headers(fluid_test_headers PRIVATE ${FLUID_PCH} <gtest/gtest.h>)
      fluid_compile_test_code(-O0 fluid_test_headers)
      target_compile_options(fluid_test_headers PRIVATE -fPIE)  # as programs
    else()
      add_library(fluid_test_support INTERFACE)
      target_link_libraries(fluid_test_support INTERFACE fluid_executor GTest::gtest)
    endif()
  endif()
  if(NOT ARG_LINKS)
    set(ARG_LINKS fluid_test_support)
  endif()
  add_executable(test_${part} ${sources})
  target_link_libraries(test_${part} PRIVATE ${ARG_LINKS} GTest::gtest GTest::gtest_main)
  fluid_compile_test_code(-O0 test_${part})
  if(TARGET fluid_test_headers AND NOT part STREQUAL ir)  # test_ir does not link fluid_test_support
    target_precompile_headers(test_${part} REUSE_FROM fluid_test_headers)
    # The linker keeps the first of several copies of an inline function. Listing the libraries before the objects makes
    # it keep those that were optimised, which saves 6 % of the time of test_executor.
    foreach(folder executor frontend passes codegen ops ir)
      target_link_options(test_${part} PRIVATE $<TARGET_FILE:fluid_${folder}>)
    endforeach()
  endif()
  fluid_compile_together(test_${part})
  target_compile_definitions(test_${part} PRIVATE FLUID_SOURCE_DIR="${CMAKE_SOURCE_DIR}"
                             FLUID_BINARY_DIR="${CMAKE_BINARY_DIR}"
                             FLUID_LLVM_TOOLS="${FLUID_LLVM_TOOLS}")
  set(others)
  if(ARG_ALONE)
    set(others TEST_FILTER -${ARG_ALONE})
    fluid_discover_tests(test_${part} ${part} TEST_FILTER ${ARG_ALONE}
                         PROPERTIES TIMEOUT 300 ENVIRONMENT GOMP_SPINCOUNT=1000 RUN_SERIAL TRUE)
  endif()
  if(ARG_SHARDED)
    set(others TEST_FILTER -${ARG_SHARDED})
    foreach(shard RANGE 63)
      add_test(NAME ${part}.shard_${shard} COMMAND test_${part} --gtest_brief=1 --gtest_filter=${ARG_SHARDED})
      set_tests_properties(${part}.shard_${shard} PROPERTIES TIMEOUT 300
                           ENVIRONMENT "GOMP_SPINCOUNT=1000;GTEST_TOTAL_SHARDS=64;GTEST_SHARD_INDEX=${shard}")
    endforeach()
  endif()
  set(environment)  # gtest_discover_tests() does not pass lists in properties
  if(ARG_ENVIRONMENT)
    string(REPLACE "=" "=set:" setting ${ARG_ENVIRONMENT})
    set(environment ENVIRONMENT_MODIFICATION ${setting})
  endif()
  fluid_discover_tests(test_${part} ${part} ${others}
                       PROPERTIES TIMEOUT 300 ENVIRONMENT GOMP_SPINCOUNT=1000 ${environment})
endfunction()

# An object library of the sample inputs of all ops.
function(fluid_op_samples)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/ops/samples/*.cpp)
  add_library(fluid_op_samples OBJECT ${sources})
  target_link_libraries(fluid_op_samples PUBLIC fluid_test_support)
  fluid_compile_test_code(-O1 fluid_op_samples)  # reference implementations
  fluid_compile_together(fluid_op_samples)
endfunction()

# An object library of GPU tests, which several test programs link to run them on different GPUs.
function(fluid_gpu_conformance)
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/conformance/*.cpp)
  add_library(fluid_gpu_conformance OBJECT ${sources})
  target_link_libraries(fluid_gpu_conformance PUBLIC fluid_test_support)
  fluid_compile_test_code(-O0 fluid_gpu_conformance)
endfunction()

# test_threads: the multi-threaded sources that depend only on ir, and their tests, to be built with the thread
# sanitizer. Builds in a minute, where all of Fluid would take 15 minutes.
function(fluid_thread_tests)
  file(GLOB sources CONFIGURE_DEPENDS executor/comm/*.cpp executor/device/half_arrays.cpp
                                      executor/options/changes.cpp executor/options/world.cpp
                                      frontend/files/*.cpp frontend/images/*.cpp
                                      frontend/readers/*.cpp frontend/tokenizers/*.cpp)
  set(tests executor/collective_queue executor/communicator executor/store frontend/reader
            frontend/reader_workers)
  if(FLUID_GLOO)
    list(APPEND tests executor/gloo)
  else()
    list(FILTER sources EXCLUDE REGEX "/gloo")
  endif()
  list(TRANSFORM tests REPLACE "(.+)" "tests/\\1_test.cpp")
  add_executable(test_threads ${sources} ${tests} tests/support/processes.cpp)
  target_link_libraries(test_threads PRIVATE fluid_ir xxhash ZLIB::ZLIB JPEG::JPEG PNG::PNG json fmt::fmt
                                             GTest::gtest GTest::gtest_main)
  if(FLUID_GLOO)
    target_link_libraries(test_threads PRIVATE gloo)
    target_compile_definitions(test_threads PRIVATE FLUID_GLOO=1)
  endif()
  target_precompile_headers(test_threads PRIVATE ${FLUID_PCH} <gtest/gtest.h>)
  fluid_discover_tests(test_threads threads PROPERTIES TIMEOUT 300)
endfunction()

# Builds tests/fuzz/*.cpp as the program fuzz_formats and adds a ctest case, which runs it briefly, or in full with
# FLUID_TEST_ALL. COST makes ctest start this long case first.
function(fluid_fuzzer)
  cmake_parse_arguments(ARG "" "" "LINKS" ${ARGN})
  file(GLOB sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/fuzz/*.cpp)
  add_executable(fuzz_formats ${sources})
  target_link_libraries(fuzz_formats PRIVATE ${ARG_LINKS})
  target_compile_definitions(fuzz_formats PRIVATE FLUID_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  target_precompile_headers(fuzz_formats PRIVATE ${FLUID_PCH})
  add_test(NAME fuzz.formats COMMAND fuzz_formats --brief 40)
  set_tests_properties(fuzz.formats PROPERTIES COST 100
                       TIMEOUT 7200)  # the program itself reports a hanging case sooner
endfunction()

# Adds a ctest case for each script in tests/lint.
function(fluid_lint_tests)
  file(GLOB scripts CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/tests/lint/*.sh)
  foreach(script ${scripts})
    get_filename_component(name ${script} NAME_WE)
    add_test(NAME lint.${name} COMMAND bash ${script} WORKING_DIRECTORY ${CMAKE_SOURCE_DIR})
    set_tests_properties(lint.${name} PROPERTIES SKIP_RETURN_CODE 77)
  endforeach()
  add_library(thrown_messages MODULE tests/lint/thrown_messages.cpp)
  target_link_libraries(thrown_messages PRIVATE fluid_flags ${CMAKE_DL_LIBS})
  set_target_properties(thrown_messages PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR})
endfunction()

# Builds replacements of libfluid_cuda.so that describe other machines, for the given test targets.
function(fluid_made_up_gpus)
  set(folder ${CMAKE_SOURCE_DIR}/tests/support/gpu_libraries)
  set(out ${CMAKE_BINARY_DIR}/gpu_libraries)
  function(add_machine name driver devices old table_version)
    add_library(${name} MODULE ${folder}/made_up.cpp)
    target_compile_definitions(${name} PRIVATE DRIVER=${driver} DEVICES=${devices} OLD=${old}
                                               TABLE_VERSION=${table_version})
  endfunction()
  add_machine(three_gpus 13000 3 1 FLUID_GPU_TABLE_VERSION)
  add_machine(two_gpus_old_first 13000 2 0 FLUID_GPU_TABLE_VERSION)
  add_machine(no_gpus 13010 0 1 FLUID_GPU_TABLE_VERSION)
  add_machine(no_driver 0 -1 1 FLUID_GPU_TABLE_VERSION)
  add_machine(old_driver 12040 -1 1 FLUID_GPU_TABLE_VERSION)
  add_machine(broken_driver 13000 -1 1 FLUID_GPU_TABLE_VERSION)
  add_machine(other_version 13000 1 1 FLUID_GPU_TABLE_VERSION+1)

  add_library(fluid_absent SHARED ${folder}/absent.cpp)
  set_target_properties(fluid_absent PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${out}/hidden)
  add_library(needs_absent MODULE ${folder}/needs_absent.cpp)
  target_link_libraries(needs_absent PRIVATE fluid_absent)

  add_library(stand_in MODULE ${folder}/stand_in.cpp $<TARGET_OBJECTS:fluid_host_gpu>)
  target_link_libraries(stand_in PRIVATE fluid_ir)
  target_precompile_headers(stand_in PRIVATE ${FLUID_PCH})

  set(modules three_gpus two_gpus_old_first no_gpus no_driver old_driver broken_driver
      other_version needs_absent stand_in)
  foreach(module ${modules})
    target_link_libraries(${module} PRIVATE fluid_flags)
    set_target_properties(${module} PROPERTIES PREFIX "" LIBRARY_OUTPUT_DIRECTORY ${out}
                                               SKIP_BUILD_RPATH ON)
  endforeach()

  # Replacements of the CUDA driver library, which the real libfluid_cuda.so loads.
  function(add_driver name version init)
    add_library(${name} SHARED ${folder}/driver.cpp)
    target_compile_definitions(${name} PRIVATE DRIVER=${version} INIT=${init})
    target_link_libraries(${name} PRIVATE fluid_flags)
    set_target_properties(${name} PROPERTIES OUTPUT_NAME cuda SUFFIX .so.1
                                             LIBRARY_OUTPUT_DIRECTORY ${out}/${name})
  endfunction()
  if(TARGET fluid_cuda)
    add_driver(driver_of_cuda_12 12040 0)
    add_driver(driver_without_gpu 13000 100)
    add_driver(driver_mismatched 13000 803)
    list(APPEND modules driver_of_cuda_12 driver_without_gpu driver_mismatched)
  endif()
  foreach(user ${ARGN})
    add_dependencies(${user} ${modules})
  endforeach()
endfunction()

# Adds a ctest case e2e.<file> for each Python test, and e2e.<file>_<class> for each <file>:<class>. These test scripts,
# and replace the programs that the scripts run.
function(fluid_python_tests)
  find_program(FLUID_PYTHON python3)
  if(NOT FLUID_PYTHON)
    return()
  endif()
  foreach(test ${ARGN})
    string(REGEX MATCH "^([^:]*/([^:]+)):?(.*)" _ ${test})
    set(class ${CMAKE_MATCH_3})
    set(command ${CMAKE_SOURCE_DIR}/${CMAKE_MATCH_1}.py ${class})
    set(name e2e.${CMAKE_MATCH_2})
    if(class)
      string(APPEND name _${class})
    endif()
    add_test(NAME ${name} COMMAND ${FLUID_PYTHON} ${command})
  endforeach()
endfunction()
