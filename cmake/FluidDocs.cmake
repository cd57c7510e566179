# Tests of README.md and docs/*.md. The ctest case docs.<page> runs the commands of a page. Each complete program of the
# page is compiled as docs_<page>_<n> and run as the ctest case docs.<page>_<n>. tests/docs/blocks.awk defines the code
# blocks.

# Adds the tests of all pages. The page about several processes needs Gloo.
function(fluid_docs)
  set(tests ${CMAKE_SOURCE_DIR}/tests/docs)
  add_test(NAME docs.self_test COMMAND bash ${tests}/self_test.sh)
  set(out ${CMAKE_BINARY_DIR}/docs)
  file(GLOB pages CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/docs/*.md)
  if(NOT FLUID_GLOO)
    list(FILTER pages EXCLUDE REGEX "/several_processes.md$")
  endif()
  foreach(page ${CMAKE_SOURCE_DIR}/README.md ${pages})
    get_filename_component(name ${page} NAME_WE)
    string(TOLOWER ${name} name)
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
                 ${page} ${tests}/blocks.awk ${tests}/programs.sh)
    add_test(NAME docs.${name} COMMAND bash ${tests}/run.sh ${page} ${CMAKE_BINARY_DIR})
    set_tests_properties(docs.${name} PROPERTIES TIMEOUT 300)
    execute_process(COMMAND bash ${tests}/programs.sh ${page} ${out}
                    OUTPUT_VARIABLE programs OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE failed)
    if(failed)
      message(FATAL_ERROR "${page}: its programs could not be read")
    endif()
    string(REPLACE "\n" ";" programs "${programs}")
    foreach(program ${programs})
      add_executable(${program} ${out}/${program}.cpp)
      # The public headers are copies that the build does not know one by one.
      set_source_files_properties(${out}/${program}.cpp PROPERTIES OBJECT_DEPENDS
                                  ${CMAKE_BINARY_DIR}/public_headers.stamp)
      target_link_libraries(${program} PRIVATE fluid)
      set_target_properties(${program} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${out})
      fluid_compile_quickly(${program})
      string(REGEX REPLACE "^docs_" "docs." case ${program})
      add_test(NAME ${case} COMMAND bash ${tests}/run_program.sh $<TARGET_FILE:${program}>)
      set_tests_properties(${case} PROPERTIES TIMEOUT 120)
      if(name STREQUAL "several_processes")
        add_test(NAME ${case}_launched COMMAND bash ${tests}/run_program.sh $<TARGET_FILE:${program}>
                                               $<TARGET_FILE:fluidrun> launch --nproc 2 --)
        set_tests_properties(${case}_launched PROPERTIES TIMEOUT 120)
      endif()
    endforeach()
  endforeach()
endfunction()
