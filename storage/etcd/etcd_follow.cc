#include "storage/etcd/etcd_follow.h"

#include <etcd.pb.h>

#include "storage/etcd/etcd_ask.h"

namespace sluice {

namespace {

constexpr std::chrono::milliseconds kTick{500};
constexpr int kAskAfterTicks = 4;
constexpr int kLoseAfterTicks = 8;

}  // namespace

Bytes value_of_record(Bytes stored) {
  const size_t end = stored.find('\n');
  return end == Bytes::npos ? Bytes() : stored.substr(end + 1);
}

std::shared_ptr<EtcdFollow> EtcdFollow::make(EtcdClient& client, const GroupKeys& keys,
                                             SeenSeq& seen,
                                             std::shared_ptr<RemoteListener> listener) {
  const std::shared_ptr<EtcdFollow> self(new EtcdFollow(client, keys, seen, std::move(listener)));
  self->stream_ = client.open(
      "/etcdserverpb.Watch/Watch", [self](const std::string& bytes) { self->on_message(bytes); },
      [self](const EtcdResult& result) { self->lose(result.status); });
  return self;
}

void EtcdFollow::start(int64_t after_revision, RemoteFollow what) {
  const auto watch = [after_revision](const std::string& from, const std::string& end) {
    etcdserverpb::WatchRequest request;
    etcdserverpb::WatchCreateRequest& create = *request.mutable_create_request();
    create.set_key(from);
    create.set_range_end(end);
    create.set_start_revision(after_revision + 1);
    create.set_fragment(true);
    return request.SerializeAsString();
  };
  const std::string end = end_of_prefix(keys_.prefix());
  if (what == RemoteFollow::kAll) {
    stream_->begin(watch(keys_.prefix(), end));
  } else {
    stream_->begin(watch(keys_.prefix(), keys_.logs()));
    stream_->write(watch(end_of_prefix(keys_.logs()), end));
  }
  client_.after(kTick, [self = shared_from_this()] { self->tick(); });
}

void EtcdFollow::stop() {
  over_ = true;
  stream_->cancel();
}

void EtcdFollow::on_message(const std::string& bytes) {
  if (over_) return;
  silent_ticks_ = 0;
  if (!client_.is_of_cluster(bytes)) {
    return lose(io_error("a member of another etcd cluster has answered"));
  }
  etcdserverpb::WatchResponse response;
  if (!response.ParseFromString(bytes))
    return lose(io_error("etcd sent an event that cannot be read"));
  for (const etcdserverpb::Event& event : response.events()) tell(event);
  if (!response.canceled()) return;
  if (response.compact_revision() > 0) {
    return lose({StatusCode::kStale, "etcd has compacted what was to be followed"});
  }
  client_.doubt_token();
  lose(io_error("etcd has ended the watch: " + response.cancel_reason()));
}

void EtcdFollow::tell(const etcdserverpb::Event& event) {
  if (over_) return;
  const Bytes key = event.kv().key();
  const Bytes value = event.kv().value();
  const auto name_behind = [key](const std::string& prefix) -> std::optional<Bytes> {
    if (!key.starts_with(prefix)) return std::nullopt;
    return key.substr(prefix.size());
  };
  if (const auto name = name_behind(keys_.nodes())) {
    return tell_record(RemoteRecordKind::kNode, *name, event);
  }
  if (const auto name = name_behind(keys_.holds())) {
    return tell_record(RemoteRecordKind::kHold, *name, event);
  }
  if (key == keys_.pause()) {
    return listener_->on_pause(event.type() == etcdserverpb::Event::PUT ? value : Bytes(),
                               event.kv().mod_revision());
  }
  // Frames vanish by TIDY and TRIM, which the epoch and the trim mark tell; the others never do.
  if (event.type() != etcdserverpb::Event::PUT) return;
  if (const auto seq = keys_.log_seq(key)) {
    seen_.note(*seq);
    return listener_->on_frame(*seq, value);
  }
  if (key == keys_.beat()) return listener_->on_beat(value);
  if (key == keys_.epoch()) return listener_->on_epoch(value);
  if (key == keys_.trim()) return listener_->on_trim(value);
}

void EtcdFollow::tell_record(RemoteRecordKind kind, Bytes name, const etcdserverpb::Event& event) {
  if (event.type() == etcdserverpb::Event::PUT) {
    listener_->on_record(kind, name, value_of_record(event.kv().value()));
  } else {
    listener_->on_record(kind, name, std::nullopt);
  }
}

void EtcdFollow::lose(const Status& reason) {
  if (over_.exchange(true)) return;
  stream_->cancel();
  listener_->on_lost(reason);
}

void EtcdFollow::tick() {
  if (over_ || client_.closing()) return;
  ++silent_ticks_;
  if (silent_ticks_ == kLoseAfterTicks) return lose(io_error("etcd is silent"));
  if (silent_ticks_ == kAskAfterTicks) {
    etcdserverpb::WatchRequest request;
    request.mutable_progress_request();
    stream_->write(request.SerializeAsString());
  }
  client_.after(kTick, [self = shared_from_this()] { self->tick(); });
}

}  // namespace sluice
