// Request: a command's words as a client has sent them, and what is looked up once for all who ask
// about it before it runs: its row, and the hash of its first key where a pipeline fetched that
// ahead.
//
// Views: the words live as long as the request is used. Any thread.
#pragma once

#include <span>

#include "engine/base/bytes.h"
#include "engine/keyspace/lent_word.h"
#include "engine/keyspace/shard.h"
#include "engine/table/command.h"

namespace sluice {

struct Request {
  Request() = default;
  // `words` is not empty.
  explicit Request(std::span<const Bytes> words)
      : args(words), command(CommandTable::instance().find(words[0])) {
    if (command == nullptr || (command->flags & kContainer) == 0 || words.size() == 1) return;
    const Command* subcommand = CommandTable::find_subcommand(*command, words[1]);
    if (subcommand != nullptr) command = subcommand;
  }

  // A container's name with a word behind it that is none of its subcommands.
  bool names_unknown_subcommand() const {
    return (command->flags & kContainer) != 0 && args.size() > 1;
  }

  std::span<const Bytes> args;
  const Command* command = nullptr;  // null: there is no such command
  KeyRef first_key;                  // empty where nobody has looked at it yet
  LentWord* lent = nullptr;          // null: the command keeps none of the words
};

}  // namespace sluice
