#include "engine/script/function_library.h"

#include <algorithm>
#include <span>

#include "engine/base/characters.h"
#include "engine/base/quoting.h"
#include "engine/base/varint.h"

namespace sluice {

// --- FunctionSet ---

const FunctionSet::Place* FunctionSet::find(Bytes function) const {
  const auto found = functions.find(to_lower(function));
  return found == functions.end() ? nullptr : &found->second;
}

void FunctionSet::put(const LibraryPointer& library) {
  remove(library->name);
  libraries[library->name] = library;
  for (size_t i = 0; i < library->functions.size(); ++i) {
    functions[to_lower(library->functions[i].name)] = {library, i};
  }
}

void FunctionSet::remove(Bytes library) {
  const auto found = libraries.find(library);
  if (found == libraries.end()) return;
  for (const FunctionInfo& function : found->second->functions) {
    // Replay puts the libraries of a FUNCTION RESTORE one after the other: a function that moves
    // to another library may be that one's already.
    const auto place = functions.find(to_lower(function.name));
    if (place != functions.end() && place->second.library == found->second) functions.erase(place);
  }
  libraries.erase(found);
}

std::string FunctionSet::clash(const FunctionLibrary& library) const {
  for (const FunctionInfo& function : library.functions) {
    const Place* const place = find(function.name);
    if (place != nullptr && place->library->name != library.name) return function.name;
  }
  return {};
}

// --- The first line ---

bool is_library_name(Bytes name) {
  const auto fits = [](char c) { return is_letter_or_digit(c) || c == '_'; };
  return !name.empty() && std::all_of(name.begin(), name.end(), fits);
}

Status parse_library_head(FunctionLibrary& library) {
  const Bytes code = library.code;
  if (code.substr(0, 2) != "#!") return refusal("ERR Missing library metadata");
  library.code_begin = code.find('\n');
  if (library.code_begin == Bytes::npos) return refusal("ERR Invalid library metadata");
  std::string line(code.substr(0, library.code_begin));
  std::vector<Bytes> words;
  if (!split_quoted_args(line, words)) return refusal("ERR Invalid library metadata");
  bool named = false;
  for (const Bytes word : std::span(words).subspan(1)) {
    constexpr Bytes kName = "name=";
    if (!equals_ignore_case(word.substr(0, kName.size()), kName)) {
      return refusal("ERR Invalid metadata value given: " + std::string(word));
    }
    if (named) {
      return refusal("ERR Invalid metadata value, name argument was given multiple times");
    }
    library.name = word.substr(kName.size());
    named = true;
  }
  if (!named) return refusal("ERR Library name was not given");
  if (!is_library_name(library.name)) {
    return refusal(
        "ERR Library names can only contain letters, numbers, or underscores(_) and must be at "
        "least one character long");
  }
  const Bytes engine = words[0].substr(2);
  if (!equals_ignore_case(engine, "lua")) {
    return refusal("ERR Engine '" + std::string(engine) + "' not found");
  }
  return {};
}

// --- Records ---

std::string encode_functions(const FunctionLibrary& library) {
  std::string out;
  for (const FunctionInfo& function : library.functions) {
    put_bytes(out, function.name);
    put_varint(out, function.flags);
    put_varint(out, function.description.has_value() ? 1 : 0);
    if (function.description.has_value()) put_bytes(out, *function.description);
  }
  return out;
}

std::optional<std::vector<FunctionInfo>> decode_functions(Bytes record) {
  std::vector<FunctionInfo> functions;
  while (!record.empty()) {
    Bytes name;
    Bytes description;
    uint64_t flags = 0;
    uint64_t described = 0;
    if (!take_bytes(record, name) || !take_varint(record, flags) ||
        !take_varint(record, described) || (described != 0 && !take_bytes(record, description))) {
      return std::nullopt;
    }
    FunctionInfo function{std::string(name), std::nullopt, static_cast<uint32_t>(flags)};
    if (described != 0) function.description = description;
    functions.push_back(std::move(function));
  }
  return functions;
}

}  // namespace sluice
