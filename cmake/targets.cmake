# Turns a folder of sources into a target. Every function here does nothing if its sources do not
# exist, so that any subset of the tree can be configured and built.

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/bin")
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY "${PROJECT_BINARY_DIR}/lib")

set(SLUICE_LIBRARIES "")

# With clang's instrumentation, parsing the standard library's headers takes a third of the time of
# a source. Only sanitizer builds precompile them: in other builds a source that does not include
# what it uses is an error, and ccache works better without.
function(sluice_precompile target)
  if(SLUICE_SANITIZE)
    target_precompile_headers(${target} PRIVATE <algorithm> <array> <atomic> <bit> <charconv>
      <chrono> <cmath> <condition_variable> <cstdint> <cstring> <deque> <functional> <limits> <map>
      <memory> <mutex> <optional> <random> <set> <span> <string> <string_view> <thread> <tuple>
      <unordered_map> <utility> <vector> ${ARGN})
  endif()
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
  sluice_precompile(${target})
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
