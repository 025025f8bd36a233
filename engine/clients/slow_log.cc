#include "engine/clients/slow_log.h"

#include <algorithm>
#include <cstdio>

#include "engine/base/hex.h"
#include "engine/base/quoting.h"
#include "engine/ports/server_port.h"
#include "engine/table/command.h"

namespace sluice {

namespace {
constexpr size_t kMaxArguments = 32;
constexpr size_t kMaxArgumentBytes = 128;
}  // namespace

void SlowLog::add(std::span<const Bytes> args, int64_t now_ms, int64_t duration_us,
                  uint64_t client_id, Bytes client_address, Bytes client_name, size_t max_entries) {
  SlowEntry entry;
  entry.unix_s = now_ms / 1000;
  entry.duration_us = duration_us;
  entry.client_id = client_id;
  entry.client_address = client_address;
  entry.client_name = client_name;
  const size_t kept = std::min(args.size(), kMaxArguments);
  for (size_t i = 0; i < kept; ++i) {
    if (i == kMaxArguments - 1 && args.size() > kMaxArguments) {
      entry.arguments.push_back("... (" + std::to_string(args.size() - kMaxArguments + 1) +
                                " more arguments)");
    } else {
      entry.arguments.push_back(shortened(args[i], kMaxArgumentBytes));
    }
  }
  MutexLock lock(mutex_);
  entry.id = next_id_++;
  entries_.push_front(std::move(entry));
  while (entries_.size() > max_entries) entries_.pop_back();
}

std::vector<SlowEntry> SlowLog::newest(size_t count) const {
  MutexLock lock(mutex_);
  const size_t shown = std::min(count, entries_.size());
  return {entries_.begin(), entries_.begin() + static_cast<std::ptrdiff_t>(shown)};
}

size_t SlowLog::size() const {
  MutexLock lock(mutex_);
  return entries_.size();
}

void SlowLog::reset() {
  MutexLock lock(mutex_);
  entries_.clear();
}

std::vector<Bytes> without_secrets(const ServerPort& server, const Command& command,
                                   std::span<const Bytes> args) {
  std::vector<Bytes> shown(args.begin(), args.end());
  const auto hide = [&](size_t first, size_t count) {
    for (size_t i = first; i < first + count && i < shown.size(); ++i) shown[i] = "(redacted)";
  };
  switch (command.secrets) {
    case Secrets::kNone:
      break;
    case Secrets::kEveryArgument:
      hide(command.container == nullptr ? 1 : 2, shown.size());
      break;
    case Secrets::kBehindAuth:
      for (size_t i = 2; i < args.size(); ++i) {
        if (equals_ignore_case(args[i], "auth")) hide(i + 1, 2);
      }
      break;
    case Secrets::kConfigValues:
      for (size_t i = 2; i + 1 < args.size(); i += 2) {
        if (server.is_secret(args[i])) hide(i + 1, 1);
      }
      break;
  }
  return shown;
}

std::string quoted(Bytes bytes) {
  std::string out = "\"";
  for (const char c : bytes) {
    switch (c) {
      case '\\':
      case '"':
        out += '\\';
        out += c;
        break;
      case '\n':
        out += "\\n";
        break;
      case '\r':
        out += "\\r";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\a':
        out += "\\a";
        break;
      case '\b':
        out += "\\b";
        break;
      default:
        if (c >= 32 && c < 127) {
          out += c;
        } else {
          out += "\\x";
          append_hex(out, Bytes(&c, 1));
        }
    }
  }
  out += '"';
  return out;
}

void Monitors::add(uint64_t client_id, std::shared_ptr<ClientPort> port) {
  MutexLock lock(mutex_);
  monitors_.push_back({client_id, std::move(port)});
  count_.store(monitors_.size(), std::memory_order_relaxed);
}

void Monitors::remove(uint64_t client_id) {
  MutexLock lock(mutex_);
  std::erase_if(monitors_, [&](const Monitor& m) { return m.client_id == client_id; });
  count_.store(monitors_.size(), std::memory_order_relaxed);
}

void Monitors::show(int64_t unix_us, int database, Bytes source, std::span<const Bytes> args,
                    Unit& unit) {
  char stamp[64];
  std::snprintf(stamp, sizeof(stamp), "+%lld.%06lld [%d ",
                static_cast<long long>(unix_us / 1000000),
                static_cast<long long>(unix_us % 1000000), database);
  std::string line = stamp;
  line += source;
  line += ']';
  for (const Bytes arg : args) {
    line += ' ';
    line += quoted(arg);
  }
  line += "\r\n";
  unit.monitor_lines.append(line);
}

void Monitors::deliver(Bytes lines, Lsn gate) {
  MutexLock lock(mutex_);
  for (const Monitor& monitor : monitors_) {
    ByteBuffer bytes;
    bytes.append(lines);
    monitor.port->deliver(std::move(bytes), gate);
  }
}

}  // namespace sluice
