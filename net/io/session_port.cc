#include "net/io/session_port.h"

#include "engine/access/acl.h"
#include "engine/clients/tracking.h"
#include "engine/table/command.h"
#include "net/io/io_thread.h"
#include "net/io/session.h"

namespace sluice {

namespace {

constexpr auto kRelaxed = std::memory_order_relaxed;

enum : uint32_t {
  kFlagMonitor = 1U << 0,
  kFlagBlocked = 1U << 1,
  kFlagDirtyWatch = 1U << 2,
  kFlagClosing = 1U << 3,
  kFlagNoEvict = 1U << 4,
  kFlagTracking = 1U << 5,
  kFlagBrokenRedirect = 1U << 6,
  kFlagBroadcast = 1U << 7,
  kFlagNoTouch = 1U << 8,
};

uint32_t flags_of(const Client& client, bool closing) {
  uint32_t flags = 0;
  if (client.monitoring) flags |= kFlagMonitor;
  if (client.waiter != nullptr || client.postponed) flags |= kFlagBlocked;
  if (client.watch_set->broken.load(kRelaxed)) flags |= kFlagDirtyWatch;
  if (closing || client.close_after_reply) flags |= kFlagClosing;
  if (client.no_evict) flags |= kFlagNoEvict;
  if (client.no_touch) flags |= kFlagNoTouch;
  if (const TrackedClient* tracked = client.tracking.get()) {
    flags |= kFlagTracking;
    if (tracked->broken.load(kRelaxed)) flags |= kFlagBrokenRedirect;
    if (tracked->options.broadcast) flags |= kFlagBroadcast;
  }
  return flags;
}

// In Redis's order.
std::string flag_letters(uint32_t flags, bool pubsub, bool multi, bool unix_socket) {
  std::string letters;
  if ((flags & kFlagMonitor) != 0) letters += 'O';
  if (pubsub) letters += 'P';
  if (multi) letters += 'x';
  if ((flags & kFlagBlocked) != 0) letters += 'b';
  if ((flags & kFlagTracking) != 0) letters += 't';
  if ((flags & kFlagBrokenRedirect) != 0) letters += 'R';
  if ((flags & kFlagBroadcast) != 0) letters += 'B';
  if ((flags & kFlagDirtyWatch) != 0) letters += 'd';
  if ((flags & kFlagClosing) != 0) letters += 'c';
  if (unix_socket) letters += 'U';
  if ((flags & kFlagNoEvict) != 0) letters += 'e';
  if ((flags & kFlagNoTouch) != 0) letters += 'T';
  return letters.empty() ? "N" : letters;
}

int64_t redirect_of(const Client& client) {
  return client.tracking == nullptr ? -1 : static_cast<int64_t>(client.tracking->options.redirect);
}

int multi_of(const Client& client) {
  return client.in_multi ? static_cast<int>(client.queued.size()) : -1;
}

std::string command_name(const Command* command) {
  return command == nullptr ? "NULL" : CommandTable::full_name(*command);
}

}  // namespace

SessionPort::SessionPort(IoThread& thread, Session& session, uint64_t id, Endpoints endpoints,
                         int64_t created_ms)
    : thread_(thread),
      session_(&session),
      id_(id),
      endpoints_(std::move(endpoints)),
      created_ms_(created_ms),
      active_ms_(created_ms) {}

void SessionPort::deliver(ByteBuffer bytes, Lsn gate) {
  thread_.mailbox().send({shared_from_this(), Mail::Kind::kMessage, std::move(bytes), gate});
}

void SessionPort::deliver_push(ByteBuffer bytes, Lsn gate) {
  thread_.mailbox().send({shared_from_this(), Mail::Kind::kPush, std::move(bytes), gate});
}

void SessionPort::deliver_blocked_reply(ByteBuffer bytes, Lsn gate) {
  thread_.mailbox().send({shared_from_this(), Mail::Kind::kBlockedReply, std::move(bytes), gate});
}

void SessionPort::deliver_invalidation(ByteBuffer payload, bool redirected, Lsn gate) {
  const auto kind = redirected ? Mail::Kind::kRedirectedInvalidation : Mail::Kind::kInvalidation;
  thread_.mailbox().send({shared_from_this(), kind, std::move(payload), gate});
}

void SessionPort::kill() {
  if (killed_.exchange(true, std::memory_order_acq_rel)) return;
  take_waiter();
  thread_.mailbox().send({shared_from_this(), Mail::Kind::kKill, {}, 0});
}

// If this fails, the session's own time-out is also too late, and waits for the mail that follows.
bool SessionPort::take_waiter() {
  std::shared_ptr<Waiter> waiter;
  {
    MutexLock lock(mutex_);
    waiter = waiter_;
  }
  return waiter != nullptr && waiter->give_up();
}

bool SessionPort::leave_late() {
  std::shared_ptr<Waiter> waiter;
  {
    MutexLock lock(mutex_);
    waiter = waiter_;
  }
  if (waiter == nullptr || !waiter->served_when_late || !waiter->is_waiting()) return false;
  thread_.engine().departures().leave_late(std::move(waiter));
  return true;
}

bool SessionPort::unblock(bool with_error) {
  if (!with_error && leave_late()) return true;
  if (!take_waiter()) return false;
  const auto kind = with_error ? Mail::Kind::kUnblockedWithError : Mail::Kind::kUnblocked;
  thread_.mailbox().send({shared_from_this(), kind, {}, 0});
  return true;
}

void SessionPort::forget_session() {
  session_ = nullptr;
  connected_.store(false, std::memory_order_release);
  MutexLock lock(mutex_);
  waiter_ = nullptr;
}

void SessionPort::publish(const Client& client, const Numbers& numbers) {
  active_ms_.store(numbers.active_ms, kRelaxed);
  query_bytes_.store(numbers.query_bytes, kRelaxed);
  query_free_bytes_.store(numbers.query_free_bytes, kRelaxed);
  output_bytes_.store(numbers.output_bytes, kRelaxed);
  output_buffer_bytes_.store(numbers.output_buffer_bytes, kRelaxed);
  multi_bytes_.store(client.queued_bytes, kRelaxed);
  last_command_.store(client.last_command, kRelaxed);
  database_.store(client.database, kRelaxed);
  protocol_.store(client.protocol, kRelaxed);
  multi_.store(multi_of(client), kRelaxed);
  redirect_.store(redirect_of(client), kRelaxed);
  channels_.store(static_cast<uint32_t>(client.channels.size()), kRelaxed);
  patterns_.store(static_cast<uint32_t>(client.patterns.size()), kRelaxed);
  shard_channels_.store(static_cast<uint32_t>(client.shard_channels.size()), kRelaxed);
  flags_.store(flags_of(client, numbers.closing), kRelaxed);
  if (client.waiter != waiter_ || client.user != user_ || client.name != name_ ||
      client.library_name != library_name_ || client.library_version != library_version_) {
    publish_words(client);
  }
}

void SessionPort::publish_words(const Client& client) {
  MutexLock lock(mutex_);
  name_ = client.name;
  library_name_ = client.library_name;
  library_version_ = client.library_version;
  user_ = client.user;
  waiter_ = client.waiter;
}

ClientFacts SessionPort::facts(int64_t now_ms) const {
  ClientFacts facts;
  facts.id = id_;
  facts.address = endpoints_.address;
  facts.local_address = endpoints_.local_address;
  facts.fd = endpoints_.fd;
  {
    MutexLock lock(mutex_);
    facts.name = name_;
    facts.user = user_ != nullptr ? user_->name : std::string("default");
    facts.library_name = library_name_;
    facts.library_version = library_version_;
    if (waiter_ != nullptr) {
      for (const std::string& word : waiter_->arguments) facts.argument_bytes += word.size();
    }
  }
  facts.command = command_name(last_command_.load(kRelaxed));
  facts.database = database_.load(kRelaxed);
  facts.protocol = protocol_.load(kRelaxed);
  facts.multi = multi_.load(kRelaxed);
  facts.redirect = redirect_.load(kRelaxed);
  facts.subscriptions = channels_.load(kRelaxed);
  facts.pattern_subscriptions = patterns_.load(kRelaxed);
  facts.shard_subscriptions = shard_channels_.load(kRelaxed);
  facts.is_pubsub =
      facts.subscriptions + facts.pattern_subscriptions + facts.shard_subscriptions != 0;
  facts.flags = flag_letters(flags_.load(kRelaxed), facts.is_pubsub, facts.multi >= 0,
                             endpoints_.unix_socket);
  facts.age_s = (now_ms - created_ms_) / 1000;
  facts.idle_s = (now_ms - active_ms_.load(kRelaxed)) / 1000;
  facts.query_buffer_bytes = query_bytes_.load(kRelaxed);
  facts.query_buffer_free_bytes = query_free_bytes_.load(kRelaxed);
  facts.output_bytes = output_bytes_.load(kRelaxed);
  facts.output_buffer_bytes = output_buffer_bytes_.load(kRelaxed);
  facts.multi_bytes = multi_bytes_.load(kRelaxed);
  facts.total_bytes = memory_bytes();
  return facts;
}

bool SessionPort::is_waiting() const {
  return (flags_.load(kRelaxed) & (kFlagBlocked | kFlagMonitor)) != 0 ||
         channels_.load(kRelaxed) + patterns_.load(kRelaxed) + shard_channels_.load(kRelaxed) != 0;
}

size_t SessionPort::memory_bytes() const {
  return sizeof(Session) + sizeof(SessionPort) + query_bytes() + query_free_bytes_.load(kRelaxed) +
         output_buffer_bytes_.load(kRelaxed) + multi_bytes_.load(kRelaxed);
}

void SessionPort::describe(const Client& client, ClientFacts& facts) {
  facts.name = client.name;
  facts.user = client.user != nullptr ? client.user->name : std::string("default");
  facts.library_name = client.library_name;
  facts.library_version = client.library_version;
  facts.command = command_name(client.last_command);
  facts.database = client.database;
  facts.protocol = client.protocol;
  facts.multi = multi_of(client);
  facts.multi_bytes = client.queued_bytes;
  facts.redirect = redirect_of(client);
  facts.subscriptions = client.channels.size();
  facts.pattern_subscriptions = client.patterns.size();
  facts.shard_subscriptions = client.shard_channels.size();
  facts.is_pubsub = client.subscriptions() != 0;
  facts.flags =
      flag_letters(flags_of(client, false), facts.is_pubsub, facts.multi >= 0, client.unix_socket);
  facts.idle_s = 0;
  facts.is_self = true;
}

}  // namespace sluice
