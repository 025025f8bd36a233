// The loop of a worker: it takes jobs, runs them, and says how they ended.
import { randomBytes } from 'node:crypto'
import { isMainThread } from 'node:worker_threads'
import { codecOf, type Codec } from '../codec.js'
import { SluiceError } from '../errors.js'
import { Closed, isTemporary, Link } from '../link.js'
import { shownUrl } from '../server.js'
import { sleep } from '../time.js'
import { hasTracing, inTrace } from '../trace.js'
import { encoded, whole } from '../words.js'
import {
  MOST_PAIRS, popWords, readJobs, tagsOfPopped, type EndAnswer, type PopRequest, type PopStyle,
  type Popped, type TouchAnswer,
} from './commands.js'
import { tellEnds } from './ends.js'
import { Heartbeat } from './heartbeat.js'
import { insist, Refusal, type Insisting } from './insist.js'
import {
  loggerOf, uniqueName, type Hooks, type Logger, type WorkerOptions,
} from './options.js'
import {
  Cancelled, endingOf, givenBack, LeaseLost, messageOf, refused, ShuttingDown, withoutResult,
  type Ending,
} from './outcome.js'
import { planNext } from './plan.js'
import { EXTRA, Run, Runs, Unrun, type Context, type WorkerJob } from './run.js'
import { onSignal } from './signals.js'

/** Runs one job; what it returns is the job's result. */
export type Handler<Payload, Result> =
  (job: WorkerJob<Payload>, context: Context) => Promise<Result> | Result

const BLOCK_MS = 5000
const SLACK_MS = 2000
const REPLY_MS = 5000
const REPEAT_MS = 100  // between the first two repeats of a pop that waits
const LONGEST_REPEAT_MS = 1000
const LAST_WORDS_MS = 5000  // for what is to be said once no run is waited for

