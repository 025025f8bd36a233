// FunctionLibrary: the text of one library of FUNCTION LOAD, and the functions that it registers.
// FunctionSet: all libraries at one moment.
//
// Both are constant once made and shared by all threads; a change makes a new set. Names of
// libraries are case-sensitive, names of functions are not, as in Redis.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/status.h"

namespace sluice {

struct FunctionInfo {
  std::string name;
  std::optional<std::string> description;
  uint32_t flags = 0;  // kScriptNoWrites and the other flags
};

struct FunctionLibrary {
  std::string name;
  std::string code;
  // The offset of the Lua code in `code`: the end of the first line.
  size_t code_begin = 0;
  std::vector<FunctionInfo> functions;
  // One of its functions has accessed keys outside of its KEYS: from then on they get all shards.
  // Set by any thread.
  mutable std::atomic<bool> reaches_further{false};
};

using LibraryPointer = std::shared_ptr<const FunctionLibrary>;

struct FunctionSet {
  struct Place {
    LibraryPointer library;
    size_t index;
  };
  std::map<std::string, LibraryPointer, std::less<>> libraries;
  std::unordered_map<std::string, Place> functions;  // by name in lower case

  // Null if no function has this name.
  const Place* find(Bytes function) const;
  // Adds a library, replacing the one of its name. REQUIRES: clash() is empty.
  void put(const LibraryPointer& library);
  void remove(Bytes library);
  // The name of a function that another library already has, or an empty text.
  std::string clash(const FunctionLibrary& library) const;
};

// Letters, digits and underscores, at least one.
bool is_library_name(Bytes name);

// Parses the first line, `#!lua name=...`, into `name` and `code_begin`.
Status parse_library_head(FunctionLibrary& library);

// Encode the functions of a library as the value of a record, and decode them. Decoding returns
// nothing for damage.
std::string encode_functions(const FunctionLibrary& library);
std::optional<std::vector<FunctionInfo>> decode_functions(Bytes record);

}  // namespace sluice
