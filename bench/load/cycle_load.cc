// cycle_load: drives the seed's execution queue (ZADD + SET EX, EVALSHA, SREM + DEL) over many
// pipelined connections from one thread, at full speed or at a fixed rate, checks the replies while
// it runs, and prints one line of JSON.
//
//   cycle_load --port N [--host A] [--connections 50] [--pipeline 16] [--payload 300] [--cap 1000]
//              (--fill N | --jobs N | --seconds S) [--rate COMMANDS_PER_S] [--first-job N]
//              [--check] [--native] [--ack-pop] [--groups N] [--keys N]
//
// --fill only adds jobs. Otherwise each connection sends batches of `pipeline` commands and waits
// for all their replies, as redis-benchmark does; a popped job is released in the next batch. At
// the end as many jobs have been popped and released as were added, so the length of the queue is
// unchanged. With --rate, batches are due at fixed times, and latency counts from the due time,
// whether or not the batch could be sent then. SIGUSR1 restarts the measured window, SIGINT ends
// the run.
// --native does the same work by Q.ADD, Q.POP and Q.ACK; with --ack-pop a worker acknowledges and
// pops in one command. --groups and --keys assign each native job one of that many groups and keys.
// --check remembers each job and proves at the end that none was overtaken, lost or handed out
// twice.
// Exit: 0 success, 1 a check failed or the server replied with an error, 2 bad arguments or no
// server.
#include <sys/epoll.h>
#include <sys/resource.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "bench/load/latency_histogram.h"
#include "bench/load/native_wire.h"
#include "bench/load/order_check.h"
#include "bench/load/queue_wire.h"
#include "bench/load/resp_client.h"

namespace sluice::bench {
namespace {

volatile std::sig_atomic_t g_restart_window = 0;
volatile std::sig_atomic_t g_stop = 0;

constexpr uint64_t kNoJob = UINT64_MAX;
constexpr uint64_t kNever = UINT64_MAX;
constexpr size_t kReadBytes = 64 * 1024;

uint64_t clock_ns(clockid_t clock) {
  timespec t;
  clock_gettime(clock, &t);
  return static_cast<uint64_t>(t.tv_sec) * 1'000'000'000 + static_cast<uint64_t>(t.tv_nsec);
}

uint64_t now_ns() { return clock_ns(CLOCK_MONOTONIC); }

struct Options {
  std::string host = "127.0.0.1";
  uint16_t port = 0;
  size_t connections = 50;
  size_t pipeline = 16;
  size_t payload_bytes = 300;
  uint64_t cap = 1000;
  uint64_t fill = 0;
  uint64_t jobs = 0;
  double seconds = 0;
  double rate = 0;
  uint64_t first_job = 0;
  bool check = false;
  bool native = false;
  bool ack_pop = false;
  uint64_t groups = 0;
  uint64_t keys = 0;
};

enum class Kind : uint8_t { kAdd, kStore, kPop, kRelease, kForget };

// A popped job; the lease is the native queue's.
struct Held {
  uint64_t job;
  uint64_t lease;
};

struct Sent {
  Kind kind;
  uint64_t job;
};

struct Connection {
  int fd = -1;
  bool finished = false;
  std::vector<Sent> batch;   // the commands in flight, in order
  size_t answered = 0;       // how many of them have their reply
  uint64_t due_ns = 0;       // latency of the batch counts from here
  uint64_t next_due_ns = 0;  // with --rate: when the next batch should leave
  uint64_t sent_tick = 0;
  std::string out, in;
  std::deque<Held> to_release;  // popped jobs whose SREM has not been sent
  uint64_t to_store = kNoJob;   // the job whose ZADD was just sent
  uint64_t to_forget = kNoJob;  // the job whose SREM was just sent
  uint64_t owed_pops = 0;       // one for each add, until it has brought a job
  bool busy() const { return answered < batch.size(); }
};

// Error counters; all but `early` and `capped` must be zero at the end.
struct Findings {
  uint64_t errors = 0;  // error replies
  uint64_t unexpected =
      0;  // a reply that this command cannot have, e.g. for an id that exists already
  uint64_t over_cap = 0;  // more jobs certainly active than the cap allows
  uint64_t twice = 0;     // a job handed out twice (with --check)
  uint64_t early = 0;     // a job was released by another connection before its SET had run
  uint64_t capped = 0;    // the script answered nil: the cap was reached
  std::string first;
};

class CycleLoad {
 public:
  CycleLoad(const Options& options, const std::string& sha)
      : options_(options),
        wire_(options.payload_bytes, options.cap, sha),
        native_(wire_.payload(), wire_.payload_id_at(), options.cap, options.groups, options.keys) {
    next_job_ = options_.first_job;
    const uint64_t wanted = options_.fill > 0 ? options_.fill : options_.jobs;
    if (wanted > 0) last_job_ = options_.first_job + wanted;
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    connections_.resize(options_.connections);
    for (size_t i = 0; i < connections_.size(); ++i) {
      connections_[i].fd = connect_to(options_.host, options_.port);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      epoll_ctl(epoll_, EPOLL_CTL_ADD, connections_[i].fd, &event);
    }
  }

