#include "engine/structures/stream.h"

#include <bit>

namespace sluice {

StreamNodeLimits g_stream_node_limits;

Stream::~Stream() {
  for (auto at = nodes_.begin(); at.valid(); at.next()) StreamNode::destroy(at.value());
}

void Stream::copy_from(const Stream& other) {
  CHECK(nodes_.empty() && groups.empty());
  last_id = other.last_id;
  max_deleted_id = other.max_deleted_id;
  entries_added = other.entries_added;
  for (auto at = other.nodes_.begin(); at.valid(); at.next()) {
    put_node(StreamNode::copy(*at.value()));
  }
  for (const auto& [name, group] : other.groups) groups.emplace(name, group->clone());
}

// --- Reading ---

auto Stream::node_before(const StreamId& id) const -> Nodes::Iterator {
  if (nodes_.empty()) return {};
  // Most reads are near the end.
  const auto last = nodes_.last();
  if (last.value()->first_id() <= id) return last;
  auto at = nodes_.lower_bound(id.ms, id.seq);
  if (at.value()->first_id() != id) at.prev();
  return at;
}

StreamId Stream::first_entry_id() const {
  StreamId id;
  each({}, StreamId::max(), [&](const StreamEntry& entry) {
    id = entry.id();
    return false;
  });
  return id;
}

StreamId Stream::last_entry_id() const {
  StreamEntry entry;
  for (auto node = nodes_.last(); node.valid(); node.prev()) {
    if (node.value()->live() == 0) continue;
    if (node.value()->deleted() == 0) return node.value()->last_id();
    node.value()->read_last(entry);
    return entry.id();
  }
  return {};
}

bool Stream::contains(const StreamId& id) const {
  bool found = false;
  each(id, id, [&](const StreamEntry&) {
    found = true;
    return false;
  });
  return found;
}

// --- Estimates ---

bool Stream::may_have_gaps(const StreamId& from) const {
  if (length_ == 0 || max_deleted_id.is_zero() || from > max_deleted_id) return false;
  return first_entry_id() <= max_deleted_id;
}

int64_t Stream::reads_up_to(const StreamId& id) const {
  if (entries_added == 0) return 0;
  const auto added = static_cast<int64_t>(entries_added);
  if (length_ == 0 && id <= last_id) return added;
  if (id == last_id) return added;
  if (id > last_id) return StreamGroup::kUnknownReads;
  const StreamId first = first_entry_id();
  if (max_deleted_id.is_zero() || max_deleted_id < first) {
    const auto before_first = static_cast<int64_t>(entries_added - length_);
    if (id < first) return before_first;
    if (id == first) return before_first + 1;
  }
  return StreamGroup::kUnknownReads;
}

std::optional<int64_t> Stream::lag(const StreamGroup& group) const {
  if (entries_added == 0) return 0;
  int64_t read = group.entries_read;
  if (read == StreamGroup::kUnknownReads || may_have_gaps(group.last_id)) {
    read = reads_up_to(group.last_id);
  }
  if (read == StreamGroup::kUnknownReads) return std::nullopt;
  return static_cast<int64_t>(entries_added - static_cast<uint64_t>(read));
}

namespace {

// The number of leading bytes that two keys of the radix tree, sixteen bytes each, have in common.
int common_bytes(const StreamId& a, const StreamId& b) {
  if (a.ms != b.ms) return std::countl_zero(a.ms ^ b.ms) / 8;
  return 8 + std::countl_zero(a.seq ^ b.seq) / 8;
}

constexpr int kKeyBytes = 16;

}  // namespace

// The tree has a node for the end of each key, one for each place where keys diverge, and one for
// each stretch of bytes between those. A stretch lies below the byte that chose the branch.
uint64_t Stream::radix_tree_nodes() const {
  if (nodes_.empty()) return 1;
  uint64_t count = 0;
  std::vector<int> branches;  // depths at which keys diverge, on the path to the last key
  // Counts the branch, or the end of a key, at `depth`, with the stretch above it.
  const auto close = [&](int depth) {
    const int above = branches.empty() ? -1 : branches.back();
    count += depth - above - 1 > 0 ? 2 : 1;
  };
  StreamId previous = nodes_.begin().value()->first_id();
  auto at = nodes_.begin();
  for (at.next();; at.next()) {
    const int common = at.valid() ? common_bytes(previous, at.value()->first_id()) : -1;
    // The previous key hangs below the deeper of its two branches.
    if (branches.empty() || branches.back() < common) {
      branches.push_back(common);
      close(kKeyBytes);
    } else {
      close(kKeyBytes);
      while (!branches.empty() && branches.back() > common) {
        const int depth = branches.back();
        branches.pop_back();
        if (branches.empty() || branches.back() < common) {
          if (common >= 0) branches.push_back(common);
        }
        close(depth);
      }
    }
    if (!at.valid()) return count;
    previous = at.value()->first_id();
  }
}

size_t Stream::memory_bytes() const {
  size_t bytes = sizeof(Stream) + nodes_.memory_bytes();
  for (auto at = nodes_.begin(); at.valid(); at.next()) bytes += at.value()->memory_bytes();
  for (const auto& [name, group] : groups) bytes += name.size() + 64 + group->memory_bytes();
  return bytes;
}

// --- Changes ---

void Stream::moved(const StreamId& first, StreamNode* from, StreamNode* to) {
  if (from == to) return;
  const bool was_there = nodes_.replace_value(first.ms, first.seq, from, to);
  CHECK(was_there);
}

StreamNode* Stream::append(const StreamId& id, std::span<const Bytes> words) {
  uint64_t bytes = 0;
  for (const Bytes word : words) bytes += word.size();
  StreamNode* node = nodes_.empty() ? nullptr : nodes_.back().value;
  if (node != nullptr && node->is_full_for(bytes, g_stream_node_limits.now())) {
    const StreamId first = node->first_id();  // a copy: the node may move
    moved(first, node, StreamNode::shrink_to_fit(node));
    node = nullptr;
  }
  if (node == nullptr) {
    node = StreamNode::append(StreamNode::make(id, words), id, words);
    nodes_.insert(id.ms, id.seq, node);
  } else {
    StreamNode* grown = StreamNode::append(node, id, words);
    moved(grown->first_id(), node, grown);
    node = grown;
  }
  ++length_;
  last_id = id;
  ++entries_added;
  return node;
}

StreamNode* Stream::erase(const StreamId& id) {
  const auto at = node_before(id);
  return at.valid() && erase_in(*at.value(), id) ? at.value() : nullptr;
}

bool Stream::erase_in(StreamNode& node, const StreamId& id) {
  if (!node.erase(id)) return false;
  --length_;
  return true;
}

StreamNode* Stream::node_from(const StreamId& first) const {
  const auto at = nodes_.lower_bound(first.ms, first.seq);
  return at.valid() ? at.value() : nullptr;
}

StreamNode* Stream::find_node(const StreamId& first) const {
  StreamNode* node = node_from(first);
  return node != nullptr && node->first_id() == first ? node : nullptr;
}

void Stream::remove_node(StreamNode* node) {
  const bool was_there = nodes_.erase(node->first_id().ms, node->first_id().seq, node);
  CHECK(was_there);
  length_ -= node->live();
  StreamNode::destroy(node);
}

std::vector<StreamId> Stream::trimmed_of(const StreamNode& node, const StreamTrim& trim) const {
  std::vector<StreamId> ids;
  StreamEntry entry;
  for (const char* at = node.begin(); at != node.end();) {
    at = node.read(at, entry);
    const bool kept = trim.by == StreamTrim::By::kLength ? length_ - ids.size() <= trim.max_length
                                                         : entry.id() >= trim.min_id;
    if (kept) break;
    ids.push_back(entry.id());
  }
  return ids;
}

void Stream::put_node(StreamNode* node) {
  if (StreamNode* old = find_node(node->first_id())) remove_node(old);
  nodes_.insert(node->first_id().ms, node->first_id().seq, node);
  length_ += node->live();
}

bool Stream::put_entry(const StreamId& first, Bytes packed, uint64_t deleted,
                       uint64_t listpack_bytes) {
  StreamNode* node = find_node(first);
  if (node == nullptr) return true;
  const uint32_t live = node->live();
  StreamNode* changed = node;
  const bool whole = StreamNode::put(changed, packed, deleted, listpack_bytes);
  moved(first, node, changed);
  length_ = length_ - live + changed->live();
  return whole;
}

}  // namespace sluice
