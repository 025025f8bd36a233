// One connection to the server. A connection that is lost is thrown away, and the next command
// opens another. ioredis neither repeats commands nor keeps them, so the caller hears what became
// of a command, and decides.
import { Command, type Redis } from 'ioredis'
import {
  Busy, DiskFailed, errorOf, Loading, NoReplicas, PrimaryDown, ReadOnly, ServerError, SluiceError,
  Unreachable,
} from './errors.js'
import type { Reply } from './reply.js'
import { checkServer, newRedis, type ServerOptions } from './server.js'
import { later, letManyListen, sleep } from './time.js'
import { Waits } from './waits.js'
import { encodedCommand, type Words } from './words.js'

/** The command was sent, and what became of it is not known: its reply is lost, or says so. */
export class Interrupted extends Unreachable {
  override get name(): string {
    return 'Unreachable'
  }
}

/** The link was closed by its owner. */
export class Closed extends Unreachable {
  /** `sent`: the command was sent, and its reply had not come. */
  constructor(message: string, readonly sent = false) {
    super(message)
  }

  override get name(): string {
    return 'Unreachable'
  }
}

const FIRST_PAUSE_MS = 50
const LONGEST_PAUSE_MS = 1000
const OPEN_MS = 10_000  // for one attempt; a frozen server accepts and says nothing
const LOST = 'the connection was lost'
const CLOSED = 'the connection was closed'
const FULL = 'ERR max number of clients'  // what a server says that takes no more connections

// What is known of one connection. It is retired when the server cannot do what it is for: then it
// answers what it was sent, and is closed after that.
interface Connection {
  readonly redis: Redis
  readonly clientId: number | null
  readonly waits: Waits
  retired: boolean
}

// ioredis would look at each word several times.
class Encoded extends Command {
  readonly #words: Words

  constructor(words: Words) {
    super(words[0])
    this.#words = words
  }

  override toWritable(): string | Buffer {
    return encodedCommand(this.#words)
  }
}

export class Link {
  readonly #server: ServerOptions
  readonly #name: string
  readonly #ending = new AbortController()
  #connection: Connection | null = null
  #opening: Promise<Connection> | null = null

