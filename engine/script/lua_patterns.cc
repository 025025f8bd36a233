// string.find, match, gmatch and gsub, as in Lua 5.1, with a matcher that can be stopped.
#include <algorithm>
#include <array>
#include <cstring>

#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_pattern.h"
#include "engine/script/lua_sandbox.h"
#include "engine/script/stacked_buffer.h"

namespace sluice {

namespace {

// In a plain search the clock is checked after this many characters.
constexpr size_t kSearchPiece = 4U << 20;
constexpr size_t kShortSearch = 256;

class LuaPatternHost final : public PatternHost {
 public:
  explicit LuaPatternHost(lua_State* lua) : lua_(lua) {}
  void look() override { LuaMachine::of(lua_).look(lua_); }
  [[noreturn]] void fail(const char* message) override {
    luaL_error(lua_, "%s", message);
    __builtin_unreachable();
  }
  // The memory stays on the stack until the function returns.
  void* allocate(size_t bytes) override {
    luaL_checkstack(lua_, 1, "pattern too complex");
    return lua_newuserdata(lua_, bytes);
  }

 private:
  lua_State* const lua_;
};

Bytes check_text(lua_State* lua, int index) {
  size_t size = 0;
  const char* const text = luaL_checklstring(lua, index, &size);
  return {text, size};
}

constexpr std::array<bool, 256> make_magic() {
  std::array<bool, 256> magic{};
  for (const char c : Bytes("^$*+?.([%-")) magic[static_cast<unsigned char>(c)] = true;
  return magic;
}
constexpr std::array<bool, 256> kMagic = make_magic();

// Examines the pattern up to the first NUL, where patterns end.
bool is_plain(Bytes pattern) {
  for (const char c : pattern) {
    if (c == '\0') break;
    if (kMagic[static_cast<unsigned char>(c)]) return false;
  }
  return true;
}

// The start of the search: the optional argument, counted from 1, or from the end if negative.
size_t first_offset(lua_State* lua, Bytes subject) {
  const auto size = static_cast<lua_Integer>(subject.size());
  lua_Integer first = luaL_optinteger(lua, 3, 1);
  if (first < 0) first += size + 1;
  return static_cast<size_t>(std::clamp<lua_Integer>(first - 1, 0, size));
}

// Pushes a capture, or the whole match if there are no captures.
void push_capture(lua_State* lua, const PatternMatcher& matcher, int index, Bytes whole,
                  Bytes subject) {
  if (index >= matcher.capture_count()) {
    if (index != 0) luaL_error(lua, "invalid capture index");
    lua_pushlstring(lua, whole.data(), whole.size());
    return;
  }
  const PatternMatcher::Capture& capture = matcher.capture(index);
  if (capture.size == PatternMatcher::kUnclosed) luaL_error(lua, "unfinished capture");
  if (capture.size == PatternMatcher::kPosition) {
    lua_pushinteger(lua, capture.begin - subject.data() + 1);
  } else {
    lua_pushlstring(lua, capture.begin, static_cast<size_t>(capture.size));
  }
}

// Pushes `count` captures and returns their number.
int push_captures(lua_State* lua, const PatternMatcher& matcher, int count, Bytes whole,
                  Bytes subject) {
  luaL_checkstack(lua, count, "too many captures");
  for (int i = 0; i < count; ++i) push_capture(lua, matcher, i, whole, subject);
  return count;
}

Bytes between(const char* begin, const char* end) {
  return {begin, static_cast<size_t>(end - begin)};
}

// For short searches, which are faster than the preparation of memmem.
size_t search_short(Bytes subject, size_t offset, Bytes wanted) {
  const char* at = subject.data() + offset;
  const char* const last = subject.data() + subject.size() - wanted.size();
  while (at <= last) {
    at = static_cast<const char*>(std::memchr(at, wanted[0], static_cast<size_t>(last - at) + 1));
    if (at == nullptr) break;
    if (std::memcmp(at, wanted.data(), wanted.size()) == 0) {
      return static_cast<size_t>(at - subject.data());
    }
    ++at;
  }
  return Bytes::npos;
}

// The place of the text at or after `offset`, or npos.
size_t search_plain(lua_State* lua, Bytes subject, size_t offset, Bytes wanted) {
  if (wanted.empty()) return offset;
  if (subject.size() - offset < wanted.size()) return Bytes::npos;
  if (subject.size() <= kShortSearch) return search_short(subject, offset, wanted);
  const size_t piece = std::max(kSearchPiece, wanted.size());
  while (subject.size() - offset >= wanted.size()) {
    const size_t size = std::min(subject.size() - offset, piece + wanted.size());
    const void* const found = memmem(subject.data() + offset, size, wanted.data(), wanted.size());
    if (found != nullptr) {
      return static_cast<size_t>(static_cast<const char*>(found) - subject.data());
    }
    if (offset + size == subject.size()) break;
    offset += piece;
    LuaMachine::of(lua).look(lua);
  }
  return Bytes::npos;
}

int find_or_match(lua_State* lua, bool find) {
  const Bytes subject = check_text(lua, 1);
  Bytes pattern = check_text(lua, 2);
  const size_t offset = first_offset(lua, subject);
  if (find && (lua_toboolean(lua, 4) != 0 || is_plain(pattern))) {
    const size_t place = search_plain(lua, subject, offset, pattern);
    if (place == Bytes::npos) {
      lua_pushnil(lua);
      return 1;
    }
    lua_pushinteger(lua, static_cast<lua_Integer>(place + 1));
    lua_pushinteger(lua, static_cast<lua_Integer>(place + pattern.size()));
    return 2;
  }
  const bool anchored = pattern.substr(0, 1) == "^";
  if (anchored) pattern.remove_prefix(1);
  LuaPatternHost host(lua);
  PatternMatcher matcher(subject, pattern, host);
  const char* const end = subject.data() + subject.size();
  const char* at = subject.data() + offset;
  do {
    if (!anchored) at = matcher.candidate(at);
    const char* const match_end = at == nullptr ? nullptr : matcher.match(at);
    if (match_end != nullptr) {
      const int captures = matcher.capture_count();
      const Bytes whole = between(at, match_end);
      if (!find) return push_captures(lua, matcher, std::max(captures, 1), whole, subject);
      luaL_checkstack(lua, 2, "too many captures");
      lua_pushinteger(lua, at - subject.data() + 1);
      lua_pushinteger(lua, match_end - subject.data());
      return 2 + push_captures(lua, matcher, captures, whole, subject);
    }
  } while (at != nullptr && at++ < end && !anchored);
  lua_pushnil(lua);
  return 1;
}

int string_find(lua_State* lua) { return find_or_match(lua, true); }
int string_match(lua_State* lua) { return find_or_match(lua, false); }

// Upvalues: the subject, the pattern, and the offset from which to search.
int next_match(lua_State* lua) {
  size_t size = 0;
  const char* text = lua_tolstring(lua, lua_upvalueindex(1), &size);
  const Bytes subject(text, size);
  text = lua_tolstring(lua, lua_upvalueindex(2), &size);
  LuaPatternHost host(lua);
  PatternMatcher matcher(subject, {text, size}, host);
  const char* const end = subject.data() + subject.size();
  const char* at = subject.data() + lua_tointeger(lua, lua_upvalueindex(3));
  for (; at <= end; ++at) {
    at = matcher.candidate(at);
    if (at == nullptr) break;
    const char* const match_end = matcher.match(at);
    if (match_end == nullptr) continue;
    // Does not find the same empty match twice.
    const ptrdiff_t next = match_end - subject.data() + (match_end == at ? 1 : 0);
    lua_pushinteger(lua, next);
    lua_replace(lua, lua_upvalueindex(3));
    return push_captures(lua, matcher, std::max(matcher.capture_count(), 1), between(at, match_end),
                         subject);
  }
  return 0;
}

int string_gmatch(lua_State* lua) {
  check_text(lua, 1);
  check_text(lua, 2);
  lua_settop(lua, 2);
  lua_pushinteger(lua, 0);
  lua_pushcclosure(lua, next_match, 3);
  return 1;
}

// --- gsub ---

// The state of one call of gsub.
struct Substitution {
  lua_State* lua;
  Bytes subject;
  const PatternMatcher& matcher;
  StackedBuffer& out;
  int type;  // of the replacement, at index 3
};

void append_top(lua_State* lua, StackedBuffer& out) {
  size_t size = 0;
  const char* const text = lua_tolstring(lua, -1, &size);
  out.append({text, size});
  lua_pop(lua, 1);
}

void append_template(const Substitution& work, Bytes whole) {
  size_t size = 0;
  const char* const text = lua_tolstring(work.lua, 3, &size);
  Bytes rest(text, size);
  for (;;) {
    const size_t percent = std::min(rest.find('%'), rest.size());
    work.out.append(rest.substr(0, percent));
    if (percent == rest.size()) return;
    LuaMachine::of(work.lua).pay(work.lua, 1);
    // As in Lua 5.1, a percent sign at the end stands for the NUL after the text.
    const char c = percent + 1 < rest.size() ? rest[percent + 1] : '\0';
    if (c < '0' || c > '9') {
      work.out.append_byte(static_cast<unsigned char>(c));
    } else if (c == '0') {
      work.out.append(whole);
    } else {
      push_capture(work.lua, work.matcher, c - '1', whole, work.subject);
      append_top(work.lua, work.out);
    }
    rest.remove_prefix(std::min(percent + 2, rest.size()));
  }
}

// Appends what the table or the function returns for the match, or the match itself for nil and
// false.
void append_value(const Substitution& work, Bytes whole) {
  lua_State* const lua = work.lua;
  const int depth = enter_callback(lua);
  if (work.type == LUA_TFUNCTION) {
    lua_pushvalue(lua, 3);
    const int count = std::max(work.matcher.capture_count(), 1);
    push_captures(lua, work.matcher, count, whole, work.subject);
    lua_call(lua, count, 1);
  } else {
    push_capture(lua, work.matcher, 0, whole, work.subject);
    lua_gettable(lua, 3);
  }
  LuaMachine::of(lua).depth = depth;
  if (lua_toboolean(lua, -1) == 0) {
    lua_pop(lua, 1);
    work.out.append(whole);
    return;
  }
  if (lua_isstring(lua, -1) == 0) {
    luaL_error(lua, "invalid replacement value (a %s)", luaL_typename(lua, -1));
  }
  append_top(lua, work.out);
}

int string_gsub(lua_State* lua) {
  const Bytes subject = check_text(lua, 1);
  Bytes pattern = check_text(lua, 2);
  const int type = lua_type(lua, 3);
  const int most = luaL_optint(lua, 4, static_cast<int>(subject.size()) + 1);
  luaL_argcheck(
      lua,
      type == LUA_TNUMBER || type == LUA_TSTRING || type == LUA_TFUNCTION || type == LUA_TTABLE, 3,
      "string/function/table expected");
  const bool anchored = pattern.substr(0, 1) == "^";
  if (anchored) pattern.remove_prefix(1);
  lua_settop(lua, 3);
  LuaPatternHost host(lua);
  PatternMatcher matcher(subject, pattern, host);
  StackedBuffer out(lua);
  const Substitution work{lua, subject, matcher, out, type};
  const char* const end = subject.data() + subject.size();
  const char* copied = subject.data();
  const char* at = copied;
  int count = 0;
  while (count < most) {
    if (!anchored) at = matcher.candidate(at);
    if (at == nullptr) break;
    const char* const match_end = matcher.match(at);
    if (match_end != nullptr) {
      ++count;
      out.append(between(copied, at));
      const Bytes whole = between(at, match_end);
      type == LUA_TSTRING || type == LUA_TNUMBER ? append_template(work, whole)
                                                 : append_value(work, whole);
      copied = match_end;
    }
    if (match_end != nullptr && match_end > at) {
      at = match_end;
    } else if (at++ == end) {
      break;
    }
    if (anchored) break;
  }
  out.append(between(copied, end));
  out.push();
  lua_pushinteger(lua, count);
  return 2;
}

}  // namespace

void replace_pattern_functions(lua_State* lua) {
  set_function(lua, "find", string_find);
  set_function(lua, "match", string_match);
  set_function(lua, "gmatch", string_gmatch);
  set_function(lua, "gsub", string_gsub);
}

}  // namespace sluice
