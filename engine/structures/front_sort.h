// FrontSort: a partial sort. Afterwards the first `count` elements are those that a whole sort
// would put there, in their order.
//
// J. L. Bentley and M. D. McIlroy, "Engineering a sort function", 1993, without sorting the parts
// after `count`. It is not stable: equal elements come in the order that Redis chooses, because
// replies show it. Pure; O(n log n), mostly O(n + count log count).
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <utility>

namespace sluice {

template <class Element, class Compare>
class FrontSort {
 public:
  // compare(a, b) returns a negative number, zero or a positive number.
  explicit FrontSort(Compare compare) : compare_(compare) {}

  void run(std::span<Element> all, size_t count) {
    while (all.size() >= kFew) {
      using std::swap;
      swap(all[0], all[pivot(all)]);
      const auto [less, greater] = divide(all);
      if (less > 1) run(all.first(less), count);
      const size_t rest = all.size() - greater;
      if (greater <= 1 || rest >= count) return;
      all = all.last(greater);
      count -= rest;
    }
    for (size_t i = 1; i < all.size(); ++i) {
      for (size_t at = i; at > 0 && compare_(all[at - 1], all[at]) > 0; --at) {
        std::swap(all[at], all[at - 1]);
      }
    }
  }

 private:
  static constexpr size_t kFew = 7;
  static constexpr size_t kMany = 40;

  size_t median(std::span<Element> all, size_t a, size_t b, size_t c) {
    if (compare_(all[a], all[b]) < 0) {
      if (compare_(all[b], all[c]) < 0) return b;
      return compare_(all[a], all[c]) < 0 ? c : a;
    }
    if (compare_(all[b], all[c]) > 0) return b;
    return compare_(all[a], all[c]) < 0 ? a : c;
  }

  size_t pivot(std::span<Element> all) {
    const size_t size = all.size();
    size_t first = 0;
    size_t middle = size / 2;
    size_t last = size - 1;
    if (size == kFew) return middle;
    if (size > kMany) {
      const size_t eighth = size / 8;
      first = median(all, first, first + eighth, first + 2 * eighth);
      middle = median(all, middle - eighth, middle, middle + eighth);
      last = median(all, last - 2 * eighth, last - eighth, last);
    }
    return median(all, first, middle, last);
  }

  // Partitions around the first element: lesser elements, then equal ones, then greater ones.
  // Returns the number of lesser and of greater elements.
  std::pair<size_t, size_t> divide(std::span<Element> all) {
    const auto size = static_cast<std::ptrdiff_t>(all.size());
    Element* const at = all.data();
    // Equal elements gather at both ends: before equal_end and from equal_begin on.
    std::ptrdiff_t equal_end = 1;
    std::ptrdiff_t left = 1;
    std::ptrdiff_t right = size - 1;
    std::ptrdiff_t equal_begin = size - 1;
    for (;;) {
      for (int order = 0; left <= right && (order = compare_(at[left], at[0])) <= 0; ++left) {
        if (order == 0) std::swap(at[equal_end++], at[left]);
      }
      for (int order = 0; left <= right && (order = compare_(at[right], at[0])) >= 0; --right) {
        if (order == 0) std::swap(at[right], at[equal_begin--]);
      }
      if (left > right) break;
      std::swap(at[left++], at[right--]);
    }
    const std::ptrdiff_t less = left - equal_end;
    const std::ptrdiff_t greater = equal_begin - right;
    std::ptrdiff_t moved = std::min(equal_end, less);
    std::swap_ranges(at, at + moved, at + left - moved);
    moved = std::min(greater, size - equal_begin - 1);
    std::swap_ranges(at + left, at + left + moved, at + size - moved);
    return {static_cast<size_t>(less), static_cast<size_t>(greater)};
  }

  Compare compare_;
};

}  // namespace sluice
