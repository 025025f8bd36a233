// One connection to the server. A connection that is lost is thrown away, and the next command
// opens another. ioredis neither repeats commands nor keeps them, so the caller hears what became
// of a command, and decides.
import { Redis, type RedisOptions } from 'ioredis'
import { DiskFailed, errorOf, Loading, ReadOnly, ServerError, Unreachable } from './errors.js'
import type { Reply } from './reply.js'
import { sleep } from './time.js'
import type { Words } from './words.js'

/** Where the server is. */
export interface ServerOptions {
  /**
   * `redis://[user:password@]host[:port][/database]`, or `rediss://` for TLS. By default the
   * environment's SLUICE_URL, else `redis://localhost:6379`.
   */
  url?: string
  /** Options of ioredis beside the URL, or in place of it: Sentinel, TLS, credentials. */
  redis?: RedisOptions
}

/** The command was sent, and the connection was lost before its reply came. */
export class Interrupted extends Unreachable {
  override get name(): string {
    return 'Unreachable'
  }
}

/** The link was closed by its owner. */
export class Closed extends Unreachable {
  override get name(): string {
    return 'Unreachable'
  }
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000
const OPEN_MS = 10_000  // for one attempt; a frozen server accepts and says nothing

export class Link {
  readonly #server: ServerOptions
  readonly #name: string
  #redis: Redis | null = null
  #opening: Promise<Redis> | null = null
  readonly #lost = new Set<(reason: Error) => void>()
  readonly #ending = new AbortController()
  #clientId: number | null = null

  constructor(server: ServerOptions, name: string) {
    this.#server = server
    this.#name = name
  }

  /** The present connection's number for CLIENT UNBLOCK; null without one, or without the right. */
  get clientId(): number | null {
    return this.#redis === null ? null : this.#clientId
  }

  /**
   * Sends the command and returns its reply. An error reply is thrown as a `ServerError`. For
   * `connectMs` it tries to get a connection, else it throws `Unreachable`; a reply that takes
   * longer than `replyMs` costs the connection, and is `Interrupted`.
   */
  async call(words: Words, connectMs: number, replyMs: number): Promise<Reply> {
    const redis = await this.#connect(connectMs)
    return await this.#within(redis, replyMs, this.#send(redis, words))
  }

  /** The same for several commands in one go: what `call` gives for each. */
  async pipeline(
    commands: readonly Words[], connectMs: number, replyMs: number,
  ): Promise<PromiseSettledResult<Reply>[]> {
    const redis = await this.#connect(connectMs)
    const outcomes: PromiseSettledResult<Reply>[] = []
    const answered = commands.map((words, at) => this.#send(redis, words).then(
      (value) => { outcomes[at] = { status: 'fulfilled', value } },
      (error: unknown) => { outcomes[at] = { status: 'rejected', reason: asOurs(error) } }))
    let reason: unknown
    await this.#within(redis, replyMs, Promise.all(answered)).catch((error) => (reason = error))
    return commands.map((_words, at) => outcomes[at] ?? { status: 'rejected', reason })
  }

  /** Connects, if there is no connection. Throws `Unreachable` after `connectMs`. */
  async open(connectMs: number): Promise<void> {
    await this.#connect(connectMs)
  }

  /** Ends the present connection, if there is one: the next command opens another. */
  drop(why: string): void {
    if (this.#redis !== null) this.#lose(this.#redis, new Interrupted(why))
  }

  close(): void {
    this.#ending.abort()
    if (this.#redis !== null) this.#lose(this.#redis, new Closed('the connection was closed'))
  }

  // What is sent in one turn of the event loop is one write.
  #send(redis: Redis, words: Words): Promise<Reply> {
    const { stream } = redis
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(() => stream.uncork())
    }
    const [command, ...rest] = words
    return redis.callBuffer(command, rest) as Promise<Reply>
  }

  async #within<T>(redis: Redis, replyMs: number, replies: Promise<T>): Promise<T> {
    let lose: (reason: Error) => void = () => undefined
    const lost = new Promise<never>((_resolve, reject) => (lose = reject))
    this.#lost.add(lose)
    const timer = setTimeout(
      () => this.#lose(redis, new Interrupted(`no reply within ${replyMs} ms`)), replyMs)
    try {
      return await Promise.race([replies, lost])
    } catch (error) {
      if (redis.status !== 'ready') this.#lose(redis, new Interrupted('the connection was lost'))
      throw asOurs(error)
    } finally {
      clearTimeout(timer)
      this.#lost.delete(lose)
    }
  }

