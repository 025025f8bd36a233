// The operations of OrderedIndex. Include ordered_index.h, not this file.
#pragma once

#include <algorithm>

#include "engine/structures/ordered_index.h"

namespace sluice {

// --- Search ---

template <class Value, class TieOrder>
template <class Before>
auto OrderedIndex<Value, TieOrder>::search(Before before, uint64_t* rank) const -> Iterator {
  if (root_ == nullptr) return Iterator();
  const auto count_prefix = [&before](const auto& keys, uint32_t n) {
    uint32_t low = 0;
    while (n > 0) {
      const uint32_t half = n / 2;
      const Entry entry = keys.get(low + half);
      if (before(entry.major, entry.minor, entry.value)) {
        low += half + 1;
        n -= half + 1;
      } else {
        n = half;
      }
    }
    return low;
  };
  const void* node = root_;
  uint64_t skipped = 0;
  for (uint32_t level = 0; level < height_; ++level) {
    const auto* inner = static_cast<const Inner*>(node);
    const uint32_t slot = count_prefix(inner->separators(), inner->count - 1);
    prefetch_node(inner->children[slot]);
    if (rank != nullptr) skipped += inner->entries_before(slot);
    node = inner->children[slot];
  }
  const auto* leaf = static_cast<const Leaf*>(node);
  const uint32_t at = count_prefix(leaf->keys(), leaf->count);
  if (rank != nullptr) *rank = skipped + at;
  if (at < leaf->count) return Iterator(leaf, at);
  return leaf->next == nullptr ? Iterator() : Iterator(leaf->next, 0);
}

template <class Value, class TieOrder>
uint64_t OrderedIndex<Value, TieOrder>::rank(uint64_t major, uint64_t minor, Value value) const {
  if (root_ == nullptr) return 0;
  const Entry key{major, minor, value};
  const void* node = root_;
  uint64_t skipped = 0;
  for (uint32_t level = 0; level < height_; ++level) {
    const auto* inner = static_cast<const Inner*>(node);
    const uint32_t slot = inner->separators().equal(inner->count - 1, key).begin;
    skipped += inner->entries_before(slot);
    node = inner->children[slot];
  }
  const auto* leaf = static_cast<const Leaf*>(node);
  return skipped + leaf->keys().equal(leaf->count, key).begin;
}

template <class Value, class TieOrder>
auto OrderedIndex<Value, TieOrder>::lower_bound(uint64_t major, uint64_t minor, Value value) const
    -> Iterator {
  const Entry key{major, minor, value};
  return search(
      [&key](uint64_t other_major, uint64_t other_minor, const Value& other) {
        return before(Entry{other_major, other_minor, other}, key);
      },
      nullptr);
}

template <class Value, class TieOrder>
auto OrderedIndex<Value, TieOrder>::at(uint64_t rank) const -> Iterator {
  if (rank >= size_) return Iterator();
  const void* node = root_;
  for (uint32_t level = 0; level < height_; ++level) {
    const auto* inner = static_cast<const Inner*>(node);
    uint32_t slot = 0;
    while (rank >= inner->counts[slot]) rank -= inner->counts[slot++];
    node = inner->children[slot];
  }
  return Iterator(static_cast<const Leaf*>(node), static_cast<uint32_t>(rank));
}

// Searches one leaf from the back for an entry equal to `key` in order and value. `may_go_on` is
// set if the front of the leaf lies within the run of entries of this order, so that the leaf
// before may hold more of them.
template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::find_equal(const Leaf* leaf, const Entry& key, uint32_t* at,
                                               bool* may_go_on) {
  const auto keys = leaf->keys();
  const auto span = keys.equal(leaf->count, key);
  *may_go_on = span.begin == 0;
  for (uint32_t i = span.end; i-- > span.begin;) {
    if (keys.get(i).value == key.value) {
      *at = i;
      return true;
    }
  }
  return false;
}

template <class Value, class TieOrder>
auto OrderedIndex<Value, TieOrder>::find(uint64_t major, uint64_t minor, Value value) const
    -> Iterator {
  if (root_ == nullptr) return Iterator();
  const Entry key{major, minor, value};
  const void* node = root_;
  for (uint32_t level = 0; level < height_; ++level) {
    const auto* inner = static_cast<const Inner*>(node);
    node = inner->children[inner->separators().equal(inner->count - 1, key).end];
  }
  uint32_t at = 0;
  bool may_go_on = true;
  for (const auto* leaf = static_cast<const Leaf*>(node); leaf != nullptr && may_go_on;
       leaf = leaf->prev) {
    if (find_equal(leaf, key, &at, &may_go_on)) return Iterator(leaf, at);
  }
  return Iterator();
}

// Like find(), but records the path.
template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::locate(const Entry& key, Path& path) const {
  if (root_ == nullptr) return false;
  // If entries are erased in their order, each one is the first: no search is needed.
  const Entry first = first_->first();
  if (first.major == key.major && first.minor == key.minor && first.value == key.value) {
    lead_to_first(path);
    return true;
  }
  void* node = root_;
  for (uint32_t level = 0; level < height_; ++level) {
    auto* inner = static_cast<Inner*>(node);
    const uint32_t slot = inner->separators().equal(inner->count - 1, key).end;
    node = inner->children[slot];
    path.steps[level] = {inner, slot};
  }
  path.leaf = static_cast<Leaf*>(node);
  bool may_go_on = true;
  do {
    if (find_equal(path.leaf, key, &path.at, &may_go_on)) return true;
  } while (may_go_on && step_back(path));
  return false;
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::lead_to_first(Path& path) const {
  path.leaf = first_;
  path.at = 0;
  void* node = root_;
  for (uint32_t level = 0; level < height_; ++level) {
    path.steps[level] = {static_cast<Inner*>(node), 0};
    node = path.steps[level].node->children[0];
  }
}

// Moves the path to the previous leaf.
template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::step_back(Path& path) const {
  int level = static_cast<int>(height_) - 1;
  while (level >= 0 && path.steps[level].slot == 0) --level;
  if (level < 0) return false;
  void* node = path.steps[level].node->children[--path.steps[level].slot];
  for (++level; level < static_cast<int>(height_); ++level) {
    auto* inner = static_cast<Inner*>(node);
    path.steps[level] = {inner, inner->count - 1};
    node = inner->children[inner->count - 1];
  }
  path.leaf = static_cast<Leaf*>(node);
  return true;
}

// --- Insert ---

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::insert(uint64_t major, uint64_t minor, Value value) {
  const Entry entry{major, minor, value};
  if (root_ == nullptr) {
    root_ = first_ = last_ = Leaf::create(4);
    leaves_ = 1;
  }
  Path path;
  void* node = root_;
  // An entry after all others descends the right edge without a search.
  const bool at_end = size_ > 0 && !before(entry, last_->last());
  for (uint32_t level = 0; level < height_; ++level) {
    auto* inner = static_cast<Inner*>(node);
    const uint32_t slot =
        at_end ? inner->count - 1 : inner->separators().equal(inner->count - 1, entry).end;
    node = inner->children[slot];
    ++inner->counts[slot];
    path.steps[level] = {inner, slot};
  }
  path.leaf = static_cast<Leaf*>(node);
  path.at = at_end ? path.leaf->count : path.leaf->keys().equal(path.leaf->count, entry).end;
  ++size_;
  CHECK(size_ <= UINT32_MAX);  // Subtree counts have 32 bits.
  insert_in_leaf(path, entry);
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::insert_in_leaf(Path& path, const Entry& entry) {
  if (path.leaf->count == path.leaf->capacity) {
    if (path.leaf->capacity == Leaf::kFull) return split_leaf(path, entry);
    grow_root(path.leaf->capacity == 4 ? 16 : Leaf::kFull);
    path.leaf = root_leaf();
  }
  path.leaf->insert(path.at, entry);
}

// Moves the only leaf into a block of another capacity.
template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::grow_root(uint32_t capacity) {
  Leaf* old = root_leaf();
  Leaf* leaf = Leaf::create(capacity);
  leaf->take_tail(old, 0);
  std::free(old);
  root_ = first_ = last_ = leaf;
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::split_leaf(Path& path, const Entry& entry) {
  Leaf* left = path.leaf;
  // At the front, and where a run of inserts grows, only the new entry moves to the new node, so
  // entries that arrive in order leave full nodes. This holds in the middle as well: a band of the
  // order grows at its end, before the next band.
  const bool at_left = path.at == 0;
  const bool at_cut = left->in_sequence(path.at);
  if (!at_left && !at_cut && insert_with_neighbour(path, entry)) return;
  Leaf* right = Leaf::create(Leaf::kFull);
  ++leaves_;
  right->next = left->next;
  right->prev = left;
  (right->next == nullptr ? last_ : right->next->prev) = right;
  left->next = right;
  const uint32_t middle = at_left ? 0 : at_cut ? path.at : left->count / 2u;
  right->take_tail(left, middle);
  if (at_left) left->begin = left->capacity;  // Its next entries are inserted at the front, too.
  if (path.at > middle || path.at == Leaf::kFull) {
    right->insert(path.at - middle, entry);
  } else {
    left->insert(path.at, entry);
  }
  add_child(path, static_cast<int>(height_) - 1, right, right->count, right->first(), at_left);
}

// Moves entries from the full leaf to its emptier neighbour, half as many as that has room for, and
// inserts the new entry where it then belongs. Returns false if no neighbour under the same parent
// has enough room. REQUIRES: path.at != 0, so that the new entry never becomes the first of a leaf.
template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::insert_with_neighbour(Path& path, const Entry& entry) {
  if (height_ == 0) return false;
  Inner* parent = path.steps[height_ - 1].node;
  const uint32_t slot = path.steps[height_ - 1].slot;
  const uint32_t in_left = slot > 0 ? parent->counts[slot - 1] : Leaf::kFull;
  const uint32_t in_right = slot + 1 < parent->count ? parent->counts[slot + 1] : Leaf::kFull;
  const uint32_t room = Leaf::kFull - std::min(in_left, in_right);
  if (room < kMinSharedRoom) return false;
  Leaf* leaf = path.leaf;
  const uint32_t moved = room / 2;
  if (in_left <= in_right) {
    leaf->prev->take_head(leaf, moved);
    if (path.at <= moved) {
      leaf->prev->insert(in_left + path.at, entry);
    } else {
      leaf->insert(path.at - moved, entry);
    }
    parent->keys().set(slot, leaf->first());
    parent->counts[slot - 1] = leaf->prev->count;
  } else {
    const uint32_t kept = leaf->count - moved;
    leaf->next->take_tail_in_front(leaf, moved);
    if (path.at > kept) {
      leaf->next->insert(path.at - kept, entry);
    } else {
      leaf->insert(path.at, entry);
    }
    parent->keys().set(slot + 1, leaf->next->first());
    parent->counts[slot + 1] = leaf->next->count;
  }
  parent->counts[slot] = leaf->count;
  return true;
}

// Adds a node that was split off to the right of the one at path.steps[level].
template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::add_child(Path& path, int level, void* child, uint64_t entries,
                                              Entry first, bool at_left) {
  for (; level >= 0; --level) {
    Inner* node = path.steps[level].node;
    const uint32_t at = path.steps[level].slot + 1;
    node->counts[at - 1] -= static_cast<uint32_t>(entries);
    if (node->count < Inner::kFull) {
      node->insert(at, child, entries, first);
      return;
    }
    Inner* right = Inner::create();
    ++inners_;
    const uint32_t middle = at == node->count ? node->count : at_left ? 1 : node->count / 2;
    const bool to_right = at > middle || at == node->count || at_left;
    right->take_tail(node, middle);
    if (to_right) {
      right->insert(at - middle, child, entries, first);
    } else {
      node->insert(at, child, entries, first);
    }
    child = right;
    entries = right->entries_before(right->count);
    first = right->keys().get(0);  // Key 0 of the new node. It was exact at its old place.
  }
  Inner* root = Inner::create();
  ++inners_;
  root->insert(0, root_, size_ - entries, first);  // Key 0 is never read.
  root->insert(1, child, entries, first);
  root_ = root;
  height_ = (height_ + 1) & 0xff;
  CHECK(height_ <= kMaxHeight);
}

// --- Erase ---

template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::erase(uint64_t major, uint64_t minor, Value value) {
  Path path;
  if (!locate(Entry{major, minor, value}, path)) return false;
  remove_at(path);
  return true;
}

template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::replace_value(uint64_t major, uint64_t minor, Value from,
                                                  Value to) {
  Path path;
  if (!locate(Entry{major, minor, from}, path)) return false;
  const Entry entry{major, minor, to};
  path.leaf->keys().set(path.at, entry);
  if (path.at == 0) set_first(path, static_cast<int>(height_) - 1, entry);
  return true;
}

template <class Value, class TieOrder>
auto OrderedIndex<Value, TieOrder>::pop_front() -> Entry {
  Path path;
  lead_to_first(path);
  const Entry entry = first_->first();
  remove_at(path);
  return entry;
}

template <class Value, class TieOrder>
auto OrderedIndex<Value, TieOrder>::pop_back() -> Entry {
  Path path;
  path.leaf = last_;
  path.at = last_->count - 1u;
  void* node = root_;
  for (uint32_t level = 0; level < height_; ++level) {
    auto* inner = static_cast<Inner*>(node);
    path.steps[level] = {inner, inner->count - 1};
    node = inner->children[inner->count - 1];
  }
  const Entry entry = last_->last();
  remove_at(path);
  return entry;
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::remove_at(Path& path) {
  const int bottom = static_cast<int>(height_) - 1;
  for (int level = 0; level <= bottom; ++level) {
    --path.steps[level].node->counts[path.steps[level].slot];
  }
  --size_;
  Leaf* leaf = path.leaf;
  leaf->remove(path.at);
  if (leaf->count == 0) {
    drop_leaf(leaf);
    if (bottom >= 0) return remove_child(path, bottom, path.steps[bottom].slot);
    root_ = nullptr;
    return;
  }
  if (path.at == 0) set_first(path, bottom, leaf->first());
  if (leaf->count > kSparse) return;
  if (bottom >= 0) {
    // Checked at 16, 8, 4, 2 and 1 entries only: looking at a neighbour costs a cache miss.
    if ((leaf->count & (leaf->count - 1)) == 0) join_leaf(path);
  } else if (leaf->count <= 4 && leaf->capacity == Leaf::kFull) {
    grow_root(16);
  }
}

// The first entry below path.steps[level] has changed. The subtree's key is kept where the path
// first turns right.
template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::set_first(Path& path, int level, const Entry& first) {
  for (; level >= 0; --level) {
    if (path.steps[level].slot == 0) continue;
    path.steps[level].node->keys().set(path.steps[level].slot, first);
    return;
  }
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::drop_leaf(Leaf* leaf) {
  (leaf->prev == nullptr ? first_ : leaf->prev->next) = leaf->next;
  (leaf->next == nullptr ? last_ : leaf->next->prev) = leaf->prev;
  std::free(leaf);
  --leaves_;
}

// Removes a freed child from its parent. Parents that become empty are removed as well.
template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::remove_child(Path& path, int level, uint32_t slot) {
  Inner* node = path.steps[level].node;
  while (node->count == 1) {
    std::free(node);
    --inners_;
    CHECK(level > 0);  // The root has at least two children.
    node = path.steps[--level].node;
    slot = path.steps[level].slot;
  }
  if (slot == 0) set_first(path, level - 1, node->keys().get(1));
  node->remove(slot);
  if (level > 0) {
    if (node->count <= kSparse && (node->count & (node->count - 1)) == 0) join_inner(path, level);
    return;
  }
  while (height_ > 0 && static_cast<Inner*>(root_)->count == 1) {
    auto* root = static_cast<Inner*>(root_);
    root_ = root->children[0];
    std::free(root);
    --inners_;
    height_ = (height_ - 1) & 0xff;
  }
}

// Joins the leaf of the path with a neighbour under the same parent, if the result leaves enough
// room.
template <class Value, class TieOrder>
bool OrderedIndex<Value, TieOrder>::join_leaf(Path& path) {
  const int level = static_cast<int>(height_) - 1;
  Inner* parent = path.steps[level].node;
  const uint32_t slot = path.steps[level].slot;
  for (const uint32_t left : {slot, slot - 1}) {  // slot - 1 may wrap; the comparison fails then.
    if (left >= parent->count - 1) continue;
    if (parent->counts[left] + parent->counts[left + 1] > kMaxJoined) continue;
    auto* right_leaf = static_cast<Leaf*>(parent->children[left + 1]);
    static_cast<Leaf*>(parent->children[left])->take_tail(right_leaf, 0);
    parent->counts[left] += parent->counts[left + 1];
    drop_leaf(right_leaf);
    remove_child(path, level, left + 1);
    return true;
  }
  return false;
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::join_inner(Path& path, int level) {
  Inner* parent = path.steps[level - 1].node;
  const uint32_t slot = path.steps[level - 1].slot;
  for (const uint32_t left : {slot, slot - 1}) {
    if (left >= parent->count - 1) continue;
    auto* left_node = static_cast<Inner*>(parent->children[left]);
    auto* right_node = static_cast<Inner*>(parent->children[left + 1]);
    if (left_node->count + right_node->count > kMaxJoined) continue;
    right_node->keys().set(0, parent->keys().get(left + 1));  // It is read from now on.
    left_node->take_tail(right_node, 0);
    parent->counts[left] += parent->counts[left + 1];
    std::free(right_node);
    --inners_;
    return remove_child(path, level - 1, left + 1);
  }
}

// --- The whole tree ---

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::free_below(void* node, int height) {
  if (height > 0) {
    auto* inner = static_cast<Inner*>(node);
    for (uint32_t i = 0; i < inner->count; ++i) free_below(inner->children[i], height - 1);
  }
  std::free(node);
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::clear() {
  if (root_ != nullptr) free_below(root_, static_cast<int>(height_));
  root_ = nullptr;
  first_ = last_ = nullptr;
  size_ = 0;
  leaves_ = 0;
  inners_ = 0;
  height_ = 0;
}

template <class Value, class TieOrder>
void OrderedIndex<Value, TieOrder>::check() const {
  uint64_t leaves = 0;
  uint64_t entries = 0;
  const Leaf* previous = nullptr;
  for (const Leaf* leaf = first_; leaf != nullptr; leaf = leaf->next) {
    CHECK(leaf->prev == previous && leaf->count > 0);
    CHECK(leaf->begin + leaf->count <= leaf->capacity);
    CHECK(height_ == 0 || leaf->capacity == Leaf::kFull);
    for (uint32_t i = 1; i < leaf->count; ++i) CHECK(!before(leaf->entry(i), leaf->entry(i - 1)));
    if (previous != nullptr) CHECK(!before(leaf->first(), previous->last()));
    ++leaves;
    entries += leaf->count;
    previous = leaf;
  }
  CHECK(last_ == previous && leaves == leaves_ && entries == size_);
  CHECK((root_ == nullptr) == (size_ == 0));
  if (root_ == nullptr) return;
  CHECK(height_ == 0 || static_cast<const Inner*>(root_)->count >= 2);
  Entry first;
  CHECK(check_below(root_, static_cast<int>(height_), &first) == size_);
}

template <class Value, class TieOrder>
uint64_t OrderedIndex<Value, TieOrder>::check_below(const void* node, int height,
                                                    Entry* first) const {
  if (height == 0) {
    *first = static_cast<const Leaf*>(node)->first();
    return static_cast<const Leaf*>(node)->count;
  }
  const auto* inner = static_cast<const Inner*>(node);
  CHECK(inner->count >= 1 && inner->count <= Inner::kFull);
  uint64_t sum = 0;
  for (uint32_t i = 0; i < inner->count; ++i) {
    Entry below;
    const uint64_t entries = check_below(inner->children[i], height - 1, &below);
    CHECK(entries == inner->counts[i]);
    sum += entries;
    if (i == 0) {
      *first = below;
      continue;
    }
    const Entry key = inner->keys().get(i);
    CHECK(key.major == below.major && key.minor == below.minor && key.value == below.value);
  }
  return sum;
}

}  // namespace sluice
