#include "engine/commands/stream_ids.h"

#include <cerrno>
#include <charconv>
#include <cstdlib>

namespace sluice {

namespace {

constexpr size_t kMaxIdText = 127;

// Parses a number as Redis does here: strictly, else like strtoull, which accepts leading blanks, a
// sign and zeros.
bool read_part(const char* text, uint64_t& number) {
  if (const auto strict = parse_i64(text)) {
    number = static_cast<uint64_t>(*strict);
    return *strict >= 0;
  }
  errno = 0;
  char* stop = nullptr;
  number = std::strtoull(text, &stop, 10);
  return errno == 0 && *text != 0 && *stop == 0;
}

}  // namespace

bool read_stream_id(Bytes text, StreamId& id, uint64_t missing_seq, bool strict,
                    bool* any_sequence) {
  if (text.size() > kMaxIdText) return false;
  char copy[kMaxIdText + 1];
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = 0;
  const bool is_sign = (copy[0] == '-' || copy[0] == '+') && copy[1] == 0;
  if (is_sign && strict) return false;
  if (any_sequence != nullptr) *any_sequence = false;
  if (is_sign) {
    id = copy[0] == '-' ? StreamId{} : StreamId::max();
    return true;
  }
  char* dash = std::strchr(copy, '-');
  if (dash != nullptr) *dash = 0;
  if (!read_part(copy, id.ms)) return false;
  if (dash == nullptr) {
    id.seq = missing_seq;
    return true;
  }
  if (any_sequence != nullptr && dash[1] == '*' && dash[2] == 0) {
    id.seq = 0;
    *any_sequence = true;
    return true;
  }
  return read_part(dash + 1, id.seq);
}

bool stream_id_argument(const Call& call, size_t argument, StreamId& id) {
  if (read_stream_id(call.args[argument], id, 0, true)) return true;
  return fail(call, kInvalidStreamId);
}

namespace {

// Parses an end of an interval; `open`: the end is excluded.
bool interval_end_of(const Call& call, size_t argument, uint64_t missing_seq, StreamId& id,
                     bool& open) {
  Bytes text = call.args[argument];
  open = text.size() > 1 && text[0] == '(';
  if (open) text.remove_prefix(1);
  if (read_stream_id(text, id, missing_seq, open)) return true;
  return fail(call, kInvalidStreamId);
}

}  // namespace

bool interval_start(const Call& call, size_t argument, StreamId& id) {
  bool open = false;
  if (!interval_end_of(call, argument, 0, id, open)) return false;
  if (!open || id.increment()) return true;
  return fail(call, "ERR invalid start ID for the interval");
}

bool interval_end(const Call& call, size_t argument, StreamId& id) {
  bool open = false;
  if (!interval_end_of(call, argument, UINT64_MAX, id, open)) return false;
  if (!open || id.decrement()) return true;
  return fail(call, "ERR invalid end ID for the interval");
}

bool stream_ids_arguments(const Call& call, size_t first, std::vector<StreamId>& ids) {
  ids.resize(call.args.size() - first);
  for (size_t i = 0; i < ids.size(); ++i) {
    if (!stream_id_argument(call, first + i, ids[i])) return false;
  }
  return true;
}

void reply_stream_id(Reply& reply, const StreamId& id) {
  char text[2 * kMaxIntegerText];
  char* to = std::to_chars(text, text + kMaxIntegerText, id.ms).ptr;
  *to++ = '-';
  to = std::to_chars(to, to + kMaxIntegerText, id.seq).ptr;
  reply.bulk({text, static_cast<size_t>(to - text)});
}

void reply_stream_entry(Reply& reply, const StreamEntry& entry) {
  reply.array(2);
  reply_stream_id(reply, entry.id());
  reply.array(2 * entry.field_count());
  entry.each_field([&](Bytes name, Bytes value) {
    reply.bulk(name);
    reply.bulk(value);
  });
}

void reply_stream_range(Reply& reply, const Stream& stream, const StreamId& from,
                        const StreamId& to, uint64_t count, bool reverse) {
  const size_t mark = reply.open_array();
  uint64_t replied = 0;
  const auto visit = [&](const StreamEntry& entry) {
    reply_stream_entry(reply, entry);
    return ++replied != count;
  };
  reverse ? stream.each_reverse(from, to, visit) : stream.each(from, to, visit);
  reply.close_array(mark, replied);
}

StreamGroup* find_group(const Call& call, const KeyRef& key, Bytes name, Entry*& entry) {
  const Found<Entry> found_entry = call.read(key, Type::kStream);
  if (found_entry.refused()) return nullptr;
  entry = found_entry;
  if (entry != nullptr) {
    const auto& groups = entry->object<Stream>().groups;
    if (const auto found = groups.find(name); found != groups.end()) return found->second.get();
  }
  call.reply.error("NOGROUP No such key '" + std::string(up_to_nul(key.key)) +
                   "' or consumer group '" + std::string(up_to_nul(name)) + "'");
  return nullptr;
}

}  // namespace sluice
