// A log with a checkpoint in several pieces and commits of two units, each with its position in a
// replicated log; and its copy as one string.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/crc32c.h"
#include "storage/copy_stream.h"
#include "storage/group_keys.h"
#include "storage/log_frame.h"
#include "storage/rocksdb_log.h"
#include "tests/support/storage_support.h"

namespace sluice::test {

inline constexpr Lsn kCopiedBegin = 11;  // inside the commit of 11 and 12
inline constexpr Lsn kCopiedLast = 20;

// Unit n sets key n to n.
inline std::string copied_unit(Lsn lsn, uint8_t flags = 0) {
  return unit_of(lsn, encode_record(static_cast<uint32_t>(lsn), lsn, 100), flags);
}

// Frame n of the replicated log holds the commit that ends with lsn 2 n.
inline std::string copied_frame(uint64_t seq, uint32_t previous_chain) {
  const Lsn first = 2 * seq - 1;
  return encode_frame({true, 2, seq, first, first + 1, previous_chain},
                      copied_unit(first) + copied_unit(first + 1));
}

inline LogPosition copied_position(Lsn last) {
  LogPosition position{"cluster", "1", 2, last / 2, last, 0};
  for (uint64_t seq = 1; seq <= position.seq; ++seq) {
    position.chain = extend_chain(position.chain, copied_frame(seq, position.chain));
  }
  return position;
}

inline Status append_copied(Log& log, Lsn first, bool with_position = true) {
  return log.append_commit(first, copied_unit(first) + copied_unit(first + 1), true,
                           with_position ? encode_position(copied_position(first + 1)) : "");
}

// Three pieces with the keys up to `begin`.
inline Status checkpoint_copied(Log& log, uint64_t number, Lsn begin) {
  auto writer = log.start_checkpoint(number);
  if (!writer.ok()) return writer.status();
  CheckpointSummary summary{number, begin, begin + 1, 1, 2, 0, 0, 0};
  for (uint32_t piece = 0; piece < 3; ++piece) {
    std::string bytes(kPieceHeaderBytes, '\0');
    uint32_t records = 0;
    for (Lsn lsn = 1 + piece; lsn <= begin; lsn += 3, ++records) {
      bytes += encode_record(static_cast<uint32_t>(lsn), lsn, 50'000);
    }
    seal_piece(bytes.data(), bytes.size(), {number, piece, records});
    if (Status status = (*writer)->add_piece(piece, bytes); !status.ok()) return status;
    ++summary.pieces;
    summary.records += records;
    summary.bytes += bytes.size();
  }
  if (Status status = (*writer)->finish(summary); !status.ok()) return status;
  return (*writer)->commit();
}

inline std::unique_ptr<Log> make_copied_log(const std::string& directory,
                                            bool with_position = true) {
  RocksdbLogOptions options;
  options.directory = directory;
  auto log = open_rocksdb_log(options);
  bool good = log.ok();
  for (Lsn first = 1; good && first < kCopiedLast; first += 2) {
    good = append_copied(**log, first, with_position).ok();
  }
  good = good && checkpoint_copied(**log, 4, kCopiedBegin).ok();
  return good ? std::move(*log) : nullptr;
}

// The items of the rest of a copy.
inline std::vector<std::string> items_of(CopyReader& reader) {
  std::vector<std::string> items;
  Bytes header;
  Bytes body;
  while (reader.next(header, body)) items.push_back(std::string(header) + std::string(body));
  return items;
}

inline std::string join_items(const std::vector<std::string>& items) {
  std::string all;
  for (const std::string& item : items) all += item;
  return all;
}

inline std::map<uint32_t, uint64_t> copied_state(Lsn last) {
  std::map<uint32_t, uint64_t> state;
  for (Lsn lsn = 1; lsn <= last; ++lsn) state[static_cast<uint32_t>(lsn)] = lsn;
  return state;
}

}  // namespace sluice::test
