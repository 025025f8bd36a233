#include "tools/import/target.h"

#include <filesystem>

#include "engine/access/acl.h"
#include "engine/script/script_engine.h"

namespace sluice::import {

namespace {

// Number of values inserted under one hold of the locks.
constexpr uint64_t kKeysInAHold = 64;

}  // namespace

ImportTarget::~ImportTarget() {
  if (server_ == nullptr) return;
  if (execution_ != nullptr) execution_->finish();
  execution_.reset();
  server_->request_stop(ShutdownMode::kNoSave);
  server_->wait();
}

Status ImportTarget::open(const std::string& directory) {
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (failed) return io_error("cannot create " + directory + ": " + failed.message());
  config_ = std::make_unique<Config>();
  // A `save` rule makes the server open the directory without a journal; this one never fires.
  const std::vector<std::string> arguments = {
      "--dir",        directory,      "--port", "0",          "--http-port", "0",
      "--appendonly", "no",           "--save", "2000000000", "2000000000",  "--loglevel",
      "warning",      "--io-threads", "1"};
  if (const auto error = config_->apply_arguments(arguments)) return invalid(error->text());
  server_ = std::make_unique<Server>(*config_);
  Status status = server_->start();
  if (status.ok() && !server_->wait_until_ready()) {
    server_->wait();
    status = io_error(server_->failure());
  }
  if (!status.ok()) {
    server_.reset();
    return status;
  }
  execution_ = std::make_unique<Execution>(server_->engine());
  client_.user = server_->engine().acl().default_user();
  return refuse_filled(directory);
}

Status ImportTarget::refuse_filled(const std::string& directory) const {
  uint64_t keys = 0;
  for (int database = 0; database < kDatabases; ++database) {
    keys += server_->engine().key_count(database);
  }
  const size_t libraries = script_engine(server_->engine()).functions()->libraries.size();
  if (keys == 0 && libraries == 0) return {};
  return invalid(directory + " already holds data (" + std::to_string(keys) + " keys, " +
                 std::to_string(libraries) +
                 " function libraries): import into an empty directory");
}

Status ImportTarget::put_key(int database, OwnedEntry entry, bool replace) {
  if (database >= kDatabases) {
    return invalid("only " + std::to_string(kDatabases) + " databases are supported");
  }
  execution_->set_now_ms(server_->engine().server().unix_time_us() / 1000);
  if (entry->expire_ms() != 0 && entry->expire_ms() <= execution_->now_ms()) {
    ++counts_.expired;
    return {};
  }
  const Type type = entry->type();
  const bool expires = entry->expire_ms() != 0;
  const bool is_new = execution_->put_entry(database, std::move(entry));
  if ((counts_.keys + counts_.replaced) % kKeysInAHold == 0) execution_->finish();
  if (!is_new) {
    ++counts_.replaced;
    return replace ? Status() : invalid("duplicate key");
  }
  ++counts_.keys;
  ++counts_.by_type[static_cast<size_t>(type)];
  counts_.with_expiry += expires ? 1 : 0;
  counts_.databases |= 1U << database;
  return {};
}

Status ImportTarget::put_library(Bytes code) {
  ByteBuffer out;
  RespReply reply(out, client_.protocol);
  const Bytes words[] = {"FUNCTION", "LOAD", code};
  execution_->execute(client_, Request(words), reply);
  execution_->finish();
  const Bytes text = out.view();
  if (text.empty() || text[0] == '-') {
    return invalid(std::string(text.substr(1, text.find('\r') - 1)));
  }
  ++counts_.libraries;
  return {};
}

Status ImportTarget::commit() {
  execution_->finish();
  execution_.reset();
  server_->request_stop(ShutdownMode::kSave);
  const int exit_code = server_->wait();
  const std::string failure = server_->failure();
  server_.reset();
  if (exit_code == 0) return {};
  return io_error(failure.empty() ? "cannot write the checkpoint" : failure);
}

}  // namespace sluice::import
