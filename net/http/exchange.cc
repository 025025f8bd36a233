#include "net/http/exchange.h"

#include <utility>

#include "engine/base/check.h"
#include "net/http/http_service.h"
#include "net/process/wall_clock.h"

namespace sluice {

const std::string& Exchange::path(Bytes name) const {
  for (const auto& [key, value] : path_) {
    if (key == name) return value;
  }
  CHECK(false);
}

namespace {

std::vector<Bytes> views_of(const std::vector<std::string>& arguments) {
  return {arguments.begin(), arguments.end()};
}

}  // namespace

RespValue Exchange::run(const std::vector<std::string>& arguments) {
  CHECK(!cut_off());
  transport_->engine().speak_for(principal_.user, database_);
  return note(arguments, transport_->engine().run(views_of(arguments)));
}

RespValue Exchange::run_if_queue(const std::string& key,
                                 const std::vector<std::string>& arguments) {
  CHECK(!cut_off());
  transport_->engine().speak_for(principal_.user, database_);
  return note(arguments, transport_->engine().run_if(Type::kQueue, key, views_of(arguments)));
}

void Exchange::run_together(const std::function<void()>& commands) {
  CHECK(!cut_off());
  transport_->engine().run_together(commands);
}

RespValue Exchange::note(const std::vector<std::string>& arguments, RespValue reply) {
  if (reply.is_error()) refused_ = arguments;
  const int64_t count = ChangeLog::count_of(arguments, reply);
  if (count > 0) note_change(arguments, count);
  return reply;
}

void Exchange::note_change(const std::vector<std::string>& words, int64_t count) {
  service().changes().add(principal_, database_, words, count, wall_ms());
}

void Exchange::run_waiting(const std::vector<std::string>& arguments, EngineClient::Then then) {
  if (cut_off()) return;
  refused_ = arguments;
  transport_->engine().speak_for(principal_.user, database_);
  transport_->engine().run_waiting(views_of(arguments), std::move(then));
}

void Exchange::respond(HttpResponse response) {
  if (!cut_off()) transport_->send(std::move(response));
}

void Exchange::open_stream(HttpResponse head, std::function<void()> sent) {
  if (!cut_off()) transport_->open_stream(std::move(head), std::move(sent));
}

void Exchange::send_part(std::string part, std::function<void()> sent) {
  if (!cut_off()) transport_->send_part(std::move(part), std::move(sent));
}

void Exchange::end_stream() {
  if (!cut_off()) transport_->end_stream();
}

}  // namespace sluice
