// Ids of stream entries as text, in Redis's format; and replies of streams.
#pragma once

#include <cstdint>

#include "engine/execution/call.h"
#include "engine/structures/stream.h"

namespace sluice {

// Parses "ms-seq", or "ms" with `missing_seq`. If `any_sequence` is not null, "ms-*" is allowed and
// sets it. Unless `strict`, "-" and "+" are the lowest and the highest id. Returns false for an
// invalid id.
bool read_stream_id(Bytes text, StreamId& id, uint64_t missing_seq, bool strict,
                    bool* any_sequence = nullptr);

// Parses an argument that is a complete id ("5" is "5-0"). Returns false with the error replied.
bool stream_id_argument(const Call& call, size_t argument, StreamId& id);
// Parse the ends of an interval: "-", "+", an id, or "(" before an excluded id.
bool interval_start(const Call& call, size_t argument, StreamId& id);
bool interval_end(const Call& call, size_t argument, StreamId& id);
// Parses the arguments from `first` to the end as complete ids.
bool stream_ids_arguments(const Call& call, size_t first, std::vector<StreamId>& ids);

void reply_stream_id(Reply& reply, const StreamId& id);
// Replies an entry: its id, and its fields with their values.
void reply_stream_entry(Reply& reply, const StreamEntry& entry);
// Replies at most `count` entries (0: all) of an interval as one array.
void reply_stream_range(Reply& reply, const Stream& stream, const StreamId& from,
                        const StreamId& to, uint64_t count, bool reverse = false);

// The group of the stream at `key`, or null with NOGROUP or WRONGTYPE replied.
StreamGroup* find_group(const Call& call, const KeyRef& key, Bytes name, Entry*& entry);

inline constexpr Bytes kInvalidStreamId =
    "ERR Invalid stream ID specified as stream command argument";

}  // namespace sluice