  // Tries until the time is over; the attempt that is under way is everybody's.
  async #connect(connectMs: number): Promise<Redis> {
    const deadline = performance.now() + connectMs
    let failure: unknown
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (this.#ending.signal.aborted) throw new Closed('the connection was closed')
      if (this.#redis !== null) return this.#redis
      try {
        this.#opening ??= this.#open().finally(() => (this.#opening = null))
        return await within(this.#opening, deadline - performance.now())
      } catch (error) {
        // Why an earlier attempt has failed says more than that the last one was not finished.
        if (!(error instanceof Late) || failure === undefined) failure = error
      }
      const left = deadline - performance.now()
      if (left <= 0 || isRefusal(failure)) throw asUnreachable(failure)
      await sleep(Math.min(pause * (0.5 + Math.random() / 2), left), this.#ending.signal)
    }
  }

  async #open(): Promise<Redis> {
    const redis = newRedis(this.#server, this.#name)
    let failure: Error | null = null
    redis.on('error', (error: Error) => (failure = error))
    redis.on('end', () => this.#lose(redis, new Interrupted('the connection was lost')))
    try {
      await within(this.#handshake(redis), OPEN_MS)
      // A refused password does not keep ioredis from being ready.
      if (failure !== null) throw failure
      if (redis.status !== 'ready') throw new Interrupted('the connection was lost')
    } catch (error) {
      redis.disconnect()
      throw failure ?? error
    }
    if (this.#ending.signal.aborted) {
      redis.disconnect()
      throw new Closed('the connection was closed')
    }
    this.#redis = redis
    return redis
  }

  async #handshake(redis: Redis): Promise<void> {
    await redis.connect()
    this.#clientId = await redis.client('ID').catch(() => null)
  }

  #lose(redis: Redis, reason: Error): void {
    redis.disconnect()
    if (this.#redis !== redis) return
    this.#redis = null
    for (const lose of [...this.#lost]) lose(reason)
  }
}

/** The same command may succeed later: the server is away, or says so. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ServerError) return error.temporary
  return error instanceof Unreachable && !(error instanceof Closed)
}

/** The server is away, or about to come or go. With an error reply nothing was done. */
export function isOutage(error: unknown): boolean {
  return error instanceof Loading || error instanceof DiskFailed || error instanceof ReadOnly ||
    (error instanceof Unreachable && !(error instanceof Closed))
}

/** The URL without its password, for messages. */
export function shownUrl(server: ServerOptions): string {
  return urlOf(server).replace(/\/\/([^@/]*)@/, '//')
}

function urlOf(server: ServerOptions): string {
  return server.url ?? process.env['SLUICE_URL'] ?? 'redis://localhost:6379'
}

function newRedis(server: ServerOptions, name: string): Redis {
  const options: RedisOptions = {
    keepAlive: 30_000,
    connectionName: name,
    ...server.redis,
    lazyConnect: true,
    enableReadyCheck: false,
    enableOfflineQueue: false,
    autoResubscribe: false,
    maxRetriesPerRequest: null,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
  }
  const elsewhere = server.url === undefined && server.redis !== undefined &&
    (server.redis.host ?? server.redis.path ?? server.redis.sentinels) !== undefined
  return elsewhere ? new Redis(options) : new Redis(urlOf(server), options)
}

class Late extends Error {}

function within<T>(promise: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_resolve, reject) => {
    timer = setTimeout(() => reject(new Late('no connection in time')), Math.max(ms, 1))
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

// An error reply to AUTH or SELECT: another try has the same answer.
function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' &&
    !error.message.startsWith('LOADING')
}

function asOurs(error: unknown): unknown {
  if (!(error instanceof Error) || error instanceof Unreachable) return error
  if (error.name === 'ReplyError') return errorOf(error.message)
  return new Interrupted(error.message, { cause: error })
}

function asUnreachable(error: unknown): Error {
  if (error instanceof Unreachable) return error
  if (!(error instanceof Error)) return new Unreachable(String(error))
  if (error.name === 'ReplyError') return errorOf(error.message)
  return new Unreachable(error.message, { cause: error })
}