export class Worker<Payload = unknown, Result = unknown> {
  /** The name that leases, events and `Q.STATS … BY WORKER` show. */
  readonly name: string
  /**
   * Resolves when both connections are there and the first jobs were asked for. Is rejected as
   * `run` is if they do not come about, and by `Unreachable` if the worker is stopped before.
   */
  readonly ready: Promise<void>
  readonly #queues: readonly string[]
  readonly #handler: Handler<Payload, Result>
  readonly #options: WorkerOptions<Payload, Result>
  readonly #codec: Codec
  readonly #traces: boolean
  readonly #logger: Logger
  readonly #style: PopStyle
  readonly #commands: Link
  readonly #blocking: Link
  readonly #heartbeat: Heartbeat<Payload>
  readonly #insisting: Insisting = {
    replyMs: REPLY_MS, failed: (error) => this.#troubled(error),
  }
  readonly #runs = new Runs<Payload>()
  #ended: (Run<Payload> | Unrun)[] = []
  #settling = false
  #pop: PopRequest | null = null
  readonly #tokens = randomBytes(8).toString('hex')
  #pops = 0
  #waiting: { readonly pop: PopRequest, readonly answered: Promise<boolean> } | null = null
  #draining = false
  readonly #givenBack = new Set<string>()
  #turn: NodeJS.Immediate | null = null
  #accepting = false
  #dry = false
  #taken = 0
  readonly #quiet = new Set<string>()  // queues
  #signalled = false
  #away = false
  #running: Promise<void> | null = null
  readonly #stopping = new AbortController()
  readonly #graceOver = new AbortController()
  #failure: unknown = null
  readonly #notify = new Set<() => void>()
  #becomeReady: () => void = () => undefined
  #neverReady: (reason: unknown) => void = () => undefined

  /**
   * A worker for one queue, or for several in the order in which they are tried. It has two
   * connections: one for commands, one on which it waits for jobs.
   *
   * @throws TypeError - a name has a lone surrogate, which UTF-8 cannot express
   * @throws RangeError - without a queue, or a `concurrency` or `maxJobs` that is no whole number
   */
  constructor(
    queues: string | readonly string[], handler: Handler<Payload, Result>,
    options: WorkerOptions<Payload, Result> = {},
  ) {
    if (queues.length === 0) throw new RangeError('a worker needs a queue')
    requireWhole('concurrency', options.concurrency ?? 1, 1)
    requireWhole('maxJobs', options.maxJobs ?? 0, 0)
    this.name = whole('name', options.name ?? uniqueName())
    this.#queues = typeof queues === 'string' ? [queues] : queues
    for (const queue of this.#queues) whole('queue', queue)
    for (const key of options.match ?? []) whole('match', key)
    this.#handler = handler
    this.#options = options
    this.#codec = codecOf(options.codec)
    this.#traces = hasTracing()
    this.#logger = loggerOf(options.logger)
    this.#style = {
      queues: this.#queues,
      worker: this.name,
      match: options.match ?? [],
      lease: options.lease && Math.round(options.lease),
      cap: options.cap,
      with: extraFields(options.with ?? [], this.#traces),
    }
    this.#commands = new Link(options, 'sluice-worker')
    this.#blocking = new Link(options, 'sluice-worker-pop')
    this.#heartbeat = new Heartbeat({
      commands: this.#commands,
      worker: this.name,
      runs: () => this.#runs.running(),
      answered: (run, answer) => this.#touched(run, answer),
      quiet: (queue, quiet) => this.#becameQuiet(queue, quiet),
      failed: (error) => {
        if (isTemporary(error)) return this.#troubled(error)
        this.#refusedAll('Q.TOUCH', error)
        this.#graceOver.abort()  // Without heartbeats the leases do not last that long.
      },
    }, options.heartbeat ?? 1000)
    this.ready = new Promise((resolve, reject) => {
      this.#becomeReady = resolve
      this.#neverReady = reject
    })
    this.ready.catch(() => undefined)  // run() says it, too.
  }

  /**
   * Whether a queue gives this worker no jobs (`Q.CONFIG … WORKER … SET quiet`), as far as it
   * knows: heartbeats say it for the queues whose jobs run, and a job says that its queue gives
   * some. A worker without jobs hears of no change.
   */
  get quiet(): boolean {
    return this.#quiet.size > 0
  }

  /** The jobs that run at present. */
  get active(): number {
    return this.#runs.size
  }

  /**
   * Takes jobs and runs them until the worker is stopped: by `stop`, by SIGTERM or SIGINT, by
   * `burst` or `maxJobs`. It is called once.
   *
   * On SIGTERM it takes no more jobs, lets those that run end within `grace`, and gives the rest
   * back. If a handler still runs after that the process exits with code 1, as soon as its other
   * workers have ended. A second signal ends the grace.
   *
   * @throws Unreachable - there was no first connection in time
   * @throws ServerError - the server refuses what a worker needs: NoPermission, Adopted, …
   */
  run(): Promise<void> {
    if (this.#running !== null) throw new Error('run() was called before')
    return (this.#running = this.#live())
  }

  /**
   * Takes no more jobs, and resolves when those that run have ended. Once `grace` is over (by
   * default the option's) their signals are aborted and they are given back.
   */
  async stop(options: { grace?: number } = {}): Promise<void> {
    this.#beginStop(options.grace ?? this.#options.grace ?? 30_000)
    await this.#running?.catch(() => undefined)
  }

  async #live(): Promise<void> {
    const unlisten = this.#listen()
    try {
      await this.#connect()
      this.#accepting = !this.#stopping.signal.aborted
      this.#pump()
      if (this.#accepting) this.#becomeReady()
      else this.#neverReady(new Closed('the worker was stopped'))
      await this.#until(() => this.#isOver(), this.#stopping.signal)
      this.#accepting = false
      await this.#drain()
    } finally {
      this.#graceOver.abort()
      this.#heartbeat.stop()
      this.#commands.close()
      this.#blocking.close()
      const hangs = this.#signalled && this.#runs.size > 0
      if (hangs) this.#logger.error(`worker ${this.name}: ${this.#runs.size} handlers do not end`)
      unlisten(hangs)
    }
    if (this.#failure !== null) throw this.#failure
  }

  async #connect(): Promise<void> {
    const ms = this.#options.connectTimeout ?? 10_000
    const opened = Promise.all([this.#commands.open(ms), this.#blocking.open(ms)])
    opened.catch(this.#neverReady)
    await Promise.race([opened, this.#until(() => false, this.#stopping.signal)])
    if (this.#stopping.signal.aborted) return
    this.#logger.info(`worker ${this.name}: connected to ${shownUrl(this.#options)}`)
  }

  // -- What to do next --------------------------------------------------------------------------

  // Runs that end in the same turn of the event loop are told together.
  #pump(): void {
    this.#turn ??= setImmediate(() => {
      this.#turn = null
      this.#next()
      for (const notify of [...this.#notify]) notify()
    })
  }

  #next(): void {
    const plan = planNext({
      accepting: this.#accepting && !this.#dry,
      free: (this.#options.concurrency ?? 1) - this.#runs.size,
      left: (this.#options.maxJobs ?? Infinity) - this.#taken,
      popping: this.#pop !== null,
      settling: this.#settling,
      ended: this.#ended.length,
      carriesPop: this.#queues.length === 1 && this.#ended.some((end) => end.ending.kind === 'ack'),
    })
    if (plan.settle !== null) void this.#settle(plan.settle.count)
    if (plan.pop > 0) void this.#take(plan.pop)
  }

  // Never a token of an earlier worker of this name.
  #newPop(count: number): PopRequest {
    return { token: `${this.#tokens}-${++this.#pops}`, count }
  }

  // Asks for jobs on the connection that blocks.
  async #take(count: number): Promise<void> {
    const pop = (this.#pop = this.#newPop(count))
    if (this.#options.burst) {
      await this.#takeBy(this.#commands, pop, null)
    } else {
      this.#waiting = { pop, answered: this.#takeBy(this.#blocking, pop, BLOCK_MS) }
      await this.#waiting.answered
      this.#waiting = null
    }
    // A pop that is being ended is over when that is done.
    if (!this.#draining) this.#pop = null
    this.#pump()
  }

  // False if it is not known what the pop has come to.
  async #takeBy(link: Link, pop: PopRequest, blockMs: number | null): Promise<boolean> {
    try {
      const { reply } = await insist(link, popWords(this.#style, pop, blockMs), {
        ...this.#insisting,
        replyMs: (blockMs ?? 0) + SLACK_MS,
        again: () => !this.#draining,
      })
      this.#away = false
      this.#begin(readJobs(reply, this.#queues))
      return true
    } catch (error) {
      if (!this.#draining) this.#refusedAll('Q.POP', error)
      return false
    }
  }

  // Tells the ends that are known, and pops in the same command if there is nothing to wait for.
  async #settle(count: number): Promise<void> {
    const finished = this.#ended.splice(0, MOST_PAIRS)
    const carries = count > 0 && finished.some((end) => end.ending.kind === 'ack')
    const pop = carries ? (this.#pop = this.#newPop(count)) : null
    this.#settling = true
    const told = await tellEnds(
      this.#commands, finished, this.#style, pop, this.#insisting,
      (each, answer) => { if (each instanceof Run) this.#told(each, answer) })
    this.#ended.push(...told.again)
    if (pop !== null) this.#begin(told.jobs)
    else this.#dry = false
    if (told.failure !== null) this.#refusedAll('the end of a run', told.failure)
    else this.#away = false
    this.#settling = false
    if (pop !== null) this.#pop = null
    this.#pump()
  }

  // -- Runs -------------------------------------------------------------------------------------

  #begin(jobs: readonly Popped[]): void {
    this.#dry = jobs.length === 0 && this.#options.burst === true
    if (!this.#accepting) return this.#giveBack(jobs)
    if (this.#quiet.size > 0) for (const { queue } of jobs) this.#becameQuiet(queue, false)
    let shortestLease = Infinity
    for (const popped of jobs) {
      ++this.#taken
      const run = this.#newRun(popped)
      if (run === null) continue
      this.#runs.add(run)
      shortestLease = Math.min(shortestLease, popped.leaseMs)
      this.#execute(run)
    }
    if (this.#runs.size > 0) this.#heartbeat.expect(shortestLease)
  }

  #newRun(popped: Popped): Run<Payload> | null {
    try {
      return new Run<Payload>(popped, this.#codec)
    } catch (error) {
      this.#logger.warn(`job ${popped.id}: its payload cannot be read: ${messageOf(error)}`)
      this.#ended.push(new Unrun(popped, refused('payload', error)))
      return null
    }
  }

  #execute(run: Run<Payload>): void {
    this.#hook('onStarted', run.job)
    let got: Promise<Result> | Result
    try {
      got = this.#traces ? inTrace(tagsOfPopped(run.popped), () => this.#call(run))
        : this.#call(run)
    } catch (error) {
      return this.#failed(run, error)
    }
    // Only an object can be a promise.
    if (Object(got) !== got) return this.#completed(run, got as Result)
    void Promise.resolve(got).then(
      (result) => this.#completed(run, result), (error: unknown) => this.#failed(run, error))
  }

  #completed(run: Run<Payload>, result: Result): void {
    this.#ran(run, this.#acknowledgement(result), result, null)
  }

  #failed(run: Run<Payload>, error: unknown): void {
    this.#ran(run, endingOf(error, run.stopped), undefined, error)
  }

  #ran(run: Run<Payload>, ending: Ending, result: Result | undefined, failure: unknown): void {
    this.#runs.delete(run)
    if (run.state === 'running') this.#finish(run, ending, result, failure)
    this.#pump()
  }

  #call(run: Run<Payload>): Promise<Result> | Result {
    return this.#handler(run.job, run.context)
  }

  #acknowledgement(result: Result): Ending {
    if (result === undefined) return withoutResult
    try {
      return { kind: 'ack', result: encoded(this.#codec.encode(result)) }
    } catch (error) {
      return refused('result', error)
    }
  }

  #finish(
    run: Run<Payload>, ending: Ending, result: Result | undefined, failure: unknown,
  ): void {
    run.state = 'ended'
    run.ending = ending
    run.result = result
    run.failure = failure
    this.#ended.push(run)
  }

  #told(run: Run<Payload>, answer: EndAnswer): void {
    const { job, ending } = run
    if (answer !== 'done') this.#lose(run)
    else if (ending.kind === 'ack') this.#hook('onCompleted', job, run.result as Result)
    else this.#hook('onFailed', job, run.failure ?? new SluiceError(ending.error))
  }

  // Two replies to the same pop have the same jobs.
  #giveBack(jobs: readonly Popped[]): void {
    for (const popped of jobs) {
      const lease = `${popped.lease} ${popped.queue}`
      if (this.#givenBack.has(lease)) continue
      this.#givenBack.add(lease)
      this.#ended.push(new Unrun(popped, givenBack))
    }
  }

  #touched(run: Run<Payload>, answer: TouchAnswer): void {
    this.#away = false
    if (run.state !== 'running') return
    if (answer.say === 'stop') run.stop(new Cancelled(answer.reason))
    if (answer.say === 'lost') this.#lose(run)
    if (answer.say === 'refused') {
      this.#logger.warn(`job ${run.job.id}: progress or log was refused: ${answer.error.message}`)
    }
  }

  #lose(run: Run<Payload>): void {
    run.state = 'lost'
    this.#logger.warn(`job ${run.job.id}: its lease is lost`)
    run.stop(new LeaseLost(`id=${run.job.id}`))
    this.#hook('onLost', run.job)
  }

  // -- The end ----------------------------------------------------------------------------------

  #isOver(): boolean {
    const idle = this.#runs.size === 0 && this.#ended.length === 0 && !this.#settling
    if (this.#options.maxJobs !== undefined && this.#taken >= this.#options.maxJobs && idle) {
      return true
    }
    return this.#dry && idle && this.#pop === null
  }

  #beginStop(grace: number): void {
    if (!this.#stopping.signal.aborted) {
      this.#logger.info(`worker ${this.name}: stopping, ${this.#runs.size} jobs run`)
    }
    this.#accepting = false
    this.#stopping.abort()
    if (this.#running === null) return
    void sleep(grace, this.#graceOver.signal).then(() => this.#graceOver.abort())
  }

  async #drain(): Promise<void> {
    void this.#endPop()
    await this.#until(() => this.#runs.size === 0 && this.#allTold(), this.#graceOver.signal)
    for (const run of this.#runs.running()) {
      const reason = new ShuttingDown('the grace is over')
      this.#finish(run, givenBack, undefined, reason)
      run.stop(reason)
    }
    this.#pump()
    const last = new AbortController()
    const timer = setTimeout(() => last.abort(), LAST_WORDS_MS)
    await this.#until(() => this.#pop === null && this.#allTold(), last.signal)
    clearTimeout(timer)
  }

  // Ends the pop that waits, by the same pop without waiting. What either of them returns is given
  // back: no lease is left without an owner.
  async #endPop(): Promise<void> {
    const waiting = this.#waiting
    if (waiting === null) return
    this.#draining = true
    if (this.#blocking.clientId === null) this.#blocking.close()  // It is not sent any more.
    try {
      // One that its repeat has overtaken waits after all, until the next repeat.
      const known = new AbortController()
      const answered = waiting.answered.finally(() => known.abort())
      for (let pause = REPEAT_MS; !known.signal.aborted;
        pause = Math.min(pause * 2, LONGEST_REPEAT_MS)) {
        await this.#popOnce(waiting.pop)
        await sleep(pause, known.signal)
      }
      // Its own reply: null, or the same jobs. If that is lost it may have been served since.
      if (!(await answered)) await this.#popOnce(waiting.pop)
    } catch (error) {
      this.#refusedAll('Q.POP', error)
    }
    this.#pop = null
    this.#pump()
  }

  async #popOnce(pop: PopRequest): Promise<void> {
    const { reply } = await insist(
      this.#commands, popWords(this.#style, pop, null), this.#insisting)
    this.#giveBack(readJobs(reply, this.#queues))
  }

  // The server knows how each run has ended.
  #allTold(): boolean {
    return this.#ended.length === 0 && !this.#settling
  }

  // Resolves when the condition holds, which is checked after each change, or on an abort.
  #until(condition: () => boolean, signal: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!signal.aborted && !condition()) return
        this.#notify.delete(look)
        signal.removeEventListener('abort', look)
        resolve()
      }
      this.#notify.add(look)
      signal.addEventListener('abort', look)
      look()
    })
  }

  #listen(): (handlerHangs: boolean) => void {
    if (this.#options.signals === false || !isMainThread) return () => undefined
    return onSignal(() => {
      if (this.#stopping.signal.aborted) return this.#graceOver.abort()
      this.#signalled = true
      void this.stop()
    })
  }

  // -- What goes wrong --------------------------------------------------------------------------

  // Said once for each time that the server is away.
  #troubled(error: unknown): void {
    if (this.#away) return
    this.#away = true
    this.#logger.warn(`worker ${this.name}: ${messageOf(error)}; it is tried again`)
  }

  #refusedAll(what: string, error: unknown): void {
    const reason = reasonOf(error)
    if (!(reason instanceof Closed)) this.#fail(what, reason)
  }

  #fail(what: string, error: unknown): void {
    this.#logger.error(`worker ${this.name}: ${what} was refused: ${messageOf(error)}`)
    this.#failure ??= error
    this.#beginStop(this.#options.grace ?? 30_000)
  }

  #becameQuiet(queue: string, quiet: boolean): void {
    if (quiet === this.#quiet.has(queue)) return
    this.#logger.info(`worker ${this.name}: it is ${quiet ? '' : 'no longer '}quiet in ${queue}`)
    if (quiet) this.#quiet.add(queue)
    else this.#quiet.delete(queue)
  }

  #hook(name: 'onStarted' | 'onLost', job: WorkerJob<Payload>): void
  #hook(name: 'onCompleted', job: WorkerJob<Payload>, result: Result): void
  #hook(name: 'onFailed', job: WorkerJob<Payload>, error: unknown): void
  #hook(name: keyof Hooks<Payload, Result>, job: WorkerJob<Payload>, value?: unknown): void {
    const hook = this.#options[name] as
      ((job: WorkerJob<Payload>, value: unknown) => unknown) | undefined
    if (hook === undefined) return
    const failed = (error: unknown): void =>
      this.#logger.error(`the hook ${name} threw: ${messageOf(error)}`)
    try {
      const returned = hook.call(this.#options, job, value)
      if (returned instanceof Promise) returned.catch(failed)  // of an async function
    } catch (error) {
      failed(error)
    }
  }
}

function extraFields(chosen: readonly (keyof typeof EXTRA)[], traces: boolean): string[] {
  const fields = new Set<string>(chosen.map((name) => EXTRA[name]))
  if (traces) fields.add(EXTRA.tags)  // they have the traceparent
  return [...fields]
}

function requireWhole(name: string, value: number, least: number): void {
  if (value >= least && Math.floor(value) === value) return
  throw new RangeError(`${name} is a whole number from ${least}, not ${value}`)
}

function reasonOf(error: unknown): unknown {
  return error instanceof Refusal ? error.reason : error
}
