#include "engine/script/lua_source.h"

#include <limits>
#include <string>

#include "engine/base/thread.h"
#include "engine/script/lua51_source.h"
#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"

namespace sluice {

namespace {

constexpr int64_t kMostCompileUs = 250'000;
// The compiler gets the source in pieces, and the clocks are checked before each.
constexpr size_t kPieceBytes = 4096;

struct SourceReader {
  Bytes rest;
  int64_t last_us;  // of the thread's processor time
  bool looks;
};

// Errors that are raised here end the compilation, which returns them.
const char* read_piece(lua_State* lua, void* data, size_t* size) {
  auto& reader = *static_cast<SourceReader*>(data);
  if (reader.last_us != std::numeric_limits<int64_t>::max() && Thread::cpu_us() > reader.last_us) {
    lua_pushliteral(lua, "the source takes more than 250 ms to compile");
    lua_error(lua);
  }
  if (reader.looks) LuaMachine::of(lua).look(lua);
  const Bytes piece = reader.rest.substr(0, kPieceBytes);
  reader.rest.remove_prefix(piece.size());
  *size = piece.size();
  return piece.empty() ? nullptr : piece.data();
}

}  // namespace

int load_source(lua_State* lua, Bytes code, const char* name, SourceDialect dialect, bool bounded) {
  if (bounded && code.size() > kMostSourceBytes) {
    lua_pushfstring(lua, "the source is longer than %d bytes", static_cast<int>(kMostSourceBytes));
    return LUA_ERRSYNTAX;
  }
  // A script may be compiled while another one serves sockets. Only source that a running script
  // compiles belongs to its run.
  SourceReader reader{
      .rest = code,
      .last_us = bounded ? Thread::cpu_us() + kMostCompileUs : std::numeric_limits<int64_t>::max(),
      .looks = dialect == SourceDialect::kPlain};
  std::string rewritten;
  if (dialect == SourceDialect::kLua51) {
    rewritten = as_lua51(code);
    reader.rest = rewritten;
  }
  return lua_loadx(lua, read_piece, &reader, name, "t");
}

}  // namespace sluice
