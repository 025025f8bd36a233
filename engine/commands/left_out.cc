#include "engine/commands/left_out.h"

#include <vector>

namespace sluice {

namespace {

constexpr uint32_t kAdminOnly = kAclAdmin | kAclSlow | kAclDangerous;
constexpr uint32_t kGeoRead = kAclRead | kAclGeo | kAclSlow;
constexpr uint32_t kGeoWrite = kAclWrite | kAclGeo | kAclSlow;

// The value behind an option's word is a key.
constexpr KeySpec key_behind(const char* word, int from, uint32_t flags) {
  return {.flags = flags,
          .begin = KeySpec::Begin::kKeyword,
          .index = from,
          .keyword = word,
          .find = KeySpec::Find::kRange};
}

constexpr KeySpec kReadKey = keys_at(1, kKeyRo | kKeyAccess);
constexpr Command geo_read(const char* name, int arity) {
  return {.name = name, .arity = arity, .acl = kGeoRead, .keys = {kReadKey}};
}

// GEORADIUS and GEORADIUSBYMEMBER may keep what they find.
constexpr Command geo_radius(const char* name, int arity) {
  return {.name = name,
          .arity = arity,
          .acl = kGeoWrite,
          .keys = {kReadKey, key_behind("STORE", -arity, kKeyOw | kKeyUpdate),
                   key_behind("STOREDIST", -arity, kKeyOw | kKeyUpdate)}};
}

constexpr Command kRows[] = {
    {.name = "geoadd", .arity = -5, .acl = kGeoWrite, .keys = {keys_at(1, kKeyRw | kKeyUpdate)}},
    geo_read("geodist", -4),
    geo_read("geohash", -2),
    geo_read("geopos", -2),
    geo_radius("georadius", -6),
    geo_read("georadius_ro", -6),
    geo_radius("georadiusbymember", -5),
    geo_read("georadiusbymember_ro", -5),
    geo_read("geosearch", -7),
    {.name = "geosearchstore",
     .arity = -8,
     .acl = kGeoWrite,
     .keys = {keys_at(1, kKeyOw | kKeyUpdate), keys_at(2, kKeyRo | kKeyAccess)}},
    {.name = "pfadd",
     .arity = -2,
     .acl = kAclWrite | kAclHyperloglog | kAclFast,
     .keys = {keys_at(1, kKeyRw | kKeyInsert)}},
    {.name = "pfcount",
     .arity = -2,
     .acl = kAclRead | kAclHyperloglog | kAclSlow,
     .keys = {keys_at(1, kKeyRw | kKeyAccess, -1)}},
    {.name = "pfdebug",
     .arity = 3,
     .acl = kAclWrite | kAclHyperloglog | kAdminOnly,
     .keys = {keys_at(2, kKeyRw | kKeyAccess)}},
    {.name = "pfmerge",
     .arity = -2,
     .acl = kAclWrite | kAclHyperloglog | kAclSlow,
     .keys = {keys_at(1, kKeyRw | kKeyAccess | kKeyInsert), keys_at(2, kKeyRo | kKeyAccess, -1)}},
    {.name = "pfselftest", .arity = 1, .acl = kAclHyperloglog | kAdminOnly},
};

}  // namespace

std::span<const Command> left_out_commands() {
  static const std::vector<Command> rows = [] {
    std::vector<Command> numbered(std::begin(kRows), std::end(kRows));
    size_t id = CommandTable::instance().id_limit();
    for (Command& row : numbered) row.id = static_cast<uint16_t>(id++);
    return numbered;
  }();
  return rows;
}

const Command* find_left_out_command(Bytes name) {
  const auto rows = left_out_commands();
  for (const Command& row : rows) {
    if (equals_ignore_case(row.name, name)) return &row;
  }
  return nullptr;
}

size_t rule_command_count() {
  return CommandTable::instance().id_limit() + left_out_commands().size();
}

const Command& rule_command(size_t id) {
  const CommandTable& table = CommandTable::instance();
  return id < table.id_limit() ? table.by_id(id) : left_out_commands()[id - table.id_limit()];
}

}  // namespace sluice
