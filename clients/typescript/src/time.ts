// Waiting.
import { setMaxListeners } from 'node:events'

const LONGEST_MS = 2 ** 31 - 1  // of a timer of node; beyond that it fires at once

/** As setTimeout, also for times that are longer than a timer's, or without end. */
export function later(ms: number, act: () => void): NodeJS.Timeout {
  return setTimeout(act, Math.min(ms, LONGEST_MS))
}

/** Node takes more than ten listeners of a signal for a leak; these are removed again. */
export function letManyListen(signal: AbortSignal): void {
  setMaxListeners(0, signal)
}

/** Resolves after that many milliseconds, or when the signal is aborted. */
export function sleep(ms: number, signal?: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    if (signal?.aborted) return resolve()
    const wake = (): void => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', wake)
      resolve()
    }
    const timer = later(ms, wake)
    signal?.addEventListener('abort', wake)
  })
}
