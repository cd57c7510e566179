# Writes the public headers to <out>/fluid/: frontend/fluid.h as fluid.h, executor/device/device.h for user-defined
# devices, and all headers that they include, under their paths. Prefixes their includes with "fluid/", so that <out> or
# <prefix>/include is the only include directory of a user.
#   cmake -DSOURCE=<tree> -DOUT=<folder> -P PublicHeaders.cmake

cmake_minimum_required(VERSION 3.25)
file(REMOVE_RECURSE ${OUT}/fluid)
set(pending frontend/fluid.h executor/device/device.h)
set(seen "")
while(pending)
  list(POP_FRONT pending header)
  list(APPEND seen ${header})
  file(READ ${SOURCE}/${header} text)
  string(REGEX MATCHALL "#include \"[^\"]+\"" includes "${text}")
  foreach(include ${includes})
    string(REGEX REPLACE "#include \"(.*)\"" "\\1" include ${include})
    if(NOT include IN_LIST seen AND NOT include IN_LIST pending)
      list(APPEND pending ${include})
    endif()
  endforeach()
  string(REGEX REPLACE "#include \"([^\"]+)\"" "#include \"fluid/\\1\"" text "${text}")
  if(header STREQUAL "frontend/fluid.h")
    set(header fluid.h)
  endif()
  file(WRITE ${OUT}/fluid/${header} "${text}")
endwhile()
