// One run of a handler: what it is given, and what is sent about it.
import { decodeProgress, encodeWith, type Codec } from '../codec.js'
import { bytesOf, mapOf, orNull, textOf, type Reply } from '../reply.js'
import { tagsOfPopped, type Held, type Popped, type Touch } from './commands.js'
import type { Finished } from './ends.js'
import { withoutResult, type Ending } from './outcome.js'

/** A job as its handler gets it. */
export interface WorkerJob<Payload = unknown> {
  readonly queue: string
  readonly id: string
  readonly payload: Payload
  /** The number of this run, from 1. */
  readonly attempt: number
  /** The token of the lease. It grows from run to run: what is downstream can refuse stale ones. */
  readonly lease: number
  /** The term of the lease in milliseconds; the worker extends it. */
  readonly leaseTerm: number
  /** With `with: ['tags']`. */
  readonly tags: Readonly<Record<string, string>>
  /** With `with: ['group']`. */
  readonly group: string
  /**
   * What an earlier run has reported last, with `with: ['progress']`: decoded; a `Buffer` if the
   * codec cannot decode it, null without.
   */
  readonly progress: unknown
  /** Of the last run that failed, with `with: ['error']`. */
  readonly error: string | null
  /**
   * The results of the jobs that this one needed, with `with: ['needResults']`; undefined for one
   * without a result, or beyond 4 MB.
   */
  readonly needResults: ReadonlyMap<string, unknown>
}

/** What a handler works with, beside its job. */
export interface Context {
  /**
   * Aborted when the run is to stop: `signal.reason` is `Cancelled`, `LeaseLost` or `ShuttingDown`.
   * Pass it on, or call `signal.throwIfAborted()` between steps.
   */
  readonly signal: AbortSignal
  /**
   * Shows how far the run is. The last value counts; it is sent with the next heartbeat.
   *
   * @throws CodecError - the codec cannot encode it
   */
  progress(value: unknown): void
  /** Appends to the log of the job. It is sent with heartbeats, and twice if a reply is lost. */
  log(text: string): void
}

const LOG_AT_ONCE = 16 * 1024
const MOST_LOG = 1024 * 1024
// Shared by the runs that have none, which are nearly all of them.
const NOTHING = Buffer.alloc(0)
const NO_TOUCHES: readonly Touch[] = []
const NO_RESULTS: ReadonlyMap<string, unknown> = new Map()

/** The words of `WITH` by the names of the option. */
export const EXTRA = {
  tags: 'tags', group: 'group', progress: 'progress', error: 'error', needResults: 'need_results',
} as const

export class Run<Payload> implements Finished {
  readonly popped: Popped
  readonly job: WorkerJob<Payload>
  readonly context: Context
  readonly #codec: Codec
  /** `running` until the end is known here; then no heartbeat names it. */
  state: 'running' | 'ended' | 'lost' = 'running'
  /** Once it has ended: what the server is told, what the handler returned, or has thrown. */
  ending: Ending = withoutResult
  result: unknown
  failure: unknown = null
  saying: Promise<void> | null = null
  /** Where it is in `Runs`. */
  place = 0
  #aborting: AbortController | null = null  // made when it is needed, which most runs do without
  #progress: Buffer | string | null = null
  #log: Buffer = NOTHING
  #logged = ''  // behind that
  #trimmed = 0  // bytes of the log that were dropped since the last heartbeat

  /** Throws what the codec throws. */
  constructor(popped: Popped, codec: Codec) {
    this.popped = popped
    this.#codec = codec
    this.job = readJob<Payload>(popped, codec)
    this.context = new RunContext(this)
  }

  get queue(): string {
    return this.popped.queue
  }

  get id(): string {
    return this.popped.id
  }

