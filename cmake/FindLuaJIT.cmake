# LuaJIT::LuaJIT, linked dynamically: lua-cjson resolves its Lua symbols from the same library.
find_path(LuaJIT_INCLUDE_DIR luajit.h PATH_SUFFIXES luajit-2.1)
find_library(LuaJIT_LIBRARY NAMES luajit-5.1)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LuaJIT REQUIRED_VARS LuaJIT_LIBRARY LuaJIT_INCLUDE_DIR)
if(LuaJIT_FOUND AND NOT TARGET LuaJIT::LuaJIT)
  add_library(LuaJIT::LuaJIT UNKNOWN IMPORTED)
  set_target_properties(LuaJIT::LuaJIT PROPERTIES
    IMPORTED_LOCATION "${LuaJIT_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LuaJIT_INCLUDE_DIR}")
endif()
mark_as_advanced(LuaJIT_INCLUDE_DIR LuaJIT_LIBRARY)
