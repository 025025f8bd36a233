// Ids of stream entries as text, as Redis reads and writes them; and how streams are replied.
#pragma once

#include <cstdint>

#include "engine/execution/call.h"
#include "engine/structures/stream.h"

namespace sluice {

// Reads "ms-seq", or "ms" with `missing_seq`. `any_sequence`, unless null: "ms-*" is allowed, and
// sets it. Not `strict`: "-" and "+" are the lowest and the highest id. False: it is none.
bool read_stream_id(Bytes text, StreamId& id, uint64_t missing_seq, bool strict,
                    bool* any_sequence = nullptr);

// An argument that is a whole id ("5" is "5-0"). False with the error replied.
bool stream_id_argument(const Call& call, size_t argument, StreamId& id);
// The ends of an interval: "-", "+", an id, or "(" before an id that is not in it.
bool interval_start(const Call& call, size_t argument, StreamId& id);
bool interval_end(const Call& call, size_t argument, StreamId& id);
// The arguments from `first` to the end as whole ids.
bool stream_ids_arguments(const Call& call, size_t first, std::vector<StreamId>& ids);

void reply_stream_id(Reply& reply, const StreamId& id);
// An entry: its id, and its fields with their values.
void reply_stream_entry(Reply& reply, const StreamEntry& entry);
// At most `count` entries (0: all) of an interval as one array.
void reply_stream_range(Reply& reply, const Stream& stream, const StreamId& from,
                        const StreamId& to, uint64_t count, bool reverse = false);

// What a C program sees of these bytes, in messages.
Bytes up_to_nul(Bytes text);
// The group of the stream behind `key`; null with NOGROUP or WRONGTYPE replied.
StreamGroup* find_group(const Call& call, const KeyRef& key, Bytes name, Entry*& entry);

inline constexpr Bytes kInvalidStreamId =
    "ERR Invalid stream ID specified as stream command argument";

}  // namespace sluice
