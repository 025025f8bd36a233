// A command that is sent until it is answered.
import { Interrupted, isTemporary, type Link } from '../link.js'
import type { Reply } from '../reply.js'
import { sleep } from '../time.js'
import type { Words } from '../words.js'

const CONNECT_MS = 5000
const PAUSE_MS = 250
const INTERRUPTED_MS = 20

export interface Answer {
  readonly reply: Reply
  /** An earlier try was sent, and may have been done. */
  readonly repeated: boolean
}

/** An error reply, and whether an earlier try may have been done. */
export class Refusal extends Error {
  constructor(readonly reason: unknown, readonly repeated: boolean) {
    super('refused', { cause: reason })
  }
}

export interface Insisting {
  readonly replyMs: number
  /** Told of each try that has failed. */
  readonly failed: (error: unknown) => void
  /** Whether it is sent again; always, without it. */
  readonly again?: () => boolean
  /** What was sent ahead of it, and must be done first: resolves when that is answered. */
  readonly after?: Promise<unknown>
}

/** Throws a `Refusal` for what another try would not change, or after the last try. */
export async function insist(
  link: Pick<Link, 'call' | 'connected'>, words: Words, how: Insisting,
): Promise<Answer> {
  let repeated = false
  for (let isFirst = true; ; isFirst = false) {
    // What is sent over one connection is done in this order.
    if (how.after !== undefined && !(isFirst && link.connected)) await how.after
    try {
      return { reply: await link.call(words, CONNECT_MS, how.replyMs), repeated }
    } catch (error) {
      if (!isTemporary(error)) throw new Refusal(error, repeated)
      how.failed(error)
      if (how.again?.() === false) throw new Refusal(error, repeated)
      if (error instanceof Interrupted) repeated = true
      await sleep(error instanceof Interrupted ? INTERRUPTED_MS : PAUSE_MS)
    }
  }
}
