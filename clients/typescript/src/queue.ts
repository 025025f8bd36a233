// A queue, for programs that add jobs and wait for their results.
import { additionOf, addSafely, TRY_MS, type Addition } from './adding.js'
import { codecOf, encodeWith, type Codec } from './codec.js'
import { Forgotten, NotCompleted, ResultTimeout, Unknown } from './errors.js'
import { follow, type EventsOptions, type QueueEvent } from './events.js'
import { readInfo, type JobInfo, type State } from './info.js'
import { Job, type AddOutcome } from './job.js'
import { Closed, isOutage, isTemporary, isUncertain, Link } from './link.js'
import { sharedLinks, type SharedLinks } from './pool.js'
import { mapOf, numberOf, orNull, textOf, type Reply } from './reply.js'
import { hasEnded, type Awaited } from './results.js'
import type { ServerOptions } from './server.js'
import { readLines, readStats, statsWords, type Stats, type StatsOptions } from './stats.js'
import { later, letManyListen, sleep } from './time.js'
import { withTraceparent } from './trace.js'
import { whole, type AddOptions, type Word, type Words } from './words.js'

/** Options of a `Queue`. */
export interface QueueOptions extends ServerOptions {
  /** How payloads, results and progress become bytes; `json` by default. */
  codec?: 'json' | 'raw' | Codec
  /**
   * How long a call may take, with all its tries, in milliseconds (30,000). Then it throws
   * `Unreachable`, or `Unknown` if it may have added a job.
   */
  patience?: number
}

/** Options of `result`. */
export interface ResultOptions {
  /**
   * How long to wait for the end of the job, in milliseconds; 0: an end that is there already.
   * Without it: as long as it takes.
   */
  timeout?: number
  /** Ends the wait: the promise is rejected with the signal's reason. */
  signal?: AbortSignal
}

/** A job for `addMany`. */
export interface NewJob<Payload> extends AddOptions {
  payload: Payload
}

const PATIENCE_MS = 30_000
const AT_ONCE = 500  // adds of a pipeline
const PIPELINES = 2
const PAUSE_MS = 50  // before a repeat
const ONCE_MS = 1000  // for the connection of what is tried once
const LOOK_MS = 1000  // for the last look at a job
const REPLY_MS = 5000

/**
 * A queue of a Sluice server. All queues of a process that name the same server share one
 * connection for commands; one more for each queue waits for results, and one for each `events`.
 *
 * Every method throws `Unreachable` if there is no connection in time, a `ServerError` for what the
 * server refuses, and a `TypeError` for an id or another name with a lone surrogate, which UTF-8
 * cannot express.
 */
export class Queue<Payload = unknown, Result = unknown> {
  readonly name: string
  readonly #server: ServerOptions
  readonly #codec: Codec
  readonly #patience: number
  readonly #awaited = new Set<Awaited>()
  #links: SharedLinks | null = null
  readonly #followed = new Set<Link>()
  #closed = false

  /** @throws TypeError - the name has a lone surrogate, which UTF-8 cannot express */
  constructor(name: string, options: QueueOptions = {}) {
    this.name = whole('queue', name)
    this.#server = options
    this.#codec = codecOf(options.codec)
    this.#patience = options.patience ?? PATIENCE_MS
  }

  /**
   * Adds a job. A lost connection does not lose it or add it twice: the add is repeated under the
   * same id, which the client made unless the caller gave one.
   *
   * @throws CodecError - the payload cannot be encoded; nothing was sent
   * @throws QueueFull, GroupFull, Paused, TooLate, TooBig - the server refuses the job
   * @throws Duplicate - the id that the caller gave is in use
   * @throws Unknown - the connection was lost, and whether this call added the job is not known:
   *   the time is over, the queue was closed, the caller's id is in use on a repeat, a repeat is
   *   refused before the server looks for the job (`NoPermission`, …), or `ifdup` is `update` or
   *   `replace`. What was the case is its `cause`
   */
  async add(payload: Payload, options: AddOptions = {}): Promise<Job<Payload, Result>> {
    const addition = this.#addition(payload, options)
    return this.#added(addition, await addSafely(this.#commands(), addition, this.#patience))
  }

  /**
   * Adds many jobs, at most 1,000 of them in flight. In place of each stands what `add` gives for
   * it, in the form of `Promise.allSettled`: one that is refused does not hinder the others. Each
   * pipeline may take `patience`; behind one whose time has passed without a server, it is tried
   * once.
   */
  async addMany(
    jobs: Iterable<NewJob<Payload>>,
  ): Promise<PromiseSettledResult<Job<Payload, Result>>[]> {
    const source = [...jobs]
    const outcomes: PromiseSettledResult<Job<Payload, Result>>[] = []
    let next = 0
    let patienceMs = this.#patience
    const pipeline = async (): Promise<void> => {
      while (next < source.length) {
        const first = next
        next += AT_ONCE
        const deadline = performance.now() + patienceMs
        const added = await this.#addAtOnce(source.slice(first, next), deadline)
        added.forEach((outcome, at) => (outcomes[first + at] = outcome))
        const isAway = performance.now() >= deadline && added.some(isLost)
        patienceMs = isAway ? 0 : this.#patience
      }
    }
    await Promise.all(Array.from({ length: PIPELINES }, pipeline))
    return outcomes
  }

