// Streams: adding, trimming, deleting and reading entries.
#include "engine/commands/streams.h"

#include <algorithm>

#include "engine/commands/stream_ids.h"
#include "engine/keyspace/stream_edits.h"

namespace sluice {

namespace {

// The greatest entry in Redis's listpacks.
constexpr uint64_t kMaxEntryBytes = uint64_t{1} << 30;

struct AddOptions {
  StreamTrim trim;
  bool limit_given = false;
  bool make_stream = true;
  // XADD's id; neither flag: `*`.
  bool id_given = false;
  bool any_sequence = false;
  StreamId id;
  size_t next = 0;  // the argument after the options, which is the id of XADD
};

// Parses MAXLEN or MINID at `at`, which moves to its last argument.
bool parse_trim(const Call& call, StreamTrim::By by, size_t& at, StreamTrim& trim) {
  if (trim.by != StreamTrim::By::kNothing) {
    return fail(call,
                "ERR syntax error, MAXLEN and MINID options at the same time are not compatible");
  }
  trim.approximately = false;
  if (call.args.size() - at > 2 && (call.args[at + 1] == "~" || call.args[at + 1] == "=")) {
    trim.approximately = call.args[++at] == "~";
  }
  ++at;
  trim.by = by;
  if (by == StreamTrim::By::kId) return stream_id_argument(call, at, trim.min_id);
  int64_t length = 0;
  if (!call.integer(at, length)) return false;
  if (length < 0) return fail(call, "ERR The MAXLEN argument must be >= 0.");
  trim.max_length = static_cast<uint64_t>(length);
  return true;
}

// The bound on the work of approximate trimming if the client gives none.
uint64_t default_limit() {
  constexpr uint64_t kMaxLimit = 1'000'000;
  const uint64_t entries = g_stream_node_limits.max_entries;
  if (entries == 0) return 10'000;
  return entries > kMaxLimit / 100 ? kMaxLimit : 100 * entries;
}

bool check_trim(const Call& call, bool adds, AddOptions& options) {
  StreamTrim& trim = options.trim;
  const bool trims = trim.by != StreamTrim::By::kNothing;
  if (trim.limit != 0 && !trims) {
    return fail(call,
                "ERR syntax error, LIMIT cannot be used without specifying a trimming strategy");
  }
  if (!adds && !trims) {
    return fail(call, "ERR syntax error, XTRIM must be called with a trimming strategy");
  }
  if (options.limit_given && !trim.approximately) {
    return fail(call, "ERR syntax error, LIMIT cannot be used without the special ~ option");
  }
  if (!options.limit_given) trim.limit = trim.approximately ? default_limit() : 0;
  return true;
}

// Parses the options of XADD and XTRIM.
bool parse_options(const Call& call, bool adds, AddOptions& options) {
  size_t at = 2;
  for (; at < call.args.size(); ++at) {
    const bool more = at + 1 < call.args.size();
    if (adds && call.args[at] == "*") break;
    if (more && call.option(at, "MAXLEN")) {
      if (!parse_trim(call, StreamTrim::By::kLength, at, options.trim)) return false;
    } else if (more && call.option(at, "MINID")) {
      if (!parse_trim(call, StreamTrim::By::kId, at, options.trim)) return false;
    } else if (more && call.option(at, "LIMIT")) {
      int64_t limit = 0;
      if (!call.integer(++at, limit)) return false;
      if (limit < 0) return fail(call, "ERR The LIMIT argument must be >= 0.");
      options.trim.limit = static_cast<uint64_t>(limit);
      options.limit_given = true;
    } else if (adds && call.option(at, "NOMKSTREAM")) {
      options.make_stream = false;
    } else if (adds) {
      if (!read_stream_id(call.args[at], options.id, 0, true, &options.any_sequence)) {
        return fail(call, kInvalidStreamId);
      }
      options.id_given = true;
      break;
    } else {
      return fail(call, errors::kSyntax);
    }
  }
  options.next = at;
  return check_trim(call, adds, options);
}

constexpr Bytes kTooLarge = "ERR Elements are too large to be stored";

// Chooses the id of the entry to add. Returns false with the error replied.
bool choose_id(const Call& call, const AddOptions& options, const StreamId& last, StreamId& id) {
  const auto now_ms = static_cast<uint64_t>(call.now_ms());
  if (options.id_given && !options.any_sequence) {
    id = options.id;
  } else if (options.id_given) {
    // Redis has no separate text for this.
    if (last.ms == options.id.ms && last.seq == UINT64_MAX) return fail(call, kTooLarge);
    id = last.ms == options.id.ms ? StreamId{last.ms, last.seq + 1} : options.id;
  } else if (now_ms > last.ms) {
    id = {now_ms, 0};
  } else {
    id = last;
    id.increment();  // the greatest possible id was refused before
  }
  if (id > last) return true;
  return fail(call,
              "ERR The ID specified in XADD is equal or smaller than the target stream top item");
}

}  // namespace

void xadd_command(Call& call) {
  AddOptions options;
  if (!parse_options(call, true, options)) return;
  const size_t first_word = options.next + 1;
  if (call.args.size() < first_word + 2 || (call.args.size() - first_word) % 2 != 0) {
    return call.reply.error("ERR wrong number of arguments for 'xadd' command");
  }
  if (options.id_given && !options.any_sequence && options.id.is_zero()) {
    return call.reply.error("ERR The ID specified in XADD must be greater than 0-0");
  }
  const KeyRef key = call.key(1);
  Found<Entry> entry = call.find(key, Type::kStream);
  if (entry.refused()) return;
  if (entry == nullptr && !options.make_stream) return call.reply.null();
  const StreamId last = entry == nullptr ? StreamId{} : entry->object<Stream>().last_id;
  if (last == StreamId::max()) {
    return call.reply.error(
        "ERR The stream has exhausted the last possible ID, unable to add more items");
  }
  StreamId id;
  if (!choose_id(call, options, last, id)) return;
  const std::span<const Bytes> words = call.args.subspan(first_word);
  uint64_t bytes = 0;
  for (const Bytes word : words) bytes += word.size();
  if (bytes > kMaxEntryBytes) return call.reply.error(kTooLarge);
  Database database = call.database(key);
  if (entry == nullptr) entry = database.create(key, Type::kStream);
  StreamEdits edits(database, key, entry);
  edits.add(id, words);
  reply_stream_id(call.reply, id);
  database.notify(KeyEvent::kXAdd, key.key);
  if (options.trim.by == StreamTrim::By::kNothing) return;
  if (edits.trim(options.trim) != 0) database.notify(KeyEvent::kXTrim, key.key);
}

void xtrim_command(Call& call) {
  AddOptions options;
  if (!parse_options(call, false, options)) return;
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kStream);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  Database database = call.database(key);
  const uint64_t trimmed = StreamEdits(database, key, entry).trim(options.trim);
  if (trimmed != 0) database.notify(KeyEvent::kXTrim, key.key);
  call.reply.integer(static_cast<int64_t>(trimmed));
}

