// PatternMatcher: the patterns of Lua 5.1, matched in steps that can be counted.
//
// Used by find, match, gmatch and gsub. A match never recurses: alternatives are kept in a list of
// choices, at most one for each item of the pattern, so that neither a long subject nor a long
// pattern uses the thread's stack. Every few thousand steps the host checks the clock and may raise
// an error. As in Redis's Lua 5.1, a pattern ends at its first NUL. Nothing here has a destructor,
// since the host's errors are raised by jumps.
#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/bytes.h"

namespace sluice {

// What a match needs from its caller.
class PatternHost {
 public:
  // Called every few thousand steps. May raise an error.
  virtual void look() = 0;
  // Raises an error in the pattern.
  [[noreturn]] virtual void fail(const char* message) = 0;
  // Returns memory that lives at least as long as the matcher. Raises an error if it cannot.
  virtual void* allocate(size_t bytes) = 0;

 protected:
  ~PatternHost() = default;
};

class PatternMatcher {
 public:
  static constexpr int kMaxCaptures = 32;

  struct Capture {
    const char* begin;
    ptrdiff_t size;  // or one of the two values below
  };
  static constexpr ptrdiff_t kUnclosed = -1;
  static constexpr ptrdiff_t kPosition = -2;

  // `pattern` is without its optional anchor. Both texts must outlive the matcher.
  PatternMatcher(Bytes subject, Bytes pattern, PatternHost& host);

  // Matches at this place of the subject. Returns the end of the match, or null.
  const char* match(const char* at);
  // The first place at or after `at` where a match may begin, or null.
  const char* candidate(const char* at);

  // The captures of the last match.
  int capture_count() const { return capture_count_; }
  const Capture& capture(int index) const { return captures_[index]; }

 private:
  // What to try next if the following items do not match.
  struct Choice {
    enum Kind : uint8_t { kFewer, kMore, kOpened, kClosed };
    const char* at;     // kFewer, kMore: how far the item has matched
    const char* least;  // kFewer: the lower bound for `at`
    const char* item;   // kFewer: the next item; kMore: the item
    const char* next;   // kMore: the `-` after it
    int capture;        // kClosed
    Kind kind;
  };

  void spend(size_t steps) {
    steps_left_ -= static_cast<int64_t>(steps);
    if (steps_left_ <= 0) pause();
  }
  void pause();
  void push(const Choice& choice);
  // Returns to the last choice. False if no choice is left.
  bool back(const char*& at, const char*& item);

  const char* item_end(const char* item);
  const char* set_end(const char* set);
  bool matches_set(unsigned char c, const char* set, const char* set_end);
  bool matches_one(const char* at, const char* item, const char* end);
  template <bool kMatches>
  const char* seek(const char* at, const char* item, const char* end);
  template <bool kMatches>
  const char* seek_set(const char* at, const char* set, const char* set_end);
  const char* run_over(const char* at, const char* item, const char* end);

  // Each matches one item, or a single character with its repetition. Returns false if that fails
  // here.
  bool step(const char*& at, const char*& item);
  bool step_single(const char*& at, const char*& item);
  bool step_escape(const char*& at, const char*& item);
  bool open_capture(const char* at, const char*& item);
  bool close_capture(const char* at, const char*& item);
  bool step_balance(const char*& at, const char*& item);
  bool step_frontier(const char* at, const char*& item);
  bool step_back_reference(const char*& at, const char*& item);

  static constexpr size_t kInlineChoices = 12;

  const char* const begin_;
  const char* const end_;
  const char* const pattern_;
  const char* const pattern_end_;
  PatternHost& host_;
  // Every match begins with a character of the first item, which ends at first_end_ once that is
  // known.
  bool seeks_ = false;
  const char* first_end_ = nullptr;
  int64_t steps_left_;
  int capture_count_ = 0;
  size_t choice_count_ = 0;
  size_t choice_capacity_ = kInlineChoices;
  Choice* choices_ = inline_choices_;
  Capture captures_[kMaxCaptures];
  Choice inline_choices_[kInlineChoices];
};

}  // namespace sluice
