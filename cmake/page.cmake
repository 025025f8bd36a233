# The live page (page/): bundled by node at build time and put into the server as bytes. What it is
# bundled with is fetched by tools/setup (npm ci --prefix page), so a build asks no registry; where
# node or that is missing, the server says so at / and all else is the same.

# A sanitizer's or analyser's build tests the server, not its page.
set(page_default ON)
if(SLUICE_SANITIZE OR SLUICE_SYNTAX_ONLY OR SLUICE_FUZZ)
  set(page_default OFF)
endif()
option(SLUICE_PAGE "Bundle the live page, where node is there" ${page_default})

set(SLUICE_NODE "")
if(SLUICE_PAGE)
  find_program(SLUICE_NODE_PROGRAM node)
  if(SLUICE_NODE_PROGRAM)
    set(SLUICE_NODE "${SLUICE_NODE_PROGRAM}")
  endif()
endif()

# The lock in node_modules appears with what tools/setup fetches: then the page is bundled again.
file(GLOB page_sources CONFIGURE_DEPENDS
  "${PROJECT_SOURCE_DIR}/page/*.mjs" "${PROJECT_SOURCE_DIR}/page/*.html"
  "${PROJECT_SOURCE_DIR}/page/*.svg" "${PROJECT_SOURCE_DIR}/page/src/*"
  "${PROJECT_SOURCE_DIR}/page/node_modules/.package-lock.json")
set(page_files "${PROJECT_BINARY_DIR}/page/page_files.cc")
add_custom_command(
  OUTPUT "${page_files}"
  COMMAND "${CMAKE_COMMAND}" "-DNODE=${SLUICE_NODE}" "-DSOURCE=${PROJECT_SOURCE_DIR}/page"
    "-DOUT=${PROJECT_BINARY_DIR}/page" -P "${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake"
  DEPENDS ${page_sources} "${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake"
  COMMENT "Bundling the live page"
  VERBATIM)
target_sources(sluice_server PRIVATE "${page_files}")
