#include "engine/structures/hyperloglog.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace sluice::hyperloglog {

namespace {

constexpr Bytes kMagic = "HYLL";
constexpr size_t kEncodingOffset = 4;
constexpr char kDense = 0;
constexpr char kSparse = 1;
constexpr uint32_t kIndexBits = 14;
constexpr uint32_t kRankBits = 64 - kIndexBits;
constexpr uint32_t kMaxShortZeros = 64;
constexpr uint32_t kMaxEqual = 4;
constexpr uint8_t kMaxSparseRank = 32;

uint8_t byte_at(Bytes bytes, size_t at) { return static_cast<uint8_t>(bytes[at]); }

// MurmurHash64A.
uint64_t murmur_hash(Bytes bytes, uint64_t seed) {
  constexpr uint64_t kFactor = 0xc6a4a7935bd1e995;
  constexpr int kShift = 47;
  uint64_t hash = seed ^ (bytes.size() * kFactor);
  for (; bytes.size() >= sizeof(uint64_t); bytes.remove_prefix(sizeof(uint64_t))) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof(word));
    word *= kFactor;
    word ^= word >> kShift;
    hash = (hash ^ word * kFactor) * kFactor;
  }
  if (!bytes.empty()) {
    uint64_t rest = 0;
    std::memcpy(&rest, bytes.data(), bytes.size());
    hash = (hash ^ rest) * kFactor;
  }
  hash = (hash ^ hash >> kShift) * kFactor;
  return hash ^ hash >> kShift;
}

// A run of equal registers of a sparse value.
struct Run {
  uint32_t registers = 0;
  uint8_t rank = 0;
  uint8_t bytes = 1;
};

Run run_at(Bytes value, size_t at) {
  const uint8_t byte = byte_at(value, at);
  if ((byte & 0x80) != 0) return {(byte & 3U) + 1, static_cast<uint8_t>((byte >> 2 & 31) + 1), 1};
  if ((byte & 0x40) == 0) return {byte + 1U, 0, 1};
  // A string in Redis ends with a zero byte, even one that has been cut within a run.
  const unsigned low = at + 1 < value.size() ? byte_at(value, at + 1) : 0;
  return {((byte & 0x3fU) << 8 | low) + 1, 0, 2};
}

void append_run(std::string& runs, uint32_t registers, uint8_t rank) {
  if (registers == 0) return;
  const uint32_t rest = registers - 1;
  if (rank != 0) {
    runs.push_back(static_cast<char>(0x80 | (rank - 1) << 2 | rest));
  } else if (registers <= kMaxShortZeros) {
    runs.push_back(static_cast<char>(rest));
  } else {
    runs.push_back(static_cast<char>(0x40 | rest >> 8));
    runs.push_back(static_cast<char>(rest & 0xff));
  }
}

void set_dense_register(std::string& value, uint32_t index, uint8_t rank) {
  const size_t bit = size_t{index} * 6;
  const size_t at = kHeaderBytes + bit / 8;
  const unsigned shift = bit % 8;
  const auto put = [&](size_t byte, unsigned mask, unsigned bits) {
    value[byte] = static_cast<char>((byte_at(value, byte) & ~mask) | bits);
  };
  put(at, 63U << shift & 0xff, static_cast<unsigned>(rank) << shift & 0xff);
  if (shift > 2) put(at + 1, 63U >> (8 - shift), static_cast<unsigned>(rank) >> (8 - shift));
}

Change raise_dense_register(std::string& value, const Place& place) {
  if (dense_register(value, place.index) >= place.rank) return Change::kNone;
  set_dense_register(value, place.index, place.rank);
  forget_count(value);
  return Change::kChanged;
}

// Joins equal neighbouring runs from `at` on, over as many runs as Redis looks at.
void join_runs(std::string& value, size_t at) {
  constexpr int kLooks = 5;
  for (int look = 0; look < kLooks && at < value.size(); ++look) {
    const Run run = run_at(value, at);
    if (run.rank == 0) {
      at += run.bytes;
      continue;
    }
    const Run next = at + 1 < value.size() ? run_at(value, at + 1) : Run();
    if (next.rank == run.rank && run.registers + next.registers <= kMaxEqual) {
      std::string joined;
      append_run(joined, run.registers + next.registers, run.rank);
      value.replace(at, 2, joined);
    } else {
      ++at;
    }
  }
}