  /**
   * The job as it is now; null if it is unknown, or no longer kept.
   *
   * @throws CodecError - the payload or the result cannot be decoded
   */
  async get(
    id: string, options: { with?: readonly ('payload' | 'result' | 'options')[] } = {},
  ): Promise<JobInfo<Payload, Result> | null> {
    const fields = (options.with ?? []).flatMap((field): Word[] => ['WITH', field])
    const reply = await this.#call(['Q.GET', this.name, whole('id', id), ...fields])
    return reply === null ? null : readInfo<Payload, Result>(reply, this.#codec)
  }

  /**
   * Waits for the end of the job and returns its result; undefined if the run gave none. While the
   * server is away it waits on. Where a successor takes the id, it waits for the successor's end.
   *
   * @throws NotCompleted - the job has failed, was cancelled or has expired
   * @throws Forgotten - the job is not kept, or its queue is gone
   * @throws ResultTimeout - it had not ended in time, as a last look has shown, unless there was no
   *   answer to that within a second
   * @throws CodecError - the result cannot be decoded
   */
  async result(id: string, options: ResultOptions = {}): Promise<Result> {
    options.signal?.throwIfAborted()
    const reply = await this.#awaitEnd(whole('id', id), options)
    if (reply === null) throw new Forgotten(id)
    const info = readInfo<Payload, Result>(reply, this.#codec)
    if (info.state !== 'completed') throw new NotCompleted(id, info.state, info.error ?? '')
    return info.result as Result
  }

  /**
   * Cancels a job. `cancelled`: it has ended. `signalled`: it runs and was told to stop; it has the
   * rest of its lease for that, or `grace` milliseconds. `gone`: it had ended, or is unknown.
   *
   * @throws Unknown - the reply was lost; once sent it is not repeated
   */
  async cancel(
    id: string, options: { reason?: string, grace?: number } = {},
  ): Promise<'cancelled' | 'signalled' | 'gone'> {
    const words: Word[] = []
    if (options.reason !== undefined) words.push('REASON', whole('reason', options.reason))
    if (options.grace !== undefined) words.push('GRACE', Math.round(options.grace))
    return textOf(await this.#callOnce(id, ['Q.CANCEL', this.name, whole('id', id), ...words])) as
      'cancelled' | 'signalled' | 'gone'
  }

  /**
   * Makes an ended job wait again, and returns its state.
   *
   * @throws Unknown - the reply was lost; once sent it is not repeated, since the job may have run
   *   and ended again
   * @throws NoJob - it is unknown, or no longer kept
   */
  async retry(id: string): Promise<State> {
    return textOf(await this.#callOnce(id, ['Q.RETRY', this.name, whole('id', id)])) as State
  }

  /** What the queue holds and has done; with `by` a line for each band, group, key, … */
  stats(
    options: StatsOptions & { by: NonNullable<StatsOptions['by']> },
  ): Promise<Map<string, Stats>>
  stats(options?: StatsOptions): Promise<Stats>
  async stats(options: StatsOptions = {}): Promise<Stats | Map<string, Stats>> {
    const reply = await this.#call(['Q.STATS', this.name, ...statsWords(options)])
    return options.by === undefined ? readStats(reply) : readLines(reply)
  }

  /**
   * The queue's events, one after the other, for as long as the loop runs. To resume, pass the
   * `seq` of the last event as `from`.
   *
   * @throws Trimmed - events after `from` are no longer kept
   */
  events(options: EventsOptions = {}): AsyncGenerator<QueueEvent, void, undefined> {
    this.#refuseClosed()
    for (const id of options.ids ?? []) whole('id', id)
    const link = new Link(this.#server, 'sluice-events')
    this.#followed.add(link)
    return follow(link, this.name, options, () => this.#followed.delete(link))
  }

  /**
   * Ends the waits of this queue and the loops over its events, and its connections if no other
   * queue uses them. Then waits throw; loops end as if there were no more events.
   */
  close(): void {
    this.#closed = true
    for (const link of this.#followed) link.close()
    for (const awaited of [...this.#awaited]) awaited.failed(new Closed('the queue was closed'))
    this.#links?.release(this.name)
    this.#links = null
  }

  #addition(payload: Payload, options: AddOptions): Addition {
    return additionOf(this.name, encodeWith(this.#codec, payload), withTraceparent(options))
  }

  #added(addition: Addition, reply: Reply): Job<Payload, Result> {
    const map = mapOf(reply)
    return new Job(this, {
      id: textOf(map.get('id')),
      // A repeat keeps what the first try added.
      outcome: addition.ownId ? 'added' : textOf(map.get('result')) as AddOutcome,
      state: textOf(map.get('state')) as State,
      position: orNull(map.get('position'), numberOf),
      eta: orNull(map.get('eta_ms'), numberOf),
    })
  }

  // One pipeline; what it does not settle is sent again, each job by itself.
  async #addAtOnce(
    jobs: readonly NewJob<Payload>[], deadline: number,
  ): Promise<PromiseSettledResult<Job<Payload, Result>>[]> {
    const outcomes: PromiseSettledResult<Job<Payload, Result>>[] = []
    const additions: Addition[] = []
    const places: number[] = []
    jobs.forEach((job, at) => {
      try {
        additions.push(this.#addition(job.payload, job))
        places.push(at)
      } catch (reason) {
        outcomes[at] = { status: 'rejected', reason }
      }
    })
    const replies = await this.#sendAtOnce(additions.map(({ first }) => first), deadline)
    await Promise.all(additions.map((addition, at) => {
      const place = places[at] ?? 0
      const reply = replies[at]
      if (reply?.status === 'fulfilled') {
        outcomes[place] = { status: 'fulfilled', value: this.#added(addition, reply.value) }
        return undefined
      }
      const left = deadline - performance.now()
      const again = async (): Promise<Job<Payload, Result>> => this.#added(addition,
        await addSafely(this.#commands(), addition, left, Promise.reject(reply?.reason)))
      return again().then(
        (value) => { outcomes[place] = { status: 'fulfilled', value } },
        (reason: unknown) => { outcomes[place] = { status: 'rejected', reason } })
    }))
    return outcomes
  }

  async #sendAtOnce(
    commands: readonly Words[], deadline: number,
  ): Promise<PromiseSettledResult<Reply>[]> {
    try {
      const connectMs = Math.max(deadline - performance.now(), ONCE_MS)
      return await this.#commands().pipeline(commands, connectMs, TRY_MS)
    } catch (reason) {
      return commands.map(() => ({ status: 'rejected', reason }))
    }
  }

  #shared(): SharedLinks {
    this.#refuseClosed()
    return (this.#links ??= sharedLinks(this.#server, this.name))
  }

  #refuseClosed(): void {
    if (this.#closed) throw new Closed(`the queue ${this.name} was closed`)
  }

  #commands(): Link {
    return this.#shared().commands
  }

  // What only reads: it does no harm when it is repeated.
  #call(words: Words): Promise<Reply> {
    return this.#repeat(words, isOutage)
  }

  // Repeated as long as it is certain that nothing was done with the job.
  async #callOnce(id: string, words: Words): Promise<Reply> {
    try {
      return await this.#repeat(words, (error) => isOutage(error) && !isUncertain(error))
    } catch (error) {
      throw isUncertain(error) ? new Unknown(id, { cause: error }) : error
    }
  }

  async #repeat(words: Words, may: (error: unknown) => boolean): Promise<Reply> {
    const deadline = performance.now() + this.#patience
    for (;;) {
      const left = Math.max(deadline - performance.now(), 1)
      try {
        return await this.#commands().call(words, left, left)
      } catch (error) {
        if (!may(error) || performance.now() >= deadline) throw error
        await sleep(PAUSE_MS)
      }
    }
  }

  #awaitEnd(id: string, { timeout, signal }: ResultOptions): Promise<Reply> {
    // What is only looked at needs nobody who follows it.
    const waiter = timeout !== undefined && timeout <= 0 ? null : this.#shared().waiter(this.name)
    return new Promise((resolve, reject) => {
      const abort = (): void => awaited.failed(signal?.reason)
      const finish = (): void => {
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        waiter?.remove(awaited)
        this.#awaited.delete(awaited)
      }
      const awaited: Awaited = {
        id,
        ended: (reply: Reply): void => { finish(); resolve(reply) },
        failed: (error: unknown): void => { finish(); reject(error) },
      }
      const timer = timeout === undefined
        ? undefined
        : later(timeout, () => void this.#lastLook(awaited))
      if (signal !== undefined) letManyListen(signal)
      signal?.addEventListener('abort', abort)
      this.#awaited.add(awaited)
      waiter?.add(awaited)
    })
  }

  // An end of which nobody has heard yet is not missed.
  async #lastLook(awaited: Awaited): Promise<void> {
    const late = later(LOOK_MS, () => awaited.failed(new ResultTimeout(awaited.id)))
    try {
      const words: Words = ['Q.GET', this.name, awaited.id, 'WITH', 'result']
      const reply = await this.#commands().call(words, LOOK_MS, REPLY_MS)
      if (hasEnded(reply)) return awaited.ended(reply)
    } catch (error) {
      if (!isTemporary(error)) return awaited.failed(error)
    } finally {
      clearTimeout(late)
    }
    awaited.failed(new ResultTimeout(awaited.id))
  }
}

// Whether the server was away for it.
function isLost(outcome: PromiseSettledResult<unknown>): boolean {
  return outcome.status === 'rejected' &&
    (isOutage(outcome.reason) || outcome.reason instanceof Unknown)
}
