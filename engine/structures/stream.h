// Stream: the value of a Redis stream: its entries in nodes, ordered by id, counters of removed
// entries, and its consumer groups.
//
// A stream may be empty and still exist. Its nodes are in a counted B+tree, ordered by their first
// ids, and end where Redis's do (stream_node.h). Finding an entry means finding its node and
// walking through that, at most some hundred small steps.
//
// Threads: one owner at a time (the shard's lock). Ownership: the stream owns nodes and groups.
// Views into entries are valid until its next change. All changes are made by Database's functions.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/structures/ordered_index.h"
#include "engine/structures/stream_group.h"
#include "engine/structures/stream_node.h"

namespace sluice {

// The limits of a node, for the whole process. CONFIG SET changes them while commands run; they
// apply to entries that are added afterwards.
struct StreamNodeLimits {
  std::atomic<uint64_t> max_bytes{4096};
  std::atomic<uint64_t> max_entries{100};
  StreamNode::Limits now() const { return {max_bytes, max_entries}; }
};
extern StreamNodeLimits g_stream_node_limits;

// The options of XTRIM, and of XADD's trimming.
struct StreamTrim {
  enum class By : uint8_t { kNothing, kLength, kId } by = By::kNothing;
  bool approximately = false;  // whole nodes only
  uint64_t max_length = 0;
  StreamId min_id;
  uint64_t limit = 0;  // the most entries to remove; 0: no limit
};

class Stream {
 public:
  using Nodes = OrderedIndex<StreamNode*>;  // (first id)
  using Groups = std::map<std::string, std::unique_ptr<StreamGroup>, std::less<>>;

  Stream() = default;
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
  // Makes this empty stream a copy of the other.
  void copy_from(const Stream& other);

  StreamId last_id;         // of the entry that was added last
  StreamId max_deleted_id;  // the highest deleted id, not counting trimming
  uint64_t entries_added = 0;

  uint64_t length() const { return length_; }
  const Nodes& nodes() const { return nodes_; }
  // The ids of the first and last present entries, or 0-0.
  StreamId first_entry_id() const;
  StreamId last_entry_id() const;
  bool contains(const StreamId& id) const;

  // Calls fn(entry) -> bool for each entry from `from` to `to`. fn ends the walk by returning
  // false.
  template <class Fn>
  void each(const StreamId& from, const StreamId& to, Fn fn) const;
  // The same from the highest to the lowest.
  template <class Fn>
  void each_reverse(const StreamId& from, const StreamId& to, Fn fn) const;

  // Redis's estimates of how many entries a reader has passed. This one returns whether an entry
  // may have been deleted between `from` and the end, which makes a count of that range
  // meaningless.
  bool may_have_gaps(const StreamId& from) const;
  // The number of entries that were added up to this id, or StreamGroup::kUnknownReads.
  int64_t reads_up_to(const StreamId& id) const;
  // The number of entries that have not been delivered to the group, if it is known.
  std::optional<int64_t> lag(const StreamGroup& group) const;

  // The number of nodes in the radix tree that Redis would have, for XINFO.
  uint64_t radix_tree_nodes() const;
  size_t memory_bytes() const;

  // --- Changes ---

  // Appends an entry and returns its node, of which it is the last. REQUIRES: id > last_id, not
  // 0-0.
  StreamNode* append(const StreamId& id, std::span<const Bytes> words);
  // Removes an entry. Returns its node, which may be empty now, or null if there is no such entry.
  StreamNode* erase(const StreamId& id);
  // Removes an entry of this node. Returns false if there is no such entry.
  bool erase_in(StreamNode& node, const StreamId& id);
  // The first node whose first id is `first` or higher, or null.
  StreamNode* node_from(const StreamId& first) const;
  // The node with exactly this first id.
  StreamNode* find_node(const StreamId& first) const;
  void remove_node(StreamNode* node);
  // The entries of the node that `trim` removes, for a node that is not removed as a whole. They
  // count as deleted.
  std::vector<StreamId> trimmed_of(const StreamNode& node, const StreamTrim& trim) const;

  Groups groups;

  // --- From the journal ---
  // Takes ownership of the node, which replaces one with the same first id.
  void put_node(StreamNode* node);
  // Returns false if the bytes are damaged. If the node is missing, a later record removes it, so
  // nothing happens.
  bool put_entry(const StreamId& first, Bytes packed, uint64_t deleted, uint64_t listpack_bytes);

 private:
  // The last node whose first id is not above `id`; invalid without one.
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
