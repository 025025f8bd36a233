// LuaReply: the sink that turns a command's answer into a Lua value, by Redis's conversion rules.
//
// A handler inside a script writes into it, so that no RESP stands between. Values are built on a
// Lua thread of their own (one for each Lua state, with room for the deepest answer), because the
// script's own stack may be filled with arguments to its limit; the caller then moves the one
// result over. REQUIRES: the state's memory limit is suspended: an allocation that fails here would
// unwind through a handler in the middle of a change. An answer for which there is no room is
// dropped instead, and what is still to come of it.
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
  // Room that the thread's stack must have: an open container takes at most three slots.
  static constexpr int kStackSlots = 3 * static_cast<int>(kMaxDepth) + 16;

  // `stack`: the Lua thread of `machine` to build on; it stays empty between two answers.
  void attach(LuaMachine& machine, lua_State* stack) {
    machine_ = &machine;
    stack_ = stack;
  }
  void begin(int protocol) {
    protocol_ = protocol;
    failed_ = false;
    dropped_ = false;
  }
  // There was no room for the answer: nothing stands on the stack.
  bool dropped() const { return dropped_; }
  // The whole answer is an error.
  bool failed() const { return failed_; }
  // Every container is closed: exactly one value stands on the stack, unless it was dropped.
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
  void close_set(size_t mark, size_t count) override;
  int protocol() const override { return protocol_; }

 private:
  enum class Kind : uint8_t { kArray, kMap, kSet };
  // A container whose elements are still coming; its table is on the stack.
  struct Frame {
    Kind kind;
    size_t left;  // values that are missing
    int index;    // of the last element of an array
  };

  // False: there is no room for so many bytes more, and the answer is dropped.
  bool has_room(size_t bytes);
  void open(Kind kind, size_t values);
  // A value is complete on top of the stack: puts it into its container, if there is one.
  void value_done() {
    if (depth_ != 0) put_into_container();
  }
  void put_into_container();
  void close_frame();
  // Takes `mark`'s frame, which collected `values` values as an array, off.
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
