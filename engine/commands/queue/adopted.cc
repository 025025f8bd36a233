#include "engine/commands/queue/adopted.h"

#include "engine/access/acl.h"
#include "engine/commands/queue/args.h"
#include "engine/execution/engine.h"
#include "engine/execution/execution.h"
#include "engine/execution/refusal.h"
#include "engine/queue/queue_error.h"
#include "engine/reply/map_reply.h"

namespace sluice {

namespace {

// Why a pending member is not running, as far as the queue knows.
std::string why(const AdoptedView& keys, const Queue& queue, uint64_t position) {
  if (position != 0) return "behind " + std::to_string(position);
  const uint64_t max = queue.max_active();
  const uint64_t active = keys.active_count();
  if (max == 0 || active < max) return "next";
  return "queue_cap " + std::to_string(active) + "/" + std::to_string(max);
}

void put_enqueued(MapReply& map, const AdoptedView& keys, const Queue& queue,
                  const AdoptedPlace& place) {
  const AdoptedMember* kept = queue.adopted->find(place.id);
  const bool has_score = !place.active || (kept != nullptr && kept->has_place);
  map.integer_or_null(
      "enqueued", has_score ? keys.added_ms(place.band, place.active ? kept->score : place.score)
                            : std::nullopt);
}

void put_id_and_state(MapReply& map, const AdoptedPlace& place) {
  map.text("id", place.id);
  map.text("state", job_state_name(place.active ? JobState::kActive : JobState::kPending));
}

void put_place(MapReply& map, const AdoptedView& keys, const Queue& queue,
               const AdoptedPlace& place) {
  put_id_and_state(map, place);
  std::optional<int64_t> position;
  std::optional<int64_t> eta_ms;
  if (!place.active) {
    position = static_cast<int64_t>(keys.position(place));
    const int64_t eta = queue.eta_at(static_cast<uint64_t>(*position), queue.queue_ms);
    if (eta >= 0) eta_ms = eta;
  }
  map.integer_or_null("position", position);
  map.integer_or_null("eta_ms", eta_ms);
  position ? map.text("why", why(keys, queue, static_cast<uint64_t>(*position))) : map.null("why");
  map.text("pri", queue.config.band_name(place.band));
  map.text("group", "");
  map.field("keys").array(0);
  map.field("tags").map(0);
  map.integer("cost", 1);
  put_enqueued(map, keys, queue, place);
}

void put_runs(MapReply& map, const Queue& queue, const AdoptedPlace& place, const Times& now) {
  const AdoptedMember* kept = queue.adopted->find(place.id);
  const int64_t lease_ms = queue.adopted->definition.lease_ms;
  const int64_t reclaims = kept == nullptr ? 0 : kept->reclaims;
  std::optional<int64_t> started;
  std::optional<int64_t> deadline;
  if (place.active && kept != nullptr) {
    started = now.shown_ms(kept->since_ms);
    if (lease_ms != 0) deadline = now.wall_ms + kept->since_steady + lease_ms - now.steady_ms;
  }
  for (const Bytes name : {"not_before", "ttl_left_ms"}) map.null(name);
  map.integer("lease_ms", lease_ms);
  map.integer("max_run_ms", 0);
  map.integer("attempts", reclaims + (place.active ? 1 : 0));
  map.integer("crashes", reclaims);
  map.integer("retries_left", 0);
  map.field("needs").array(0);
  for (const Bytes name : {"lease", "worker"}) map.null(name);
  map.integer_or_null("deadline", deadline);
  map.integer_or_null("started", started);
  for (const Bytes name : {"cancel", "finished", "run_ms", "error", "progress"}) map.null(name);
  map.boolean("successor", false);
}

// The string at the prefix and id, or nothing.
std::optional<Bytes> payload_of(Call& call, const Queue& queue, const AdoptedPlace& place) {
  const std::optional<std::string> name = adopted_view(call, queue).payload_key(place.id);
  if (!name) return std::nullopt;
  const KeyRef key(*name);
  // The reply to a waiter is written under the locks of another command.
  const bool locked = (call.execution.locked() >> key.shard & 1) != 0;
  const Entry* entry = locked ? call.find(key) : nullptr;
  if (entry == nullptr || entry->type() != Type::kString) return std::nullopt;
  return entry->string();
}

// REQUIRES: the user may read the payload, if it is requested.
void reply_adopted_job(Call& call, const Queue& queue, const AdoptedPlace& place,
                       ShownFields with) {
  const AdoptedView keys = adopted_view(call, queue);
  MapReply map(call.reply);
  if (with.brief) {
    put_id_and_state(map, place);
    put_enqueued(map, keys, queue, place);
  } else {
    put_place(map, keys, queue, place);
    put_runs(map, queue, place, call.unit.times);
  }
  if (with.dependents) {
    map.field("dependents").array(0);
    map.integer("dependents_count", 0);
  }
  // Nothing was given to Q.ADD.
  if (with.options) map.null("options");
  if (with.payload) {
    const std::optional<Bytes> payload = payload_of(call, queue, place);
    payload ? map.text("payload", *payload) : map.null("payload");
  }
  if (with.result) map.null("result");
}

}  // namespace

AdoptedView adopted_view(const Call& call, const Queue& queue) {
  return {call.engine.shards(), queue, call.unit.times};
}

AdoptedWork adopted_work(const Call& call) {
  return {call.engine.adopted(), call.execution.locked(), call.unit};
}

bool check_payload(Call& call, const Queue& queue, Bytes id, KeyRight right) {
  const std::optional<std::string> name = adopted_view(call, queue).payload_key(id);
  if (!name || may_also_use(call, *name, right)) return true;
  return fail(call, Acl::refusal(Denial::kKey, call.command));
}

void get_adopted(Call& call, const Queue& queue, ShownFields with) {
  const AdoptedPlace place = adopted_view(call, queue).find(call.args[2]);
  if (place.is_nowhere()) return call.reply.null();
  if (with.payload && !check_payload(call, queue, place.id, kMayRead)) return;
  reply_adopted_job(call, queue, place, with);
}

void list_adopted(Call& call, const Queue& queue, const ListRequest& request) {
  const JobStates live = state_bit(JobState::kPending) | state_bit(JobState::kActive);
  const Selector& selector = request.selector;
  if (request.order == JobOrder::kAgeDesc &&
      (selector.states == 0 || (selector.states & live) != 0)) {
    // Members can only be walked from the front.
    return call.reply.error(QueueError("ADOPTED").text());
  }
  // Payloads of members are keys of their own.
  if (selector.payload) return call.reply.error(QueueError("ADOPTED").text());
  AdoptedPage page;
  const auto weigh = [&](const AdoptedPlace& place) {
    return request.with.payload ? payload_of(call, queue, place).value_or(Bytes()).size() : 0;
  };
  if (!adopted_view(call, queue)
           .walk(selector, request.order, request.cursor, static_cast<size_t>(request.count), page,
                 weigh)) {
    return call.reply.error("ERR invalid cursor");
  }
  for (const AdoptedPlace& place : page.places) {
    if (request.with.payload && !check_payload(call, queue, place.id, kMayRead)) return;
  }
  begin_page(call, request, page.cursor, page.places.size());
  for (const AdoptedPlace& place : page.places) {
    reply_adopted_job(call, queue, place, request.with);
  }
  end_page(call, request, page.looked_at);
}

void move_adopted(Call& call, Queue& queue, const MoveSpec& spec) {
  // A score cannot hold these options.
  if (spec.boost_ms || spec.delay_ms || spec.at_ms) {
    return call.reply.error(QueueError("ADOPTED").text());
  }
  if (spec.band && !adopted_view(call, queue).has_band(*spec.band)) {
    return reply_bad_field(call, "pri");
  }
  const auto position =
      adopted_work(call).move(queue, call.args[2], {spec.band, spec.front, spec.back});
  position ? call.reply.integer(static_cast<int64_t>(*position)) : call.reply.null();
}

void cancel_adopted(Call& call, Queue& queue, Bytes reason) {
  if (!check_payload(call, queue, call.args[2], kMayWrite)) return;
  const bool found = adopted_work(call).cancel(queue, call.args[2], reason);
  call.reply.simple(found ? "cancelled" : "gone");
}

}  // namespace sluice
