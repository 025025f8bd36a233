// SORT and SORT_RO. The patterns of BY and GET name keys of any shard, so both commands lock every
// shard (see their rows).
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "engine/access/acl.h"
#include "engine/commands/keys.h"
#include "engine/commands/set_order.h"
#include "engine/execution/call.h"
#include "engine/execution/refusal.h"

namespace sluice {

namespace {

struct SortRequest {
  bool descending = false;
  bool alpha = false;
  // Empty: sort by the elements themselves.
  Bytes by;
  // BY has a pattern that does not depend on the element: the order is kept.
  bool unsorted = false;
  int64_t limit_start = 0;
  int64_t limit_count = -1;
  std::vector<Bytes> gets;
  bool store = false;
  Bytes destination;
};

struct SortElement {
  std::string text;
  double score = 0;
  std::optional<std::string> weight;  // BY with ALPHA; empty: the key does not exist
};

bool may_read_every_key(const Call& call) {
  const User* user = call.client.user.get();
  return user == nullptr || user->unrestricted.load(std::memory_order_relaxed) ||
         user->rules()->may_read_every_key(call.command, call.args);
}

bool parse_by(const Call& call, Bytes pattern, SortRequest& request) {
  request.by = pattern;
  // After a pattern that does not depend on the element, later ones do not sort either.
  if (up_to_nul(pattern).find('*') == Bytes::npos) {
    request.unsorted = true;
  } else if (!may_read_every_key(call)) {
    return fail(call, "ERR BY option of SORT denied due to insufficient ACL permissions.");
  }
  return true;
}

bool parse_get(const Call& call, Bytes pattern, SortRequest& request) {
  if (!may_read_every_key(call)) {
    return fail(call, "ERR GET option of SORT denied due to insufficient ACL permissions.");
  }
  request.gets.push_back(pattern);
  return true;
}

bool parse(const Call& call, bool read_only, SortRequest& request) {
  for (size_t at = 2; at < call.args.size(); ++at) {
    const size_t left = call.args.size() - at - 1;
    if (call.option(at, "ASC") || call.option(at, "DESC")) {
      request.descending = call.option(at, "DESC");
    } else if (call.option(at, "ALPHA")) {
      request.alpha = true;
    } else if (call.option(at, "LIMIT") && left >= 2) {
      if (!call.integer(at + 1, request.limit_start)) return false;
      if (!call.integer(at + 2, request.limit_count)) return false;
      at += 2;
    } else if (!read_only && call.option(at, "STORE") && left >= 1) {
      request.store = true;
      request.destination = call.args[++at];
    } else if (call.option(at, "BY") && left >= 1) {
      if (!parse_by(call, call.args[++at], request)) return false;
    } else if (call.option(at, "GET") && left >= 1) {
      if (!parse_get(call, call.args[++at], request)) return false;
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  return true;
}

// The value of a pattern of BY or GET for an element: `#` is the element, `a*b` a string, `a*b->f`
// the field of a hash. Empty if there is no such value.
std::optional<std::string> look_up(Call& call, Bytes pattern, const std::string& element) {
  if (pattern == "#") return element;
  const Bytes visible = up_to_nul(pattern);
  const size_t star = visible.find('*');
  if (star == Bytes::npos) return std::nullopt;
  const size_t arrow = visible.find("->", star + 1);
  const bool has_field = arrow != Bytes::npos && arrow + 2 < visible.size();
  const Bytes field = has_field ? pattern.substr(arrow + 2) : Bytes();
  std::string name(pattern.substr(0, star));
  name += element;
  name += pattern.substr(star + 1, has_field ? arrow - star - 1 : Bytes::npos);
  const KeyRef key(name);
  const Entry* entry = call.read(key);
  if (entry == nullptr) return std::nullopt;
  if (!has_field) {
    if (entry->type() != Type::kString) return std::nullopt;
    return std::string(entry->string());
  }
  if (entry->type() != Type::kHash) return std::nullopt;
  const Field* found = entry->object<Hash>().fields.find(field, hash_bytes(field));
  if (found == nullptr) return std::nullopt;
  return std::string(found->value());
}

// Like strtod: leading blanks are skipped, and an empty text is zero.
std::optional<double> parse_score(const std::string& text) {
  char* end = nullptr;
  errno = 0;
  const double score = std::strtod(text.c_str(), &end);
  const bool good = *end == '\0' && errno != ERANGE && !std::isnan(score);
  return good ? std::optional(score) : std::nullopt;
}

// The part [start, end) of the result.
struct SortRange {
  size_t start = 0;
  size_t end = 0;
};

SortRange range_of(const SortRequest& request, size_t size) {
  const auto total = static_cast<int64_t>(size);
  const int64_t start = std::min(std::max<int64_t>(request.limit_start, 0), total);
  const int64_t count = std::min(std::max<int64_t>(request.limit_count, -1), total);
  const int64_t end = count < 0 ? total : std::min(start + count, total);
  return {static_cast<size_t>(start), static_cast<size_t>(end)};
}

// The elements in the order of the value. A list or sorted set is reversed for DESC if nothing is
// sorted.
std::vector<SortElement> elements_of(const Entry* entry, bool backwards) {
  std::vector<SortElement> elements;
  const auto add = [&](Bytes text) { elements.push_back({std::string(text), 0, {}}); };
  if (entry == nullptr) return elements;
  if (entry->type() == Type::kSet) {
    for (const Member* member : members_in_order(entry->object<Set>())) add(member->bytes());
    return elements;
  }
  if (entry->type() == Type::kList) {
    for (auto at = entry->object<List>().items.begin(); at.valid(); at.next()) add(at.value());
  } else {
    SortedSet& sorted = entry->object<SortedSet>();
    // Redis converts a sorted set that it sorts to a skip list and keeps it that way.
    sorted.listpack = false;
    for (auto at = sorted.order.begin(); at.valid(); at.next()) add(at.value()->bytes());
  }
  if (backwards) std::reverse(elements.begin(), elements.end());
  return elements;
}

// Fills scores and weights. Returns false if some element is not a number.
bool weigh(Call& call, const SortRequest& request, std::vector<SortElement>& elements) {
  bool numbers = true;
  for (SortElement& element : elements) {
    std::optional<std::string> value =
        request.by.empty() ? element.text : look_up(call, request.by, element.text);
    if (request.alpha) {
      element.weight = std::move(value);
    } else if (value) {
      const auto score = parse_score(*value);
      if (!score) numbers = false;
      element.score = score.value_or(0);
    }
  }
  return numbers;
}

// Without STORE Redis compares texts by the locale: the C locale, up to a NUL.
int compare_texts(const std::string& a, const std::string& b, bool whole) {
  return whole ? a.compare(b) : std::strcmp(a.c_str(), b.c_str());
}

int compare(const SortRequest& request, const SortElement& a, const SortElement& b) {
  if (!request.alpha) {
    if (a.score != b.score) return a.score < b.score ? -1 : 1;
    return a.text.compare(b.text);
  }
  if (!a.weight || !b.weight) return (a.weight ? 1 : 0) - (b.weight ? 1 : 0);
  return compare_texts(*a.weight, *b.weight, request.store);
}

void reply_sorted(Call& call, const SortRequest& request, const std::vector<SortElement>& elements,
                  SortRange range) {
  call.reply.array((range.end - range.start) * std::max<size_t>(request.gets.size(), 1));
  for (size_t i = range.start; i < range.end; ++i) {
    if (request.gets.empty()) call.reply.bulk(elements[i].text);
    for (const Bytes pattern : request.gets) {
      const auto value = look_up(call, pattern, elements[i].text);
      value ? call.reply.bulk(*value) : call.reply.null();
    }
  }
}

void store_sorted(Call& call, const SortRequest& request, std::vector<SortElement>& elements,
                  SortRange range) {
  std::vector<std::string> items;
  for (size_t i = range.start; i < range.end; ++i) {
    if (request.gets.empty()) items.push_back(std::move(elements[i].text));
    for (const Bytes pattern : request.gets) {
      items.push_back(look_up(call, pattern, elements[i].text).value_or(std::string()));
    }
  }
  const KeyRef key(request.destination);
  if (!journal_takes_texts(call, key.key, items)) return;
  Database database = call.database(key);
  Entry* old = database.find(key);
  if (!items.empty()) {
    Entry* entry = database.create(key, Type::kList, old);
    for (const std::string& item : items) database.list_push(key, entry, item, false);
    database.notify(KeyEvent::kSortStore, key.key);
  } else if (old != nullptr) {
    database.remove(key, old);
    database.notify(KeyEvent::kDel, key.key);
  }
  call.reply.integer(static_cast<int64_t>(items.size()));
}

void sort_generic(Call& call, bool read_only) {
  SortRequest request;
  if (!parse(call, read_only, request)) return;
  const Entry* entry = call.read(call.key(1));
  if (entry != nullptr && entry->type() != Type::kList && entry->type() != Type::kSet &&
      entry->type() != Type::kSortedSet) {
    return call.reply.error(errors::kWrongType);
  }
  // A set has no defined order, on which a script or a stored list could depend.
  if (request.unsorted && entry != nullptr && entry->type() == Type::kSet &&
      (request.store || call.client.in_script)) {
    request.unsorted = false;
    request.alpha = true;
    request.by = {};
  }
  std::vector<SortElement> elements = elements_of(entry, request.unsorted && request.descending);
  if (!request.unsorted) {
    if (!weigh(call, request, elements)) {
      return call.reply.error("ERR One or more scores can't be converted into double");
    }
    std::stable_sort(elements.begin(), elements.end(),
                     [&](const SortElement& a, const SortElement& b) {
                       const int order = compare(request, a, b);
                       return request.descending ? order > 0 : order < 0;
                     });
  }
  const SortRange range = range_of(request, elements.size());
  if (request.store) {
    store_sorted(call, request, elements, range);
  } else {
    reply_sorted(call, request, elements, range);
  }
}

}  // namespace

void sort_command(Call& call) { sort_generic(call, false); }
void sort_ro_command(Call& call) { sort_generic(call, true); }

void find_sort_destination(std::span<const Bytes> args, std::vector<KeyPosition>& positions) {
  size_t destination = 0;
  for (size_t at = 2; at < args.size(); ++at) {
    if (equals_ignore_case(args[at], "LIMIT")) {
      at += 2;
    } else if (equals_ignore_case(args[at], "GET") || equals_ignore_case(args[at], "BY")) {
      ++at;
    } else if (equals_ignore_case(args[at], "STORE") && at + 1 < args.size()) {
      destination = ++at;
    }
  }
  if (destination != 0) positions.push_back({destination, kKeyOw | kKeyUpdate});
}

}  // namespace sluice
