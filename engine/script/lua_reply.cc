#include "engine/script/lua_reply.h"

#include <limits>

#include "engine/script/lua_headers.h"
#include "engine/script/lua_machine.h"
#include "engine/script/lua_result.h"

namespace sluice {

namespace {
// An array whose length is known only at its end.
constexpr size_t kUnknownCount = std::numeric_limits<size_t>::max();
// Lua's tables hold no more; above that they raise an error.
constexpr int kMostValues = 1 << 26;
constexpr size_t kValueBytes = 16;
// Greater than any limit.
constexpr size_t kNoLimit = size_t{1} << 62;
}  // namespace

bool LuaReply::has_room(size_t bytes) {
  if (dropped_) return false;
  const bool fits = depth_ == 0 || frames_[depth_ - 1].index < kMostValues;
  if (fits && machine_->memory().make_room(stack_, bytes)) return true;
  lua_settop(stack_, 0);
  depth_ = 0;
  dropped_ = true;
  return false;
}

// --- Containers ---

void LuaReply::open(Kind kind, size_t values) {
  CHECK(depth_ < kMaxDepth);
  const size_t room = values == kUnknownCount ? 0 : values;
  if (!has_room(room > size_t{kMostValues} ? kNoLimit : room * kValueBytes)) return;
  if (kind == Kind::kArray) {
    lua_createtable(stack_, static_cast<int>(room), 0);
  } else {
    // {map = {...}}: the inner table is filled first.
    lua_createtable(stack_, 0, 1);
    lua_newtable(stack_);
  }
  if (values == 0) {
    if (kind != Kind::kArray) field(kind == Kind::kMap ? "map" : "set");
    value_done();
    return;
  }
  frames_[depth_++] = {kind, values, 0};
}

// Sets the value on top as a field of the table below it.
void LuaReply::field(const char* name) { lua_setfield(stack_, -2, name); }

void LuaReply::put_into_container() {
  Frame& frame = frames_[depth_ - 1];
  if (!has_room(0)) return;
  if (frame.kind == Kind::kArray) {
    lua_rawseti(stack_, -2, ++frame.index);
  } else if (frame.kind == Kind::kSet) {
    lua_pushboolean(stack_, 1);
    lua_rawset(stack_, -3);
  } else if (frame.left % 2 == 1) {
    // A nil cannot be a key. No command replies one.
    if (lua_isnil(stack_, -2)) {
      lua_pop(stack_, 2);
    } else {
      lua_rawset(stack_, -3);
    }
  }
  if (frame.left != kUnknownCount && --frame.left == 0) close_frame();
}

void LuaReply::close_frame() {
  const Kind kind = frames_[--depth_].kind;
  if (kind != Kind::kArray) field(kind == Kind::kMap ? "map" : "set");
  value_done();
}

void LuaReply::array(size_t count) { open(Kind::kArray, count); }

void LuaReply::map(size_t pairs) {
  if (protocol_ == 2) return array(2 * pairs);
  open(Kind::kMap, 2 * pairs);
}

void LuaReply::set(size_t count) {
  if (protocol_ == 2) return array(count);
  open(Kind::kSet, count);
}

size_t LuaReply::open_array() {
  open(Kind::kArray, kUnknownCount);
  return dropped_ ? 0 : depth_ - 1;
}

void LuaReply::end_open_array(size_t mark) {
  CHECK(depth_ != 0 && mark == depth_ - 1 && frames_[mark].left == kUnknownCount);
  --depth_;
}

void LuaReply::close_array(size_t mark, size_t count) {
  if (dropped_) return;
  CHECK(static_cast<size_t>(frames_[mark].index) == count);
  end_open_array(mark);
  value_done();
}

void LuaReply::close_map(size_t mark, size_t pairs) {
  if (protocol_ == 2) return close_array(mark, 2 * pairs);
  if (!has_room(2 * pairs * kValueBytes)) return;
  end_open_array(mark);
  lua_createtable(stack_, 0, static_cast<int>(pairs));
  for (size_t i = 0; i < pairs; ++i) {
    lua_rawgeti(stack_, -2, static_cast<int>(2 * i + 1));
    lua_rawgeti(stack_, -3, static_cast<int>(2 * i + 2));
    lua_rawset(stack_, -3);
  }
  // The table takes the place of the array below it.
  lua_remove(stack_, -2);
  lua_createtable(stack_, 0, 1);
  lua_insert(stack_, -2);
  field("map");
  value_done();
}

// --- Single values ---

void LuaReply::simple(Bytes text) {
  if (!has_room(text.size())) return;
  lua_createtable(stack_, 0, 1);
  lua_pushlstring(stack_, text.data(), text.size());
  field("ok");
  value_done();
}

void LuaReply::error(Bytes message) {
  note_error(message);
  if (depth_ == 0) failed_ = true;
  if (!has_room(message.size())) return;
  push_error(stack_, message, true);
  value_done();
}

void LuaReply::integer(int64_t value) {
  if (dropped_) return;
  lua_pushnumber(stack_, static_cast<lua_Number>(value));
  value_done();
}

void LuaReply::bulk(Bytes bytes) {
  if (!has_room(bytes.size())) return;
  lua_pushlstring(stack_, bytes.data(), bytes.size());
  value_done();
}

void LuaReply::null() {
  if (dropped_) return;
  if (protocol_ == 2) {
    lua_pushboolean(stack_, 0);
  } else {
    lua_pushnil(stack_);
  }
  value_done();
}

void LuaReply::null_array() { null(); }

void LuaReply::number(double value) {
  if (protocol_ == 2) return bulk(format_double(value));
  if (dropped_) return;
  lua_createtable(stack_, 0, 1);
  lua_pushnumber(stack_, value);
  field("double");
  value_done();
}

void LuaReply::boolean(bool value) {
  if (protocol_ == 2) return integer(value ? 1 : 0);
  if (dropped_) return;
  lua_pushboolean(stack_, value ? 1 : 0);
  value_done();
}

void LuaReply::big_number(Bytes digits) {
  if (protocol_ == 2) return bulk(digits);
  if (!has_room(digits.size())) return;
  lua_createtable(stack_, 0, 1);
  lua_pushlstring(stack_, digits.data(), digits.size());
  field("big_number");
  value_done();
}

void LuaReply::verbatim(Bytes format, Bytes text) {
  if (protocol_ == 2) return bulk(text);
  if (!has_room(text.size())) return;
  lua_createtable(stack_, 0, 1);
  lua_createtable(stack_, 0, 2);
  lua_pushlstring(stack_, text.data(), text.size());
  field("string");
  lua_pushlstring(stack_, format.data(), format.size());
  field("format");
  field("verbatim_string");
  value_done();
}

}  // namespace sluice