  /** Throws for a bad URL. */
  constructor(server: ServerOptions, name: string) {
    checkServer(server)
    this.#server = server
    this.#name = name
    letManyListen(this.#ending.signal)
  }

  /** The present connection's number for CLIENT UNBLOCK; null without one, or without the right. */
  get clientId(): number | null {
    return this.#connection?.clientId ?? null
  }

  /**
   * Sends the command and returns its reply. An error reply is thrown as a `ServerError`. For
   * `connectMs` it tries to get a connection, else it throws `Unreachable`. If nothing at all
   * arrives or leaves for `replyMs` before the reply is there, that costs the connection, and is
   * `Interrupted`.
   *
   * After an error that says that the server does not serve (`Loading`, `ReadOnly`, `NoReplicas`,
   * `PrimaryDown`) the next command opens another connection: the primary may be elsewhere by now.
   */
  async call(words: Words, connectMs: number, replyMs: number): Promise<Reply> {
    const connection = this.#connection ?? await this.#connect(connectMs)
    return await this.#within(connection, replyMs, this.#send(connection, words))
  }

  /** The same for several commands in one go: what `call` gives for each. */
  async pipeline(
    commands: readonly Words[], connectMs: number, replyMs: number,
  ): Promise<PromiseSettledResult<Reply>[]> {
    const connection = await this.#connect(connectMs)
    const outcomes: PromiseSettledResult<Reply>[] = []
    const answered = commands.map((words, at) => this.#send(connection, words).then(
      (value) => { outcomes[at] = { status: 'fulfilled', value } },
      (error: unknown) => {
        outcomes[at] = { status: 'rejected', reason: this.#asOurs(connection, error) }
      }))
    let reason: unknown
    await this.#within(connection, replyMs, Promise.all(answered))
      .catch((error) => (reason = error))
    return commands.map((_words, at) => outcomes[at] ?? { status: 'rejected', reason })
  }

  /** Whether the next command is sent at once. */
  get connected(): boolean {
    return this.#connection !== null
  }

  /** Connects, if there is no connection. Throws `Unreachable` after `connectMs`. */
  async open(connectMs: number): Promise<void> {
    await this.#connect(connectMs)
  }

  /** Ends the present connection, if there is one: the next command opens another. */
  drop(why: string): void {
    if (this.#connection !== null) this.#lose(this.#connection, new Interrupted(why))
  }

  get closed(): boolean {
    return this.#ending.signal.aborted
  }

  close(): void {
    this.#ending.abort()
    if (this.#connection !== null) {
      this.#lose(this.#connection, new Closed(CLOSED, true))
    }
  }

  // What is sent in one turn of the event loop is one write.
  #send({ redis }: Connection, words: Words): Promise<Reply> {
    const { stream } = redis
    if (stream.writableCorked === 0) {
      stream.cork()
      process.nextTick(() => stream.uncork())
    }
    return redis.sendCommand(new Encoded(words)) as Promise<Reply>
  }

  #within<T>(connection: Connection, replyMs: number, replies: Promise<T>): Promise<T> {
    const { redis, waits } = connection
    return new Promise((resolve, reject) => {
      const wait = waits.add(replyMs, reject)
      replies.then((value) => {
        if (!waits.end(wait)) return
        resolve(value)
        this.#finishIfRetired(connection)
      }, (error: unknown) => {
        if (!waits.end(wait)) return
        if (redis.status !== 'ready') this.#lose(connection, new Interrupted(LOST))
        reject(this.#asOurs(connection, error))
        this.#finishIfRetired(connection)
      })
    })
  }

  #finishIfRetired({ redis, waits, retired }: Connection): void {
    if (retired && waits.size === 0) disconnect(redis)
  }

