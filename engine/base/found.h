// Found: the result of a look-up: an object, nothing, or an error that has been replied.
//
//   const Found<const Entry> entry = call.find(key, Type::kHash);
//   if (entry.refused()) return;
//
// Plain value; it does not own the object.
#pragma once

#include <type_traits>

namespace sluice {

template <class T>
class [[nodiscard]] Found {
 public:
  // Null means that nothing was found.
  Found(T* object) : object_(object) {}
  template <class U>
  requires(!std::is_same_v<U, T> && std::is_convertible_v<U*, T*>) Found(const Found<U>& other)
      : object_(other), refused_(other.refused()) {}
  // The result of a look-up whose error has been replied.
  static Found refusal() {
    Found found(nullptr);
    found.refused_ = true;
    return found;
  }

  bool refused() const { return refused_; }
  operator T*() const { return object_; }
  T* operator->() const { return object_; }

 private:
  T* object_;
  bool refused_ = false;
};

}  // namespace sluice
