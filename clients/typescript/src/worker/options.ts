// What a worker is told.
import { hostname } from 'node:os'
import { randomBytes } from 'node:crypto'
import type { Codec } from '../codec.js'
import type { ServerOptions } from '../server.js'
import type { EXTRA, WorkerJob } from './run.js'

/** Where the worker says what happens; `console` is one. */
export interface Logger {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

/** Called as runs come and go. What they throw is logged, also if they are async functions. */
export interface Hooks<Payload, Result> {
  onStarted?(job: WorkerJob<Payload>): void
  /** The server has taken the result. */
  onCompleted?(job: WorkerJob<Payload>, result: Result): void
  /** The run has failed, or was cancelled, and the server knows. */
  onFailed?(job: WorkerJob<Payload>, error: unknown): void
  /** The lease was lost while the job ran: its result was not sent, or not taken. */
  onLost?(job: WorkerJob<Payload>): void
}

/** Options of a `Worker`; all times are milliseconds, and all numbers whole ones. */
export interface WorkerOptions<Payload = unknown, Result = unknown>
  extends ServerOptions, Hooks<Payload, Result> {
  /** Runs at once (1). */
  concurrency?: number
  /** Only jobs that carry one of these keys. */
  match?: readonly string[]
  /** The term of the leases, in place of the job's or the queue's. */
  lease?: number
  /** Only jobs with which at most that many slots of the queue are in use. */
  cap?: number
  /** The longest time between heartbeats (1,000); a third of the lease, if that is shorter. */
  heartbeat?: number
  /** How long runs may take to end once the worker is told to stop (30,000). */
  grace?: number
  /** How long the first connection may take (10,000). */
  connectTimeout?: number
  /** How payloads, results and progress become bytes; `json` by default. */
  codec?: 'json' | 'raw' | Codec
  /** Fields of the job that are asked for besides its payload. */
  with?: readonly (keyof typeof EXTRA)[]
  /** Ends when the queue has no job for it. */
  burst?: boolean
  /** Ends after that many jobs. */
  maxJobs?: number
  /** By default the host, the process and a random part. Two workers never have the same name. */
  name?: string
  /** SIGTERM and SIGINT stop the worker (true). Never outside of the main thread. */
  signals?: boolean
  /** By default warnings and errors go to `console`; null: nothing. */
  logger?: Logger | null
}

const ignore = (): void => undefined

const silent: Logger = { debug: ignore, info: ignore, warn: ignore, error: ignore }

export function loggerOf(chosen: Logger | null | undefined): Logger {
  if (chosen === null) return silent
  return chosen ?? { ...silent, warn: console.warn, error: console.error }
}

export function uniqueName(): string {
  return `${hostname()}:${process.pid}:${randomBytes(4).toString('hex')}`
}
