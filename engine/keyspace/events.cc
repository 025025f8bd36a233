#include "engine/keyspace/events.h"

#include <iterator>

namespace sluice {

namespace {

struct EventRow {
  uint32_t event_class;
  Bytes name;
};

constexpr EventRow kRows[] = {
    {kEventNew, "new"},
    {kEventExpired, "expired"},
    {kEventKeyMiss, "keymiss"},
    {kEventGeneric, "del"},
    {kEventGeneric, "expire"},
    {kEventGeneric, "persist"},
    {kEventGeneric, "rename_from"},
    {kEventGeneric, "rename_to"},
    {kEventGeneric, "move_from"},
    {kEventGeneric, "move_to"},
    {kEventGeneric, "copy_to"},
    {kEventGeneric, "restore"},
    {kEventString, "set"},
    {kEventString, "setrange"},
    {kEventString, "append"},
    {kEventString, "incrby"},
    {kEventString, "incrbyfloat"},
    {kEventString, "setbit"},
    {kEventString, "pfadd"},
    {kEventList, "lpush"},
    {kEventList, "rpush"},
    {kEventList, "lpop"},
    {kEventList, "rpop"},
    {kEventList, "linsert"},
    {kEventList, "lset"},
    {kEventList, "lrem"},
    {kEventList, "ltrim"},
    {kEventList, "sortstore"},
    {kEventSet, "sadd"},
    {kEventSet, "srem"},
    {kEventSet, "spop"},
    {kEventSet, "sunionstore"},
    {kEventSet, "sinterstore"},
    {kEventSet, "sdiffstore"},
    {kEventHash, "hset"},
    {kEventHash, "hdel"},
    {kEventHash, "hincrby"},
    {kEventHash, "hincrbyfloat"},
    {kEventZset, "zadd"},
    {kEventZset, "zincr"},
    {kEventZset, "zrem"},
    {kEventZset, "zremrangebyrank"},
    {kEventZset, "zremrangebyscore"},
    {kEventZset, "zremrangebylex"},
    {kEventZset, "zpopmin"},
    {kEventZset, "zpopmax"},
    {kEventZset, "zunionstore"},
    {kEventZset, "zinterstore"},
    {kEventZset, "zdiffstore"},
    {kEventZset, "zrangestore"},
    {kEventStream, "xadd"},
    {kEventStream, "xdel"},
    {kEventStream, "xtrim"},
    {kEventStream, "xsetid"},
    {kEventStream, "xgroup-create"},
    {kEventStream, "xgroup-setid"},
    {kEventStream, "xgroup-destroy"},
    {kEventStream, "xgroup-createconsumer"},
    {kEventStream, "xgroup-delconsumer"},
    {kEventZset, "georadiusstore"},
    {kEventZset, "geosearchstore"},
};
static_assert(std::size(kRows) == static_cast<size_t>(KeyEvent::kCount));

const EventRow& row(KeyEvent event) { return kRows[static_cast<size_t>(event)]; }

}  // namespace

uint32_t event_class(KeyEvent event) { return row(event).event_class; }
Bytes event_name(KeyEvent event) { return row(event).name; }

}  // namespace sluice
