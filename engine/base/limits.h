// Limits that several folders share, and limits that clients meet. A limit that only one file uses
// is defined in that file.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sluice {

inline constexpr int kDatabases = 16;
inline constexpr int64_t kMaxPort = 65'535;

// --- Numbers ---
// The largest integer that Lua and JavaScript hold exactly. It bounds tokens and every time in
// milliseconds, and adding it to a clock cannot overflow.
inline constexpr int64_t kMaxExact = (int64_t{1} << 53) - 1;
// Bounds times and numbers in records: any time that a command takes (kMaxExact) plus any duration.
// No sum of two of them overflows.
inline constexpr int64_t kMaxRecordedTime = int64_t{1} << 54;

// --- Of a job ---
// Bytes of ids, groups, keys, tag names and values, workers and request tokens.
inline constexpr size_t kMaxNameBytes = 512;
inline constexpr size_t kMaxKeysOfJob = 4;
inline constexpr size_t kMaxNeeds = 64;
inline constexpr size_t kMaxTags = 16;
inline constexpr int64_t kMaxCost = 1'000'000;
inline constexpr int64_t kMaxRetries = 65'535;
// Texts for people (reasons, errors) are cut to this many bytes.
inline constexpr size_t kMaxTextBytes = 4096;
inline constexpr int64_t kMinLeaseMs = 100;
inline constexpr int64_t kMaxLeaseMs = 7LL * 24 * 3600 * 1000;
// The longest duration that a field or an option takes: 100 years. It is small compared with
// kMaxRecordedTime, so its sum with a time stays within that limit.
inline constexpr int64_t kMaxDurationMs = 100LL * 366 * 24 * 3600 * 1000;

// --- Of a command ---
inline constexpr size_t kMaxMatches = 64;        // MATCH of Q.POP
inline constexpr int64_t kMaxPopCount = 256;     // COUNT of Q.POP
inline constexpr size_t kMaxFollowedJobs = 256;  // ID of Q.EVENTS
inline constexpr int64_t kMaxPageCount = 1000;   // COUNT of Q.LIST, Q.EVENTS, Q.STATS BY, and LIMIT
// The number of jobs that one step of a walk examines.
inline constexpr size_t kMaxExamined = 10'000;
// A step that returns the contents of jobs ends after the job that brings it to this size.
inline constexpr size_t kMaxPageBytes = 4U << 20;

}  // namespace sluice
