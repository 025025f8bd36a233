// HistoryKeeper: fills the server's History, and keeps it in a file.
//
// Each five seconds all queues are looked at, in parts between which others are served. Each
// minute, if something has changed, the file is written anew: its contents are made in such parts
// too, and a thread of its own writes them. The file is read by that thread once commands are
// served, and the first sample follows; so neither delays anything. A server that keeps no data on
// the disk has no file.
//
// Threads and lifetime: created before the I/O threads start, destroyed after them. The sampler is
// a guest of I/O thread 0. finish() is called by the control thread when these threads have ended.
#pragma once

#include <memory>
#include <string>

#include "net/admin/history.h"
#include "net/io/io_thread.h"

namespace sluice {

class HistoryKeeper {
 public:
  // `directory`: of the data.
  HistoryKeeper(ServerState& state, const std::string& directory);
  ~HistoryKeeper();

  History& history() { return history_; }
  // Called before the thread starts.
  void join(IoThread& thread);
  // Makes the thread of the file, after join(). Throws like Thread.
  void start();
  // Ends the thread of the file. `saves`: writes the file for the last time. Call it when the I/O
  // thread has ended.
  void finish(bool saves);

 private:
  class Worker;
  class Sampler;

  bool has_file() const;
  void save(const std::string& contents);
  void load();

  ServerState& state_;
  const std::string path_;
  History history_;
  std::unique_ptr<Worker> worker_;
};

}  // namespace sluice
