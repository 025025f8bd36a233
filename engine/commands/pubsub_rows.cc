// The rows of the pub/sub family.
#include "engine/commands/pubsub.h"

#include "engine/commands/families.h"
#include "engine/commands/help.h"

namespace sluice {

namespace {

const Command kPubsubSubcommands[] = {
    help_row("6.2.0", kAclSlow),
    {.name = "channels",
     .flags = kPubsub | kLoading | kStale,
     .handler = pubsub_channels_command,
     .since = "2.8.0",
     .complexity = "O(N) where N is the number of active channels, and assuming constant time "
                   "pattern matching (relatively short channels and patterns)",
     .summary = "Lists the channels that have subscribers.",
     .syntax = "[pattern]"},
    {.name = "numsub",
     .flags = kPubsub | kLoading | kStale,
     .handler = pubsub_numsub_command,
     .since = "2.8.0",
     .complexity = "O(N) for the NUMSUB subcommand, where N is the number of requested channels",
     .summary = "Counts the subscribers of channels.",
     .syntax = "[channel [channel ...]]"},
    {.name = "numpat",
     .flags = kPubsub | kLoading | kStale,
     .handler = pubsub_numpat_command,
     .since = "2.8.0",
     .summary = "Counts the patterns that have subscribers."},
    {.name = "shardnumsub",
     .flags = kPubsub | kLoading | kStale,
     .handler = pubsub_shardnumsub_command,
     .since = "7.0.0",
     .complexity =
         "O(N) for the SHARDNUMSUB subcommand, where N is the number of requested shard channels",
     .summary = "Counts the subscribers of shard channels.",
     .syntax = "[shardchannel [shardchannel ...]]"},
    {.name = "shardchannels",
     .flags = kPubsub | kLoading | kStale,
     .handler = pubsub_shardchannels_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of active shard channels, and assuming constant "
                   "time pattern matching (relatively short shard channels).",
     .summary = "Lists the shard channels that have subscribers.",
     .syntax = "[pattern]"},
};

const Command kPubsubRows[] = {
    {.name = "subscribe",
     .flags = kPubsub | kNoScript | kLoading | kStale,
     .handler = subscribe_command,
     .since = "2.0.0",
     .complexity = "O(N) where N is the number of channels to subscribe to.",
     .summary = "Subscribes to channels.",
     .syntax = "channel [channel ...]",
     .channels = Channels::kEveryArgument},
    {.name = "unsubscribe",
     .flags = kPubsub | kNoScript | kLoading | kStale,
     .handler = unsubscribe_command,
     .since = "2.0.0",
     .complexity = "O(N) where N is the number of clients already subscribed to a channel.",
     .summary = "Unsubscribes from channels, or from all.",
     .syntax = "[channel [channel ...]]"},
    {.name = "psubscribe",
     .flags = kPubsub | kNoScript | kLoading | kStale,
     .handler = psubscribe_command,
     .since = "2.0.0",
     .complexity = "O(N) where N is the number of patterns the client is already subscribed to.",
     .summary = "Subscribes to channels that match patterns.",
     .syntax = "pattern [pattern ...]",
     .channels = Channels::kPatterns},
    {.name = "punsubscribe",
     .flags = kPubsub | kNoScript | kLoading | kStale,
     .handler = punsubscribe_command,
     .since = "2.0.0",
     .complexity = "O(N+M) where N is the number of patterns the client is already subscribed and "
                   "M is the number of total patterns subscribed in the system (by any client).",
     .summary = "Unsubscribes from patterns, or from all.",
     .syntax = "[pattern [pattern ...]]"},
    {.name = "ssubscribe",
     .flags = kPubsub | kNoScript | kLoading | kStale,
     .keys = {keys_at(1, kKeyNotKey, -1)},
     .handler = ssubscribe_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of shard channels to subscribe to.",
     .summary = "Subscribes to shard channels.",
     .syntax = "shardchannel [shardchannel ...]",
     .channels = Channels::kEveryArgument},
    {.name = "sunsubscribe",
     .flags = kPubsub | kNoScript | kLoading | kStale,
     .keys = {keys_at(1, kKeyNotKey, -1)},
     .handler = sunsubscribe_command,
     .since = "7.0.0",
     .complexity = "O(N) where N is the number of clients already subscribed to a shard channel.",
     .summary = "Unsubscribes from shard channels, or from all.",
     .syntax = "[shardchannel [shardchannel ...]]"},
    {.name = "publish",
     .flags = kPubsub | kLoading | kStale | kFast | kSeenByOthers,
     .handler = publish_command,
     .since = "2.0.0",
     .complexity = "O(N+M) where N is the number of clients subscribed to the receiving channel "
                   "and M is the total number of subscribed patterns (by any client).",
     .summary = "Sends a message to a channel.",
     .syntax = "channel message",
     .channels = Channels::kFirstArgument},
    {.name = "spublish",
     .flags = kPubsub | kLoading | kStale | kFast | kSeenByOthers,
     .keys = {keys_at(1, kKeyNotKey)},
     .handler = spublish_command,
     .since = "7.0.0",
     .complexity =
         "O(N) where N is the number of clients subscribed to the receiving shard channel.",
     .summary = "Sends a message to a shard channel.",
     .syntax = "shardchannel message",
     .channels = Channels::kFirstArgument},
    {.name = "pubsub",
     .flags = kContainer,
     .subcommands = kPubsubSubcommands,
     .since = "2.8.0",
     .complexity = "Depends on subcommand.",
     .summary = "Shows channels and their subscribers."},
};

}  // namespace

const CommandFamily kPubsubCommands = {"pubsub", kPubsubRows, kAclPubsub};

}  // namespace sluice
