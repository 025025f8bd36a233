#include "engine/script/lua_pattern.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace sluice {

namespace {

constexpr int64_t kStepsPerLook = 10'000;
// In a run of one item the clock is checked after this many characters.
constexpr ptrdiff_t kRunPiece = 64 << 10;
// What costs as much as a step: characters in a run, characters of a set, and characters of
// compared texts.
constexpr size_t kRunPerStep = 4;
constexpr size_t kSetPerStep = 2;
constexpr size_t kComparedPerStep = 64;

enum : uint16_t {
  kAlpha = 1,
  kDigit = 2,
  kLower = 4,
  kUpper = 8,
  kSpace = 16,
  kControl = 32,
  kPunctuation = 64,
  kHex = 128,
  kZero = 256,
};

constexpr std::array<uint16_t, 256> make_classes() {
  std::array<uint16_t, 256> classes{};
  for (int c = 0; c < 128; ++c) {
    uint16_t bits = 0;
    const bool lower = c >= 'a' && c <= 'z';
    const bool upper = c >= 'A' && c <= 'Z';
    const bool digit = c >= '0' && c <= '9';
    if (lower) bits |= kLower | kAlpha;
    if (upper) bits |= kUpper | kAlpha;
    if (digit) bits |= kDigit | kHex;
    if ((c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F')) bits |= kHex;
    if (c == ' ' || (c >= '\t' && c <= '\r')) bits |= kSpace;
    if (c < ' ' || c == 127) bits |= kControl;
    if (c > ' ' && c < 127 && !lower && !upper && !digit) bits |= kPunctuation;
    if (c == 0) bits |= kZero;
    classes[static_cast<size_t>(c)] = bits;
  }
  return classes;
}
constexpr std::array<uint16_t, 256> kClasses = make_classes();

// The class of a lower-case letter after `%`; 0: the letter stands for itself.
constexpr uint16_t class_bits(unsigned char letter) {
  switch (letter) {
    case 'a':
      return kAlpha;
    case 'c':
      return kControl;
    case 'd':
      return kDigit;
    case 'l':
      return kLower;
    case 'p':
      return kPunctuation;
    case 's':
      return kSpace;
    case 'u':
      return kUpper;
    case 'w':
      return kAlpha | kDigit;
    case 'x':
      return kHex;
    case 'z':
      return kZero;
    default:
      return 0;
  }
}

// For each letter its class, and whether it stands for all other characters.
struct LetterClass {
  uint16_t bits = 0;
  bool inverted = false;
};
constexpr std::array<LetterClass, 256> make_letters() {
  std::array<LetterClass, 256> letters{};
  for (int c = 0; c < 256; ++c) {
    const bool upper = c >= 'A' && c <= 'Z';
    const auto lower = static_cast<unsigned char>(upper ? c - 'A' + 'a' : c);
    letters[static_cast<size_t>(c)] = {class_bits(lower), upper};
  }
  return letters;
}
constexpr std::array<LetterClass, 256> kLetters = make_letters();

inline unsigned char byte(char c) { return static_cast<unsigned char>(c); }

inline bool in_class(unsigned char c, unsigned char letter) {
  const LetterClass& letter_class = kLetters[letter];
  if (letter_class.bits == 0) return c == letter;
  return ((kClasses[c] & letter_class.bits) != 0) != letter_class.inverted;
}

// `set_end` is the closing bracket.
inline bool in_set(unsigned char c, const char* set, const char* set_end) {
  bool wanted = true;
  const char* p = set + 1;
  if (*p == '^') {
    wanted = false;
    ++p;
  }
  while (p < set_end) {
    if (*p == '%') {
      if (in_class(c, byte(p[1]))) return wanted;
      p += 2;
    } else if (p[1] == '-' && p + 2 < set_end) {
      if (byte(p[0]) <= c && c <= byte(p[2])) return wanted;
      p += 3;
    } else {
      if (byte(*p) == c) return wanted;
      ++p;
    }
  }
  return !wanted;
}

bool may_be_nothing(char count) { return count == '*' || count == '?' || count == '-'; }

}  // namespace

PatternMatcher::PatternMatcher(Bytes subject, Bytes pattern, PatternHost& host)
    : begin_(subject.data()),
      end_(subject.data() + subject.size()),
      pattern_(pattern.data()),
      pattern_end_(pattern.data() + std::min(pattern.find('\0'), pattern.size())),
      host_(host),
      steps_left_(kStepsPerLook) {
  if (pattern_ == pattern_end_) return;
  constexpr Bytes kNoSingle = "().$";
  if (*pattern_ == '%') {
    const char letter = pattern_ + 1 < pattern_end_ ? pattern_[1] : '\0';
    seeks_ = letter != '\0' && letter != 'b' && letter != 'f' && (letter < '0' || letter > '9');
  } else {
    seeks_ = kNoSingle.find(*pattern_) == Bytes::npos;
  }
}

void PatternMatcher::pause() {
  steps_left_ = kStepsPerLook;
  host_.look();
}

const char* PatternMatcher::candidate(const char* at) {
  if (!seeks_) return at;
  const char* const item = pattern_;
  if (first_end_ == nullptr) {
    first_end_ = item_end(item);
    if (first_end_ < pattern_end_ && may_be_nothing(*first_end_)) {
      seeks_ = false;
      return at;
    }
  }
  at = seek<true>(at, item, first_end_);
  return at == end_ ? nullptr : at;
}

// --- Choices ---

void PatternMatcher::push(const Choice& choice) {
  if (choice_count_ == choice_capacity_) {
    auto* const larger =
        static_cast<Choice*>(host_.allocate(2 * choice_capacity_ * sizeof(Choice)));
    std::memcpy(larger, choices_, choice_count_ * sizeof(Choice));
    choices_ = larger;
    choice_capacity_ *= 2;
  }
  choices_[choice_count_++] = choice;
}

bool PatternMatcher::back(const char*& at, const char*& item) {
  while (choice_count_ > 0) {
    Choice& choice = choices_[choice_count_ - 1];
    switch (choice.kind) {
      case Choice::kFewer:
        at = --choice.at;
        item = choice.item;
        if (at == choice.least) --choice_count_;
        return true;
      case Choice::kMore:
        if (choice.at < end_ && matches_one(choice.at, choice.item, choice.next)) {
          at = ++choice.at;
          item = choice.next + 1;
          return true;
        }
        break;
      case Choice::kOpened:
        --capture_count_;
        break;
      case Choice::kClosed:
        captures_[choice.capture].size = kUnclosed;
        break;
    }
    --choice_count_;
  }
  return false;
}

const char* PatternMatcher::match(const char* at) {
  capture_count_ = 0;
  choice_count_ = 0;
  const char* item = pattern_;
  for (;;) {
    spend(1);
    if (item == pattern_end_) return at;
    if (!step(at, item) && !back(at, item)) return nullptr;
  }
}

// --- Single characters ---

// The end of an item that matches single characters: a character, a class, or a set.
inline const char* PatternMatcher::item_end(const char* item) {
  if (*item == '[') return set_end(item);
  if (*item != '%') return item + 1;
  if (item + 1 == pattern_end_) host_.fail("malformed pattern (ends with '%')");
  return item + 2;
}

const char* PatternMatcher::set_end(const char* set) {
  const char* next = set + 1;
  if (next != pattern_end_ && *next == '^') ++next;
  // A bracket that comes first does not end the set.
  do {
    if (next == pattern_end_) host_.fail("malformed pattern (missing ']')");
    if (*next++ == '%' && next != pattern_end_) ++next;
  } while (next == pattern_end_ || *next != ']');
  spend(static_cast<size_t>(next - set) / kSetPerStep);
  return next + 1;
}

bool PatternMatcher::matches_set(unsigned char c, const char* set, const char* set_end) {
  spend(static_cast<size_t>(set_end - set) / kSetPerStep);
  return in_set(c, set, set_end);
}

inline bool PatternMatcher::matches_one(const char* at, const char* item, const char* end) {
  switch (*item) {
    case '.':
      return true;
    case '%':
      return in_class(byte(*at), byte(item[1]));
    case '[':
      return matches_set(byte(*at), item, end - 1);
    default:
      return *at == *item;
  }
}

// The first place where the item matches (or does not match), or the end. REQUIRES: the item is not
// `.`.
template <bool kMatches>
const char* PatternMatcher::seek(const char* at, const char* item, const char* end) {
  if (*item == '[') return seek_set<kMatches>(at, item, end - 1);
  for (;;) {
    const char* const from = at;
    const char* const limit = at + std::min(end_ - at, kRunPiece);
    if (*item == '%' && kLetters[byte(item[1])].bits != 0) {
      const LetterClass letter = kLetters[byte(item[1])];
      const bool skipped = letter.inverted == kMatches;
      while (at < limit && ((kClasses[byte(*at)] & letter.bits) != 0) == skipped) ++at;
    } else {
      const char literal = *item == '%' ? item[1] : *item;
      if (kMatches) {
        const void* const found = std::memchr(at, literal, static_cast<size_t>(limit - at));
        at = found == nullptr ? limit : static_cast<const char*>(found);
      } else {
        while (at < limit && *at == literal) ++at;
      }
    }
    spend(static_cast<size_t>(at - from) / kRunPerStep);
    if (at < limit || at == end_) return at;
  }
}

template <bool kMatches>
const char* PatternMatcher::seek_set(const char* at, const char* set, const char* set_end) {
  const ptrdiff_t size = set_end - set;
  for (;;) {
    const char* const from = at;
    const char* const limit = at + std::min(end_ - at, kRunPiece / size + 1);
    while (at < limit && in_set(byte(*at), set, set_end) != kMatches) ++at;
    spend(static_cast<size_t>((at - from + 1) * size) / kSetPerStep);
    if (at < limit || at == end_) return at;
  }
}

// The first place that the item does not match.
inline const char* PatternMatcher::run_over(const char* at, const char* item, const char* end) {
  return *item == '.' ? end_ : seek<false>(at, item, end);
}

// --- Items ---

bool PatternMatcher::step(const char*& at, const char*& item) {
  switch (*item) {
    case '(':
      return open_capture(at, item);
    case ')':
      return close_capture(at, item);
    case '%':
      return step_escape(at, item);
    case '$':
      if (item + 1 != pattern_end_) return step_single(at, item);
      ++item;
      return at == end_;
    default:
      return step_single(at, item);
  }
}

bool PatternMatcher::step_escape(const char*& at, const char*& item) {
  const char letter = item + 1 < pattern_end_ ? item[1] : '\0';
  if (letter == 'b') return step_balance(at, item);
  if (letter == 'f') return step_frontier(at, item);
  if (letter >= '0' && letter <= '9') return step_back_reference(at, item);
  return step_single(at, item);
}

bool PatternMatcher::step_single(const char*& at, const char*& item) {
  const char* const next = item_end(item);
  const char count = next < pattern_end_ ? *next : '\0';
  switch (count) {
    case '?':
      if (at < end_ && matches_one(at, item, next)) {
        ++at;
        push({at, at - 1, next + 1, nullptr, 0, Choice::kFewer});
      }
      item = next + 1;
      return true;
    case '*':
    case '+': {
      const char* const least = count == '+' ? at + 1 : at;
      at = run_over(at, item, next);
      if (at < least) return false;
      item = next + 1;
      if (at > least) push({at, least, item, nullptr, 0, Choice::kFewer});
      return true;
    }
    case '-':
      push({at, nullptr, item, next, 0, Choice::kMore});
      item = next + 1;
      return true;
    default:
      if (at == end_ || !matches_one(at, item, next)) return false;
      ++at;
      item = next;
      return true;
  }
}

bool PatternMatcher::open_capture(const char* at, const char*& item) {
  if (capture_count_ == kMaxCaptures) host_.fail("too many captures");
  const bool position = item + 1 < pattern_end_ && item[1] == ')';
  captures_[capture_count_++] = {at, position ? kPosition : kUnclosed};
  push({nullptr, nullptr, nullptr, nullptr, 0, Choice::kOpened});
  item += position ? 2 : 1;
  return true;
}

bool PatternMatcher::close_capture(const char* at, const char*& item) {
  int index = capture_count_ - 1;
  while (index >= 0 && captures_[index].size != kUnclosed) --index;
  if (index < 0) host_.fail("invalid pattern capture");
  captures_[index].size = at - captures_[index].begin;
  push({nullptr, nullptr, nullptr, nullptr, index, Choice::kClosed});
  ++item;
  return true;
}

bool PatternMatcher::step_balance(const char*& at, const char*& item) {
  if (pattern_end_ - item < 4) host_.fail("unbalanced pattern");
  const char open = item[2];
  const char close = item[3];
  if (at == end_ || *at != open) return false;
  int64_t depth = 1;
  for (const char* p = at + 1; p < end_;) {
    const char* const from = p;
    const char* const limit = p + std::min(end_ - p, kRunPiece);
    for (; p < limit; ++p) {
      // If both are the same character, it closes.
      if (*p == close) {
        if (--depth == 0) {
          at = p + 1;
          item += 4;
          return true;
        }
      } else if (*p == open) {
        ++depth;
      }
    }
    spend(static_cast<size_t>(p - from) / kRunPerStep);
  }
  return false;
}

bool PatternMatcher::step_frontier(const char* at, const char*& item) {
  const char* const set = item + 2;
  if (set >= pattern_end_ || *set != '[') host_.fail("missing '[' after '%f' in pattern");
  const char* const next = item_end(set);
  const unsigned char before = at == begin_ ? 0 : byte(at[-1]);
  const unsigned char here = at == end_ ? 0 : byte(*at);
  if (matches_set(before, set, next - 1) || !matches_set(here, set, next - 1)) return false;
  item = next;
  return true;
}

bool PatternMatcher::step_back_reference(const char*& at, const char*& item) {
  const int index = item[1] - '1';
  if (index < 0 || index >= capture_count_ || captures_[index].size == kUnclosed) {
    host_.fail("invalid capture index");
  }
  const Capture& capture = captures_[index];
  if (capture.size == kPosition || end_ - at < capture.size) return false;
  spend(static_cast<size_t>(capture.size) / kComparedPerStep);
  if (std::memcmp(capture.begin, at, static_cast<size_t>(capture.size)) != 0) return false;
  at += capture.size;
  item += 2;
  return true;
}

}  // namespace sluice
