# cmake -DNODE=node -DSOURCE=page -DOUT=folder -P embed_page.cmake: bundles the page into OUT and
# writes it as OUT/page_files.cc (net/admin/page_files.h). NODE may be empty.

set(parts "")
set(rows "")
if(NODE AND EXISTS "${SOURCE}/node_modules/.package-lock.json")
  execute_process(COMMAND "${NODE}" "${SOURCE}/build.mjs" "${OUT}" TIMEOUT 120
    RESULT_VARIABLE result)
  if(NOT result EQUAL 0)
    message(FATAL_ERROR "page/build.mjs failed: ${result}")
  endif()
  foreach(name IN ITEMS index.html app.js app.css icon.svg)
    file(SHA256 "${OUT}/${name}" hash)
    string(SUBSTRING "${hash}" 0 16 etag)
    foreach(packed IN ITEMS "" ".gz")
      file(READ "${OUT}/${name}${packed}" hex HEX)
      string(REGEX REPLACE "(................................)" "\\1\n" hex "${hex}")
      string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," hex "${hex}")
      string(MAKE_C_IDENTIFIER "k_${name}${packed}" identifier)
      string(APPEND parts "constexpr unsigned char ${identifier}[] = {\n${hex}};\n")
    endforeach()
    set(path "/${name}")
    if(name STREQUAL "index.html")
      set(path "/")
    endif()
    string(MAKE_C_IDENTIFIER "k_${name}" identifier)
    string(APPEND rows "    {\"${path}\", \"${etag}\", ${identifier}, ${identifier}_gz},\n")
  endforeach()
  set(body "${parts}\nconstexpr PageFile kFiles[] = {\n${rows}};\n")
  set(value "kFiles")
else()
  message(STATUS "No node, or no page/node_modules (tools/setup): the server has no page")
  file(REMOVE "${OUT}/index.html")  # from an earlier build that had a page
  set(body "")
  set(value "{}")
endif()

file(WRITE "${OUT}/page_files.cc" "// Made by cmake/embed_page.cmake.
#include \"net/admin/page_files.h\"

namespace sluice {

namespace {

${body}
}  // namespace

std::span<const PageFile> page_files() { return ${value}; }

}  // namespace sluice
")