  ~CycleLoad() {
    for (const Connection& c : connections_) close(c.fd);
    close(epoll_);
  }
  CycleLoad(const CycleLoad&) = delete;
  CycleLoad& operator=(const CycleLoad&) = delete;

  int run() {
    started_ns_ = window_ns_ = now_ns();
    end_ns_ =
        options_.seconds > 0 ? started_ns_ + static_cast<uint64_t>(options_.seconds * 1e9) : kNever;
    if (options_.rate > 0) set_timetable();
    uint64_t now = started_ns_;
    for (Connection& c : connections_) send_batch(c, now);
    while (finished_ < connections_.size()) {
      wait_and_read(options_.rate > 0 && !stopping_ ? next_departure() : kNever);
      now = now_ns();
      if (g_restart_window != 0) restart_window(now);
      if (!stopping_ && (g_stop != 0 || now >= end_ns_)) stopping_ = true;
      if (options_.rate > 0) send_due(now);
    }
    return report();
  }

 private:
  // Departures are spread evenly over the interval, one connection after the other.
  void set_timetable() {
    const double gap_ns = 1e9 * static_cast<double>(options_.pipeline) / options_.rate;
    interval_ns_ = static_cast<uint64_t>(gap_ns * static_cast<double>(connections_.size()));
    for (size_t i = 0; i < connections_.size(); ++i) {
      connections_[i].next_due_ns =
          started_ns_ + static_cast<uint64_t>(gap_ns * static_cast<double>(i));
    }
  }

  uint64_t next_departure() const {
    uint64_t next = kNever;
    for (const Connection& c : connections_) {
      if (!c.busy() && !c.finished) next = std::min(next, c.next_due_ns);
    }
    return next;
  }

  void send_due(uint64_t now) {
    for (Connection& c : connections_) {
      if (!c.busy() && !c.finished) send_batch(c, now);
    }
  }

  void restart_window(uint64_t now) {
    g_restart_window = 0;
    latencies_.reset();
    window_ns_ = now;
  }

  // Sends the connection's next batch, unless it is not yet due or there is nothing left to do.
  void send_batch(Connection& c, uint64_t now) {
    c.batch.clear();
    c.answered = 0;
    c.due_ns = now;
    if (options_.rate > 0 && !stopping_) {
      if (c.next_due_ns > now) return;
      c.due_ns = c.next_due_ns;
      c.next_due_ns += interval_ns_;
    }
    c.out.clear();
    wall_ms_ = clock_ns(CLOCK_REALTIME) / 1'000'000;
    while (c.batch.size() < options_.pipeline && append_command(c)) {
    }
    if (c.batch.empty()) {
      c.finished = true;
      ++finished_;
      return;
    }
    c.sent_tick = ++tick_;
    send_all(c.fd, c.out);
  }