Change raise_sparse_register(std::string& value, const Place& place, size_t max_bytes) {
  const auto promote = [&] {
    return make_dense(value) ? raise_dense_register(value, place) : Change::kDamaged;
  };
  if (place.rank > kMaxSparseRank) return promote();
  size_t before = kHeaderBytes;  // the run before the one that has the register
  size_t at = kHeaderBytes;
  uint32_t first = 0;
  Run run;
  for (; at < value.size(); at += run.bytes) {
    run = run_at(value, at);
    if (place.index < first + run.registers) break;
    before = at;
    first += run.registers;
  }
  if (at >= value.size()) return Change::kDamaged;
  if (run.rank >= place.rank) return Change::kNone;
  std::string runs;
  append_run(runs, place.index - first, run.rank);
  append_run(runs, 1, place.rank);
  append_run(runs, first + run.registers - 1 - place.index, run.rank);
  const size_t size = value.size() + runs.size() - run.bytes;
  if (size > value.size() && size > max_bytes) return promote();
  value.replace(at, run.bytes, runs);
  value.resize(size);
  join_runs(value, before);
  forget_count(value);
  return Change::kChanged;
}

// Calls visit(first register, run) for each run. Returns false if they do not cover kRegisters
// registers.
template <class Visit>
bool for_each_run(Bytes value, Visit visit) {
  uint32_t first = 0;
  for (size_t at = kHeaderBytes; at < value.size();) {
    const Run run = run_at(value, at);
    if (first + run.registers > kRegisters) return false;
    visit(first, run);
    first += run.registers;
    at += run.bytes;
  }
  return first == kRegisters;
}

// The number of registers for each rank.
using Histogram = std::array<uint32_t, 64>;

// The two series of O. Ertl, "New cardinality estimation algorithms for HyperLogLog sketches",
// 2017: one for registers that are zero, one for those that are saturated.
double sigma(double x) {
  if (x == 1) return std::numeric_limits<double>::infinity();
  double sum = x;
  double before;
  double weight = 1;
  do {
    x *= x;
    before = sum;
    sum += x * weight;
    weight += weight;
  } while (sum != before);
  return sum;
}

double tau(double x) {
  if (x == 0 || x == 1) return 0;
  double sum = 1 - x;
  double before;
  double weight = 1;
  do {
    x = std::sqrt(x);
    before = sum;
    weight *= 0.5;
    sum -= std::pow(1 - x, 2) * weight;
  } while (sum != before);
  return sum / 3;
}

uint64_t estimate(const Histogram& histogram) {
  constexpr double kAlpha = 0.721347520444481703680;  // 1 / (2 ln 2)
  constexpr double kCount = kRegisters;
  double sum = kCount * tau((kCount - histogram[kRankBits + 1]) / kCount);
  for (uint32_t rank = kRankBits; rank >= 1; --rank) {
    sum += histogram[rank];
    sum *= 0.5;
  }
  sum += kCount * sigma(histogram[0] / kCount);
  return static_cast<uint64_t>(std::llround(kAlpha * kCount * kCount / sum));
}

}  // namespace

Place place_of(Bytes element) {
  constexpr uint64_t kSeed = 0xadc83b19;
  const uint64_t hash = murmur_hash(element, kSeed);
  // A sentinel bit after the last one bounds the rank.
  const uint64_t rest = hash >> kIndexBits | uint64_t{1} << kRankBits;
  return {static_cast<uint32_t>(hash & (kRegisters - 1)),
          static_cast<uint8_t>(std::countr_zero(rest) + 1)};
}

std::string make_empty() {
  std::string value(kHeaderBytes, '\0');
  value.replace(0, kMagic.size(), kMagic);
  value[kEncodingOffset] = kSparse;
  append_run(value, kRegisters, 0);
  return value;
}

bool is_valid(Bytes value) {
  if (value.size() < kHeaderBytes || !value.starts_with(kMagic)) return false;
  const char encoding = value[kEncodingOffset];
  return encoding == kSparse || (encoding == kDense && value.size() == kDenseBytes);
}

bool is_dense(Bytes value) { return value[kEncodingOffset] == kDense; }

uint8_t dense_register(Bytes value, uint32_t index) {
  const size_t bit = size_t{index} * 6;
  const size_t at = kHeaderBytes + bit / 8;
  const unsigned shift = bit % 8;
  unsigned rank = byte_at(value, at) >> shift;
  if (shift > 2) rank |= static_cast<unsigned>(byte_at(value, at + 1)) << (8 - shift);
  return static_cast<uint8_t>(rank & 63);
}

