// ImportTarget: a new data directory that is filled without a connection.
//
// It runs a complete server that listens nowhere and has its journal off. Values are inserted into
// the engine as by RESTORE, and commit() writes the one checkpoint that makes them the contents of
// the directory. Before that the directory is empty, and stays so if the program ends.
//
// Used by one thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "engine/clients/client.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/entry.h"
#include "net/config/config.h"
#include "net/server/server.h"

namespace sluice::import {

struct ImportCounts {
  uint64_t keys = 0;
  std::array<uint64_t, 16> by_type{};  // indexed by Type
  uint64_t with_expiry = 0;
  uint64_t expired = 0;    // had expired and were left out
  uint64_t replaced = 0;   // were inserted a second time
  uint64_t libraries = 0;  // function libraries
  uint32_t databases = 0;  // a bit for each database that received keys
};

class ImportTarget {
 public:
  ImportTarget() = default;
  // Without commit() only an empty data directory remains.
  ~ImportTarget();
  ImportTarget(const ImportTarget&) = delete;
  ImportTarget& operator=(const ImportTarget&) = delete;

  // open() rejects a directory that is in use, or that holds keys or functions.
  Status open(const std::string& directory);
  // `replace`: the key may exist already and is then replaced.
  Status put_key(int database, OwnedEntry entry, bool replace);
  Status put_library(Bytes code);
  // Writes the checkpoint and releases the directory.
  Status commit();

  const ImportCounts& counts() const { return counts_; }

 private:
  Status refuse_filled(const std::string& directory) const;

  std::unique_ptr<Config> config_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Execution> execution_;
  Client client_;
  ImportCounts counts_;
};

}  // namespace sluice::import
