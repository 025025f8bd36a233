// LuaReply: the sink that turns a command's answer into a Lua value, by Redis's conversion rules.
//
// A handler inside a script writes into it without encoding RESP. Values are built on a separate
// Lua thread (one for each Lua state, with room for the deepest answer), because arguments may have
// filled the script's own stack; the caller then moves the one result over. REQUIRES: the state's
// memory limit is suspended, because an allocation that fails here would unwind a handler in the
// middle of a change. An answer that does not fit is dropped instead, including the part that is
// still to come.
#pragma once

#include <array>

#include "engine/reply/reply.h"

struct lua_State;

namespace sluice {

class LuaMachine;

class LuaReply final : public Reply {
 public:
  // Deeper than any answer (COMMAND DOCS has ten levels).
  static constexpr size_t kMaxDepth = 32;
  // The stack slots that the thread must have: an open container takes at most three.
  static constexpr int kStackSlots = 3 * static_cast<int>(kMaxDepth) + 16;

  // `stack`: the Lua thread of `machine` to build on. It is empty between two answers.
  void attach(LuaMachine& machine, lua_State* stack) {
    machine_ = &machine;
    stack_ = stack;
  }
  void begin(int protocol) {
    protocol_ = protocol;
    failed_ = false;
    dropped_ = false;
  }
  // The answer did not fit: the stack is empty.
  bool dropped() const { return dropped_; }
  // The whole answer is an error.
  bool failed() const { return failed_; }
  // Every container is closed: exactly one value is on the stack, unless it was dropped.
  bool complete() const { return depth_ == 0; }

  void simple(Bytes text) override;
  void error(Bytes message) override;
  void integer(int64_t value) override;
  void bulk(Bytes bytes) override;
  void null() override;
  void null_array() override;
  void array(size_t count) override;
  void map(size_t pairs) override;
  void set(size_t count) override;
  void push(size_t count) override { array(count); }
  void number(double value) override;
  void boolean(bool value) override;
  void big_number(Bytes digits) override;
  void verbatim(Bytes format, Bytes text) override;
  size_t open_array() override;
  void close_array(size_t mark, size_t count) override;
  void close_map(size_t mark, size_t pairs) override;
  int protocol() const override { return protocol_; }

 private:
  enum class Kind : uint8_t { kArray, kMap, kSet };
  // An open container, whose table is on the stack.
  struct Frame {
    Kind kind;
    size_t left;  // values that are still to come
    int index;    // of the last element of an array
  };

  // Returns false if there is no room for this many more bytes; the answer is dropped then.
  bool has_room(size_t bytes);
  void open(Kind kind, size_t values);
  // A complete value is on top of the stack: puts it into its container, if any.
  void value_done() {
    if (depth_ != 0) put_into_container();
  }
  void put_into_container();
  void close_frame();
  // Removes `mark`'s frame, which has collected `values` values as an array.
  void end_open_array(size_t mark);
  void field(const char* name);

  LuaMachine* machine_ = nullptr;
  lua_State* stack_ = nullptr;
  int protocol_ = 2;
  bool dropped_ = false;
  bool failed_ = false;
  size_t depth_ = 0;
  std::array<Frame, kMaxDepth> frames_;
};

}  // namespace sluice
