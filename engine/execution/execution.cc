#include "engine/execution/execution.h"

#include <algorithm>
#include <bit>

#include "engine/access/acl.h"
#include "engine/base/ticks.h"
#include "engine/clients/latency_monitor.h"
#include "engine/clients/slow_log.h"
#include "engine/clients/tracking.h"
#include "engine/execution/refusal.h"
#include "engine/execution/scripts.h"
#include "engine/execution/transaction.h"
#include "engine/queue/queue_records.h"

namespace sluice {

namespace {

// After this many requests in one lock hold a connection with a deep pipeline lets others run.
constexpr unsigned kMaxHeldRequests = 64;
// The most of them after lock_all().
constexpr unsigned kRequestsTogether = 16;
// After this time it does so as well.
constexpr double kLongBatchUs = 2000;
// From this size on the records of a unit are moved instead of copied.
constexpr size_t kLargeUnit = 1U << 20;
// Waiting for a shard while holding another may be a deadlock with a thread that does the reverse.
constexpr int64_t kFurtherPatienceMs = 500;

bool may_run_while_subscribed(const Command& command) {
  if (command.container != nullptr) return false;
  constexpr Bytes kAllowed[] = {"ping",         "subscribe",    "unsubscribe", "psubscribe", "quit",
                                "punsubscribe", "sunsubscribe", "ssubscribe",  "reset"};
  return std::find(std::begin(kAllowed), std::end(kAllowed), command.name) != std::end(kAllowed);
}

// A browser that was tricked into connecting to this port sends these as its first lines.
bool is_http(Bytes name) {
  return equals_ignore_case(name, "post") || equals_ignore_case(name, "host:");
}

// INFO replication tells nothing of the keys, so it waits for no change of them to be durable: it
// is asked most while none becomes durable.
bool tells_roles(const Command& command, std::span<const Bytes> args) {
  return (command.flags & kNoShardsLoading) != 0 && args.size() == 2 &&
         equals_ignore_case(args[1], "replication");
}

}  // namespace

Execution::Execution(Engine& engine)
    : statistics(CommandTable::instance().id_limit()),
      engine_(engine),
      observer_(engine),
      long_ticks_(static_cast<uint64_t>(kLongBatchUs * ticks_per_microsecond())) {
  engine_.add_execution(this);
}

Execution::~Execution() {
  CHECK(locked_ == 0);
  engine_.remove_execution(this);
}

// --- Locks ---

void Execution::lock(ShardMask mask) NO_THREAD_SAFETY_ANALYSIS {
  ShardMask missing = mask & ~locked_;
  if (missing == 0) return;
  if (locked_ != 0 && hold_shards_) {
    for (ShardMask rest = missing; rest != 0; rest &= rest - 1) {
      const unsigned index = static_cast<unsigned>(std::countr_zero(rest));
      if (!engine_.shard(index).mutex.try_lock()) break;
      locked_ |= 1U << index;
      missing &= ~(1U << index);
    }
    if (missing == 0) return;
  }
  if (locked_ != 0) end_hold();
  CHECK(!nested_in_another_);
  // Waiting for a lock while holding others is safe only in ascending order, so all are locked
  // again.
  for (ShardMask rest = mask; rest != 0; rest &= rest - 1) {
    const unsigned index = static_cast<unsigned>(std::countr_zero(rest));
    wait_for(engine_.shard(index));
    locked_ |= 1U << index;
  }
}

// A script on another thread may hold the shard until it is killed, perhaps by a client of this
// thread. So this thread serves its sockets meanwhile, with BUSY for nearly everything.
void Execution::wait_for(Shard& shard) {
  if (shard.mutex.try_lock()) return;  // nearly always, and without reading the clock
  while (!shard.mutex.try_lock_for_ms(kLockPatienceMs)) {
    if (engine_.script_busy.load(std::memory_order_relaxed)) engine_.server().poll_events();
  }
}

void Execution::record_heads() {
  for (Queue* queue : unit_.dirty_queues) {
    queue->head_dirty = false;
    record_head(unit_, *queue);
    list_queue_timers(engine_.shard(KeyRef(queue->key).shard), *queue, true);
  }
  unit_.dirty_queues.clear();
}

Lsn Execution::append_unit() {
  ByteBuffer& records = unit_.records;
  ByteBuffer* owned = records.size() >= kLargeUnit ? &records : nullptr;
  return engine_.journal()->append(records.view(), unit_.record_count, times_.wall_ms,
                                   unit_.moves_keys, owned);
}

void Execution::end_hold() NO_THREAD_SAFETY_ANALYSIS {
  record_heads();
  if (unit_.record_count != 0) {
    const Lsn lsn = append_unit();
    for (ShardMask rest = locked_; rest != 0; rest &= rest - 1) {
      engine_.shard(static_cast<unsigned>(std::countr_zero(rest))).last_lsn = lsn;
    }
    gate_ = lsn;
  } else if (!tells_at_once_) {
    for (ShardMask rest = locked_; rest != 0; rest &= rest - 1) {
      const Lsn lsn = engine_.shard(static_cast<unsigned>(std::countr_zero(rest))).last_lsn;
      gate_ = std::max(gate_, lsn);
    }
  }
  // Before unlocking, so that monitors see the commands on a key in their order.
  if (!unit_.monitor_lines.empty()) [[unlikely]]
    engine_.monitors().deliver(unit_.monitor_lines.view(), gate_);
  for (ShardMask rest = locked_; rest != 0; rest &= rest - 1) {
    engine_.shard(static_cast<unsigned>(std::countr_zero(rest))).mutex.unlock();
  }
  locked_ = 0;
  held_requests_ = 0;
  if (unit_.changes != 0) engine_.changes.fetch_add(unit_.changes, std::memory_order_relaxed);
  if (unit_.expired != 0) [[unlikely]]
    engine_.expired_keys.fetch_add(unit_.expired, std::memory_order_relaxed);
  // After unlocking: writing to the log and waking another thread are system calls.
  if (!unit_.retired.empty()) [[unlikely]]
    engine_.reclaimer().take(unit_.retired);
  if (unit_.adopted_notes != nullptr) [[unlikely]] {
    for (const std::string& text : unit_.adopted_notes->warnings) {
      engine_.server().log_warning(text);
    }
  }
  if (!unit_.changed_keys.empty()) [[unlikely]]
    engine_.tracking().broadcast(unit_);
  for (Delivery& delivery : unit_.deliveries) {
    using Kind = Delivery::Kind;
    switch (delivery.kind) {
      case Kind::kMessage:
        delivery.to->deliver(std::move(delivery.bytes), gate_);
        break;
      case Kind::kPush:
        delivery.to->deliver_push(std::move(delivery.bytes), gate_);
        break;
      case Kind::kBlockedReply:
        delivery.to->deliver_blocked_reply(std::move(delivery.bytes), gate_);
        break;
      case Kind::kInvalidation:
      case Kind::kRedirectedInvalidation:
        delivery.to->deliver_invalidation(std::move(delivery.bytes),
                                          delivery.kind == Kind::kRedirectedInvalidation, gate_);
        break;
    }
  }
  unit_.clear();
  if (!engine_.departures().none() && !nested_in_another_) [[unlikely]] {
    engine_.departures().settle(engine_);
  }
}

Lsn Execution::finish() {
  end_hold();
  const Lsn gate = gate_;
  gate_ = 0;
  tells_at_once_ = false;
  batch_ticks_ = 0;
  serving_left_ = kServingOfBatch;
  return gate;
}

ShardMask Execution::shards_of(const Command& command, std::span<const Bytes> args,
                               KeyRef& first_key) {
  if ((command.flags & kScriptShards) != 0) {
    return engine_.scripts().shards(*this, command, args);
  }
  if (const size_t only = only_key_argument(command, args); only != 0) {
    const Bytes key = args[only];
    if (first_key.key.data() != key.data()) first_key = KeyRef(key);
    return (command.flags & kEveryShard) != 0 ? kAllShards : 1U << first_key.shard;
  }
  if ((command.flags & kEveryShard) != 0) return tells_roles(command, args) ? 0 : kAllShards;
  if (command.keys[0].begin == KeySpec::Begin::kNone) return 0;
  // If the arguments are invalid, the handler replies the error; it gets the keys that were found.
  find_keys_with_flags(command, args, key_positions_);
  ShardMask mask = 0;
  for (const KeyPosition position : key_positions_) {
    const KeyRef key(args[position.index]);
    if (mask == 0) first_key = key;
    mask |= 1U << key.shard;
  }
  return mask;
}

bool Execution::lock_further(ShardMask mask) NO_THREAD_SAFETY_ANALYSIS {
  for (ShardMask rest = mask & ~locked_; rest != 0; rest = mask & ~locked_) {
    const unsigned index = static_cast<unsigned>(std::countr_zero(rest));
    Shard& shard = engine_.shard(index);
    if (hold_shards_) {
      shard.mutex.lock();  // the only other user is a checkpoint's walk, which holds one shard
    } else if (!shard.mutex.try_lock() && !shard.mutex.try_lock_for_ms(kFurtherPatienceMs)) {
      return false;
    }
    locked_ |= 1U << index;
    // The same as for a command that names the key: its waiters may have to be served in other
    // shards, and its queue may be in another one.
    if (shard.waiters.need_other_shards()) mask = kAllShards;
    if (shard.adopted != nullptr) mask |= shard.adopted->shards();
  }
  return true;
}

void Execution::lock_unless_busy(ShardMask mask) NO_THREAD_SAFETY_ANALYSIS {
  if (!busy()) return lock(mask);
  if (nested_in_another_) return;
  for (ShardMask rest = mask & ~locked_; rest != 0; rest &= rest - 1) {
    const unsigned index = static_cast<unsigned>(std::countr_zero(rest));
    if (engine_.shard(index).mutex.try_lock()) locked_ |= 1U << index;
  }
}

// Whether other commands get BUSY.
bool Execution::busy() const {
  return nested_in_another_ || engine_.script_busy.load(std::memory_order_relaxed);
}

void Execution::lock_for(Client& client, const Request& request,
                         KeyRef& first_key) NO_THREAD_SAFETY_ANALYSIS {
  const Command& command = *request.command;
  ShardMask mask = shards_of(command, request.args, first_key);
  if ((command.flags & kEndsWatching) != 0) mask |= transaction_shards(*this, client, command);
  if ((command.flags & kAllowBusy) != 0) return lock_unless_busy(mask);
  lock(mask);
  if (engine_.adopted().queues.load(std::memory_order_relaxed) != 0) [[unlikely]] {
    if (engine_.following.load(std::memory_order_relaxed)) return lock(kAllShards);
    const bool one_key = (command.flags & (kEveryShard | kScriptShards)) == 0 &&
                         only_key_argument(command, request.args) != 0;
    lock_adopted(mask, one_key ? &first_key : nullptr);
    if (locked_ == kAllShards) return;
  }
  if ((command.flags & kReadonly) != 0) return;
  for (ShardMask rest = mask; rest != 0; rest &= rest - 1) {
    if (engine_.shard(static_cast<unsigned>(std::countr_zero(rest))).waiters.need_other_shards()) {
      lock(kAllShards);
      return;
    }
  }
}

// --- One request ---

void Execution::reject(Client& client, const Command* command, Bytes message, RespReply& reply) {
  if (client.in_multi) client.multi_failed = true;
  if (command != nullptr && (command->flags & kRunsQueued) != 0) {
    reply.error(abort_transaction(*this, client, message));
  } else {
    reply.error(message);
  }
  end_caching(client, command);
  if (command == nullptr) return reply.attribute_errors();
  note_rejected(*command, reply);
}

void Execution::note_rejected(const Command& command, Reply& reply) {
  reply.attribute_errors();
  add_one(statistics.of(command.id).rejected);
}

void Execution::warn_of_attack(const Client& client) {
  ServerPort& server = engine_.server();
  const auto others = engine_.attacks_in_log.next(server.steady_time_us() / 1000);
  if (!others) return;
  server.log_warning("Possible SECURITY ATTACK: an HTTP request, from " + client.address +
                     ". The connection is closed." + *others);
}

bool Execution::admit(Client& client, const Request& request, RespReply& reply) {
  const std::span<const Bytes> args = request.args;
  const Command* const command = request.command;
  if (command == nullptr) {
    if (is_http(args[0])) {
      warn_of_attack(client);
      client.close_after_reply = true;
      return false;
    }
    reject(client, nullptr, unknown_command(args), reply);
    return false;
  }
  if (request.names_unknown_subcommand()) {
    reject(client, nullptr, unknown_subcommand(*command, args[1]), reply);
    return false;
  }
  client.last_command = command;
  const Status status = check(client, *command, args, true);
  if (!status.ok()) reject(client, command, status.message(), reply);
  return status.ok();
}

Status Execution::check(Client& client, const Command& command, std::span<const Bytes> args,
                        bool logs) {
  if (!command.takes(args.size())) {
    return refusal("ERR wrong number of arguments for '" + CommandTable::full_name(command) +
                   "' command");
  }
  if (client.in_multi && (command.flags & kNoMulti) != 0) {
    return refusal("ERR Command not allowed inside a transaction");
  }
  if (client.user == nullptr) {
    // A connection that was made while a password was required gets the default user once none is.
    client.user = engine_.acl().user_at_connect();
    if (client.user == nullptr && (command.flags & kNoAuth) == 0) {
      return refusal("NOAUTH Authentication required.");
    }
  }
  if (client.user != nullptr && !client.user->unrestricted.load(std::memory_order_relaxed)) {
    if (client.user->deleted.load(std::memory_order_relaxed)) client.close_after_reply = true;
    const auto context = client.in_multi ? AclLogContext::kMulti : AclLogContext::kTopLevel;
    const Denial denial = logs ? check_rights(engine_, client, context, command, args)
                               : client.user->rules()->check(command, args).denial;
    if (denial != Denial::kNone) return refusal(Acl::refusal(denial, command));
  }
  // As in Redis, no more commands are queued when the memory is full.
  if (client.in_multi && (command.flags & kEndsTransaction) == 0 && memory_is_full(engine_)) {
    return refusal(std::string(errors::kOutOfMemory));
  }
  if (engine_.following.load(std::memory_order_relaxed)) [[unlikely]] {
    const Status status = refuse_writes(command, args);
    if (!status.ok()) return status;
  }
  const uint64_t queued = client.in_multi ? client.queued_bytes : 0;
  if (Status large = refuse_large(engine_, command, args, queued); !large.ok()) return large;
  const bool may_lack_room = (command.flags & kNeedsRoom) != 0 || command.writes(args);
  return may_lack_room ? refuse_growth(engine_, command.flags) : Status();
}

// On a standby. A script without flags runs until it writes.
Status Execution::refuse_writes(const Command& command, std::span<const Bytes> args) {
  const bool writes = command.writes(args) || ((command.flags & kScriptShards) != 0 &&
                                               engine_.scripts().declared_writes(
                                                   *this, command, args) == ScriptWrites::kData);
  return writes ? refusal(std::string(errors::kReadOnly)) : Status();
}

void Execution::execute(Client& client, const Request& request, RespReply& reply) {
  add_one(statistics.commands_processed);
  if (!admit(client, request, reply)) return;
  const Command* const command = request.command;
  if (client.protocol == 2 && client.subscriptions() != 0 && !may_run_while_subscribed(*command)) {
    reject(
        client, command,
        "ERR Can't execute '" + CommandTable::full_name(*command) +
            "': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this "
            "context",
        reply);
    return;
  }
  if (busy() && (command->flags & kAllowBusy) == 0) {
    reject(client, command, engine_.scripts().busy_error(), reply);
    return;
  }
  if (client.in_multi && (command->flags & kNotQueued) == 0) {
    QueuedCommand queued;
    queued.command = command;
    queued.arguments.assign(request.args.begin(), request.args.end());
    client.queued.push_back(std::move(queued));
    for (const Bytes argument : request.args)
      client.queued_bytes += sizeof(std::string) + argument.size();
    reply.simple("QUEUED");
    return;
  }
  run(client, request, reply);
}

bool Execution::must_wait(Client& client, const Request& request) {
  const PauseMode mode = engine_.pause.mode(steady_ms_);
  if (mode == PauseMode::kNone) return false;
  const Command* const command = request.command;
  // Invalid requests get their errors at once, by execute().
  if (command == nullptr || request.names_unknown_subcommand()) return false;
  if (!check(client, *command, request.args, false).ok()) return false;
  if (mode == PauseMode::kData && !concerns_data(client, *command)) return false;
  if (mode == PauseMode::kWrites && !may_change_data(client, *command, request.args)) return false;
  client.last_command = command;
  return true;
}

bool Execution::concerns_data(const Client& client, const Command& command) {
  return !runs_without_data(command) ||
         ((command.flags & kRunsQueued) != 0 && !client.queued.empty());
}

bool Execution::may_change_data(const Client& client, const Command& command,
                                std::span<const Bytes> args) {
  if ((command.flags & kSeenByOthers) != 0 || command.writes(args)) return true;
  if ((command.flags & kScriptShards) != 0) {
    return (command.flags & kReadonly) == 0 &&
           engine_.scripts().declared_writes(*this, command, args) != ScriptWrites::kNothing;
  }
  if ((command.flags & kRunsQueued) == 0) return false;
  return std::any_of(client.queued.begin(), client.queued.end(), [&](const QueuedCommand& queued) {
    const std::vector<Bytes> words(queued.arguments.begin(), queued.arguments.end());
    return may_change_data(client, *queued.command, words);
  });
}

void Execution::run(Client& client, const Request& request, RespReply& reply) {
  if (held_requests_ >= kMaxHeldRequests) end_hold();
  ++held_requests_;
  KeyRef first_key = request.first_key;
  lock_for(client, request, first_key);
  begin_unit();
  unit_.request_begins = unit_.records.size();
  Call call{engine_, *this, client,    unit_,   *request.command, request.args,
            reply,   false, first_key, nullptr, request.lent};
  // With CLIENT REPLY OFF or SKIP, messages to the connection are delivered as to any other one.
  const bool replies = client.reply_mode == ReplyMode::kOn;
  unit_.requester = {client.id, replies ? &reply.out() : nullptr, client.protocol};
  handle(call);
  if (unit_.observer != nullptr) [[unlikely]]
    end_tracked(client, *request.command, reply);
  unit_.requester = {};
}

bool Execution::put_entry(int number, OwnedEntry entry) {
  const std::string name(entry->key());
  const KeyRef key(name);
  lock(1U << key.shard);
  begin_unit();
  Database database(engine_.shard(key.shard), number, unit_);
  Entry* old = database.find(key);
  if (old != nullptr) database.remove(key, old);
  database.put_entry(key, std::move(entry));
  return old == nullptr;
}

void Execution::lock_all() {
  if (busy()) return;
  // Otherwise one of the requests could end the hold.
  if (held_requests_ > kMaxHeldRequests - kRequestsTogether) end_hold();
  lock(kAllShards);
}

bool Execution::lock_if_type(int number, Bytes name, Type type) {
  if (busy()) return true;
  lock_all();
  const KeyRef key(name);
  begin_unit();
  const Entry* entry = Database(engine_.shard(key.shard), number, unit_).find(key);
  return entry != nullptr && entry->type() == type;
}

void Execution::begin_unit() {
  unit_.times = times_;
  unit_.journal = engine_.journal();
  unit_.recording = unit_.journal != nullptr;
  unit_.paused =
      steady_ms_ < engine_.pause.end_ms() || engine_.following.load(std::memory_order_relaxed);
  observe();
}

// Usually there is no observer.
void Execution::observe() {
  const bool observed = engine_.observing.load(std::memory_order_relaxed) != 0;
  unit_.observer = observed ? &observer_ : nullptr;
}

uint64_t Execution::handle(Call& call) {
  const Command& command = call.command;
  // MONITOR shows a script before its commands, and other commands after they have run, as in Redis
  // (SELECT in the new database, EXEC after its commands).
  const bool monitored = engine_.monitors().active();
  if (monitored && (command.flags & kSkipMonitor) != 0) show_to_monitors(call);
  const bool untouched =
      (command.flags & kNoTouch) != 0 || (call.client.no_touch && Bytes(command.name) != "touch");
  unit_.access_s = untouched ? 0 : access_s_;
  unit_.write_s = access_s_;
  const uint64_t begin_ticks = read_ticks();
  command.handler(call);
  if (unit_.observer != nullptr) [[unlikely]]
    remember_reads(call);
  if (!call.nested && !unit_.ready.empty()) serve_waiters();
  const uint64_t ticks = read_ticks() - begin_ticks;
  if (!call.nested) batch_ticks_ += ticks;
  CommandStat& counters = statistics.of(command.id);
  add_one(counters.calls);
  counters.ticks.store(counters.ticks.load(std::memory_order_relaxed) + ticks,
                       std::memory_order_relaxed);
  counters.add_latency(ticks, engine_.latency_scale.load(std::memory_order_relaxed));
  if (call.reply.unattributed_errors() != 0) {
    add_one(counters.failed);
    call.reply.attribute_errors();
  }
  if (ticks >= engine_.slow_ticks.load(std::memory_order_relaxed)) [[unlikely]] {
    note_slow(call, ticks);
  }
  if (monitored && (command.flags & (kSkipMonitor | kAdmin)) == 0) show_to_monitors(call);
  return ticks;
}

// Any read of a script counts as a read of all keys that it has declared, as in Redis.
void Execution::remember_reads(const Call& call) {
  if ((call.command.flags & (kReadonly | kScriptShards)) != kReadonly) return;
  const Call& caller = call.client.in_script ? *call.client.script_call : call;
  TrackedClient* tracked = caller.client.tracking.get();
  if (tracked == nullptr || tracked->options.broadcast) return;
  if (tracked->options.opt_in && !tracked->caching) return;
  if (tracked->options.opt_out && tracked->caching) return;
  find_keys_with_flags(caller.command, caller.args, key_positions_);
  std::vector<Bytes> keys;
  for (const KeyPosition position : key_positions_) keys.push_back(caller.args[position.index]);
  if (!keys.empty()) engine_.tracking().remember(*tracked, keys);
}

// The client's own invalidations come after the reply.
void Execution::end_tracked(Client& client, const Command& command, RespReply& reply) {
  if ((engine_.observing.load(std::memory_order_relaxed) & kObserveTracking) == 0) return;
  Tracking& tracking = engine_.tracking();
  tracking.limit(unit_, engine_.options().tracking_table_max_keys.load(std::memory_order_relaxed));
  if (!unit_.own_invalidations.empty()) {
    const bool replies = client.reply_mode == ReplyMode::kOn;
    tracking.write_own(unit_, client, replies ? &reply.out() : nullptr);
  }
  end_caching(client, &command);
}

void Execution::end_caching(Client& client, const Command* command) {
  if (client.tracking == nullptr || client.in_multi) return;
  const Command* const container = command == nullptr ? nullptr : command->container;
  if (container == nullptr || Bytes(container->name) != "client") client.tracking->caching = false;
}

void Execution::show_to_monitors(const Call& call) {
  const std::vector<Bytes> shown = without_secrets(engine_.server(), call.command, call.args);
  Monitors::show(engine_.server().unix_time_us(), call.client.database, call.client.address, shown,
                 unit_);
}

void Execution::note_slow(const Call& call, uint64_t ticks) {
  const uint32_t flags = call.command.flags;
  if (ticks >= engine_.slow_log_ticks.load(std::memory_order_relaxed) &&
      (flags & kSkipSlowlog) == 0) {
    log_slow(call, ticks);
  }
  note_latency_event((flags & kFast) != 0 ? "fast-command" : "command", ticks);
}

void Execution::note_latency_event(Bytes event, uint64_t ticks) {
  if (ticks < engine_.latency_event_ticks.load(std::memory_order_relaxed)) return;
  const auto latency_ms =
      static_cast<int64_t>(static_cast<double>(ticks) / ticks_per_microsecond() / 1000);
  ServerPort& server = engine_.server();
  engine_.latency_monitor().add(
      event, {server.unix_time_us() / 1'000'000, server.steady_time_us() / 1'000'000, latency_ms});
}

void Execution::log_slow(const Call& call, uint64_t ticks) {
  const auto duration_us =
      static_cast<int64_t>(static_cast<double>(ticks) / ticks_per_microsecond());
  const std::vector<Bytes> shown = without_secrets(engine_.server(), call.command, call.args);
  // A script's commands do not belong to a connection.
  const Client& client = call.client;
  const Bytes address = client.port == nullptr ? Bytes("?:0") : Bytes(client.address);
  engine_.slow_log().add(shown, times_.wall_ms, duration_us, client.id, address, client.name,
                         engine_.options().slow_log_max_entries.load(std::memory_order_relaxed));
}

uint64_t Execution::run_nested(Client& client, const Command& command, std::span<const Bytes> args,
                               Reply& reply) {
  KeyRef first_key;
  const ShardMask needed = shards_of(command, args, first_key);
  // A script locks further shards by itself; it may need more than when it was queued.
  CHECK((command.flags & kScriptShards) != 0 || (needed & ~locked_) == 0);
  observe();  // CONFIG SET may precede it in the same transaction
  Call call{engine_, *this, client, unit_, command, args, reply, true, first_key};
  return handle(call);
}

}  // namespace sluice
