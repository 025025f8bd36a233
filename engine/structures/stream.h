// Stream: the value of a Redis stream: its entries in nodes, in the order of their ids, what it
// remembers of entries that are gone, and its consumer groups.
//
// A stream may be empty and is a value all the same. Its nodes stand in a counted B+tree by their
// first ids and end where Redis's do (stream_node.h). An entry is found by its node and a walk
// through it, some hundred small steps at most.
//
// Threads: one owner at a time (the shard's lock). Ownership: the stream owns nodes and groups.
// Views into entries live until its next change. All changes go through Database's verbs.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "engine/structures/ordered_index.h"
#include "engine/structures/stream_group.h"
#include "engine/structures/stream_node.h"

namespace sluice {

// Where nodes end. Of the process; CONFIG SET changes it while commands run, for entries that are
// added from then on.
struct StreamNodeLimits {
  std::atomic<uint64_t> max_bytes{4096};
  std::atomic<uint64_t> max_entries{100};
  StreamNode::Limits now() const { return {max_bytes, max_entries}; }
};
extern StreamNodeLimits g_stream_node_limits;

// What XTRIM and XADD's trimming ask for.
struct StreamTrim {
  enum class By : uint8_t { kNothing, kLength, kId } by = By::kNothing;
  bool approximately = false;  // whole nodes only
  uint64_t max_length = 0;
  StreamId min_id;
  uint64_t limit = 0;  // entries removed at most; 0: any number
};

class Stream {
 public:
  using Nodes = OrderedIndex<StreamNode*>;  // (first id)
  using Groups = std::map<std::string, std::unique_ptr<StreamGroup>, std::less<>>;

  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Makes this stream, which is empty, a copy of the other.
  void copy_from(const Stream& other);

  StreamId last_id;         // of the entry that was added last
  StreamId max_deleted_id;  // the highest that was deleted, trimming apart
  uint64_t entries_added = 0;

  uint64_t length() const { return length_; }
  const Nodes& nodes() const { return nodes_; }
  // Of the entries that are there; 0-0: none.
  StreamId first_entry_id() const;
  StreamId last_entry_id() const;
  bool contains(const StreamId& id) const;

  // fn(entry) -> bool for each entry from `from` to `to`; it ends the walk by returning false.
  template <class Fn>
  void each(const StreamId& from, const StreamId& to, Fn fn) const;
  // The same from the highest to the lowest.
  template <class Fn>
  void each_reverse(const StreamId& from, const StreamId& to, Fn fn) const;

  // Redis's estimates of how many entries a reader has passed. An entry may have been deleted
  // between `from` and the end: the count of what lies there says nothing then.
  bool may_have_gaps(const StreamId& from) const;
  // How many entries were added up to this id; StreamGroup::kUnknownReads: nobody knows.
  int64_t reads_up_to(const StreamId& id) const;
  // Entries that the group has not been given. False: nobody knows.
  bool lag(const StreamGroup& group, int64_t& entries) const;

  // Nodes of Redis's radix tree over these nodes, for XINFO.
  uint64_t radix_tree_nodes() const;
  size_t memory_bytes() const;

  // --- Changes ---

  // Appends; the entry is the last of the node that is returned. REQUIRES: id > last_id, not 0-0.
  StreamNode* append(const StreamId& id, std::span<const Bytes> words);
  // Removes an entry. Null: there is none; else its node, which may have no more entries.
  StreamNode* erase(const StreamId& id);
  // The same in this node of the stream. False: there is none.
  bool erase_in(StreamNode& node, const StreamId& id);
  // The first node with this first id or a higher one; null: none.
  StreamNode* node_from(const StreamId& first) const;
  // The node with exactly this first id.
  StreamNode* find_node(const StreamId& first) const;
  void remove_node(StreamNode* node);
  // Entries of the node that `trim` takes, apart from whole nodes; they count as deleted.
  std::vector<StreamId> trimmed_of(const StreamNode& node, const StreamTrim& trim) const;

  Groups groups;

  // --- From the journal ---
  // Takes the node over, in place of one with the same first id.
  void put_node(StreamNode* node);
  // False: damaged. A node that is not there has gone later: nothing happens.
  bool put_entry(const StreamId& first, Bytes packed, uint64_t deleted, uint64_t listpack_bytes);

 private:
  // The last node whose first id is not above `id`; not valid: none.
  Nodes::Iterator node_before(const StreamId& id) const;
  void moved(const StreamId& first, StreamNode* from, StreamNode* to);

  Nodes nodes_;
  uint64_t length_ = 0;
};

template <class Fn>
void Stream::each(const StreamId& from, const StreamId& to, Fn fn) const {
  auto node = node_before(from);
  if (!node.valid()) node = nodes_.begin();
  StreamEntry entry;
  for (bool sought = false; node.valid(); node.next()) {
    const StreamNode& here = *node.value();
    if (here.first_id() > to) return;
    const char* at = here.begin();
    if (!sought) {
      at = here.seek(from);
      if (at == nullptr) continue;
      sought = true;
    }
    while (at != here.end()) {
      at = here.read(at, entry);
      if (entry.id() > to || !fn(static_cast<const StreamEntry&>(entry))) return;
    }
  }
}

template <class Fn>
void Stream::each_reverse(const StreamId& from, const StreamId& to, Fn fn) const {
  std::vector<const char*> places;
  StreamEntry entry;
  for (auto node = node_before(to); node.valid(); node.prev()) {
    const StreamNode& here = *node.value();
    if (here.last_id() < from) return;
    places.clear();
    for (const char* at = here.begin(); at != here.end();) {
      const char* next = here.read(at, entry);
      if (entry.id() > to) break;
      if (entry.id() >= from) places.push_back(at);
      at = next;
    }
    for (size_t i = places.size(); i != 0; --i) {
      here.read(places[i - 1], entry);
      if (!fn(static_cast<const StreamEntry&>(entry))) return;
    }
  }
}

}  // namespace sluice