  // The next command of the connection's cycle; false = there is nothing left to send. A popped job
  // is released before another one is requested, so that a small cap cannot starve the cycle.
  bool append_command(Connection& c) {
    if (options_.native) return append_native(c);
    if (c.to_store != kNoJob) {
      wire_.append_set(c.out, id_of(c.to_store));
      c.batch.push_back({Kind::kStore, std::exchange(c.to_store, kNoJob)});
    } else if (c.to_forget != kNoJob) {
      wire_.append_del(c.out, id_of(c.to_forget));
      c.batch.push_back({Kind::kForget, std::exchange(c.to_forget, kNoJob)});
    } else if (!c.to_release.empty()) {
      c.to_forget = c.to_release.front().job;
      c.to_release.pop_front();
      --held_;
      wire_.append_srem(c.out, id_of(c.to_forget));
      c.batch.push_back({Kind::kRelease, c.to_forget});
    } else if (c.owed_pops > 0) {
      --c.owed_pops;
      wire_.append_schedule(c.out);
      c.batch.push_back({Kind::kPop, kNoJob});
    } else if (!stopping_ && next_job_ < last_job_ && has_room_for_add(c)) {
      append_add(c);
    } else {
      return false;
    }
    return true;
  }

  bool append_native(Connection& c) {
    if (!c.to_release.empty()) {
      const Held held = c.to_release.front();
      c.to_release.pop_front();
      --held_;
      const bool and_pop = options_.ack_pop && c.owed_pops > 0;
      if (and_pop) --c.owed_pops;
      native_.append_ack(c.out, held.job, held.lease, and_pop);
      c.batch.push_back({and_pop ? Kind::kPop : Kind::kRelease, held.job});
    } else if (c.owed_pops > 0) {
      --c.owed_pops;
      native_.append_pop(c.out);
      c.batch.push_back({Kind::kPop, kNoJob});
    } else if (!stopping_ && next_job_ < last_job_) {
      native_.append_add(c.out, next_job_);
      c.batch.push_back({Kind::kAdd, next_job_++});
      if (options_.fill == 0) ++c.owed_pops;
    } else {
      return false;
    }
    return true;
  }

  // ZADD and SET are sent in one write if the pipeline allows it: otherwise another connection
  // could pop and forget the job before its event is stored, and the event would remain.
  bool has_room_for_add(const Connection& c) const {
    return c.batch.empty() || c.batch.size() + 2 <= options_.pipeline;
  }

  void append_add(Connection& c) {
    const uint64_t job = next_job_++;
    const uint64_t score = job % 5 * kBandWidth + wall_ms_;
    wire_.append_zadd(c.out, id_of(job), score);
    c.batch.push_back({Kind::kAdd, job});
    c.to_store = job;
    if (options_.fill == 0) ++c.owed_pops;
    if (options_.check) {
      history_.emplace_back();
      history_.back().order = order_of(score, job);
    }
  }

