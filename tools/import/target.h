// ImportTarget: a new data directory that is filled from outside of any connection.
//
// It is a whole server that listens nowhere and whose journal is off: values go into the engine's
// memory, as RESTORE puts them there, and commit() writes the one checkpoint that makes them the
// directory's. Before that the directory holds nothing; whatever ends the program leaves it so.
//
// One thread.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "engine/clients/client.h"
#include "engine/execution/execution.h"
#include "engine/keyspace/entry.h"
#include "net/config/config.h"
#include "net/server/server.h"

namespace sluice::import {

struct ImportCounts {
  uint64_t keys = 0;
  std::array<uint64_t, 16> by_type{};  // by Type
  uint64_t with_expiry = 0;
  uint64_t expired = 0;    // their time had come: left out
  uint64_t replaced = 0;   // put a second time
  uint64_t libraries = 0;  // of functions
  uint32_t databases = 0;  // a bit for each that has got keys
};

class ImportTarget {
 public:
  ImportTarget() = default;
  // Without commit() it leaves nothing behind but an empty data directory.
  ~ImportTarget();
  ImportTarget(const ImportTarget&) = delete;
  ImportTarget& operator=(const ImportTarget&) = delete;

  // For all of these: empty, or why not.
  // Refuses a directory that another process uses, and one that holds keys or functions.
  std::string open(const std::string& directory);
  // `replace`: a key may come again, and is put in place of itself.
  std::string put_key(int database, OwnedEntry entry, bool replace);
  std::string put_library(Bytes code);
  // Writes the checkpoint and lets go of the directory.
  std::string commit();

  const ImportCounts& counts() const { return counts_; }

 private:
  std::string refuse_filled(const std::string& directory) const;

  std::unique_ptr<Config> config_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<Execution> execution_;
  Client client_;
  ImportCounts counts_;
};

}  // namespace sluice::import
