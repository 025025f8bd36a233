// FunctionLibrary: the text of one library of FUNCTION LOAD, and the functions that it registers.
// FunctionSet: all libraries at one moment.
//
// Both are constant once made and shared by all threads; whoever changes something makes a new set.
// Names of libraries tell upper from lower case, names of functions do not, as in Redis.
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

namespace sluice {

struct FunctionInfo {
  std::string name;
  std::optional<std::string> description;
  uint32_t flags = 0;  // kScriptNoWrites and its relatives
};

struct FunctionLibrary {
  std::string name;
  std::string code;
  // Where Lua begins in `code`: at the end of its first line.
  size_t code_begin = 0;
  std::vector<FunctionInfo> functions;
  // One of its functions reached for keys outside of its KEYS once: from then on they get all
  // shards. Set by any thread.
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

  // Null: there is none of this name.
  const Place* find(Bytes function) const;
  // Puts a library in, in place of the one of its name. REQUIRES: clash() is empty.
  void put(const LibraryPointer& library);
  void remove(Bytes library);
  // The name of a function that another library has already. Empty: none.
  std::string clash(const FunctionLibrary& library) const;
};

// Letters, digits and underscores, one at least.
bool is_library_name(Bytes name);

// Reads the first line, `#!lua name=...`, into `name` and `code_begin`. Empty: understood; else the
// error message.
std::string parse_library_head(FunctionLibrary& library);

// The functions of a library as one value of a record, and back. False: damaged.
std::string encode_functions(const FunctionLibrary& library);
bool decode_functions(Bytes record, FunctionLibrary& library);

// The names that flags of functions have, in the order of FUNCTION LIST.
struct FunctionFlagName {
  Bytes name;
  uint32_t flag;
};
extern const FunctionFlagName kFunctionFlagNames[5];

}  // namespace sluice
