// How many files the process may have open, and how many of them are kept from clients.
#pragma once

#include <cstdint>

namespace sluice {

struct Settings;

// What the server's own work has open at most beside its I/O threads: standard streams, the log
// file, signals, listeners, the data directory's and RocksDB's files (32 tables, see
// storage/rocksdb_options.cc), a checkpoint on its way, files of events and users, certificates,
// what it reads of /proc, a collector's connection and its look-up. The most that was measured is
// 51, after 400 MB of journal and within a checkpoint; this is half as much again and some more,
// and a test stays below two thirds of it (tests/operations/files_test.py).
inline constexpr uint64_t kOwnFiles = 96;
// Its epoll set and that of Asio, their wake-ups, its timers.
inline constexpr uint64_t kFilesPerIoThread = 6;

// http-maxclients, where there is HTTP.
uint64_t http_connections(const Settings& settings);
// Connections that give way are there together with their successors for a moment, so those count.
uint64_t reserved_files(const Settings& settings);
// For maxclients, http-maxclients and the reserve.
uint64_t wanted_files(const Settings& settings);

// Raises the limit of the process to `wanted`, or as far as it goes. What it is then, and errno of
// what kept it from more.
uint64_t allow_files(uint64_t wanted);

}  // namespace sluice