  void wait_and_read(uint64_t until_ns) {
    std::array<epoll_event, 64> events;
    timespec timeout{1, 0};
    if (until_ns != kNever) {
      const uint64_t now = now_ns();
      const uint64_t wait_ns =
          until_ns > now ? std::min<uint64_t>(until_ns - now, 1'000'000'000) : 0;
      timeout = {static_cast<time_t>(wait_ns / 1'000'000'000),
                 static_cast<long>(wait_ns % 1'000'000'000)};
    }
    const int ready = epoll_pwait2(epoll_, events.data(), events.size(), &timeout, nullptr);
    for (int i = 0; i < ready; ++i) {
      read_replies(connections_[events[static_cast<size_t>(i)].data.u64]);
    }
  }

  void read_replies(Connection& c) {
    const size_t held_over = c.in.size();
    c.in.resize(held_over + kReadBytes);
    const ssize_t n = recv(c.fd, c.in.data() + held_over, kReadBytes, MSG_DONTWAIT);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
      c.in.resize(held_over);
      return;
    }
    if (n <= 0) die(2, "the server closed a connection");
    c.in.resize(held_over + static_cast<size_t>(n));
    ++tick_;
    const uint64_t now = now_ns();
    const uint64_t latency_ns = now > c.due_ns ? now - c.due_ns : 0;
    std::string_view rest = c.in;
    while (c.busy()) {
      const Reply reply = parse_reply(rest);
      if (reply.size == 0) break;
      take_reply(c, c.batch[c.answered++], reply);
      latencies_.record(latency_ns);
      rest.remove_prefix(reply.size);
    }
    c.in.erase(0, c.in.size() - rest.size());
    if (!c.busy()) {
      if (!c.in.empty()) die(1, "a reply without a request: " + c.in.substr(0, 80));
      send_batch(c, now);
    }
  }

  void take_reply(Connection& c, const Sent& sent, const Reply& reply) {
    ++commands_;
    if (reply.kind == '-') {
      ++findings_.errors;
      note("error reply", reply);
      if (sent.kind == Kind::kPop) ++c.owed_pops;
      return;
    }
    if (sent.kind == Kind::kPop) return take_popped(c, reply);
    const bool as_expected = is_expected(sent.kind, reply);
    if (!as_expected && sent.kind == Kind::kForget) {
      ++findings_.early;
    } else if (!as_expected) {
      ++findings_.unexpected;
      note("unexpected reply", reply);
    }
    if (options_.check && sent.kind == Kind::kAdd)
      history_[sent.job - options_.first_job].added = tick_;
  }

  bool is_expected(Kind kind, const Reply& reply) const {
    const bool ok = reply.kind == '+' && reply.text == "OK";
    if (options_.native) return kind == Kind::kAdd ? reply.kind == '*' : ok;
    return kind == Kind::kStore ? ok : reply.kind == ':' && reply.text == "1";
  }

  void take_popped(Connection& c, const Reply& reply) {
    if (reply.nil) {
      ++findings_.capped;
      ++c.owed_pops;
      return;
    }
    uint64_t job = kNoJob;
    uint64_t lease = 0;
    if (options_.native) {
      read_popped(reply, job, lease);
    } else {
      job = job_of(reply.text);
    }
    if (job == kNoJob) {
      ++findings_.unexpected;
      note("not an id of ours", reply);
      return;
    }
    c.to_release.push_back({job, lease});
    ++popped_;
    // A popped job whose SREM has not been sent yet is certainly active.
    if (++held_ > options_.cap) ++findings_.over_cap;
    if (!options_.check || job < options_.first_job || job >= next_job_) return;
    JobHistory& history = history_[job - options_.first_job];
    if (history.pop_read != 0) ++findings_.twice;
    history.pop_sent = c.sent_tick;
    history.pop_read = tick_;
  }

  void note(std::string_view what, const Reply& reply) {
    if (findings_.first.empty())
      findings_.first = std::string(what) + ": " + std::string(reply.text);
  }

  int report() {
    const uint64_t ended = now_ns();
    const double seconds = static_cast<double>(ended - started_ns_) / 1e9;
    const double window_s = static_cast<double>(ended - window_ns_) / 1e9;
    const OrderReport order = options_.check ? OrderCheck::run(history_) : OrderReport{};
    const auto us = [this](double q) {
      return static_cast<double>(latencies_.quantile_ns(q)) / 1e3;
    };
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    const double cpu_s = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                         static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
    std::printf(
        "{\"commands\": %lu, \"seconds\": %.4f, \"commands_per_s\": %.0f, \"added\": %lu, "
        "\"popped\": %lu, "
        "\"window_s\": %.3f, \"window_commands\": %lu, \"p50_us\": %.1f, \"p99_us\": %.1f, "
        "\"p999_us\": %.1f, \"max_us\": %.1f, \"client_cpu_s\": %.3f, \"capped\": %lu, \"early\": "
        "%lu, \"errors\": %lu, "
        "\"unexpected\": %lu, \"over_cap\": %lu, \"twice\": %lu, \"order_checked\": %lu, "
        "\"overtaken\": %lu, \"lost\": %lu}\n",
        commands_, seconds, static_cast<double>(commands_) / seconds,
        next_job_ - options_.first_job, popped_, window_s, latencies_.total(), us(0.5), us(0.99),
        us(0.999), static_cast<double>(latencies_.max_ns()) / 1e3, cpu_s, findings_.capped,
        findings_.early, findings_.errors, findings_.unexpected, findings_.over_cap,
        findings_.twice, order.checked, order.overtaken, order.never_popped);
    const bool clean = findings_.errors + findings_.unexpected + findings_.over_cap +
                           findings_.twice + order.overtaken + order.never_popped ==
                       0;
    if (!clean) std::fprintf(stderr, "cycle_load: a check failed; %s\n", findings_.first.c_str());
    return clean ? 0 : 1;
  }

  const Options options_;
  const QueueWire wire_;
  const NativeWire native_;
  int epoll_ = -1;
  std::vector<Connection> connections_;
  size_t finished_ = 0;
  bool stopping_ = false;
  uint64_t next_job_ = 0;
  uint64_t last_job_ = kNoJob;
  uint64_t popped_ = 0;
  uint64_t held_ = 0;  // popped jobs whose SREM has not been sent
  uint64_t tick_ = 0;  // the logical clock of order_check.h
  uint64_t wall_ms_ = 0;
  uint64_t started_ns_ = 0;
  uint64_t window_ns_ = 0;
  uint64_t end_ns_ = kNever;
  uint64_t interval_ns_ = 0;
  uint64_t commands_ = 0;
  LatencyHistogram latencies_;
  Findings findings_;
  std::vector<JobHistory> history_;
};

std::string load_script(const Options& options) {
  const int fd = connect_to(options.host, options.port);
  std::string request = "*3\r\n";
  append_bulk(request, "SCRIPT");
  append_bulk(request, "LOAD");
  append_bulk(request, kScheduleScript);
  send_all(fd, request);
  std::string in;
  Reply reply;
  while (reply.size == 0) {
    char chunk[256];
    const ssize_t n = recv(fd, chunk, sizeof chunk, 0);
    if (n <= 0) die(2, "the server closed the connection during SCRIPT LOAD");
    in.append(chunk, static_cast<size_t>(n));
    reply = parse_reply(in);
  }
  close(fd);
  if (reply.kind != '$' || reply.text.size() != 40)
    die(1, "SCRIPT LOAD: " + std::string(reply.text));
  return std::string(reply.text);
}

Options parse_options(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    const std::string_view name = argv[i];
    if (name == "--check" || name == "--native" || name == "--ack-pop") {
      (name == "--check" ? o.check : name == "--native" ? o.native : o.ack_pop) = true;
      continue;
    }
    if (++i >= argc) die(2, "a value is missing after " + std::string(name));
    const char* value = argv[i];
    const auto number = [value] { return std::strtoull(value, nullptr, 10); };
    if (name == "--host")
      o.host = value;
    else if (name == "--port")
      o.port = static_cast<uint16_t>(number());
    else if (name == "--connections")
      o.connections = number();
    else if (name == "--pipeline")
      o.pipeline = number();
    else if (name == "--payload")
      o.payload_bytes = number();
    else if (name == "--cap")
      o.cap = number();
    else if (name == "--fill")
      o.fill = number();
    else if (name == "--jobs")
      o.jobs = number();
    else if (name == "--seconds")
      o.seconds = std::strtod(value, nullptr);
    else if (name == "--rate")
      o.rate = std::strtod(value, nullptr);
    else if (name == "--groups")
      o.groups = number();
    else if (name == "--keys")
      o.keys = number();
    else if (name == "--first-job")
      o.first_job = number();
    else
      die(2, "unknown option " + std::string(name));
  }
  if (o.port == 0) die(2, "--port is required");
  if (o.check && o.native) die(2, "--check supports only the order of the seed's queue");
  if (o.connections == 0 || o.pipeline == 0)
    die(2, "--connections and --pipeline must be at least 1");
  if (o.fill == 0 && o.jobs == 0 && o.seconds <= 0)
    die(2, "--fill, --jobs or --seconds is required");
  return o;
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  const Options options = parse_options(argc, argv);
  std::signal(SIGUSR1, [](int) { g_restart_window = 1; });
  std::signal(SIGINT, [](int) { g_stop = 1; });
  // On the heap: the histogram is too large for a modest stack.
  const auto load = std::make_unique<CycleLoad>(options, load_script(options));
  return load->run();
}
