// Limits that several folders share, and that clients meet. A limit of one file alone stands there.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr int kDatabases = 16;
inline constexpr int64_t kMaxPort = 65'535;

// --- Numbers ---
// Integers that Lua and JavaScript hold exactly: tokens, and every time (milliseconds). Far from
// what could overflow when it is added to a clock.
inline constexpr int64_t kMaxExact = (int64_t{1} << 53) - 1;
// Times and numbers in records lie within this: any time that a command takes (kMaxExact) and any
// duration beside it. No sum of two of them overflows.
inline constexpr int64_t kMaxRecordedTime = int64_t{1} << 54;

// --- Of a job ---
// Bytes of ids, groups, keys, names and values of tags, workers and request tokens.
inline constexpr size_t kMaxNameBytes = 512;
inline constexpr size_t kMaxKeysOfJob = 4;
inline constexpr size_t kMaxNeeds = 64;
inline constexpr size_t kMaxTags = 16;
inline constexpr int64_t kMaxCost = 1'000'000;
inline constexpr int64_t kMaxRetries = 65'535;
// Texts for people (reasons, errors) are cut at this length, in bytes.
inline constexpr size_t kMaxTextBytes = 4096;
inline constexpr int64_t kMinLeaseMs = 100;
inline constexpr int64_t kMaxLeaseMs = 7LL * 24 * 3600 * 1000;
// The longest duration that a field or an option takes, 100 years: small beside kMaxRecordedTime,
// so that sums with a time stay within it.
inline constexpr int64_t kMaxDurationMs = 100LL * 366 * 24 * 3600 * 1000;

// --- Of a command ---
inline constexpr size_t kMaxMatches = 64;       // MATCH of Q.POP
inline constexpr int64_t kMaxPopCount = 256;    // COUNT of Q.POP
inline constexpr int64_t kMaxPageCount = 1000;  // COUNT of Q.LIST, Q.EVENTS, Q.STATS BY, and LIMIT
// Jobs that one step of a walk looks at.
inline constexpr size_t kMaxExamined = 10'000;
// A step that tells what jobs carry ends behind the job with which that is so much.
inline constexpr size_t kMaxPageBytes = 4U << 20;

}  // namespace sluice
