// The commands of a worker and what their replies mean. No I/O.
import { NoJob, ServerError, StaleLease, errorOf } from '../errors.js'
import {
  arrayOf, bytesOf, isArray, mapOf, numberOf, orNull, tagsOf, textOf, yesOrNo, type Reply,
} from '../reply.js'
import type { Word, Words } from '../words.js'
import type { Ending } from './outcome.js'

export const MOST_PAIRS = 256
const NO_EXTRA: ReadonlyMap<string, Reply> = new Map()

/** A job that is held: what every command about it names. */
export interface Held {
  readonly queue: string
  readonly id: string
  readonly lease: number
}

/**
 * Divides what is said about jobs into commands: each is about one queue, names a job once, and has
 * at most MOST_PAIRS of them, and `mostBytes` or a single one. A job is held twice if its lease ran
 * out and the next one came here, too.
 */
export function inCommands<Each extends Held>(
  all: readonly Each[], bytesOf: (each: Each) => number = () => 0, mostBytes = Infinity,
): Each[][] {
  interface Open { readonly command: Each[], readonly ids: Set<string>, bytes: number }
  const open = new Map<string, Open>()
  const commands: Each[][] = []
  let queue: string | undefined
  let last: Open | undefined
  for (const each of all) {
    const bytes = bytesOf(each)
    if (each.queue !== queue) last = open.get(queue = each.queue)
    if (last === undefined || last.command.length === MOST_PAIRS || last.ids.has(each.id) ||
      last.bytes + bytes > mostBytes) {
      last = { command: [], ids: new Set(), bytes: 0 }
      open.set(queue, last)
      commands.push(last.command)
    }
    last.command.push(each)
    last.ids.add(each.id)
    last.bytes += bytes
  }
  return commands
}

/** A job as a pop hands it out. */
export interface Popped extends Held {
  readonly attempt: number
  readonly payload: Buffer
  readonly leaseMs: number
  readonly extra: ReadonlyMap<string, Reply>
}

/** What every pop of a worker says. */
export interface PopStyle {
  readonly queues: readonly string[]
  readonly worker: string
  readonly match: readonly string[]
  readonly lease: number | undefined
  readonly cap: number | undefined
  readonly with: readonly string[]
}

/** One pop with all its tries: the same token gets the same jobs. */
export interface PopRequest {
  readonly token: string
  readonly count: number
}

function popOptions(style: PopStyle, pop: PopRequest, blockMs: number | null): Word[] {
  const words: Word[] = [
    'WORKER', style.worker, 'REQID', pop.token, 'COUNT', pop.count, 'BRIEF',
  ]
  if (blockMs !== null) words.push('BLOCK', blockMs)
  if (style.lease !== undefined) words.push('LEASE', style.lease)
  if (style.cap !== undefined) words.push('CAP', style.cap)
  for (const key of style.match) words.push('MATCH', key)
  for (const field of style.with) words.push('WITH', field)
  return words
}

export function popWords(style: PopStyle, pop: PopRequest, blockMs: number | null): Words {
  return ['Q.POP', style.queues.length, ...style.queues, ...popOptions(style, pop, blockMs)]
}

/** The jobs of Q.POP … BRIEF with these queues; none for null. */
export function readJobs(reply: Reply, queues: readonly string[]): Popped[] {
  const only = queues.length === 1 ? queues[0] : undefined
  return reply === null ? [] : arrayOf(reply).map((job) => readJob(job, only))
}

function readJob(reply: Reply, only: string | undefined): Popped {
  const job = arrayOf(reply)  // not taken apart by its iterator, which is slow at first
  return {
    queue: only ?? textOf(job[0]),
    id: textOf(job[1]),
    lease: numberOf(job[2]),
    attempt: numberOf(job[3]),
    payload: bytesOf(job[4]),
    leaseMs: numberOf(job[5]),
    extra: job[6] === undefined ? NO_EXTRA : mapOf(job[6]),
  }
}

/** The field `tags` of a popped job; empty if it was not asked for. */
export function tagsOfPopped(job: Popped): Record<string, string> {
  return orNull(job.extra.get('tags'), tagsOf) ?? {}
}

/** A run that has ended, and what is to be said about it. */
export interface Ended extends Held {
  readonly ending: Ending
}

