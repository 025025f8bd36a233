#include "engine/commands/standalone.h"

#include "engine/execution/call.h"

namespace sluice {

void cluster_disabled_command(Call& call) {
  call.reply.error("ERR This instance has cluster support disabled");
}

void module_list_command(Call& call) { call.reply.array(0); }

void module_refused_command(Call& call) {
  call.reply.error(
      "ERR MODULE command not allowed. If the enable-module-command option is set to \"local\", "
      "you can run it from a local connection, otherwise you need to set this option in the "
      "configuration file, and then restart the server.");
}

namespace {

struct Refusal {
  const char* name;
  const char* text;
};

constexpr Refusal kRefusals[] = {
    {"migrate",
     "ERR MIGRATE is refused, because it would block the server on the network. Use DUMP here and "
     "RESTORE there"},
    {"restore-asking", "ERR RESTORE-ASKING is refused, since there is no cluster. Use RESTORE"},
};

}  // namespace

void refused_command(Call& call) {
  for (const Refusal& refusal : kRefusals) {
    if (Bytes(refusal.name) == call.command.name) return call.reply.error(refusal.text);
  }
  std::string name(call.command.name);
  for (char& c : name) c = static_cast<char>(c - 32);  // all letters are lower-case
  call.reply.error("ERR " + name + " is refused, since there is no replication");
}

}  // namespace sluice
