// A job as the server describes it (Q.GET).
import { decodeProgress, decodeWith, type Codec } from './codec.js'
import {
  bytesOf, fieldName, isArray, mapOf, numberOf, orNull, tagsOf, textOf, textsOf, yesOrNo,
  type Reply,
} from './reply.js'
import type { AddOptions } from './words.js'

/** The states of a job; the last four are its ends. */
export type State =
  | 'blocked' | 'delayed' | 'pending' | 'active' | 'completed' | 'failed' | 'cancelled' | 'expired'

/** What a job has of its own, as `Queue.add` takes it for another job. */
export type OwnOptions = Readonly<
  Pick<AddOptions, 'boost' | 'ttl' | 'lease' | 'maxRun' | 'retry' | 'backoff'>>

/** A job as it is now. Times are unix milliseconds, durations milliseconds. */
export interface JobInfo<Payload = unknown, Result = unknown> {
  readonly id: string
  readonly state: State
  /** Whether its state is an end. */
  readonly ended: boolean
  /** The pending jobs before it by band and rank; null unless pending. */
  readonly position: number | null
  /** In how many milliseconds it would start if nothing were added; null while unknown. */
  readonly eta: number | null
  /** Why it waits, one code with its figures; null for a job that does not wait. */
  readonly why: string | null
  readonly pri: string
  readonly group: string
  readonly keys: readonly string[]
  readonly tags: Readonly<Record<string, string>>
  readonly cost: number
  readonly enqueued: number
  /** Of a delayed job: when it becomes pending. */
  readonly notBefore: number | null
  readonly ttlLeft: number | null
  /** Of an active job: the token. */
  readonly lease: number | null
  /** The term of its leases. */
  readonly leaseTerm: number
  readonly maxRun: number
  readonly attempts: number
  readonly crashes: number
  readonly retriesLeft: number
  readonly needs: readonly string[]
  readonly after: readonly string[]
  readonly worker: string | null
  readonly deadline: number | null
  readonly started: number | null
  /** Of an active job that was told to stop: the reason. */
  readonly cancel: string | null
  readonly finished: number | null
  readonly run: number | null
  /** Of the last failure, or the reason of the cancellation. */
  readonly error: string | null
  /** What its run has reported last, decoded; a `Buffer` if that cannot be; null without. */
  readonly progress: unknown
  /** Whether another payload waits under this id. */
  readonly successor: boolean
  /** Only if they were asked for; without those that it was not given. */
  readonly options?: OwnOptions
  /** Only if it was asked for. */
  readonly payload?: Payload
  /** Only if it was asked for; undefined also if the run gave no result, or no bytes. */
  readonly result?: Result
}

export function isEnd(state: State): boolean {
  return state === 'completed' || state === 'failed' || state === 'cancelled' || state === 'expired'
}

function readOptions(reply: Reply): OwnOptions {
  const given = [...mapOf(reply)].filter(([, value]) => value !== null)
  return Object.fromEntries(given.map(([name, value]): [string, number | number[]] => [
    fieldName(name), isArray(value) ? value.map(numberOf) : numberOf(value)])) as OwnOptions
}

/** Reads the reply of Q.GET. */
export function readInfo<Payload, Result>(reply: Reply, codec: Codec): JobInfo<Payload, Result> {
  const map = mapOf(reply)
  const field = (name: string): Reply => map.get(name) ?? null
  const number = (name: string): number | null => orNull(field(name), numberOf)
  const text = (name: string): string | null => orNull(field(name), textOf)
  const texts = (name: string): string[] => orNull(field(name), textsOf) ?? []
  const payload = orNull(field('payload'), bytesOf)
  const result = orNull(field('result'), bytesOf)
  const options = orNull(field('options'), readOptions)
  const progress = orNull(field('progress'), bytesOf)
  const state = textOf(field('state')) as State
  return {
    id: textOf(field('id')),
    state,
    ended: isEnd(state),
    position: number('position'),
    eta: number('eta_ms'),
    why: text('why'),
    pri: text('pri') ?? '',
    group: text('group') ?? '',
    keys: texts('keys'),
    tags: orNull(field('tags'), tagsOf) ?? {},
    cost: number('cost') ?? 1,
    enqueued: number('enqueued') ?? 0,
    notBefore: number('not_before'),
    ttlLeft: number('ttl_left_ms'),
    lease: number('lease'),
    leaseTerm: number('lease_ms') ?? 0,
    maxRun: number('max_run_ms') ?? 0,
    attempts: number('attempts') ?? 0,
    crashes: number('crashes') ?? 0,
    retriesLeft: number('retries_left') ?? 0,
    needs: texts('needs'),
    after: texts('after'),
    worker: text('worker'),
    deadline: number('deadline'),
    started: number('started'),
    cancel: text('cancel'),
    finished: number('finished'),
    run: number('run_ms'),
    error: text('error'),
    progress: progress === null ? null : decodeProgress(codec, progress),
    successor: orNull(field('successor'), yesOrNo) ?? false,
    ...(options === null ? {} : { options }),
    ...(payload === null ? {} : { payload: decodeWith(codec, payload, 'payload') as Payload }),
    ...(result === null || result.length === 0 ? {}
      : { result: decodeWith(codec, result, 'result') as Result }),
  }
}
