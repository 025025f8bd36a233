#include "storage/format.h"

#include "storage/native_numbers.h"

namespace sluice {
namespace {

constexpr char kPositionSuffix = 'p';

// The payload first, then the rest of the header after the checksum field.
uint32_t sealed_crc(Bytes records, const char* header, size_t header_bytes) {
  return crc32c_extend(crc32c(records), header + 4, header_bytes - 4);
}

}  // namespace

const char* describe(UnitDamage damage) {
  switch (damage) {
    case UnitDamage::kNone:
      return "whole";
    case UnitDamage::kCut:
      return "cut short";
    case UnitDamage::kChecksum:
      return "checksum mismatch";
    case UnitDamage::kVersion:
      return "unknown version";
    case UnitDamage::kFlags:
      return "unknown flags";
  }
  return "?";
}

bool UnitCursor::next() {
  if (damage_ != UnitDamage::kNone) return false;
  offset_ = end_;
  const size_t left = commit_.size() - end_;
  if (left == 0) return false;
  if (left < kUnitHeaderBytes) {
    damage_ = UnitDamage::kCut;
    return false;
  }
  const char* at = commit_.data() + end_;
  header_.crc = load<uint32_t>(at);
  header_.length = load<uint32_t>(at + 4);
  header_.lsn = load<uint64_t>(at + 8);
  header_.time_ms = load<int64_t>(at + 16);
  const uint64_t tail = load<uint64_t>(at + 24);
  header_.records = static_cast<uint32_t>(tail);
  header_.version = static_cast<uint8_t>(tail >> 32);
  header_.flags = static_cast<uint8_t>(tail >> 40);
  if (header_.length > left - kUnitHeaderBytes) {
    damage_ = UnitDamage::kCut;
    return false;
  }
  records_ = commit_.substr(end_ + kUnitHeaderBytes, header_.length);
  const bool is_sound = end_ + kUnitHeaderBytes + header_.length <= sound_;
  // Check the checksum first: in a damaged unit the version means nothing.
  if (!is_sound && header_.crc != sealed_crc(records_, at, kUnitHeaderBytes)) {
    damage_ = UnitDamage::kChecksum;
  } else if (header_.version != kUnitVersion) {
    damage_ = UnitDamage::kVersion;
  } else if ((header_.flags & ~kKnownUnitFlags) != 0 || (tail >> 48) != 0) {
    damage_ = UnitDamage::kFlags;
  }
  if (damage_ != UnitDamage::kNone) return false;
  end_ += kUnitHeaderBytes + header_.length;
  return true;
}

size_t sound_unit_bytes(Bytes commit) {
  UnitCursor cursor(commit);
  while (cursor.next()) {
  }
  return cursor.damage() == UnitDamage::kNone ? commit.size() : cursor.offset();
}

LogKey encode_log_key(Lsn first_lsn) {
  LogKey key;
  store(key.data(), __builtin_bswap64(first_lsn));
  return key;
}

std::optional<Lsn> decode_log_key(Bytes key) {
  if (key.size() != sizeof(LogKey)) return std::nullopt;
  return __builtin_bswap64(load<uint64_t>(key.data()));
}

PositionKey encode_position_key(Lsn first_lsn) {
  PositionKey key;
  store(key.data(), __builtin_bswap64(first_lsn));
  key.back() = kPositionSuffix;
  return key;
}

bool is_position_key(Bytes key) {
  return key.size() == sizeof(PositionKey) && key.back() == kPositionSuffix;
}

PieceKey encode_piece_key(uint64_t checkpoint, uint32_t number) {
  PieceKey key;
  key[0] = kCheckpointPrefix;
  store(key.data() + 1, __builtin_bswap64(checkpoint));
  store(key.data() + 9, __builtin_bswap32(number));
  return key;
}

std::optional<PiecePlace> decode_piece_key(Bytes key) {
  if (key.size() != sizeof(PieceKey) || key[0] != kCheckpointPrefix) return std::nullopt;
  return PiecePlace{__builtin_bswap64(load<uint64_t>(key.data() + 1)),
                    __builtin_bswap32(load<uint32_t>(key.data() + 9))};
}

void seal_piece(char* piece, size_t size, const PieceHeader& header) {
  CHECK(size >= kPieceHeaderBytes && size - kPieceHeaderBytes <= UINT32_MAX);
  const size_t length = size - kPieceHeaderBytes;
  store(piece + 4, static_cast<uint32_t>(length));
  store(piece + 8, header.checkpoint);
  store(piece + 16, header.number);
  store(piece + 20, header.records);
  store(piece + 24, uint64_t{kPieceVersion});
  store(piece, sealed_crc({piece + kPieceHeaderBytes, length}, piece, kPieceHeaderBytes));
}

size_t sound_piece_bytes(Bytes piece) { return open_piece(piece).ok() ? piece.size() : 0; }

Result<OpenedPiece> open_piece(Bytes piece, size_t sound) {
  if (piece.size() < kPieceHeaderBytes ||
      load<uint32_t>(piece.data() + 4) != piece.size() - kPieceHeaderBytes) {
    return damaged("the piece is cut short");
  }
  const Bytes records = piece.substr(kPieceHeaderBytes);
  if (sound < piece.size() &&
      load<uint32_t>(piece.data()) != sealed_crc(records, piece.data(), kPieceHeaderBytes)) {
    return damaged("checksum mismatch");
  }
  if (load<uint64_t>(piece.data() + 24) != kPieceVersion) return damaged("unknown version");
  const PieceHeader header{load<uint64_t>(piece.data() + 8), load<uint32_t>(piece.data() + 16),
                           load<uint32_t>(piece.data() + 20)};
  return OpenedPiece{header, records};
}

std::string encode_summary(const CheckpointSummary& summary) {
  std::string bytes(kSummaryBytes, '\0');
  char* to = bytes.data();
  store(to + 4, uint32_t{kSummaryVersion});
  store(to + 8, summary.checkpoint);
  store(to + 16, summary.begin_lsn);
  store(to + 24, summary.end_lsn);
  store(to + 32, summary.started_ms);
  store(to + 40, summary.finished_ms);
  store(to + 48, summary.pieces);
  store(to + 56, summary.records);
  store(to + 64, summary.bytes);
  store(to, crc32c({to + 4, kSummaryBytes - 4}));
  return bytes;
}

Result<CheckpointSummary> decode_summary(Bytes bytes) {
  if (bytes.size() != kSummaryBytes) return damaged("wrong length of the summary");
  const char* from = bytes.data();
  if (crc32c(bytes.substr(4)) != load<uint32_t>(from)) {
    return damaged("checksum mismatch of the summary");
  }
  if (load<uint32_t>(from + 4) != kSummaryVersion) {
    return damaged("unknown version of the summary");
  }
  CheckpointSummary summary;
  summary.checkpoint = load<uint64_t>(from + 8);
  summary.begin_lsn = load<uint64_t>(from + 16);
  summary.end_lsn = load<uint64_t>(from + 24);
  summary.started_ms = load<int64_t>(from + 32);
  summary.finished_ms = load<int64_t>(from + 40);
  summary.pieces = load<uint64_t>(from + 48);
  summary.records = load<uint64_t>(from + 56);
  summary.bytes = load<uint64_t>(from + 64);
  return summary;
}

std::array<char, kMarkBytes> encode_mark(Lsn lsn) {
  std::array<char, kMarkBytes> bytes;
  store(bytes.data(), lsn);
  store(bytes.data() + 8, crc32c({bytes.data(), 8}));
  store(bytes.data() + 12, kMarkMagic);
  return bytes;
}

std::optional<Lsn> decode_mark(Bytes bytes) {
  if (bytes.size() != kMarkBytes ||
      load<uint32_t>(bytes.data() + 8) != crc32c(bytes.substr(0, 8)) ||
      load<uint32_t>(bytes.data() + 12) != kMarkMagic) {
    return std::nullopt;
  }
  return load<uint64_t>(bytes.data());
}

}  // namespace sluice
