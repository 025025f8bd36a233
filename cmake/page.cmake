# The live page (page/): bundled by node at build time and embedded in the server. tools/setup
# installs what bundling needs (npm ci --prefix page), so a build contacts no registry. If that or
# node is missing, the server says so at /, and everything else is the same.

# Builds with sanitizers or analysers test the server, not its page.
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

# tools/setup creates this lock file in node_modules; when it changes, the page is bundled again.
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
