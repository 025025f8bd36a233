#include "engine/commands/standalone.h"

#include "engine/base/numbers.h"
#include "engine/commands/call.h"
#include "engine/commands/help.h"

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

void module_help_command(Call& call) { reply_help(call); }

void replicaof_command(Call& call) {
  if (call.option(1, "NO") && call.option(2, "ONE")) return call.reply.ok();
  constexpr int64_t kMaxPort = 65535;
  const auto port = parse_i64(call.args[2]);
  if (!port || *port < 0 || *port > kMaxPort) return call.reply.error("ERR Invalid master port");
  call.reply.error("ERR this server cannot be a replica of another one");
}

}  // namespace sluice
