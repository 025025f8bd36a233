// The waits for the replies of one connection.
import { later } from './time.js'

/** A wait; it is lost by the reason that `lose` is given. */
export interface Wait {
  readonly ms: number
  readonly lose: (reason: Error) => void
  state: number
  left: number  // milliseconds
}

const LOOKS = 8  // within the time of the shortest wait

/**
 * Calls `still` with the time of a wait in which `state` has not changed; it may come an eighth of
 * the longest such time late. The waits share a timer, which runs out after the last of them: to
 * start and clear one for each wait costs a worker 3 % of its CPU time.
 */
export class Waits {
  readonly #state: () => number
  readonly #still: (ms: number) => void
  readonly #waits = new Set<Wait>()
  #timer: NodeJS.Timeout | null = null
  #period = 0  // milliseconds

  constructor(state: () => number, still: (ms: number) => void) {
    this.#state = state
    this.#still = still
  }

  get size(): number {
    return this.#waits.size
  }

  add(ms: number, lose: Wait['lose']): Wait {
    if (this.#timer === null || periodOf(ms) < this.#period) this.#watch(ms)
    const wait = { ms, lose, state: this.#state(), left: ms + this.#period }
    this.#waits.add(wait)
    return wait
  }

  /** Whether this ends the wait, which has ended if it was lost before. */
  end(wait: Wait): boolean {
    return this.#waits.delete(wait)
  }

  loseAll(reason: Error): void {
    for (const wait of [...this.#waits]) if (this.end(wait)) wait.lose(reason)
  }

  // What arrived while the process did not run is read before it looks. The connection keeps the
  // process, not the timer.
  #watch(shortest: number): void {
    if (this.#timer !== null) clearTimeout(this.#timer)
    this.#period = periodOf(shortest)
    // One that has fired may have been replaced before it looks.
    const timer = later(this.#period, () => setImmediate(() => {
      if (this.#timer === timer) this.#look()
    })).unref()
    this.#timer = timer
  }

  #look(): void {
    const passed = this.#period
    const state = this.#state()
    let shortest = Infinity
    this.#timer = null
    for (const wait of this.#waits) {
      wait.left = wait.state === state ? wait.left - passed : wait.ms
      wait.state = state
      if (wait.left <= 0) return this.#still(wait.ms)
      shortest = Math.min(shortest, wait.ms)
    }
    if (this.#waits.size > 0) this.#watch(shortest)
  }
}

function periodOf(ms: number): number {
  return Math.ceil(ms / LOOKS)
}
