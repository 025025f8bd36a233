// Named places where a crash test ends the process: kill_point("before_journal_write").
//
// Costs one relaxed load of a pointer while no hook is set. The hook runs on the thread that passed
// the point. Points so far: before_journal_write, after_journal_write, before_journal_sync (not in
// the mode `always`, where writing and syncing are one step), after_journal_sync,
// after_acknowledgement (replies are with the kernel), inside_expiry (what was due, keys and timers
// of queues, has changed memory and is not in the journal), inside_release (the same of jobs that
// have heard that what they need has ended), inside_checkpoint, before_checkpoint_commit,
// after_checkpoint_commit, before_trim, after_trim.
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
