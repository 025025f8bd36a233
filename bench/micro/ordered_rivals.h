// The alternatives to OrderedIndex, small but fair: a 4-ary heap that knows the position of each
// element, and a skip list with spans (the structure of Redis's sorted sets). For the benchmark
// only; element ids are small integers, keys are (major, minor).
#pragma once

#include <cstdint>
#include <cstdlib>
#include <utility>
#include <vector>

namespace sluice::bench {

struct RivalEntry {
  uint64_t major;
  uint64_t minor;
  uint32_t id;

  bool operator<(const RivalEntry& other) const {
    if (major != other.major) return major < other.major;
    if (minor != other.minor) return minor < other.minor;
    return id < other.id;
  }
};

class IndexedHeap {
 public:
  void insert(const RivalEntry& entry) {
    if (entry.id >= position_.size()) position_.resize(entry.id + 1);
    heap_.push_back(entry);
    rise(heap_.size() - 1, entry);
  }
  RivalEntry pop_front() {
    const RivalEntry top = heap_.front();
    const RivalEntry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sink(0, last);
    return top;
  }
  void move(const RivalEntry&, const RivalEntry& to) {
    const size_t at = position_[to.id];
    if (to < heap_[at]) {
      rise(at, to);
    } else {
      sink(at, to);
    }
  }
  size_t memory_bytes() const {
    return heap_.capacity() * sizeof(RivalEntry) + position_.capacity() * sizeof(uint32_t);
  }

 private:
  void put(size_t at, const RivalEntry& entry) {
    heap_[at] = entry;
    position_[entry.id] = static_cast<uint32_t>(at);
  }
  void rise(size_t at, const RivalEntry& entry) {
    while (at > 0 && entry < heap_[(at - 1) / 4]) {
      put(at, heap_[(at - 1) / 4]);
      at = (at - 1) / 4;
    }
    put(at, entry);
  }
  void sink(size_t at, const RivalEntry& entry) {
    for (;;) {
      const size_t first = at * 4 + 1;
      if (first >= heap_.size()) break;
      size_t least = first;
      for (size_t i = first + 1; i < first + 4 && i < heap_.size(); ++i) {
        if (heap_[i] < heap_[least]) least = i;
      }
      if (!(heap_[least] < entry)) break;
      put(at, heap_[least]);
      at = least;
    }
    put(at, entry);
  }

  std::vector<RivalEntry> heap_;
  std::vector<uint32_t> position_;
};

class SkipList {
 public:
  SkipList() : head_(create(kMaxLevel, {0, 0, 0})) {}
  ~SkipList() {
    for (Node* node = head_; node != nullptr;) std::free(std::exchange(node, node->links[0].next));
  }
  SkipList(const SkipList&) = delete;
  SkipList& operator=(const SkipList&) = delete;

  void insert(const RivalEntry& entry) {
    Node* last[kMaxLevel];
    uint64_t rank[kMaxLevel];
    find(entry, last, rank);
    int level = 1;
    while (level < kMaxLevel && next_random() % 4 == 0) ++level;
    for (; level_ < level; ++level_) {
      last[level_] = head_;
      rank[level_] = 0;
      head_->links[level_] = {nullptr, size_};
    }
    Node* node = create(level, entry);
    for (int i = 0; i < level; ++i) {
      Link& link = last[i]->links[i];
      node->links[i] = {link.next, link.span - (rank[0] - rank[i])};
      link = {node, rank[0] - rank[i] + 1};
    }
    for (int i = level; i < level_; ++i) ++last[i]->links[i].span;
    ++size_;
  }
  RivalEntry pop_front() {
    const RivalEntry entry = head_->links[0].next->entry;
    erase(entry);
    return entry;
  }
  void move(const RivalEntry& from, const RivalEntry& to) {
    erase(from);
    insert(to);
  }
  uint64_t rank(const RivalEntry& entry) {
    Node* last[kMaxLevel];
    uint64_t ranks[kMaxLevel];
    find(entry, last, ranks);
    return ranks[0];
  }
  size_t memory_bytes() const { return bytes_; }

 private:
  struct Node;
  struct Link {
    Node* next;
    uint64_t span;
  };
  struct Node {
    RivalEntry entry;
    int level;
    Link links[1];
  };
  static constexpr int kMaxLevel = 20;

  static size_t node_bytes(int level) {
    return sizeof(Node) + static_cast<size_t>(level - 1) * sizeof(Link);
  }
  Node* create(int level, const RivalEntry& entry) {
    bytes_ += node_bytes(level);
    auto* node = static_cast<Node*>(std::calloc(1, node_bytes(level)));
    if (node == nullptr) std::abort();
    node->entry = entry;
    node->level = level;
    return node;
  }
  uint64_t next_random() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return state_ >> 40;
  }
  void find(const RivalEntry& entry, Node** last, uint64_t* rank) {
    Node* node = head_;
    uint64_t passed = 0;
    int i = level_;
    do {
      --i;
      while (node->links[i].next != nullptr && node->links[i].next->entry < entry) {
        passed += node->links[i].span;
        node = node->links[i].next;
      }
      last[i] = node;
      rank[i] = passed;
    } while (i > 0);
  }
  void erase(const RivalEntry& entry) {
    Node* last[kMaxLevel];
    uint64_t rank[kMaxLevel];
    find(entry, last, rank);
    Node* node = last[0]->links[0].next;
    for (int i = 0; i < level_; ++i) {
      Link& link = last[i]->links[i];
      if (link.next == node) {
        link = {node->links[i].next, link.span + node->links[i].span - 1};
      } else {
        --link.span;
      }
    }
    bytes_ -= node_bytes(node->level);
    std::free(node);
    --size_;
  }

  size_t bytes_ = 0;
  uint64_t size_ = 0;
  uint64_t state_ = 42;
  int level_ = 1;
  Node* head_;
};

}  // namespace sluice::bench