  get lease(): number {
    return this.popped.lease
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  setProgress(value: unknown): void {
    this.#progress = encodeWith(this.#codec, value)
  }

  appendLog(text: string): void {
    this.#logged += text
    if (this.#logged.length > MOST_LOG) this.#encodeLog()
  }

  #encodeLog(): void {
    if (this.#logged === '') return
    const log = Buffer.concat([this.#log, Buffer.from(this.#logged)])
    const excess = Math.max(log.length - MOST_LOG, 0)
    this.#logged = ''
    this.#log = log.subarray(excess)
    this.#trimmed += excess
  }

  get #controller(): AbortController {
    return (this.#aborting ??= new AbortController())
  }

  get stopped(): boolean {
    return this.#aborting !== null && this.#aborting.signal.aborted
  }

  stop(reason: Error): void {
    if (!this.stopped) this.#controller.abort(reason)
  }

  /** What a heartbeat says; `sent` or `refused` follows if it has arrived. */
  touch(): Touch {
    this.#encodeLog()
    this.#trimmed = 0
    const log = this.#log.length === 0 ? null : this.#log.subarray(0, LOG_AT_ONCE)
    return { ...held(this.popped), progress: this.#progress, log }
  }

  sent(touch: Touch): void {
    if (this.#progress === touch.progress) this.#progress = null
    if (touch.log === null) return
    this.#log = this.#log.subarray(Math.max(touch.log.length - this.#trimmed, 0))
  }

  /** The server does not take the progress, or without one the log. */
  refused(touch: Touch): void {
    this.sent(touch.progress === null ? touch : { ...touch, log: null })
  }

  rest(): readonly Touch[] {
    if (this.#progress === null && this.#log.length === 0 && this.#logged === '') return NO_TOUCHES
    const touches: Touch[] = []
    for (let touch = this.touch(); touch.progress !== null || touch.log !== null;
      touch = this.touch()) {
      touches.push(touch)
      this.sent(touch)
    }
    return touches
  }
}

/** A job that is held and not run: what is told is its end alone. */
export class Unrun implements Finished {
  readonly queue: string
  readonly id: string
  readonly lease: number
  readonly saying = null

  constructor({ queue, id, lease }: Held, public ending: Ending) {
    this.queue = queue
    this.id = id
    this.lease = lease
  }

  rest(): readonly Touch[] {
    return NO_TOUCHES
  }
}

// What a handler does not use is not made. A class, since an object literal with an accessor costs
// some kilobytes.
class RunContext implements Context {
  readonly #run: Run<unknown>

  constructor(run: Run<unknown>) {
    this.#run = run
  }

  get signal(): AbortSignal {
    return this.#run.signal
  }

  get progress(): Context['progress'] {
    return (value) => this.#run.setProgress(value)
  }

  get log(): Context['log'] {
    return (text) => this.#run.appendLog(text)
  }
}

/**
 * The runs of a worker. A Set that grows and shrinks all the time leaves a chain of its old tables
 * behind, each with its elements: they would be kept until the next collection of all memory.
 */
export class Runs<Payload> {
  readonly #runs: Run<Payload>[] = []

  get size(): number {
    return this.#runs.length
  }

  add(run: Run<Payload>): void {
    run.place = this.#runs.length
    this.#runs.push(run)
  }

  /** The last one takes its place. */
  delete(run: Run<Payload>): void {
    const last = this.#runs.pop()
    if (last === undefined || last === run) return
    last.place = run.place
    this.#runs[last.place] = last
  }

  /** Those that have neither ended nor lost their lease. */
  running(): Run<Payload>[] {
    return this.#runs.filter((run) => run.state === 'running')
  }
}

export function held({ queue, id, lease }: Held): Held {
  return { queue, id, lease }
}

function readJob<Payload>(popped: Popped, codec: Codec): WorkerJob<Payload> {
  const { extra, queue, id, lease } = popped
  const hasExtra = extra.size > 0  // which most jobs have not
  return {
    queue,
    id,
    lease,
    payload: codec.decode(popped.payload) as Payload,
    attempt: popped.attempt,
    leaseTerm: popped.leaseMs,
    tags: hasExtra ? tagsOfPopped(popped) : {},
    group: hasExtra ? orNull(extra.get('group'), textOf) ?? '' : '',
    progress: hasExtra ? progress(extra.get('progress'), codec) : null,
    error: hasExtra ? orNull(extra.get('error'), textOf) : null,
    needResults: hasExtra ? needResults(extra.get('need_results'), codec) : NO_RESULTS,
  }
}

function progress(reply: Reply | undefined, codec: Codec): unknown {
  return orNull(reply, (bytes) => decodeProgress(codec, bytesOf(bytes)))
}

function needResults(reply: Reply | undefined, codec: Codec): ReadonlyMap<string, unknown> {
  if (reply === null || reply === undefined) return NO_RESULTS
  return new Map([...mapOf(reply)].map(([id, result]) => {
    const bytes = orNull(result, bytesOf)
    return [id, bytes === null || bytes.length === 0 ? undefined : codec.decode(bytes)]
  }))
}
