// Named places where a crash test ends the process: kill_point("before_journal_write").
//
// While no hook is set, a kill point costs one relaxed load of a pointer. The hook runs on the
// thread that passes the point. The points:
// - before_journal_write, after_journal_write;
// - before_journal_sync (not in the mode `always`, where writing and syncing are one step);
// - after_journal_sync, and after_acknowledgement, when the kernel has the replies;
// - inside_expiry: expired keys and due timers of queues have changed memory, not the journal;
// - inside_release: the same for jobs whose needs have ended;
// - inside_checkpoint, before_checkpoint_commit, after_checkpoint_commit;
// - before_trim, after_trim;
// - frame_made, frame_sent, frame_committed: of the replicated log; before_local_write;
// - epoch_taken, log_tidied, epoch_ready, promoted: in a takeover, in this order.
#pragma once

#include <atomic>

namespace sluice {

using KillPointHook = void (*)(const char* name);
inline std::atomic<KillPointHook> kill_point_hook{nullptr};

inline void kill_point(const char* name) {
  const KillPointHook hook = kill_point_hook.load(std::memory_order_relaxed);
  if (__builtin_expect(hook != nullptr, 0)) hook(name);
}

}  // namespace sluice
