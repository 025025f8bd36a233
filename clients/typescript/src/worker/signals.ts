// SIGTERM and SIGINT for all workers of a process, by one listener each: node takes more than ten
// for a leak, and says so.
const SIGNALS = ['SIGTERM', 'SIGINT'] as const
const listeners = new Set<() => void>()
const told = new Set<() => void>()  // those that have heard a signal, and not ended
let hangs = false

function tell(): void {
  for (const listener of [...listeners]) {
    told.add(listener)
    listener()
  }
}

/**
 * Calls it at each of these signals, until what it returns is called. That is told whether a
 * handler does not end: then the process exits with 1, once all that heard a signal have ended.
 */
export function onSignal(listener: () => void): (handlerHangs: boolean) => void {
  if (listeners.size === 0) for (const signal of SIGNALS) process.on(signal, tell)
  listeners.add(listener)
  return (handlerHangs) => {
    if (listeners.delete(listener) && listeners.size === 0) {
      for (const signal of SIGNALS) process.off(signal, tell)
    }
    told.delete(listener)
    hangs ||= handlerHangs
    if (hangs && told.size === 0) process.exit(1)
  }
}
