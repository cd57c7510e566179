# Writes OUT.h and OUT.cpp. OUT.h declares the functions `TYPE <name>_SUFFIX()` that FILES define, sorted by name.
# OUT.cpp defines FUNCTION, which calls all of them. HEADER defines TYPE.
set(names "")
foreach(file ${FILES})
  file(STRINGS ${file} lines REGEX "^${TYPE} [a-z0-9_]+_${SUFFIX}\\(\\) {")
  foreach(line ${lines})
    string(REGEX REPLACE "^${TYPE} ([a-z0-9_]+)_${SUFFIX}\\(\\).*" "\\1" name "${line}")
    list(APPEND names ${name})
  endforeach()
endforeach()
list(SORT names)
set(declared "")
set(called "")
foreach(name ${names})
  string(APPEND declared "${TYPE} ${name}_${SUFFIX}();\n")
  string(APPEND called "  all.push_back(${name}_${SUFFIX}());\n")
endforeach()

function(write_if_different file text)
  file(WRITE ${file}.new "${text}")
  file(COPY_FILE ${file}.new ${file} ONLY_IF_DIFFERENT)
  file(REMOVE ${file}.new)
endfunction()
write_if_different(${OUT}.h "#pragma once

#include <vector>

#include \"${HEADER}\"

namespace fluid {

${declared}
std::vector<${TYPE}> ${FUNCTION}();

}  // namespace fluid
")
get_filename_component(table ${OUT} NAME)
write_if_different(${OUT}.cpp "#include \"${table}.h\"

namespace fluid {

std::vector<${TYPE}> ${FUNCTION}() {
  std::vector<${TYPE}> all;
${called}  return all;
}

}  // namespace fluid
")
