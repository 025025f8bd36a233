# LuaCjson::LuaCjson: the cjson module as a C library. Its pkg-config file requires PUC Lua 5.1,
# which would clash with LuaJIT, so header and library are searched for directly. Only lua-cjson.h
# is used from that folder; <lua.h> must come from LuaJIT, whose folder therefore comes first.
find_package(LuaJIT REQUIRED)
find_path(LuaCjson_INCLUDE_DIR lua-cjson.h PATH_SUFFIXES lua5.1)
find_library(LuaCjson_LIBRARY NAMES lua5.1-cjson)
include(FindPackageHandleStandardArgs)
find_package_handle_standard_args(LuaCjson REQUIRED_VARS LuaCjson_LIBRARY LuaCjson_INCLUDE_DIR)
if(LuaCjson_FOUND AND NOT TARGET LuaCjson::LuaCjson)
  add_library(LuaCjson::LuaCjson UNKNOWN IMPORTED)
  set_target_properties(LuaCjson::LuaCjson PROPERTIES
    IMPORTED_LOCATION "${LuaCjson_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${LuaJIT_INCLUDE_DIR};${LuaCjson_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES LuaJIT::LuaJIT)
endif()
mark_as_advanced(LuaCjson_INCLUDE_DIR LuaCjson_LIBRARY)
