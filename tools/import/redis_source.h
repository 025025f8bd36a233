// RedisSource: a running Redis as the source of an import. Reads every key of every database by
// SCAN, DUMP and PEXPIRETIME, and the function libraries by FUNCTION DUMP.
//
// Before Redis 7.0 only PTTL is available, which makes an expiry late by the time that the reply
// took.
//
// SCAN returns at least once each key that exists from beginning to end. Keys that are added,
// deleted or changed in the meantime may be read in their old state or not at all, so writers have
// to stop before an import that must be complete.
//
// Used by one thread. A reply that takes longer than a minute is a failure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"
#include "engine/keyspace/entry.h"

namespace sluice::import {

struct RedisAddress {
  std::string host;  // or the path of a socket, then without a port
  std::string port;
  std::string user;      // empty: the default user
  std::string password;  // empty: none is sent
};

// A reply. For an array only `elements` is used.
struct RedisReply {
  char kind = 0;  // RESP2's first byte
  bool null = false;
  int64_t integer = 0;
  std::string text;
  std::vector<RedisReply> elements;
};

class RedisSource {
 public:
  struct Database {
    int number;
    uint64_t keys;
  };
  // A failure ends the reading.
  using PutKey = std::function<Status(int database, OwnedEntry entry)>;
  using PutLibrary = std::function<Status(Bytes code)>;

  RedisSource() = default;
  ~RedisSource();
  RedisSource(const RedisSource&) = delete;
  RedisSource& operator=(const RedisSource&) = delete;

  Status connect(const RedisAddress& address);
  Result<std::vector<Database>> find_databases();
  Status read_libraries(const PutLibrary& put);
  Status read_keys(int database, const PutKey& put);

  const std::string& version() const { return version_; }
  // Number of keys that SCAN returned and that no longer existed when they were read.
  uint64_t vanished() const { return vanished_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  Status open_socket(const RedisAddress& address);
  void send(std::initializer_list<Bytes> words);
  bool flush();
  bool receive(RedisReply& reply);
  bool receive_line(std::string& line);
  bool receive_bytes(size_t count, std::string& bytes);
  bool fill();
  // Sends one command. An error reply counts as a failure.
  Result<RedisReply> ask(std::initializer_list<Bytes> words);
  Status lost() const;
  Status read_values(int database, const std::vector<RedisReply>& names, const PutKey& put);
  // The expiry in Unix time, from the reply of PEXPIRETIME or PTTL; 0 if the key has none.
  int64_t expire_ms(int64_t replied_ms) const;
  Status put_value(int database, Bytes name, Bytes payload, int64_t expire_ms, const PutKey& put);

  int socket_ = -1;
  int errno_ = 0;
  std::string output_;
  std::string input_;
  size_t taken_ = 0;  // of input_
  std::string version_;
  bool exact_expiries_ = false;  // the server supports PEXPIRETIME
  uint64_t vanished_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace sluice::import
