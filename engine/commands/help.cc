#include "engine/commands/help.h"

#include "engine/execution/call.h"

namespace sluice {

void reply_subcommand_error(Call& call) {
  call.reply.error("ERR unknown subcommand or wrong number of arguments for '" +
                   std::string(call.args[1].substr(0, 128)) + "'. Try " +
                   to_upper(call.command.container->name) + " HELP.");
}

void reply_help(Call& call) {
  const Command& container = *call.command.container;
  call.reply.array(1 + 2 * container.subcommands.size());
  call.reply.simple(to_upper(container.name) +
                    " <subcommand> [<arg> [value] [opt] ...]. Subcommands are:");
  for (const Command& row : container.subcommands) {
    std::string line = to_upper(row.name);
    if (row.syntax[0] != 0) line += std::string(" ") + row.syntax;
    call.reply.simple(line);
    call.reply.simple(std::string("    ") + row.summary);
  }
}

}  // namespace sluice
