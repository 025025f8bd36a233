// The heartbeat of a worker: it extends all leases, and hears who is to stop.
import { NoJob, StaleLease, TooBig } from '../errors.js'
import type { Link } from '../link.js'
import { later } from '../time.js'
import {
  inCommands, lostOrRefused, readTouch, touchWords, type Touch, type TouchAnswer,
} from './commands.js'
import { held, type Run } from './run.js'

const CONNECT_MS = 1000
const SHORTEST_REPLY_MS = 250
const LONGEST_REPLY_MS = 5000

export interface HeartbeatTarget<Payload> {
  readonly commands: Link
  readonly worker: string
  runs(): readonly Run<Payload>[]
  answered(run: Run<Payload>, answer: TouchAnswer): void
  quiet(queue: string, quiet: boolean): void
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
    const runs = this.#target.runs()
    // After a reply that does not come there is still time for another try.
    const replyMs = Math.max(Math.min(shortestLease(runs) / 3, LONGEST_REPLY_MS), SHORTEST_REPLY_MS)
    await Promise.all(inCommands(runs).map((those) => this.#touch(those, replyMs)))
    this.#due = Infinity
    const left = this.#target.runs()
    if (left.length > 0) this.expect(shortestLease(left))
  }

  async #touch(runs: readonly Run<Payload>[], replyMs: number): Promise<void> {
    const touches = runs.map((run) => run.touch())
    const saying = this.#say(runs, touches, replyMs)
    runs.forEach((run, at) => (run.saying = touches[at]?.log == null ? null : saying))
    await saying
    for (const run of runs) run.saying = null
  }

  async #say(
    runs: readonly Run<Payload>[], touches: readonly Touch[], replyMs: number,
  ): Promise<void> {
    let answers: readonly TouchAnswer[]
    try {
      const words = touchWords(touches, this.#target.worker)
      const reply = await this.#target.commands.call(words, CONNECT_MS, replyMs)
      const said = readTouch(reply, runs.length)
      this.#target.quiet(touches[0]?.queue ?? '', said.quiet)
      answers = said.answers
    } catch (error) {
      // The error of a single lease is that of the command.
      const isOfLease = error instanceof NoJob || error instanceof StaleLease ||
        error instanceof TooBig
      if (!isOfLease || runs.length > 1) return this.#target.failed(error)
      answers = [lostOrRefused(error)]
    }
    const refused: Run<Payload>[] = []
    runs.forEach((run, at) => {
      const touch = touches[at] ?? bare(run)
      const answer = answers[at] ?? { say: 'continue' }
      if (answer.say !== 'refused') {
        run.sent(touch)
      } else if (touch.progress !== null || touch.log !== null) {
        run.refused(touch)
        refused.push(run)
      }
      this.#target.answered(run, answer)
    })
    // Their leases were not extended.
    if (refused.length > 0) await this.#say(refused, refused.map(bare), replyMs)
  }
}

function bare(run: Run<unknown>): Touch {
  return { ...held(run), progress: null, log: null }
}

function shortestLease(runs: readonly Run<unknown>[]): number {
  return Math.min(...runs.map((run) => run.popped.leaseMs))
}
