// Prefetch: brings what the next requests of a pipeline will read into the cache while earlier ones
// run.
//
// A random key of a large keyspace costs two waits for memory, its place in the map and its entry,
// and a field of a large hash, a member of a set, a job of a queue two more. They are most of a
// small command's time. A connection that has several requests at hand passes each to add(), then
// calls fetch(), and then executes them: the waits overlap.
//
// Threads: the maps are looked at without their locks. So only the one thread that changes them may
// use it: a server with one I/O thread (a checkpoint's walk beside it only reads).
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
  // More are not worth it: the first would have left the cache again.
  static constexpr size_t kMaxRequests = 16;

  // REQUIRES: fewer than kMaxRequests since the last fetch(); the request's words live until then.
  // Notes the first key in the request.
  void add(Engine& engine, int database, Request& request);
  void fetch();

 private:
  struct Place {
    const Keyspace* keyspace;
    uint64_t hash;
    Bytes key;
    Bytes element;  // empty: the command looks up none
    ElementPlace found;
  };
  std::array<Place, kMaxRequests> places_;
  size_t count_ = 0;
};

}  // namespace sluice