/** The acknowledgement of some runs of one queue, with the next pop in it if `pop` is given. */
export function ackWords(
  ended: readonly Ended[], style: PopStyle, pop: PopRequest | null,
): Words {
  const words = pairs(ended, (words, ending) => {
    if (ending.kind === 'ack' && ending.result !== null) words.push('RESULT', ending.result)
  })
  if (pop !== null) words.push('POP', ...popOptions(style, pop, null))
  return ['Q.ACK', ...words]
}

export function nackWords(ended: readonly Ended[]): Words {
  return ['Q.NACK', ...pairs(ended, (words, ending) => {
    if (ending.kind === 'ack') return
    words.push(ending.mode)
    if (ending.delay !== undefined) words.push('DELAY', ending.delay)
    if (ending.error !== undefined) words.push('ERROR', ending.error)
  })]
}

function pairs(
  ended: readonly Ended[], addOptions: (words: Word[], ending: Ending) => void,
): Word[] {
  const words: Word[] = [ended[0]?.queue ?? '']
  ended.forEach((each, at) => {
    if (at > 0) words.push('AND')
    words.push(each.id, each.lease)
    addOptions(words, each.ending)
  })
  return words
}

/** What is said about a run that has not ended. */
export interface Touch extends Held {
  readonly progress: Buffer | string | null
  readonly log: Buffer | null
}

export function touchWords(touches: readonly Touch[], worker: string): Words {
  const queue = touches[0]?.queue ?? ''
  return ['Q.TOUCH', queue, ...touches.flatMap((each, at): Word[] => [
    ...(at === 0 ? [] : ['AND']), each.id, each.lease,
    ...(each.progress === null ? [] : ['PROGRESS', each.progress]),
    ...(each.log === null ? [] : ['LOG', each.log]),
  ]), 'WORKER', worker]
}

/** What the server says about a run that was touched. */
export type TouchAnswer = { say: 'continue' } | { say: 'stop', reason: string } | { say: 'lost' } |
  { say: 'refused', error: ServerError }

/** The reply of Q.TOUCH for `count` leases. An error of the whole command is thrown. */
export function readTouch(
  reply: Reply, count: number,
): { quiet: boolean, answers: TouchAnswer[] } {
  if (count === 1) {
    const map = mapOf(reply)
    const quiet = orNull(map.get('quiet'), yesOrNo) ?? false
    return { quiet, answers: [touchAnswer(map.get('cancel') ?? null)] }
  }
  const [quiet, answers] = arrayOf(reply)
  return { quiet: yesOrNo(quiet), answers: arrayOf(answers).map(touchAnswer) }
}

function touchAnswer(reply: Reply): TouchAnswer {
  if (reply === null) return { say: 'continue' }
  if (reply instanceof Error) return lostOrRefused(errorOf(reply.message))
  return { say: 'stop', reason: textOf(reply) }
}

/** What an error about one lease means. */
export function lostOrRefused(error: ServerError): TouchAnswer & { say: 'lost' | 'refused' } {
  if (error instanceof NoJob || error instanceof StaleLease) return { say: 'lost' }
  return { say: 'refused', error }
}

/** What has become of a run that has ended. */
export type EndAnswer = 'done' | 'lost' | { readonly refused: ServerError }

/**
 * The answer for one run. `repeated`: an earlier try of the same command may have been done. Then a
 * job that is unknown was acknowledged, and forgotten since; a run that was given back is no longer
 * this one's.
 */
export function endAnswer(reply: Reply, ending: Ending, repeated: boolean): EndAnswer {
  if (!(reply instanceof Error)) return 'done'
  const error = reply instanceof ServerError ? reply : errorOf(reply.message)
  if (error instanceof NoJob) return repeated ? 'done' : 'lost'
  if (error instanceof StaleLease) return repeated && ending.kind === 'nack' ? 'done' : 'lost'
  return { refused: error }
}

/** The answers to each run of an ACK or NACK; if it had a POP of these queues, their jobs. */
export function readEnds(
  reply: Reply, count: number, popped: readonly string[] | null,
): { answers: readonly Reply[], jobs: Popped[] } {
  if (popped === null) return { answers: count > 1 ? arrayOf(reply) : [reply], jobs: [] }
  if (count > 1) {
    const [answers, jobs] = arrayOf(reply)
    return { answers: arrayOf(answers), jobs: readJobs(jobs ?? null, popped) }
  }
  if (reply instanceof Error) return { answers: [reply], jobs: [] }
  return { answers: ['OK'], jobs: isArray(reply) ? readJobs(reply, popped) : [] }
}
