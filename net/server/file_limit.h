// The number of files that the process may open, and how many of them are reserved from clients.
#pragma once

#include <cstdint>

namespace sluice {

struct Settings;

// The most descriptors that the server's own work uses besides its I/O threads: standard streams,
// the log file, signals, listeners, the data directory's and RocksDB's files (32 tables, see
// storage/rocksdb_options.cc), a checkpoint being written, files of events and users, certificates,
// Asio's epoll set, wake-up and timers, reads of /proc, a collector's connection and its look-up.
// The measured maximum is 55, after 400 MB of journal and during a checkpoint. This is more than
// half again as much, and a test checks that two thirds of it suffice
// (tests/operations/files_test.py).
inline constexpr uint64_t kOwnFiles = 96;
// Its epoll set and its wake-up.
inline constexpr uint64_t kFilesPerIoThread = 2;

// http-maxclients if there is HTTP, else 0.
uint64_t http_connections(const Settings& settings);
// Includes connections told to close, which for a moment exist together with their successors.
uint64_t reserved_files(const Settings& settings);
// For maxclients, http-maxclients and the reserve.
uint64_t wanted_files(const Settings& settings);

// Raises the limit of the process to `wanted`, or as far as possible. Returns the resulting limit;
// errno is the reason if it is lower.
uint64_t allow_files(uint64_t wanted);

}  // namespace sluice