  // Tries until the time is over; the attempt that is under way is everybody's.
  async #connect(connectMs: number): Promise<Connection> {
    const deadline = performance.now() + connectMs
    let failure: unknown
    for (let pause = FIRST_PAUSE_MS; ; pause = Math.min(pause * 2, LONGEST_PAUSE_MS)) {
      if (this.#ending.signal.aborted) throw new Closed(CLOSED)
      if (this.#connection !== null) return this.#connection
      try {
        this.#opening ??= this.#open().finally(() => (this.#opening = null))
        return await within(this.#opening, deadline - performance.now(), this.#ending.signal)
      } catch (error) {
        // Why an earlier attempt has failed says more than that the last one was not finished.
        if (!(error instanceof Late) || failure === undefined) failure = error
      }
      const left = deadline - performance.now()
      if (left <= 0 || isRefusal(failure)) throw asUnreachable(failure)
      await sleep(Math.min(pause * (0.5 + Math.random() / 2), left), this.#ending.signal)
    }
  }

  async #open(): Promise<Connection> {
    const redis = newRedis(this.#server, this.#name)
    let failure: Error | null = null
    redis.on('error', (error: Error) => (failure = error))
    try {
      const clientId = await within(handshake(redis), OPEN_MS, this.#ending.signal)
      // A refused password does not keep ioredis from being ready.
      if (failure !== null) throw failure
      if (redis.status !== 'ready') throw new Unreachable(LOST)
      if (this.#ending.signal.aborted) throw new Closed(CLOSED)
      const waits = new Waits(() => traffic(redis), (ms) =>
        this.#lose(connection, new Interrupted(`no reply within ${ms} ms`)))
      const connection: Connection = { redis, clientId, waits, retired: false }
      redis.on('end', () => this.#lose(connection, new Interrupted(LOST)))
      return (this.#connection = connection)
    } catch (error) {
      redis.disconnect()
      redis.stream?.destroy()  // A server that says nothing would not end it.
      throw failure ?? error
    }
  }

  #lose(connection: Connection, reason: Error): void {
    disconnect(connection.redis)
    if (this.#connection === connection) this.#connection = null
    connection.waits.loseAll(reason)
  }

  // The error of a command, as those outside know it.
  #asOurs(connection: Connection, error: unknown): unknown {
    if (!(error instanceof Error) || error instanceof SluiceError) return error
    if (error.name !== 'ReplyError') return new Interrupted(error.message, { cause: error })
    const ours = asUncertain(errorOf(error.message))
    if (servesNot(ours) || ours instanceof Interrupted) {
      connection.retired = true
      if (this.#connection === connection) this.#connection = null
    }
    return ours
  }
}

/** The same command may succeed later: the server is away, or says so. */
export function isTemporary(error: unknown): boolean {
  if (error instanceof ServerError) return error.temporary
  return error instanceof Unreachable && !(error instanceof Closed)
}

/** The server is away, or about to come or go. With an error reply nothing was done. */
export function isOutage(error: unknown): boolean {
  return servesNot(error) || error instanceof DiskFailed || error instanceof Busy ||
    (error instanceof Unreachable && !(error instanceof Closed))
}

/** The command was sent, and what became of it is not known. */
export function isUncertain(error: unknown): boolean {
  return error instanceof Interrupted || (error instanceof Closed && error.sent)
}

function servesNot(error: unknown): boolean {
  return error instanceof Loading || error instanceof ReadOnly || error instanceof NoReplicas ||
    error instanceof PrimaryDown
}

// A server whose journal has failed answers what it may have done, and stops.
function asUncertain(error: ServerError): ServerError | Interrupted {
  const mayBeKept = error instanceof DiskFailed && error.message.includes('may or may not')
  return mayBeKept ? new Interrupted(error.message, { cause: error }) : error
}

interface Written {
  writeQueueSize?: number
  bytesWritten?: number
}

// Changes as bytes arrive, and as those of a large command leave; not as commands are added.
function traffic({ stream }: Redis): number {
  const { _handle } = stream as typeof stream & { _handle?: Written | null }
  const { writeQueueSize = 0, bytesWritten = 0 } = _handle ?? {}
  return stream.bytesRead + (writeQueueSize > 0 ? bytesWritten - writeQueueSize : 0)
}

// What is told to end after its end has a timer of two seconds, which keeps the process.
function disconnect(redis: Redis): void {
  if (!redis.stream.destroyed) redis.disconnect()
}

class Late extends Error {}

async function handshake(redis: Redis): Promise<number | null> {
  await redis.connect()
  return await redis.client('ID').catch((error: unknown) => {
    // To a longer command the server would say that it is too long without a password.
    if (error instanceof Error && error.message.startsWith('NOAUTH')) throw error
    return null
  })
}

function within<T>(promise: Promise<T>, ms: number, ending: AbortSignal): Promise<T> {
  return new Promise((resolve, reject) => {
    const close = (): void => reject(new Closed(CLOSED))
    const timer = later(Math.max(ms, 1), () => reject(new Late('no connection in time')))
    ending.addEventListener('abort', close)
    promise.then(resolve, reject).finally(() => {
      clearTimeout(timer)
      ending.removeEventListener('abort', close)
    })
  })
}

// An error reply to AUTH or SELECT: another try has the same answer.
function isRefusal(error: unknown): boolean {
  return error instanceof Error && error.name === 'ReplyError' &&
    !error.message.startsWith('LOADING') && !error.message.startsWith(FULL)
}

function asUnreachable(error: unknown): Error {
  if (error instanceof Unreachable) return error
  if (!(error instanceof Error)) return new Unreachable(String(error))
  if (error.name === 'ReplyError' && !error.message.startsWith(FULL)) return errorOf(error.message)
  return new Unreachable(error.message, { cause: error })
}
