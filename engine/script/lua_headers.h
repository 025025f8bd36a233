// LuaJIT's headers and cjson's entry point, with C linkage.
#pragma once

#include <lua.hpp>

extern "C" {
#include <lua-cjson.h>
}