Change raise_register(std::string& value, const Place& place, size_t max_sparse_bytes) {
  return is_dense(value) ? raise_dense_register(value, place)
                         : raise_sparse_register(value, place, max_sparse_bytes);
}

bool make_dense(std::string& value) {
  if (is_dense(value)) return true;
  std::string dense(value, 0, kHeaderBytes);
  dense[kEncodingOffset] = kDense;
  dense.resize(kDenseBytes);
  const bool whole = for_each_run(value, [&](uint32_t first, const Run& run) {
    for (uint32_t i = 0; run.rank != 0 && i < run.registers; ++i) {
      set_dense_register(dense, first + i, run.rank);
    }
  });
  if (whole) value = std::move(dense);
  return whole;
}

void forget_count(std::string& value) {
  char& highest = value[kCountOffset + kCountBytes - 1];
  highest = static_cast<char>(highest | 0x80);
}

bool merge(Bytes value, Registers& registers) {
  const auto raise = [&](uint32_t index, uint8_t rank) {
    registers[index] = std::max(registers[index], rank);
  };
  if (is_dense(value)) {
    for (uint32_t i = 0; i < kRegisters; ++i) raise(i, dense_register(value, i));
    return true;
  }
  return for_each_run(value, [&](uint32_t first, const Run& run) {
    for (uint32_t i = 0; run.rank != 0 && i < run.registers; ++i) raise(first + i, run.rank);
  });
}

std::optional<uint64_t> last_count(Bytes value) {
  uint64_t count;
  std::memcpy(&count, value.data() + kCountOffset, sizeof(count));
  if (count >> 63 != 0) return std::nullopt;
  return count;
}

std::optional<uint64_t> count(Bytes value) {
  Histogram histogram{};
  if (is_dense(value)) {
    for (uint32_t i = 0; i < kRegisters; ++i) ++histogram[dense_register(value, i)];
    return estimate(histogram);
  }
  const bool whole =
      for_each_run(value, [&](uint32_t, const Run& run) { histogram[run.rank] += run.registers; });
  if (!whole) return std::nullopt;
  return estimate(histogram);
}

uint64_t count(const Registers& registers) {
  Histogram histogram{};
  for (const uint8_t rank : registers) ++histogram[rank];
  return estimate(histogram);
}

std::array<char, kCountBytes> encode_count(uint64_t count) {
  std::array<char, kCountBytes> bytes;
  std::memcpy(bytes.data(), &count, sizeof(count));
  return bytes;
}

std::string describe_runs(Bytes value) {
  std::string text;
  for (size_t at = kHeaderBytes; at < value.size();) {
    const Run run = run_at(value, at);
    const std::string registers = std::to_string(run.registers);
    if (!text.empty()) text += ' ';
    if (run.rank != 0) {
      text += "v:" + std::to_string(run.rank) + "," + registers;
    } else {
      text += (run.bytes == 2 ? "Z:" : "z:") + registers;
    }
    at += run.bytes;
  }
  return text;
}

std::string self_test() {
  constexpr size_t kSparseBytes = 3000;
  constexpr uint64_t kElements = 30'000;
  constexpr double kErrors = 6;  // A count may be off by this multiple of the standard error.
  std::string sparse = make_empty();
  std::string dense = sparse;
  make_dense(dense);
  uint64_t next_check = 1;
  for (uint64_t i = 1; i <= kElements; ++i) {
    const Place place = place_of(std::to_string(i));
    const bool sparse_changed = raise_register(sparse, place, kSparseBytes) == Change::kChanged;
    const bool dense_changed = raise_register(dense, place, kSparseBytes) == Change::kChanged;
    if (sparse_changed != dense_changed || dense_register(dense, place.index) < place.rank) {
      return "the encodings differ after " + std::to_string(i) + " elements";
    }
    if (i != next_check) continue;
    next_check *= 10;
    Registers registers{};
    if (!merge(sparse, registers) || count(sparse) != count(dense) ||
        count(registers) != count(dense)) {
      return "the counts of " + std::to_string(i) + " elements differ";
    }
    const double error = std::abs(static_cast<double>(*count(dense)) - static_cast<double>(i));
    const double bound = kErrors * 1.04 / std::sqrt(double{kRegisters}) * static_cast<double>(i);
    if (error > std::ceil(bound)) return "too large an error at " + std::to_string(i);
  }
  return {};
}

}  // namespace sluice::hyperloglog
