// Strings.
#include "engine/commands/call.h"
#include "engine/commands/families.h"

namespace sluice {
namespace {
void get_command(Call& call) {
  bool failed = false;
  const Entry* entry = call.find(call.key(1), Type::kString, failed);
  if (failed) return;
  if (entry == nullptr) return call.reply.null();
  call.reply.bulk(entry->string());
}
void set_command(Call& call) {
  const KeyRef key = call.key(1);
  call.database(key).put_string(key, call.args[2], 0);
  call.reply.ok();
}
constexpr KeySpec one(uint32_t flags) {
  return {.flags = flags, .begin = KeySpec::Begin::kIndex, .index = 1, .find = KeySpec::Find::kRange};
}
const Command kRows[] = {
    {.name = "get", .arity = 2, .flags = kReadonly | kFast, .keys = {one(kKeyRo)}, .handler = get_command},
    {.name = "set", .arity = -3, .flags = kWrite | kDenyOom, .keys = {one(kKeyOw)}, .handler = set_command},
};
}  // namespace
const std::span<const Command> kStringCommands(kRows);
}  // namespace sluice
