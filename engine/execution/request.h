// Request: a command's words as sent by a client, and values that are looked up once before it
// runs: its row, and the hash of its first key if a pipeline prefetched that.
//
// Views: the words must outlive the request. For any thread.
#pragma once

#include <span>

#include "engine/base/bytes.h"
#include "engine/keyspace/lent_word.h"
#include "engine/keyspace/shard.h"
#include "engine/table/command.h"

namespace sluice {

struct Request {
  Request() = default;
  // REQUIRES: `words` is not empty.
  explicit Request(std::span<const Bytes> words)
      : args(words), command(CommandTable::instance().find(words[0])) {
    if (command == nullptr || (command->flags & kContainer) == 0 || words.size() == 1) return;
    const Command* subcommand = CommandTable::find_subcommand(*command, words[1]);
    if (subcommand != nullptr) command = subcommand;
  }

  // Whether it is a container's name followed by an unknown subcommand.
  bool names_unknown_subcommand() const {
    return (command->flags & kContainer) != 0 && args.size() > 1;
  }

  std::span<const Bytes> args;
  const Command* command = nullptr;  // null: unknown command
  KeyRef first_key;                  // empty if it was not prefetched
  LentWord* lent = nullptr;          // null: the command cannot keep any of the words
};

}  // namespace sluice