void xdel_command(Call& call) {
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kStream);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.integer(0);
  std::vector<StreamId> ids;
  if (!stream_ids_arguments(call, 2, ids)) return;
  Database database = call.database(key);
  StreamEdits edits(database, key, entry);
  int64_t deleted = 0;
  for (const StreamId& id : ids) deleted += edits.erase(id) ? 1 : 0;
  if (deleted != 0) database.notify(KeyEvent::kXDel, key.key);
  call.reply.integer(deleted);
}

namespace {

void range_generic(Call& call, bool reverse) {
  StreamId from;
  StreamId to;
  if (!interval_start(call, reverse ? 3 : 2, from)) return;
  if (!interval_end(call, reverse ? 2 : 3, to)) return;
  int64_t count = -1;
  for (size_t at = 4; at < call.args.size(); at += 2) {
    if (!call.option(at, "COUNT") || at + 1 >= call.args.size()) {
      return call.reply.error(errors::kSyntax);
    }
    if (!call.integer(at + 1, count)) return;
    count = std::max<int64_t>(count, 0);
  }
  const Found<const Entry> entry = call.find(call.key(1), Type::kStream);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.array(0);
  if (count == 0) return call.reply.null_array();
  reply_stream_range(call.reply, entry->object<Stream>(), from, to,
                     count < 0 ? 0 : static_cast<uint64_t>(count), reverse);
}

}  // namespace

void xrange_command(Call& call) { range_generic(call, false); }
void xrevrange_command(Call& call) { range_generic(call, true); }

void xsetid_command(Call& call) {
  StreamId id;
  StreamId max_deleted;
  int64_t added = -1;
  if (!stream_id_argument(call, 2, id)) return;
  for (size_t at = 3; at < call.args.size(); at += 2) {
    const bool more = at + 1 < call.args.size();
    if (more && call.option(at, "ENTRIESADDED")) {
      if (!call.integer(at + 1, added)) return;
      if (added < 0) return call.reply.error("ERR entries_added must be positive");
    } else if (more && call.option(at, "MAXDELETEDID")) {
      if (!stream_id_argument(call, at + 1, max_deleted)) return;
      if (id < max_deleted) {
        return call.reply.error(
            "ERR The ID specified in XSETID is smaller than the provided max_deleted_entry_id");
      }
    } else {
      return call.reply.error(errors::kSyntax);
    }
  }
  const KeyRef key = call.key(1);
  const Found<Entry> entry = call.find(key, Type::kStream);
  if (entry.refused()) return;
  if (entry == nullptr) return call.reply.error(errors::kNoSuchKey);
  const Stream& stream = entry->object<Stream>();
  if (stream.length() != 0) {
    if (id < stream.last_entry_id()) {
      return call.reply.error(
          "ERR The ID specified in XSETID is smaller than the target stream top item");
    }
    if (added != -1 && stream.length() > static_cast<uint64_t>(added)) {
      return call.reply.error(
          "ERR The entries_added specified in XSETID is smaller than the target stream length");
    }
  }
  Database database = call.database(key);
  StreamEdits(database, key, entry)
      .set_head(id, max_deleted.is_zero() ? stream.max_deleted_id : max_deleted,
                added == -1 ? stream.entries_added : static_cast<uint64_t>(added));
  call.reply.ok();
  database.notify(KeyEvent::kXSetId, key.key);
}

}  // namespace sluice
