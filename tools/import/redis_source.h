// RedisSource: a running Redis as the source of an import: every key of every database by SCAN,
// DUMP and PEXPIRETIME, and the libraries by FUNCTION DUMP.
//
// Before Redis 7.0 there is only PTTL: an expiry is then later by the time that its reply took.
//
// SCAN promises that a key which is there from the beginning to the end is met, at least once; what
// comes, goes or changes meanwhile may be met as it was or not at all. So writers have to stop
// before an import that is to be complete.
//
// One thread. A reply that does not come within a minute is a failure.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/keyspace/entry.h"

namespace sluice::import {

struct RedisAddress {
  std::string host;  // or the path of a socket, then without a port
  std::string port;
  std::string user;      // empty: the default one
  std::string password;  // empty: none is sent
};

// A reply. Of an array only the elements count.
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
  // Empty: go on; else why not.
  using PutKey = std::function<std::string(int database, OwnedEntry entry)>;
  using PutLibrary = std::function<std::string(Bytes code)>;

  RedisSource() = default;
  ~RedisSource();
  RedisSource(const RedisSource&) = delete;
  RedisSource& operator=(const RedisSource&) = delete;

  // For all of these: empty, or why not.
  std::string connect(const RedisAddress& address);
  std::string find_databases(std::vector<Database>& databases);
  std::string read_libraries(const PutLibrary& put);
  std::string read_keys(int database, const PutKey& put);

  const std::string& version() const { return version_; }
  // Of keys that SCAN has named and that were gone when they were asked for.
  uint64_t vanished() const { return vanished_; }
  uint64_t bytes_read() const { return bytes_read_; }

 private:
  std::string open_socket(const RedisAddress& address);
  void send(std::initializer_list<Bytes> words);
  bool flush();
  bool receive(RedisReply& reply);
  bool receive_line(std::string& line);
  bool receive_bytes(size_t count, std::string& bytes);
  bool fill();
  // Sends one command; an error reply is a failure too.
  std::string ask(std::initializer_list<Bytes> words, RedisReply& reply);
  std::string lost() const;
  std::string read_values(int database, const std::vector<RedisReply>& names, const PutKey& put);
  // Unix time of the reply of PEXPIRETIME or PTTL; 0: the key has none.
  int64_t expire_ms(int64_t replied_ms) const;
  std::string put_value(int database, Bytes name, Bytes payload, int64_t expire_ms,
                        const PutKey& put);

  int socket_ = -1;
  int errno_ = 0;
  std::string output_;
  std::string input_;
  size_t taken_ = 0;  // of input_
  std::string version_;
  bool exact_expiries_ = false;  // the server knows PEXPIRETIME
  uint64_t vanished_ = 0;
  uint64_t bytes_read_ = 0;
};

}  // namespace sluice::import
