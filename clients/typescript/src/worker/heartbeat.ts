// The heartbeat of a worker: it extends all leases, and hears who is to stop.
import { NoJob, StaleLease, TooBig } from '../errors.js'
import type { Link } from '../link.js'
import { MOST_PAIRS, readTouch, touchWords, type Touch, type TouchAnswer } from './commands.js'
import { later } from '../time.js'
import type { Run } from './run.js'

const CONNECT_MS = 1000
const REPLY_MS = 5000

export interface HeartbeatTarget<Payload> {
  readonly commands: Link
  readonly worker: string
  runs(): Iterable<Run<Payload>>
  answered(run: Run<Payload>, answer: TouchAnswer): void
  quiet(quiet: boolean): void
  /** The server is away, or refuses a whole heartbeat. */
  failed(error: unknown): void
}

export class Heartbeat<Payload> {
  readonly #target: HeartbeatTarget<Payload>
  readonly #longestMs: number
  #timer: NodeJS.Timeout | undefined
  #due = Infinity
  #stopped = false

  constructor(target: HeartbeatTarget<Payload>, longestMs: number) {
    this.#target = target
    this.#longestMs = longestMs
  }

  /** A run has begun: its first heartbeat is due in a third of its lease. */
  expect(leaseMs: number): void {
    const due = performance.now() + Math.min(leaseMs / 3, this.#longestMs)
    if (this.#stopped || due >= this.#due) return
    this.#due = due
    clearTimeout(this.#timer)
    this.#timer = later(due - performance.now(), () => void this.#beat())
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#timer)
  }

  async #beat(): Promise<void> {
    await Promise.all(chunks([...this.#target.runs()]).map((runs) => this.#touch(runs)))
    this.#due = Infinity
    const leases = [...this.#target.runs()].map((run) => run.popped.leaseMs)
    if (leases.length > 0) this.expect(Math.min(...leases))
  }

  async #touch(runs: readonly Run<Payload>[]): Promise<void> {
    const touches = runs.map((run) => run.touch())
    try {
      const words = touchWords(touches, this.#target.worker)
      const reply = await this.#target.commands.call(words, CONNECT_MS, REPLY_MS)
      const { quiet, answers } = readTouch(reply, runs.length)
      this.#target.quiet(quiet)
      runs.forEach((run, at) => {
        const touch = touches[at]
        if (touch !== undefined) run.sent(touch)
        this.#target.answered(run, answers[at] ?? { say: 'continue' })
      })
    } catch (error) {
      const single = runs.length === 1
      this.#refused(single ? runs[0] : undefined, single ? touches[0] : undefined, error)
    }
  }

  // The error of a single lease is that of the command.
  #refused(run: Run<Payload> | undefined, touch: Touch | undefined, error: unknown): void {
    if (run === undefined || touch === undefined) return this.#target.failed(error)
    if (error instanceof NoJob || error instanceof StaleLease) {
      this.#target.answered(run, { say: 'lost' })
    } else if (error instanceof TooBig) {
      run.sent(touch)
      this.#target.answered(run, { say: 'refused', error })
    } else {
      this.#target.failed(error)
    }
  }
}

// A command is about one queue.
function chunks<Payload>(runs: readonly Run<Payload>[]): Run<Payload>[][] {
  const open = new Map<string, Run<Payload>[]>()
  const all: Run<Payload>[][] = []
  for (const run of runs) {
    const { queue } = run.popped
    let chunk = open.get(queue)
    if (chunk === undefined || chunk.length === MOST_PAIRS) {
      chunk = []
      open.set(queue, chunk)
      all.push(chunk)
    }
    chunk.push(run)
  }
  return all
}
