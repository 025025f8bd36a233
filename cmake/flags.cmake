# Compiler flags, and the switches that the presets set.

# A project that includes Sluice by add_subdirectory gets libraries and programs.
option(SLUICE_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(SLUICE_BENCH "Build the benchmarks and load programs" ${PROJECT_IS_TOP_LEVEL})
option(SLUICE_FUZZ "Build the fuzz targets (clang only)" OFF)
option(SLUICE_WERROR "Treat warnings in our code as errors" ${PROJECT_IS_TOP_LEVEL})
option(SLUICE_UNITE "Compile sources of a folder together; OFF: each alone, for work on them" ON)
option(SLUICE_SYNTAX_ONLY "Check every source, generate no code, link nothing" OFF)
option(SLUICE_ETCD "Support for a journal in etcd (takes gRPC and protobuf)" ON)
set(SLUICE_SANITIZE "" CACHE STRING "Sanitizers for -fsanitize=, for example address,undefined")

# jemalloc replaces malloc, and so do the sanitizers: never both.
if(SLUICE_SANITIZE OR SLUICE_SYNTAX_ONLY)
  set(jemalloc_default OFF)
else()
  set(jemalloc_default ON)
endif()
option(SLUICE_JEMALLOC "Link sluice-server with jemalloc" ${jemalloc_default})

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

# Line tables are enough for a readable backtrace and a profile, at a tenth of the size of -g.
set(CMAKE_CXX_FLAGS_RELEASE "-O2 -g1")
set(CMAKE_CXX_FLAGS_DEBUG "-O0 -g")
if(SLUICE_SANITIZE)
  # Optimizing instrumented code doubles the build time, and saves less than that in most tests.
  set(CMAKE_CXX_FLAGS_RELEASE "-O0 -g1")
endif()
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(SLUICE_CCACHE ccache)
if(SLUICE_CCACHE AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER AND NOT SLUICE_SYNTAX_ONLY)
  set(CMAKE_CXX_COMPILER_LAUNCHER "${SLUICE_CCACHE}")
endif()

# Use a faster linker if one is installed; the default one also works.
if(NOT SLUICE_SYNTAX_ONLY)
  include(CheckLinkerFlag)
  foreach(linker IN ITEMS mold lld)
    check_linker_flag(CXX "-fuse-ld=${linker}" SLUICE_HAS_LINKER_${linker})
    if(SLUICE_HAS_LINKER_${linker})
      add_link_options("-fuse-ld=${linker}")
      break()
    endif()
  endforeach()
endif()

# A program takes what it uses of a library, not whole objects: those of united sources are large.
add_compile_options(-ffunction-sections -fdata-sections)
add_link_options(-Wl,--gc-sections)

# Flags for our own code. Users of the libraries do not inherit them.
add_library(sluice_flags INTERFACE)
target_compile_options(sluice_flags INTERFACE -Wall -Wextra -Wnon-virtual-dtor
  # clang's -Wshadow includes enumerators of other scopes; we only want what g++'s covers.
  $<$<CXX_COMPILER_ID:GNU>:-Wshadow>
  $<$<CXX_COMPILER_ID:Clang>:-Wthread-safety>)
# A CHECK prints a path relative to the root, whichever machine built it.
target_compile_options(sluice_flags INTERFACE "-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(SLUICE_WERROR)
  target_compile_options(sluice_flags INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Debug" OR SLUICE_SANITIZE)
  target_compile_definitions(sluice_flags INTERFACE _GLIBCXX_ASSERTIONS)
endif()

# Every object must be compiled with the same sanitizers, so the flags are global.
if(SLUICE_SANITIZE)
  add_compile_options("-fsanitize=${SLUICE_SANITIZE}" -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  add_link_options("-fsanitize=${SLUICE_SANITIZE}")
  if(SLUICE_SANITIZE MATCHES "thread")
    add_compile_definitions(SLUICE_TSAN=1)
  elseif(SLUICE_SANITIZE MATCHES "address")
    add_compile_definitions(SLUICE_ASAN=1)
  endif()
endif()
if(SLUICE_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "SLUICE_FUZZ requires clang: use the preset fuzz")
  endif()
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()

# The syntax-only pass keeps the structure of a build, so that dependencies are tracked and only
# changed files are checked again; objects, archives and programs become empty stamps.
if(SLUICE_SYNTAX_ONLY)
  set(stamp "${CMAKE_COMMAND} -E touch")
  set(CMAKE_CXX_COMPILE_OBJECT
    "<CMAKE_CXX_COMPILER> <DEFINES> <INCLUDES> <FLAGS> -fsyntax-only <SOURCE>" "${stamp} <OBJECT>")
  set(CMAKE_CXX_CREATE_STATIC_LIBRARY "${stamp} <TARGET>")
  set(CMAKE_CXX_ARCHIVE_CREATE "${stamp} <TARGET>")
  set(CMAKE_CXX_ARCHIVE_APPEND "${stamp} <TARGET>")
  set(CMAKE_CXX_ARCHIVE_FINISH "${stamp} <TARGET>")
  set(CMAKE_CXX_LINK_EXECUTABLE "${stamp} <TARGET>")
endif()
