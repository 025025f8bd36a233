# Jemalloc::Jemalloc, the allocator of sluice-server. Linking it replaces malloc in the process.
find_path(Jemalloc_INCLUDE_DIR jemalloc/jemalloc.h)
find_library(Jemalloc_LIBRARY NAMES jemalloc)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(Jemalloc REQUIRED_VARS Jemalloc_LIBRARY Jemalloc_INCLUDE_DIR)
if(Jemalloc_FOUND AND NOT TARGET Jemalloc::Jemalloc)
  add_library(Jemalloc::Jemalloc UNKNOWN IMPORTED)
  set_target_properties(Jemalloc::Jemalloc PROPERTIES
    IMPORTED_LOCATION "${Jemalloc_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${Jemalloc_INCLUDE_DIR}"
    INTERFACE_COMPILE_DEFINITIONS SLUICE_JEMALLOC=1)
endif()
mark_as_advanced(Jemalloc_INCLUDE_DIR Jemalloc_LIBRARY)
