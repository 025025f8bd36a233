# Turns a folder of sources into a target. Every function here does nothing if its sources do not
# exist, so that any subset of the tree can be configured and built.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

set(SLUICE_LIBRARIES "")

# With clang's instrumentation, parsing the standard library's headers takes a third of the time of
# a test. Only sanitizer builds precompile them: in other builds a test that does not include what
# it uses is an error, and ccache works better without.
function(sluice_precompile target)
  if(SLUICE_SANITIZE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <charconv>
      <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <functional> <limits> <map>
      <memory> <mutex> <optional> <random> <set> <span> <string> <string_view> <thread> <tuple>
      <unordered_map> <utility> <vector> ${ARGN})
  endif()
endfunction()

# Compiles the sources of a folder together, a dozen at a time: a whole build spends most of its
# time on headers, and takes half the time so. The syntax-only pass compiles a whole folder at
# once, so it finds every name that is local to two sources of a folder.
function(sluice_unite target)
  if(NOT SLUICE_UNITE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  # g++ takes a class of a united source for one of a header, and would inline less in a large
  # source than in the small ones that it consists of.
  target_compile_options(${target} PRIVATE
    $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage --param=large-unit-insns=1000000>)
  foreach(source IN LISTS ARGN)
    get_filename_component(folder "${source}" DIRECTORY)
    file(RELATIVE_PATH group "${PROJECT_SOURCE_DIR}" "${folder}")
    string(REPLACE "/" "_" group "${group}")
    if(NOT SLUICE_SYNTAX_ONLY)
      math(EXPR part "0${count_${group}} / 12")
      math(EXPR count_${group} "0${count_${group}} + 1")
      string(APPEND group "_${part}")
    endif()
    set_source_files_properties("${source}" PROPERTIES UNITY_GROUP "${group}")
  endforeach()
endfunction()

# sluice_add_library(<folder> [OUTPUT <name>] [WITHOUT <beginning of a path>...]): builds
# <folder>/**/*.cc as the static library sluice_<name>, with the alias sluice::<name>.
function(sluice_add_library folder)
  cmake_parse_arguments(arg "" "OUTPUT" "WITHOUT" ${ARGN})
  set(name "${folder}")
  if(arg_OUTPUT)
    set(name "${arg_OUTPUT}")
  endif()
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  foreach(left_out IN LISTS arg_WITHOUT)
    list(FILTER sources EXCLUDE REGEX "^${PROJECT_SOURCE_DIR}/${left_out}")
  endforeach()
  if(NOT sources)
    message(STATUS "sluice::${name}: no sources in ${folder}/ yet, skipped")
    return()
  endif()
  set(target "sluice_${name}")
  add_library(${target} STATIC ${sources})
  add_library(sluice::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/sluice>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>")
  target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:sluice_flags>)
  sluice_unite(${target} ${sources})
  set(SLUICE_LIBRARIES ${SLUICE_LIBRARIES} ${target} PARENT_SCOPE)
endfunction()

# sluice_link_existing(<target> <PUBLIC|PRIVATE> <library>...): links the libraries that exist.
function(sluice_link_existing target scope)
  foreach(library IN LISTS ARGN)
    if(TARGET ${library})
      target_link_libraries(${target} ${scope} ${library})
    endif()
  endforeach()
endfunction()

# Links a program with our flags and all libraries that exist. Engine and server depend on each
# other's folders in one direction only, so this order is sufficient.
function(sluice_link_everything target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE sluice_flags)
  sluice_link_existing(${target} PRIVATE sluice_server sluice_storage sluice_engine)
  # Tests and benchmarks also include private headers of the libraries.
  target_link_libraries(${target} PRIVATE LuaJIT::LuaJIT Xxhash::Xxhash Threads::Threads)
endfunction()

# The source with main, and other sources of the program.
function(sluice_add_tool name source)
  if(NOT EXISTS "${PROJECT_SOURCE_DIR}/${source}")
    # The glob makes the build check again when the file appears.
    file(GLOB ignored CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${source}")
    message(STATUS "${name}: ${source} does not exist yet, skipped")
    return()
  endif()
  add_executable(${name} "${PROJECT_SOURCE_DIR}/${source}" ${ARGN})
  sluice_link_everything(${name})
  set_target_properties(${name} PROPERTIES GRPC_STATIC ON)
  install(TARGETS ${name} RUNTIME DESTINATION "${CMAKE_INSTALL_BINDIR}" COMPONENT programs)
endfunction()

# One program for each source of the folder, named after it: bench/micro/x.cc -> bin/x.
function(sluice_add_benches folder)
  file(GLOB sources CONFIGURE_DEPENDS "${PROJECT_SOURCE_DIR}/${folder}/*.cc")
  foreach(source IN LISTS sources)
    get_filename_component(stem "${source}" NAME_WE)
    add_executable(bench_${stem} "${source}")
    set_target_properties(bench_${stem} PROPERTIES OUTPUT_NAME "${stem}")
    sluice_link_everything(bench_${stem})
    sluice_link_existing(bench_${stem} PRIVATE sluice_etcd)
    target_link_options(bench_${stem} PRIVATE -Wl,--as-needed)
  endforeach()
endfunction()
