// SIGTERM and SIGINT for all workers of a process, by one listener each: node takes more than ten
// for a leak, and says so.
const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const listeners = new Set<() => void>()

function tell(): void {
  for (const listener of [...listeners]) listener()
}

/** Calls it at each of these signals, until what it returns is called. */
export function onSignal(listener: () => void): () => void {
  if (listeners.size === 0) for (const signal of SIGNALS) process.on(signal, tell)
  listeners.add(listener)
  return () => {
    if (!listeners.delete(listener) || listeners.size > 0) return
    for (const signal of SIGNALS) process.off(signal, tell)
  }
}
