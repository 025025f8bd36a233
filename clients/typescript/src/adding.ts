// Adding a job exactly once over connections that may be lost: what to send, and what a reply means
// after an earlier try whose reply was lost.
import { randomUUID } from 'node:crypto'
import {
  BadField, GroupFull, NeedFailed, NoJob, OutOfMemory, Paused, QueueFull, TooBig, TooLate, Unknown,
} from './errors.js'
import { isOutage, isUncertain, type Link } from './link.js'
import type { Reply } from './reply.js'
import { sleep } from './time.js'
import { addWords, whole, type AddOptions, type Word, type Words } from './words.js'

const PAUSE_MS = 50
export const TRY_MS = 10_000  // then the connection is taken for dead
// Each says that the job is not there. Q.ADD looks for it before it refuses one, but for TOOBIG,
// which an earlier try had as well.
const NOT_THERE = [BadField, GroupFull, NeedFailed, NoJob, Paused, QueueFull, TooBig, TooLate]

/** One Q.ADD with all its tries. */
export interface Addition {
  readonly id: string
  /** The client made the id: it is nobody else's. */
  readonly ownId: boolean
  readonly first: Words
  /** Whether it may be sent again after a try whose outcome is not known. */
  readonly repeats: boolean
}

/** The id is made before the first try, so that a repeat names the same job. */
export function additionOf(queue: string, payload: Buffer | string, options: AddOptions): Addition {
  // A repeat of * is another job. Without types an id may be null as well.
  const given = options.id === '*' ? undefined : options.id ?? undefined
  const id = whole('id', given) ?? randomUUID()
  const first: Words = ['Q.ADD', queue, id, payload, ...addWords(options),
    ...(options.ifdup === undefined ? [] : ['IFDUP', options.ifdup])]
  first.forEach(requireWord)
  const ownId = given === undefined
  const repeats = ownId || options.ifdup === undefined || options.ifdup === 'error' ||
    options.ifdup === 'keep'
  return { id, ownId, first, repeats }
}

// What is not typed may be anything. If it were found as it is sent it would end a pipeline of
// which a part is sent.
function requireWord(word: unknown, at: number, words: readonly Word[]): void {
  if (typeof word === 'string' || typeof word === 'number' || Buffer.isBuffer(word)) return
  throw new TypeError(`after ${words[at - 1]} comes a string or a number, not ${String(word)}`)
}

/**
 * Sends it until it is answered, for at most `patienceMs`. Throws `Unknown`, with what was the case
 * last as its cause, if the job may or may not have been added. `sent` is the first try, if that is
 * made already.
 */
export async function addSafely(
  link: Pick<Link, 'call'>, addition: Addition, patienceMs: number, sent?: Promise<Reply>,
): Promise<Reply> {
  let first = sent
  const deadline = performance.now() + patienceMs
  let words = addition.first
  let uncertain = false
  for (;;) {
    const left = Math.max(deadline - performance.now(), 1)
    try {
      const tryMs = addition.repeats ? Math.min(left, TRY_MS) : left
      return await (first ?? link.call(words, left, tryMs))
    } catch (error) {
      first = undefined
      const isOver = performance.now() >= deadline
      if (isUncertain(error)) uncertain = true
      // A full memory refuses an add whether the job is there or not.
      const isSilent = isOutage(error) || (uncertain && error instanceof OutOfMemory)
      if (isOver || !isSilent || (uncertain && !addition.repeats)) {
        const mayBeThere = uncertain && !NOT_THERE.some((refusal) => error instanceof refusal)
        throw mayBeThere ? new Unknown(addition.id, { cause: error }) : error
      }
      if (uncertain && addition.ownId) words = [...addition.first, 'IFDUP', 'keep']
      await sleep(PAUSE_MS)
    }
  }
}
