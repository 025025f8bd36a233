// The number of the newest event of a queue, from which a reader of its ends misses nothing.
import type { Link } from './link.js'
import { arrayOf, numberOf } from './reply.js'

const NOBODY = '\0'  // no job has this id

/**
 * The number of an event that was the newest after the call began; 0 if there are no events. Each
 * command looks at many events, tells none of them, and replies a mark: how far it has looked.
 */
export async function newestEvent(
  link: Link, queue: string, connectMs: number, replyMs: number,
): Promise<number> {
  for (let last: number | '-' = '-'; ;) {
    const reply = await link.call(['Q.EVENTS', queue, last, 'ID', NOBODY], connectMs, replyMs)
    const mark = reply === null ? undefined : arrayOf(reply).at(-1)
    if (mark === undefined) return last === '-' ? 0 : last
    last = numberOf(arrayOf(mark)[0])
  }
}
