// Prefetch: loads the data of the next requests of a pipeline into the cache while earlier ones
// run.
//
// A random key of a large keyspace costs two waits for memory, for its place in the map and for its
// entry; a field of a large hash, a member of a set, a job of a queue costs two more. They are most
// of a small command's time. A connection that has several requests passes each to add(), then
// calls fetch(), and then executes them: the waits overlap.
//
// Threads: the maps are read without their locks. So only the thread that changes them may use it:
// a server with one I/O thread (a checkpoint's walk only reads).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/bytes.h"
#include "engine/keyspace/element_place.h"

namespace sluice {

class Engine;
struct Keyspace;
struct Request;

class Prefetch {
 public:
  // With more, the data of the first would be evicted from the cache again.
  static constexpr size_t kMaxRequests = 16;

  // REQUIRES: fewer than kMaxRequests since the last fetch(); the request's words are valid until
  // then. Notes the first key in the request.
  void add(Engine& engine, int database, Request& request);
  void fetch();

 private:
  struct Place {
    const Keyspace* keyspace;
    uint64_t hash;
    Bytes key;
    Bytes element;  // empty: the command looks up no element
    ElementPlace found;
  };
  std::array<Place, kMaxRequests> places_;
  size_t count_ = 0;
};

}  // namespace sluice
